from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import Fleet, FleetSettings, Guards, LooseningHold
from reconciler.api.ledger import GuardsInForce, Losses, RecordedLoss
from reconciler.api.plan import Action, Cause, Change, Plan
from reconciler.api.policies import ClusterAffinity, LabelRequirement, LabelSelector, Operator
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollouts import Approval, FleetWindow, Rollout, Stage, Window, WindowKind
from reconciler.planner import former_windows, guards_in_force, is_held_by_guard, losses_after, losses_of
from reconciler.planner import guard as guard_plan
from reconciler.planner.guard import judged_by, limit
from reconciler.policy import closed_clusters, parse_cron
from reconciler.rollouts import with_ends

NOW = "2026-11-21T10:00:00Z"
GUARDS = Guards()


def plan_of(changes: tuple[Change, ...]) -> Plan:
    return Plan(base="", head="r1", changes=changes)


def guard(changes: tuple[Change, ...], guards: Guards, *rest: Any, **more: Any) -> Plan:
    in_force = GuardsInForce(revision="r1", written=guards, active=guards, since=NOW)
    return guard_plan(plan_of(changes), in_force, *rest, **more)


def after_round(losses: Losses, changes: Iterable[Change], guards: Guards, *rest: Any) -> Losses:
    """The memory after a round of one revision, without its limits."""
    return replace(losses_after(losses, changes, guards_in_force(None, guards, "r1", NOW), *rest), guards=None)


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
    assert guard(changes, Guards(), {"m1": 5}, NOW) == plan_of(changes)


def test_a_fourth_deletion_holds_all_of_them() -> None:
    guarded = guard(tuple(deletion(name) for name in "abcd"), Guards(), {"m1": 5}, NOW)
    assert all(is_held_by_guard(change) for change in guarded.changes)
    assert len(guarded.held_digest) == 16


def test_deletions_spread_over_clusters_count_over_the_fleet() -> None:
    changes = tuple(deletion("a", cluster=f"m{n}") for n in range(12))
    guarded = guard(changes, Guards(), {f"m{n}": 100 for n in range(12)}, NOW)
    assert guarded.held_digest
    assert all(is_held_by_guard(change) for change in guarded.changes)


def test_what_ticks_move_is_not_counted() -> None:
    changes = tuple(deletion(name, guarded=False) for name in "abcdef")
    assert guard(changes, Guards(), {"m1": 5}, NOW) == plan_of(changes)


@pytest.mark.parametrize("kind", ["Namespace", "PersistentVolume", "PersistentVolumeClaim"])
def test_a_single_deletion_that_takes_data_with_it_needs_confirmation(kind: str) -> None:
    guarded = guard((deletion("a", kind=kind),), Guards(), {"m1": 100}, NOW)
    assert guarded.held_digest
    assert is_held_by_guard(guarded.changes[0])


def test_the_digest_confirms_exactly_the_held_set() -> None:
    changes = tuple(deletion(name) for name in "abcd")
    digest = guard(changes, Guards(), {"m1": 5}, NOW).held_digest
    confirmed = guard(changes, Guards(confirm=digest), {"m1": 5}, NOW)
    assert (confirmed.changes, confirmed.held_digest) == (changes, "")
    assert confirmed.confirmed == {("m1", change.identity) for change in changes}
    more = guard((*changes, deletion("e")), Guards(confirm=digest), {"m1": 5}, NOW)
    assert more.held_digest != digest
    assert all(is_held_by_guard(change) for change in more.changes)


@pytest.mark.parametrize("until", ["2026-11-21T09:59:59Z", "2026-11-21T17:59:59+08:00"])
def test_an_expired_confirmation_confirms_nothing(until: str) -> None:
    changes = tuple(deletion(name) for name in "abcd")
    digest = guard(changes, Guards(), {"m1": 5}, NOW).held_digest
    expired = Guards(confirm=digest, confirm_until=until)
    assert guard(changes, expired, {"m1": 5}, NOW).held_digest == digest


