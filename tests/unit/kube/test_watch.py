from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.refs import GVK
from reconciler.errors import BadAnswer, ListExpired, MemberClusterError
from reconciler.kube import Bookmark, WatchEvent
from reconciler.kube import watch_stream as kube_watch
from reconciler.kube.kube_requests import read
from reconciler.kube.watch_stream import LineCutter, watch_event
from tests.fakes.scripted_server import status

POD = GVK("", "v1", "Pod")
REQUEST = read("/api/v1/pods", watch="1")


def event_of(kind: str, item: Any) -> WatchEvent | Bookmark:
    return watch_event("m1", json.dumps({"type": kind, "object": item}).encode(), POD, REQUEST)


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.data())
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cutter, rest = LineCutter("m1"), stream
    found: list[bytes] = []
    while rest:
        size = data.draw(st.integers(min_value=1, max_value=len(rest)))
        found += cutter.feed(rest[:size])
        rest = rest[size:]
    assert found == lines


def test_a_line_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_watch, "LINE_MAX_BYTES", 100)
    cutter = LineCutter("m1")
    assert list(cutter.feed(b"x" * 100)) == []
    with pytest.raises(BadAnswer, match="longer than 100 bytes"):
        list(cutter.feed(b"x"))


def test_a_line_that_was_cut_off_at_the_end_is_no_event() -> None:
    assert list(LineCutter("m1").feed(b'{"type":"DELETED"')) == []


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
