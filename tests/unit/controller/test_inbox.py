"""Events become the work of one round, whatever their order and number. Source: design#events-are-nudges."""

from __future__ import annotations

import asyncio
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.refs import Identity
from reconciler.clock import SystemClock
from reconciler.controller.inbox import (
    ApplyDone,
    ClusterChanged,
    ClusterScope,
    HealthChanged,
    Inbox,
    LoopCommand,
    LoopEvent,
    LoopOrder,
    LoopTimer,
    ObjectsChanged,
    PendingWork,
    RolloutEntered,
    Stopped,
    StoreChanged,
    TimerDue,
    work_of,
)

IDENTITIES = st.frozensets(
    st.builds(Identity, st.just(""), st.just("ConfigMap"), st.just("demo"), st.sampled_from("abc")), min_size=1
)
CLUSTERS = st.sampled_from(["m1", "m2"])
EVENTS = st.lists(
    st.one_of(
        st.builds(StoreChanged),
        st.builds(ClusterChanged, CLUSTERS, st.one_of(IDENTITIES, st.sampled_from(ClusterScope))),
        st.builds(ObjectsChanged, IDENTITIES),
        st.builds(TimerDue, st.sampled_from(LoopTimer)),
        st.builds(LoopCommand, st.sampled_from(LoopOrder)),
        st.builds(ApplyDone, CLUSTERS),
        st.builds(RolloutEntered, CLUSTERS),
        st.builds(HealthChanged),
        st.builds(Stopped),
    ),
    max_size=12,
)
A, B = (Identity("", "ConfigMap", "demo", name) for name in "ab")


@given(EVENTS, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_matters(events: list[LoopEvent], chance: random.Random) -> None:
    others = [*events, *events]
    chance.shuffle(others)
    assert work_of(others) == work_of(events)
    inbox = Inbox()
    inbox.send(*others)
    assert work_of(inbox.take()) == work_of(events)


@given(EVENTS)
def test_an_inbox_has_work_exactly_where_its_batch_makes_some(events: list[LoopEvent]) -> None:
    inbox = Inbox()
    inbox.send(*events)
    assert inbox.has_work is not work_of(events).is_empty


@given(EVENTS)
def test_a_recorded_batch_is_read_back(events: list[LoopEvent]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(events), type=list[LoopEvent]) == events


@pytest.mark.parametrize(
    ("events", "work"),
    [
        ([StoreChanged()], PendingWork(store=True)),
        ([ObjectsChanged(frozenset({A}))], PendingWork(identities=frozenset({A}))),
        (
            [ClusterChanged("m1", frozenset({A})), ClusterChanged("m1", frozenset({B}))],
            PendingWork(copies={"m1": frozenset({A, B})}),
        ),
        ([ClusterChanged("m1")], PendingWork(clusters=frozenset({"m1"}))),
        (
            [ClusterChanged("m1", ClusterScope.RESTORED)],
            PendingWork(clusters=frozenset({"m1"}), restored=frozenset({"m1"})),
        ),
        (
            [ClusterChanged("m1", ClusterScope.ANSWERS_AGAIN)],
            PendingWork(clusters=frozenset({"m1"}), answering=frozenset({"m1"})),
        ),
        ([TimerDue(LoopTimer.RESYNC)], PendingWork(everything=True)),
        ([TimerDue(LoopTimer.CAPACITY)], PendingWork(timers=frozenset({LoopTimer.CAPACITY}))),
        ([LoopCommand(LoopOrder.LOOK)], PendingWork(everything=True)),
        ([LoopCommand(LoopOrder.RECONNECT)], PendingWork(reconnect=True)),
        ([LoopCommand(LoopOrder.RELOAD)], PendingWork(everything=True, store=True, reconnect=True)),
        ([ApplyDone("m1"), RolloutEntered("m1"), HealthChanged(), Stopped()], PendingWork()),
    ],
    ids=str,
)
def test_the_work_of_each_event(events: list[LoopEvent], work: PendingWork) -> None:
    assert work_of(events) == work


def test_of_nothing_nothing_is_sent() -> None:
    inbox = Inbox()
    inbox.changed(())
    inbox.changed((), "m1")
    assert inbox.take() == ()


async def test_a_batch_is_there_as_soon_as_anything_is_sent_and_ends_without() -> None:
    inbox, clock = Inbox(), SystemClock()
    waiting = asyncio.ensure_future(inbox.batch(60.0, clock))
    await asyncio.sleep(0)
    inbox.send(StoreChanged(), StoreChanged())
    assert await waiting == (StoreChanged(),)
    assert await inbox.batch(0.0, clock) == ()
    inbox.send(HealthChanged())
    assert await inbox.batch(60.0, clock) == (HealthChanged(),)