@pytest.mark.parametrize("until", ["", "2026-11-21T10:00:00Z", "2026-11-21T05:00:01-05:00"])
def test_a_confirmation_lasts_until_its_end_in_any_zone(until: str) -> None:
    changes = tuple(deletion(name) for name in "abcd")
    digest = guard(changes, Guards(), {"m1": 5}, NOW).held_digest
    assert guard(changes, Guards(confirm=digest, confirm_until=until), {"m1": 5}, NOW).confirmed


def at(minute: int) -> str:
    return f"2026-11-21T10:{minute:02}:00Z"


def one_by_one(names: str, managed: int, guards: Guards) -> tuple[list[str], dict[str, str]]:
    """Return what goes and what is held when one more deletion is due each minute."""
    made: tuple[RecordedLoss, ...] = ()
    losses, held = Losses(), dict[str, str]()
    for minute, name in enumerate(names):
        due = tuple(deletion(each) for each in (*held, name))
        guarded = guard(due, guards, {"m1": managed - len(made)}, at(minute), losses)
        passed = [change for change in guarded.changes if not change.held]
        made = (*made, *losses_of(passed, at(minute)))
        held = {change.identity.name: change.held for change in guarded.changes if change.held}
        losses = after_round(
            Losses(recorded=made, held_since=losses.held_since), guarded.changes, guards, at(minute), ["m1"]
        )
    return [loss.identity.name for loss in made], held


def test_one_after_another_count_as_one_within_the_window() -> None:
    gone, held = one_by_one("abcdefgh", 40, Guards(window_s=600))
    assert gone == list("abcd"), "a tenth of the forty that there were, not of the rest"
    assert list(held) == list("efgh")
    words = "guard: {} deletions and releases in one cluster {}, 4 of them made already, at most 4 pass"
    assert held["h"] == words.format(8, f"since {at(4).replace('10:04', '09:54')}"), "however long it is held"
    _, held = one_by_one("abcde", 40, Guards(window_s=600))
    assert held["e"] == words.format(5, "within 10m")


def test_what_is_further_apart_than_the_window_counts_alone() -> None:
    assert one_by_one("abcdefgh", 5, Guards(window_s=150)) == (list("abcdefgh"), {})
    assert one_by_one("abcdefgh", 5, Guards(window_s=0)) == (list("abcdefgh"), {})


def test_time_alone_lets_nothing_through_that_was_held() -> None:
    made = tuple(RecordedLoss(cluster="m1", identity=deletion(name).identity, time=at(0)) for name in "abc")
    first = guard((deletion("d"),), GUARDS, {"m1": 5}, at(1), Losses(recorded=made))
    assert first.held_digest
    losses = after_round(Losses(recorded=made), first.changes, GUARDS, at(1), ["m1"])
    assert losses == Losses(recorded=made, held_since={"m1": at(1)})
    later = guard((deletion("d"),), GUARDS, {"m1": 5}, at(59), losses)
    assert later.held_digest == first.held_digest
    assert after_round(losses, later.changes, GUARDS, at(59), ["m1"]) == losses
    assert after_round(losses, (), GUARDS, at(59), []) == losses, "a cluster that was not read ends nothing"
    assert after_round(losses, (), GUARDS, at(59), ["m1"]) == Losses(), "what was held is wanted again"


def test_a_cluster_that_goes_away_lets_nothing_through_in_another_one() -> None:
    """Two here and two there were too many together; of the two there nobody knows anything now."""
    both = tuple(deletion(name, cluster) for cluster in ("m1", "m2") for name in "ab")
    managed = {"m1": 10, "m2": 10}
    first = guard(both, GUARDS, managed, at(0))
    losses = after_round(Losses(), first.changes, GUARDS, at(0), ["m1", "m2"])
    assert losses.held_since.keys() == {"m1", "m2"}
    here = both[:2]
    alone = guard(here, GUARDS, managed, at(1), losses, ["m2"])
    assert [change.held for change in alone.changes] == ["guard: more is held in m2, which could not be read"] * 2
    assert after_round(losses, alone.changes, GUARDS, at(1), ["m1"]) == losses
    other = (deletion("c", "m3"),)
    passing = guard(other, GUARDS, {**managed, "m3": 10}, at(1), losses, ["m2"])
    assert passing.changes == other, "nothing of it was held"
    wanted_again = after_round(losses, here, GUARDS, at(2), ["m1", "m2"])
    assert guard(here, GUARDS, managed, at(3), wanted_again).changes == here, "what was due there is due no more"


