from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.refs import GVK
from reconciler.errors import BadAnswer, ListExpired, MemberClusterError
from reconciler.kube import Bookmark, WatchEvent
from reconciler.kube import watch_stream as kube_watch
from reconciler.kube.kube_requests import read
from reconciler.kube.watch_stream import lines_of, watch_event
from tests.fakes.scripted_server import status

POD = GVK("", "v1", "Pod")
REQUEST = read("/api/v1/pods", watch="1")


def event_of(kind: str, item: Any) -> WatchEvent | Bookmark:
    return watch_event("m1", json.dumps({"type": kind, "object": item}).encode(), POD, REQUEST)


async def lines_in(*chunks: bytes) -> list[bytes]:
    stream = StreamReader(BaseProtocol(asyncio.get_running_loop()), 2**16)
    for chunk in chunks:
        stream.feed_data(chunk)
    stream.feed_eof()
    return [line async for line in lines_of("m1", stream)]


@given(st.lists(st.binary(min_size=1).map(lambda line: b"{" + line.replace(b"\n", b"") + b"}")), st.data())
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    rest = b"".join(line + b"\n" for line in lines)
    chunks: list[bytes] = []
    while rest:
        size = data.draw(st.integers(min_value=1, max_value=len(rest)))
        chunks.append(rest[:size])
        rest = rest[size:]
    assert asyncio.run(lines_in(*chunks)) == lines


async def test_a_line_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_watch, "LINE_MAX_BYTES", 100)
    assert await lines_in(b"x" * 99 + b"\n") == [b"x" * 99]
    with pytest.raises(BadAnswer, match="longer than 100 bytes"):
        await lines_in(b"x" * 101)


async def test_a_line_that_was_cut_off_at_the_end_is_no_event() -> None:
    assert await lines_in(b'{"type":"DELETED"') == []


def test_events_and_bookmarks_are_told_apart() -> None:
    event = event_of("DELETED", {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "resourceVersion": "9"}})
    assert isinstance(event, WatchEvent)
    assert (event.type, event.object.resource_version) == ("DELETED", "9")
    assert event_of("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "12"}}) == Bookmark(
        resource_version="12"
    )


def test_an_error_event_raises_what_its_status_means() -> None:
    with pytest.raises(ListExpired):
        event_of("ERROR", status(410, "Expired", "too old resource version: 1 (200)"))
    with pytest.raises(MemberClusterError):
        event_of("ERROR", {"kind": "Status", "message": "no code"})


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b'{"type":"ADDED"}', b'{"type":"NEW","object":{}}', b"<html>"])
def test_what_is_no_event_is_an_error(line: bytes) -> None:
    with pytest.raises(BadAnswer):
        watch_event("m1", line, POD, REQUEST)
