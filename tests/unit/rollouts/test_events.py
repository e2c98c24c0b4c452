"""Rollouts in history."""

from msgspec.structs import replace

from reconciler.api.ledger import Event, EventKind
from reconciler.api.refs import CommitWords
from reconciler.api.rollout_progress import (
    Begin,
    ClusterProgress,
    Complete,
    Phase,
    Record,
    RolloutProgress,
    StageKind,
    StageProgress,
    StageState,
    Steady,
)
from reconciler.report.status import event_detail
from reconciler.report.status.history_text import history_entry
from reconciler.rollouts import rollout_events

NOW = "2026-11-23T10:00:00Z"


def look(
    state: StageState, *, phase: Phase = Phase.RUNNING, release: str = "bbbbbbb0", why: str = ""
) -> RolloutProgress:
    clusters = {"m1": ClusterProgress(revision=release, phase=phase, why=why, stage="canary")}
    stages = (StageProgress(name="canary", clusters=("m1",), state=state),)
    return RolloutProgress(rollout="default", release=release, clusters=clusters, stages=stages)


def told(*events: Event) -> list[tuple[str, str]]:
    return [(event.kind, event.subject) for event in events]


def test_a_cluster_that_begins_and_one_that_completes_are_told_once() -> None:
    before = replace(look(StageState(StageKind.DONE)), records={"m1": Record(revision="aaaaaaa0", begun_at=NOW)})
    begun = replace(
        look(StageState(StageKind.RUNNING, 0, 1)),
        changes=(Begin("m1", "bbbbbbb0", NOW), Steady("m1", NOW)),
        records={"m1": Record(revision="bbbbbbb0", begun_at=NOW)},
    )
    (event,) = rollout_events(before, begun, NOW, number=7)
    assert (event.kind, event.subject, event.round, event.time) == ("rollout-begun", "rollout default @ m1", 7, NOW)
    why = "its turn in the stage canary; aaaaaaa0 before"
    assert dict(event.data) == {"revision": "bbbbbbb0", "stage": "canary", "before": "aaaaaaa0", "why": why}
    completed = replace(begun, changes=(Complete("m1", NOW),), is_done=True)
    assert told(*rollout_events(begun, completed, NOW)) == [
        ("rollout-completed", "rollout default @ m1"),
        ("rollout-done", "rollout default"),
    ]
    assert rollout_events(completed, replace(completed, changes=()), NOW) == ()


def test_what_waits_for_a_person_begins_and_ends_once() -> None:
    running, paused = look(StageState(StageKind.RUNNING, 0, 1)), look(StageState(StageKind.PAUSED, failed=("m1",)))
    waits = look(StageState(StageKind.WAITS_FOR_APPROVAL, entry="- {stage: canary, revision: bbbbbbb0}"))
    assert told(*rollout_events(running, paused, NOW)) == [("rollout-paused", "rollout default/canary")]
    assert rollout_events(paused, paused, NOW) == ()
    assert told(*rollout_events(paused, waits, NOW)) == [
        ("pause-over", "rollout default/canary"),
        ("approval-awaited", "rollout default/canary"),
    ]
    assert told(*rollout_events(waits, running, NOW)) == [("approval-over", "rollout default/canary")]


def test_an_approval_of_another_revision_is_news() -> None:
    one = look(StageState(StageKind.WAITS_FOR_APPROVAL, entry="- {stage: canary, revision: bbbbbbb0}"))
    other = look(
        StageState(StageKind.WAITS_FOR_APPROVAL, entry="- {stage: canary, revision: ccccccc0}"), release="ccccccc0"
    )
    (event,) = rollout_events(one, other, NOW)
    assert (event.kind, event.data["entry"]) == ("approval-awaited", "- {stage: canary, revision: ccccccc0}")


def test_a_process_that_began_anew_tells_nothing_twice() -> None:
    paused = look(StageState(StageKind.PAUSED, failed=("m1",)))
    (event,) = rollout_events(None, paused, NOW)
    known = {(EventKind(event.kind), event.subject)}
    assert rollout_events(None, paused, NOW, begun=known) == ()
    assert told(*rollout_events(None, look(StageState(StageKind.RUNNING, 0, 1)), NOW, begun=known)) == [
        ("pause-over", "rollout default/canary")
    ]
    assert rollout_events(None, replace(look(StageState(StageKind.DONE)), is_done=True), NOW) == ()


def test_a_pin_is_told_of_its_stage_or_of_its_cluster() -> None:
    running = look(StageState(StageKind.RUNNING, 0, 1))
    stage = look(
        StageState(StageKind.PINNED, pinned="aaaaaaa0"),
        phase=Phase.PINNED,
        why="the stage canary is pinned to aaaaaaa0",
    )
    cluster = look(StageState(StageKind.RUNNING, 0, 1), phase=Phase.PINNED, why="the cluster m1 is pinned to aaaaaaa0")
    assert told(*rollout_events(running, stage, NOW)) == [("pinned", "rollout default/canary")]
    assert told(*rollout_events(running, cluster, NOW)) == [("pinned", "rollout default @ m1")]
    assert told(*rollout_events(cluster, running, NOW)) == [("unpinned", "rollout default @ m1")]


def test_history_names_the_cluster_and_both_revisions() -> None:
    begun = replace(look(StageState(StageKind.RUNNING, 0, 1)), changes=(Begin("m1", "bbbbbbb0", NOW),))
    (event,) = rollout_events(None, begun, NOW)
    entry = history_entry(event, lambda _: CommitWords("Ada", "Make it so", ""))
    assert (entry["subject"], entry["cluster"], entry["namespace"]) == ("rollout default", "m1", None)
    assert (entry["who"], entry["commit"]) == ("Ada", "Make it so")
    assert event_detail(entry) == "its turn in the stage canary; nothing before"