def test_a_copy_that_is_due_again_counts_once() -> None:
    made = tuple(RecordedLoss(cluster="m1", identity=deletion(name).identity, time=at(0)) for name in "abc")
    changes = tuple(deletion(name) for name in "abc")
    assert guard(changes, GUARDS, {"m1": 5}, at(1), Losses(recorded=made)) == plan_of(changes)


def test_what_waits_for_a_confirmation_by_its_kind_keeps_no_others_counted() -> None:
    made = tuple(RecordedLoss(cluster="m1", identity=deletion(name).identity, time=at(0)) for name in "abc")
    changes = (deletion("n", kind="Namespace"),)
    guarded = guard(changes, GUARDS, {"m1": 50}, at(1), Losses(recorded=made))
    assert after_round(Losses(recorded=made), guarded.changes, GUARDS, at(1), ["m1"]).held_since == {}


def test_losses_in_many_clusters_count_over_the_fleet() -> None:
    made = tuple(RecordedLoss(cluster=f"m{n}", identity=deletion("a").identity, time=at(0)) for n in range(10))
    managed = {f"m{n}": 100 for n in range(12)}
    guarded = guard((deletion("a", "m11"),), GUARDS, managed, at(1), Losses(recorded=made))
    assert guarded.changes[0].held is not None
    assert "over the fleet within 10m" in guarded.changes[0].held


@given(st.permutations([deletion(name) for name in "abcdef"]))
def test_digest_does_not_depend_on_order(changes: list[Change]) -> None:
    digests = {guard(tuple(found), GUARDS, {}, NOW).held_digest for found in (changes, sorted(changes, key=str))}
    assert len(digests) == 1


def volumes(names: Iterable[str], cluster: str = "m1") -> tuple[Change, ...]:
    """Deletions each of which needs a confirmation by itself."""
    return tuple(deletion(name, cluster, kind="PersistentVolumeClaim") for name in sorted(names))


ALL = frozenset("abcd")
DUE = st.frozensets(st.sampled_from("abcdxy"))


@given(st.lists(st.tuples(DUE, st.booleans()), max_size=8))
def test_what_is_confirmed_stays_confirmed_while_it_shrinks_and_no_longer(
    rounds: list[tuple[frozenset[str], bool]],
) -> None:
    """`rounds`: what is due in each, and whether that is looked at, or nobody can tell."""
    guards = Guards(confirm=guard(volumes(ALL), GUARDS, {}, NOW).held_digest)
    losses, left = Losses(), frozenset[str]()
    for due, is_seen in [(ALL, True), *rounds]:
        shown = due if is_seen else frozenset[str]()
        guarded = guard(volumes(shown), guards, {}, NOW, losses, is_evaluated=lambda *copy, seen=is_seen: seen)
        passes = shown == ALL or shown <= left
        assert {change.held is None for change in guarded.changes} <= {passes}
        assert (guarded.held_digest == "") is passes
        left = left if not is_seen else shown if passes else left & shown
        losses = after_round(losses, guarded.changes, guards, NOW, ["m1"], guarded.left)
        assert {identity.name for _, _, identity in losses.confirmed.changes} == left


def test_a_confirmation_that_is_over_or_another_one_lets_nothing_of_the_rest_pass() -> None:
    digest = guard(volumes(ALL), GUARDS, {}, NOW).held_digest
    passed = guard(volumes(ALL), Guards(confirm=digest), {}, NOW)
    losses = after_round(Losses(), passed.changes, GUARDS, NOW, ["m1"], passed.left)
    for guards in (Guards(), Guards(confirm="0" * 16), Guards(confirm=digest, confirm_until="2026-11-21T09:00:00Z")):
        assert guard(volumes("ab"), guards, {}, NOW, losses).held_digest
    moved = replace(volumes("a")[0], action=Action.RELEASE, confirm="something else")
    assert guard((moved,), Guards(confirm=digest), {}, NOW, losses).held_digest
    assert guard(volumes("a", "m2"), Guards(confirm=digest), {}, NOW, losses).held_digest


