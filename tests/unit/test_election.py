"""The time when a Lease may be taken, and for how long its holder may write."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.lease import (
    Leader,
    Lease,
    ObservedLease,
    given_back,
    lease_body,
    raised,
    read_lease,
    sighted,
    taken_by,
    wait_for_lease_s,
)

HELD = Lease(holder="a", duration_s=15, transitions=3)


@pytest.mark.parametrize(
    ("seen", "now_s", "wait_s"),
    [
        (ObservedLease(since_s=100), 100, 0),
        (ObservedLease(lease=HELD, resource_version="7", since_s=100), 100, 15),
        (ObservedLease(lease=HELD, resource_version="7", since_s=100), 114, 1),
        (ObservedLease(lease=HELD, resource_version="7", since_s=100), 115, 0),
        (ObservedLease(lease=Lease(holder="a", duration_s=60), resource_version="7", since_s=100), 115, 45),
        (ObservedLease(lease=Lease(holder="a", duration_s=1), resource_version="7", since_s=100), 101, 14),
        (ObservedLease(lease=given_back(HELD, ""), resource_version="7", since_s=100), 100, 0),
        # A hand emptied it: whoever held it does not know yet.
        (ObservedLease(lease=Lease(holder="", duration_s=15), resource_version="7", since_s=100), 100, 15),
        (ObservedLease(lease=Lease(holder="", duration_s=0), resource_version="7", since_s=100), 114, 1),
        (ObservedLease(lease=Lease(holder="me", duration_s=15), resource_version="7", since_s=100), 100, 0),
    ],
)
def test_how_long_a_lease_is_waited_for(seen: ObservedLease, now_s: float, wait_s: float) -> None:
    assert wait_for_lease_s(seen, "me", 15, now_s) == wait_s


def test_a_version_is_as_old_as_it_was_when_it_was_seen_first() -> None:
    first = sighted(None, HELD, "7", 10)
    assert sighted(first, HELD, "7", 20) is first
    assert sighted(first, HELD, "8", 20).since_s == 20


def test_a_lease_that_is_gone_is_left_to_who_held_it_for_a_while() -> None:
    gone = sighted(sighted(None, HELD, "7", 10), Lease(), "", 20)
    assert wait_for_lease_s(gone, "me", 15, 20) == 15
    assert sighted(gone, Lease(), "", 30) is gone
    assert wait_for_lease_s(sighted(None, Lease(), "", 20), "me", 15, 20) == 0


def test_writing_ends_before_the_lease_and_begins_when_it_may() -> None:
    leader = Leader(term=1, renewed_s=100, duration_s=15, writes_from_s=105)
    assert [leader.writing_left_s(now) for now in (104, 105, 109, 110, 200)] == [0, 5, 1, 0, 0]
    assert [leader.is_run_out(now) for now in (114, 115)] == [False, True]


def test_each_holder_has_a_later_term() -> None:
    taken = taken_by("b", HELD, 15, "2026-11-21T10:00:00Z")
    assert (taken.holder, taken.transitions) == ("b", 4)
    assert raised(taken, 9, "2026-11-21T10:00:00Z").transitions == 10
    assert raised(taken, 2, "2026-11-21T10:00:00Z").transitions == 4


def test_what_is_written_is_read() -> None:
    lease = Lease(
        holder="a", duration_s=15, transitions=3, acquired="2026-11-21T10:00:00Z", renewed="2026-11-21T10:00:00Z"
    )
    found = read_lease(lease_body("shop", "fleet-system", lease))
    assert (found.holder, found.duration_s, found.transitions) == ("a", 15, 3)
    assert found.renewed == "2026-11-21T10:00:00.000000Z"


@pytest.mark.parametrize(
    "spec", [None, [], {"holderIdentity": 7, "leaseDurationSeconds": "x", "leaseTransitions": -1}, {"renewTime": {}}]
)
def test_a_lease_without_sense_says_nothing(spec: Any) -> None:
    assert read_lease({"spec": spec}) == Lease()


def test_a_duration_of_days_is_cut() -> None:
    assert read_lease({"spec": {"holderIdentity": "a", "leaseDurationSeconds": 10**6}}).duration_s == 3600


@pytest.mark.parametrize("written", [2**31 - 1, -3, "7", None, 2.5, True])
def test_a_term_that_a_hand_wrote_and_that_can_be_none_counts_as_nothing(written: Any) -> None:
    assert read_lease({"spec": {"holderIdentity": "a", "leaseTransitions": written}}).transitions == 0
