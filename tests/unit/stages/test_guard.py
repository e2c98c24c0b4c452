from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.fleet import Guards
from reconciler.model.plan import Action, Cause, Change
from reconciler.model.refs import GVK, Identity
from reconciler.stages.guard import guard, held_digest, is_held_by_guard, limit

NOW = "2026-11-21T10:00:00Z"


def deletion(name: str, cluster: str = "m1", kind: str = "ConfigMap", guarded: bool = True) -> Change:
    return Change(
        action=Action.DELETE,
        cluster=cluster,
        gvk=GVK("", "v1", kind),
        identity=Identity("", kind, "demo", name),
        cause=Cause.REMOVED,
        guarded=guarded,
    )


@pytest.mark.parametrize(("managed", "expected"), [(0, 3), (29, 3), (40, 4), (99, 9), (100, 10), (5000, 10)])
def test_limit_is_the_smaller_of_ten_and_a_tenth_but_at_least_three(managed: int, expected: int) -> None:
    assert limit(Guards(), managed) == expected


def test_three_deletions_of_a_small_cluster_pass() -> None:
    changes = tuple(deletion(name) for name in "abc")
    assert guard(changes, Guards(), {"m1": 5}, NOW) == (changes, "")


def test_a_fourth_deletion_holds_all_of_them() -> None:
    held, digest = guard(tuple(deletion(name) for name in "abcd"), Guards(), {"m1": 5}, NOW)
    assert all(is_held_by_guard(change) for change in held)
    assert len(digest) == 16


def test_deletions_spread_over_clusters_count_over_the_fleet() -> None:
    changes = tuple(deletion("a", cluster=f"m{n}") for n in range(12))
    held, digest = guard(changes, Guards(), {f"m{n}": 100 for n in range(12)}, NOW)
    assert digest
    assert all(is_held_by_guard(change) for change in held)


def test_what_ticks_move_is_not_counted() -> None:
    changes = tuple(deletion(name, guarded=False) for name in "abcdef")
    assert guard(changes, Guards(), {"m1": 5}, NOW) == (changes, "")


@pytest.mark.parametrize("kind", ["Namespace", "PersistentVolume", "PersistentVolumeClaim"])
def test_a_single_deletion_that_takes_data_with_it_needs_confirmation(kind: str) -> None:
    held, digest = guard((deletion("a", kind=kind),), Guards(), {"m1": 100}, NOW)
    assert digest
    assert is_held_by_guard(held[0])


def test_the_digest_confirms_exactly_the_held_set() -> None:
    changes = tuple(deletion(name) for name in "abcd")
    _, digest = guard(changes, Guards(), {"m1": 5}, NOW)
    assert guard(changes, Guards(confirm=digest), {"m1": 5}, NOW) == (changes, "")
    more, other = guard((*changes, deletion("e")), Guards(confirm=digest), {"m1": 5}, NOW)
    assert other != digest
    assert all(is_held_by_guard(change) for change in more)


def test_an_expired_confirmation_confirms_nothing() -> None:
    changes = tuple(deletion(name) for name in "abcd")
    _, digest = guard(changes, Guards(), {"m1": 5}, NOW)
    expired = Guards(confirm=digest, confirm_until="2026-11-21T09:59:59Z")
    assert guard(changes, expired, {"m1": 5}, NOW)[1] == digest


@given(st.permutations([deletion(name) for name in "abcdef"]))
def test_digest_does_not_depend_on_order(changes: list[Change]) -> None:
    assert held_digest(changes) == held_digest(sorted(changes, key=lambda change: change.identity))