LOOSE = Guards(max_deletes=100_000, max_delete_percent=100, window_s=0)


def test_limits_that_a_revision_loosens_count_from_the_next_one_on() -> None:
    first = guards_in_force(None, GUARDS, "r1", NOW)
    second = guards_in_force(first, LOOSE, "r2", NOW)
    assert second.active.max_deletes == GUARDS.max_deletes
    assert second.active.window_s == GUARDS.window_s
    assert guards_in_force(second, LOOSE, "r2", at(9)) == second, "a restart changes nothing"
    assert guards_in_force(second, LOOSE, "r3", NOW).active.max_deletes == LOOSE.max_deletes


def test_looser_limits_wait_as_long_as_something_is_held() -> None:
    record = guards_in_force(guards_in_force(None, GUARDS, "r1", NOW), LOOSE, "r2", NOW)
    held = guard(tuple(deletion(name) for name in "abcd"), record.active, {"m1": 5}, NOW)
    losses = losses_after(Losses(), held.changes, record, NOW, ["m1"])
    assert losses.guards is not None
    assert guards_in_force(losses.guards, LOOSE, "r3", NOW).active.max_deletes == GUARDS.max_deletes
    away = losses_after(losses, (), losses.guards, NOW, [])
    assert away.guards is not None
    assert away.guards.holding == ("m1",), "a cluster that was not read ends nothing"
    over = losses_after(losses, (), losses.guards, NOW, ["m1"])
    assert over.guards is not None
    assert guards_in_force(over.guards, LOOSE, "r3", NOW).active.max_deletes == LOOSE.max_deletes


def test_stricter_limits_count_at_once() -> None:
    strict = Guards(max_deletes=0, max_delete_percent=0, window_s=3600)
    assert guards_in_force(guards_in_force(None, GUARDS, "r1", NOW), strict, "r2", NOW).active == strict


def test_a_confirmation_belongs_to_the_revision_that_brings_it_and_ends() -> None:
    confirming = replace(GUARDS, confirm="d1")
    first = guards_in_force(guards_in_force(None, GUARDS, "r1", NOW), confirming, "r2", NOW)
    assert (first.active.confirm, first.active.confirm_until) == ("d1", "2026-11-28T10:00:00Z")
    assert not guards_in_force(first, confirming, "r3", NOW).active.confirm
    waiting = replace(first, holding=("m1",))
    assert guards_in_force(waiting, confirming, "r3", NOW).active.confirm == "d1", "what it is for is still held"
    renewed = replace(confirming, confirm_until="2026-12-24T00:00:00Z")
    assert guards_in_force(first, renewed, "r3", NOW).active.confirm == "d1"


CANARY = ClusterAffinity(
    labels=LabelSelector(
        requirements=(LabelRequirement(key="tier", operator=Operator.IN, values=frozenset({"canary"})),)
    )
)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


EVERY = ClusterAffinity()


def window(kind: str, begins: str, clusters: ClusterAffinity = EVERY) -> FleetWindow:
    cron = parse_cron(begins)
    assert not isinstance(cron, str)
    return FleetWindow(window=Window(kind=WindowKind(kind), cron=cron, duration_s=3600), clusters=clusters)


FROZEN, OPEN, OPEN_LATER = window("deny", "0 12 * * *"), window("allow", "0 12 * * *"), window("allow", "0 13 * * *")


def head(revision: str, *windows: FleetWindow, tier: str = "canary", **settings: Any) -> Fleet:
    clusters = {name: Cluster(name=name, labels={"tier": tier if name == "m1" else "rest"}) for name in ("m1", "m2")}
    return Fleet(revision=revision, settings=FleetSettings(windows=windows, **settings), clusters=clusters)


