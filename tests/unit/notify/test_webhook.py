"""A webhook on receivers that are unkind: order, ids that stay, nothing lost, nothing held in memory.

Source: design#told; RFC 9110, 10.2.3; Standard Webhooks 1.0.0.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.fleet import HistoryLimits
from reconciler.api.ledger import Event, EventKind
from reconciler.journal import Journal
from reconciler.notify import webhook
from reconciler.notify.post import TIMEOUT_S, Deliveries, Poster, addresses, pause_s
from reconciler.notify.webhook import CHECK_S, TOO_OLD_S, Webhook, WebhookOptions
from tests.fakes.clocks import TestClock
from tests.fakes.scripted_server import CUT, HANG, ScriptedServer, reply
from tests.fakes.waiting import until

PATH = "/s3cret?key=s3cret"
TAKEN = reply(204)


class Scene:
    """A journal, a receiver and a webhook between them."""

    def __init__(self, journal: Journal, server: ScriptedServer, poster: Poster, secret: Path | None) -> None:
        self.journal, self.server, self.poster, self.secret = journal, server, poster, secret
        self.clock = TestClock()
        self.kinds: frozenset[str] = frozenset()
        self.begin()

    def begin(self) -> None:
        """As after a start."""
        self.told = Deliveries()
        (address,) = addresses([self.server.url + PATH], allows_http=False)
        options = WebhookOptions(address=address, secret=self.secret, kinds=self.kinds)
        self.webhook = Webhook(
            options, self.journal, self.poster, self.clock, lambda _: None, self.told, jitter=lambda: 0.0
        )  # fmt: skip

    def happens(self, *names: str, kind: EventKind = EventKind.CREATED) -> None:
        now = self.clock.now()
        self.journal.record_events(Event(round=1, time=now, kind=kind, subject=f"ConfigMap demo/{name} @ m1")
                                   for name in names)  # fmt: skip

    @property
    def names(self) -> list[str]:
        """Return what the receiver was asked to take, in order."""
        return [json.loads(asked.body)["data"]["subject"].partition("/")[2] for asked in self.server.asked]

    @property
    def ids(self) -> list[str]:
        return [asked.headers["webhook-id"] for asked in self.server.asked]


@asynccontextmanager
async def scene(folder: Path, *script: bytes, secret: str = "") -> AsyncIterator[Scene]:
    file = folder / "secret" if secret else None
    if file is not None:
        file.write_text(secret)
    async with ScriptedServer(*(script or (TAKEN,))) as server, Poster.open() as poster:
        with Journal.open(folder / "journal.db") as journal:
            journal.record_fleet("shop")
            yield Scene(journal, server, poster, file)


async def test_what_happens_is_told_in_order_and_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        it.happens("a", "b", "c")
        assert await it.webhook.step() == CHECK_S
        it.happens("d")
        await it.webhook.step()
        await it.webhook.step()
        assert it.names == ["a", "b", "c", "d"]
        assert (it.told.delivered, it.told.pending, it.told.oldest_at) == (4, 0, "")
        assert it.server.connections == 1
        it.begin()
        await it.webhook.step()
        assert it.names == ["a", "b", "c", "d"], "a restart tells nothing again"


async def test_a_new_webhook_begins_with_now(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        it.journal.keep_receivers(())
        it.happens("long ago")
        it.begin()
        it.happens("now")
        await it.webhook.step()
        assert it.names == ["now"]


async def test_it_is_signed_with_what_the_file_holds_now(tmp_path: Path) -> None:
    async with scene(tmp_path, secret="a secret of our own") as it:
        it.happens("a")
        await it.webhook.step()
        assert it.secret is not None
        it.secret.write_text("whsec_" + base64.b64encode(b"another secret of ours").decode())
        it.happens("b")
        await it.webhook.step()
        for asked, key in zip(it.server.asked, (b"a secret of our own", b"another secret of ours"), strict=True):
            head = asked.headers
            content = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + asked.body
            expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
            assert head["webhook-signature"] == f"v1,{expected}"
            assert head["content-type"] == "application/cloudevents+json; charset=utf-8"
            assert (head["webhook-id"], asked.target) == (json.loads(asked.body)["id"], PATH)


UNKIND: dict[str, bytes] = {
    "500": reply(500),
    "reset": CUT,
    "no answer": HANG,
    "redirect": reply(307, Location="http://127.0.0.1:9/stolen"),
    "forbidden": reply(403),
    "not http": b"SSH-2.0-OpenSSH_9.2\r\n",
    "cut off": reply(500, b"x", promised=1000),
}


@pytest.mark.parametrize("answer", UNKIND.values(), ids=UNKIND)
async def test_what_is_not_taken_is_told_again_under_the_same_id_and_the_rest_waits(
    answer: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "reconciler")
    async with scene(tmp_path, answer, answer, answer, TAKEN) as it:
        it.server.patience_s = TIMEOUT_S
        it.happens("a", "b")
        waited = [await it.webhook.step() for _ in range(3)]
        assert waited == [1, 2, 4]
        assert (it.told.failed, it.told.pending, it.told.delivered) == (3, 2, 0)
        assert it.told.oldest_at
        it.begin()
        await it.webhook.step()
        assert it.names == ["a", "a", "a", "a", "b"]
        assert len(set(it.ids)) == 2
        assert (it.told.delivered, it.told.pending) == (2, 0)
    failed = [record for record in caplog.records if record.__dict__.get("event") == "WebhookFailed"]
    assert len(failed) == 1, "once, and not at each attempt"
    assert "s3cret" not in caplog.text + str([record.__dict__ for record in caplog.records])


async def test_a_huge_answer_is_not_read(tmp_path: Path) -> None:
    huge = reply(200, b"x" * 5_000_000)
    async with scene(tmp_path, huge) as it:
        it.happens("a", "b")
        await it.webhook.step()
        assert it.told.delivered == 2


async def test_it_waits_as_long_as_it_is_asked_to_within_bounds(tmp_path: Path) -> None:
    async with scene(tmp_path, reply(429, Retry_After="30"), reply(503, Retry_After="999999"), TAKEN) as it:
        it.happens("a")
        assert await it.webhook.step() == 30
        assert await it.webhook.step() == 3600
        assert await it.webhook.step() == CHECK_S


async def test_a_receiver_that_is_gone_for_good_is_told_nothing_until_the_next_start(tmp_path: Path) -> None:
    async with scene(tmp_path, reply(410), TAKEN) as it:
        it.happens("a", "b")
        await asyncio.wait_for(it.webhook.run(), 60)
        assert (it.names, it.told.is_gone) == (["a"], True)
        it.begin()
        await it.webhook.step()
        assert it.names == ["a", "a", "b"]


async def test_an_event_that_is_refused_again_and_again_does_not_hold_up_the_rest(tmp_path: Path) -> None:
    async with scene(tmp_path, *[reply(400)] * webhook._REFUSALS_MAX, TAKEN) as it:
        it.happens("poison", "b")
        while not it.told.delivered:
            await it.webhook.step()
        assert it.names == ["poison"] * webhook._REFUSALS_MAX + ["b"]
        assert it.told.dropped == 1


async def test_what_is_too_old_is_given_up_with_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with scene(tmp_path) as it:
        it.happens("a", "b", "c")
        it.clock.advance(TOO_OLD_S + 1)
        it.happens("d")
        await it.webhook.step()
        assert (it.names, it.told.dropped) == (["d"], 3)
    assert sum(record.__dict__.get("event") == "WebhookDropped" for record in caplog.records) == 1


async def test_what_history_has_dropped_is_counted(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        it.journal.keep_history(HistoryLimits(events_max=100), it.clock.now())
        for _ in range(50):
            it.happens(*map(str, range(10)))
        sent = 0
        while await it.webhook.step() != CHECK_S:
            sent += 1
        assert it.told.delivered + it.told.dropped == 500
        assert 100 <= it.told.delivered < 120
        assert it.told.pending == 0


async def test_only_a_bounded_number_of_events_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(tmp_path, reply(500)) as it:
        it.happens(*map(str, range(5000)))
        asked: list[int] = []
        events_after = it.journal.events_after

        def counted(*args: Any) -> Any:
            found = events_after(*args)
            asked.append(len(found))
            return found

        monkeypatch.setattr(it.journal, "events_after", counted)
        for _ in range(3):
            await it.webhook.step()
        assert asked == [webhook.BATCH_MAX] * 3
        assert it.told.pending == 5000


async def test_only_the_kinds_that_were_asked_for_are_told_and_the_rest_costs_one_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path) as it:
        it.kinds = frozenset({"degraded"})
        it.begin()
        it.happens("a", "b", "c")
        written: list[int] = []
        record: Callable[[str, int], None] = it.journal.record_delivered

        def counted(receiver: str, number: int) -> None:
            written.append(number)
            record(receiver, number)

        monkeypatch.setattr(it.journal, "record_delivered", counted)
        await it.webhook.step()
        assert (it.names, written) == ([], [3])
        it.happens("x", kind=EventKind.DEGRADED)
        await it.webhook.step()
        await it.webhook.step()
        assert (it.names, written) == (["x"], [3, 4])


async def test_a_secret_that_cannot_be_read_sends_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, secret="a secret of our own") as it:
        assert it.secret is not None
        it.secret.unlink()
        it.happens("a")
        assert await it.webhook.step() == pause_s(1, {}, it.clock.now(), lambda: 0.0)
        assert not it.server.asked
        it.secret.write_text("a secret of our own")
        await it.webhook.step()
        assert it.names == ["a"]


async def test_it_can_be_ended_while_a_receiver_says_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, HANG) as it:
        it.happens("a")
        task = asyncio.create_task(it.webhook.run())
        await until(lambda: it.server.asked)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert it.journal.delivered(it.webhook._key) == 0