def closed(first: Fleet, *others: Fleet) -> set[str]:
    """The clusters that are closed at noon, by the last of some revisions that came one after the other."""
    record = judged_by(None, first, NOW)
    for fleet in others:
        former = former_windows(record, fleet)
        record = judged_by(record, fleet, NOW)
        assert former_windows(record, fleet) == former, "a restart changes nothing"
        encoded = msgspec.json.encode(record)
        assert msgspec.json.decode(encoded, type=GuardsInForce) == record
    last = (first, *others)[-1]
    return set(closed_clusters(last.settings.windows, last.clusters.values(), NOON, record.former_windows))


ALL = frozenset({"m1", "m2"})
NOBODY: frozenset[str] = frozenset()
WINDOWS: dict[str, tuple[frozenset[str], tuple[Fleet, ...]]] = {
    "a freeze that goes": (ALL, (head("r1", FROZEN), head("r2"))),
    "a revision later": (NOBODY, (head("r1", FROZEN), head("r2"), head("r3"))),
    "a freeze of a day that becomes an opening": (ALL, (head("r1", FROZEN), head("r2", OPEN))),
    "an opening more": (ALL, (head("r1", OPEN_LATER), head("r2", OPEN_LATER, OPEN))),
    "the only opening goes": (ALL, (head("r1", OPEN_LATER), head("r2"))),
    "another opening": (ALL, (head("r1", OPEN), head("r2", OPEN_LATER))),
    "a freeze comes": (ALL, (head("r1"), head("r2", FROZEN))),
    "the same": (NOBODY, (head("r1", OPEN), head("r2", OPEN))),
    "a label takes the cluster out of a freeze": (
        frozenset({"m1"}), (head("r1", window("deny", "0 12 * * *", CANARY)),
                 head("r2", window("deny", "0 12 * * *", CANARY), tier="rest")),
    ),
    "a person confirms": (NOBODY, (head("r1", FROZEN), head("r2", review_confirm="d1"))),
    "an old confirmation": (ALL, (head("r1", FROZEN, review_confirm="d1"), head("r2", review_confirm="d1"))),
    "loosening is allowed by both": (
        NOBODY, (head("r1", FROZEN, loosening=LooseningHold.ALLOW), head("r2", loosening=LooseningHold.ALLOW)),
    ),
    "a fleet that is observed no more": (ALL, (head("r1", observe_only=True), head("r2"))),
    "a fleet that is observed no more, a revision later": (
        NOBODY, (head("r1", observe_only=True), head("r2"), head("r3")),
    ),
    "a fleet that is observed no more, with another opening": (ALL, (head("r1", observe_only=True), head("r2", OPEN))),
    "a fleet that is observed no more, by a person": (
        NOBODY, (head("r1", observe_only=True), head("r2", review_confirm="d1")),
    ),
    "a fleet that begins to be observed": (NOBODY, (head("r1"), head("r2", observe_only=True))),
    "loosening is allowed by the new one": (ALL, (head("r1", FROZEN), head("r2", loosening=LooseningHold.ALLOW))),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_a_cluster_changes_in_the_windows_of_both_revisions(name: str) -> None:
    wanted, fleets = WINDOWS[name]
    assert closed(*fleets) == wanted


def test_what_both_revisions_close_is_closed_until_the_later_of_both() -> None:
    both = closed_clusters([FROZEN], [Cluster(name="m1")], NOON, [OPEN_LATER])
    assert both["m1"].until == "2026-11-21T13:00:00Z"
    assert not both["m1"].is_former
    assert closed_clusters([], [Cluster(name="m1")], NOON, [OPEN_LATER])["m1"].is_former


def test_an_approval_without_an_end_ends_a_week_after_it_was_seen() -> None:
    stage = Stage(name="canary")
    own, dated = Approval(stage="canary", revision="1234567"), Approval(stage="canary", revision="7654321", until=at(9))
    rollout = Rollout(name="web", stages=(stage,), approvals=(own, dated))
    first = judged_by(None, replace(head("r1"), rollouts=(rollout,)), NOW)
    later = judged_by(first, replace(head("r2"), rollouts=(rollout,)), at(9))
    assert later.approved == first.approved == {"web canary 1234567": NOW}
    ends = [one.until for one in with_ends(rollout, later.approved).approvals]
    assert ends == ["2026-11-28T10:00:00Z", at(9)]
    assert not judged_by(later, head("r3"), at(9)).approved
