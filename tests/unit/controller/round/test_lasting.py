"""A lasting state is told once at its begin and once at its end: degraded health, holds, and the way to in step.

Source: design#history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import Listed, Unlisted, UnlistedCause
from reconciler.api.fleet import FrozenReach
from reconciler.api.ledger import Event, EventKind
from reconciler.api.plan import HeldBy, Hold
from reconciler.api.problem import Problem, Source
from reconciler.api.refs import GVK, Identity
from reconciler.clock import epoch_s, rfc3339
from reconciler.controller import timing
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.round.episodes import FLAPS_MAX
from reconciler.controller.round.reported_conditions import ReportedConditions
from reconciler.errors import ANOTHER_CLUSTER
from reconciler.journal import EventFilter, Journal
from reconciler.state import (
    HEALTHY,
    ConditionEnd,
    Degraded,
    Fought,
    Held,
    ObjectState,
    Progressing,
    StateFacts,
    StateTables,
    degraded,
    step_of,
)
from tests.fakes.worlds import FLEET, NOW, config_map, deployment, fleet_of, policy
from tests.unit.controller.test_loop import BROKEN
from tests.unit.state.scenes import APP, UNTIL, Scene

COPY = ("m1", APP)
ROLE = Identity("rbac.authorization.k8s.io", "ClusterRole", "", "view")
SUBJECT = "ConfigMap demo/app @ m1"
GUARD = "guard: 12 deletions and releases in one cluster, at most 10 pass"
PULL = Degraded("its image cannot be pulled")


class Telling:
    """A scene whose rounds are told to history. `passed_s`: since the beginning."""

    def __init__(self, journal: Journal, scene: Scene) -> None:
        self.journal, self.scene = journal, scene
        self.passed_s, self.digest = 0.0, ""
        self.begin()

    def begin(self) -> None:
        """As after a start."""
        self.told, self.tables = ReportedConditions(self.journal), StateTables()
        self.scene.picture = None

    def round(self, after_s: float = 1.0) -> None:
        self.passed_s += after_s
        state = self.tables.update(replace(self.scene.facts(), held_digest=self.digest))
        fighting = [f"{identity} @ {cluster}" for cluster, identity in self.scene.fights]
        self.told.record_differences(state, self.tables.turns, rfc3339(epoch_s(NOW) + self.passed_s), fighting)

    def fresh_s(self) -> float | None:
        """Return how long it took until all was in step, as the last round found out."""
        return self.told.steps.fresh_s

    def events(self, *kinds: EventKind) -> list[Event]:
        wanted = EventFilter(kinds=tuple(map(str, kinds)))
        return [found.event for found in self.journal.events_after(0, wanted)]


def applied() -> Scene:
    scene = Scene("m1", "m2")
    scene.apply()
    return scene


def test_a_degraded_object_is_told_once_over_rounds_and_restarts_and_that_it_is_well(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        telling.scene.health = {COPY: PULL}
        telling.round()
        telling.round()
        telling.begin()
        telling.round()
        telling.scene.health = {}
        telling.round()
        telling.round()
        degraded, recovered = telling.events(EventKind.DEGRADED, EventKind.RECOVERED)
        assert (degraded.kind, degraded.subject, degraded.data["why"]) == ("degraded", SUBJECT, PULL.why)
        assert (recovered.kind, recovered.subject, recovered.data["since"]) == ("recovered", SUBJECT, degraded.time)


def test_another_reason_is_told_as_well_and_a_count_of_replicas_is_none(tmp_path: Path) -> None:
    """The first thing known is that replicas lack; the reason is what helps."""
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        for why in ("0 of 3 replicas are available", "1 of 3 replicas are available", PULL.why, PULL.why,
                    "2 of 3 replicas are available"):  # fmt: skip
            telling.scene.health = {COPY: Degraded(why)}
            telling.round()
        telling.scene.health = {}
        telling.round()
        first, second, recovered = telling.events(EventKind.DEGRADED, EventKind.RECOVERED)
        assert (first.data["why"], first.data.get("since")) == ("0 of 3 replicas are available", None)
        assert (second.data["why"], second.data["since"]) == (PULL.why, first.time)
        assert recovered.data["since"] == first.time


def test_what_makes_progress_has_not_recovered_yet(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        telling.scene.health = {COPY: PULL}
        telling.round()
        telling.scene.health = {COPY: Progressing("1 of 3 replicas are available")}
        telling.round()
        assert not telling.events(EventKind.RECOVERED)
        telling.scene.health = {COPY: PULL}
        telling.round()
        assert len(telling.events(EventKind.DEGRADED)) == 1
        telling.scene.health = {}
        telling.round()
        assert len(telling.events(EventKind.RECOVERED)) == 1


def test_a_cluster_that_is_away_has_not_recovered(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        telling.scene.health = {COPY: PULL}
        telling.round()
        telling.scene.away = {"m1": "no answer within 10 s"}
        telling.round()
        telling.begin()
        telling.round()
        assert not telling.events(EventKind.RECOVERED)
        telling.scene.away = {}
        telling.round()
        assert len(telling.events(EventKind.DEGRADED)) == 1
        telling.scene.health = {}
        telling.round()
        assert len(telling.events(EventKind.RECOVERED)) == 1


def test_what_comes_and_goes_is_degraded_until_it_has_been_well_for_longer(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        for _ in range(30):
            telling.scene.health = {COPY: PULL}
            telling.round()
            telling.scene.health = {}
            telling.round()
        assert len(telling.events(EventKind.DEGRADED)) == FLAPS_MAX
        assert telling.events(EventKind.DEGRADED, EventKind.RECOVERED)[-1].kind == "degraded"
        telling.round(after_s=timing.QUIET_S)
        assert telling.events(EventKind.DEGRADED, EventKind.RECOVERED)[-1].kind == "recovered"
        telling.scene.health = {COPY: PULL}
        telling.round()
        assert len(telling.events(EventKind.DEGRADED)) == FLAPS_MAX + 1


def test_what_left_has_not_become_well(tmp_path: Path) -> None:
    """It was deleted, or failover moved it: nothing of it works now, and however often it flapped, it is over."""
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        for health in ({COPY: PULL}, {}, {COPY: PULL}, {}, {COPY: PULL}):
            telling.scene.health = dict(health)
            telling.round()
        assert [one.data["why"] for one in telling.events(EventKind.RECOVERED)] == [PULL.why] * (FLAPS_MAX - 1)
        telling.scene.gone, telling.scene.health = {"app"}, {}
        telling.scene.apply()
        telling.round()
        *_, left = telling.events(EventKind.RECOVERED)
        assert left.data["why"] == f"it is no longer placed there: {PULL.why}"


def test_a_cluster_that_answers_now_and_then_is_away_until_it_has_answered_for_longer(tmp_path: Path) -> None:
    """One of three API servers behind one address is broken."""
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        for _ in range(10):
            telling.scene.away = {"m1": "HTTP 401"}
            telling.round()
            telling.scene.away = {}
            telling.round()
        assert len(telling.events(EventKind.CLUSTER_AWAY)) == FLAPS_MAX
        assert telling.events(EventKind.CLUSTER_AWAY, EventKind.CLUSTER_BACK)[-1].kind == "cluster-away"
        telling.round(after_s=timing.QUIET_S)
        assert telling.events(EventKind.CLUSTER_AWAY, EventKind.CLUSTER_BACK)[-1].kind == "cluster-back"


def test_a_hold_that_waits_for_a_person_is_told_for_its_cluster_with_what_is_held(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        scene = Scene("m1", "m2", names=("app", "other"))
        scene.apply()
        telling = Telling(journal, scene)
        scene.gone = {"app"}
        scene.held = {COPY: GUARD}
        telling.round()
        telling.round()
        scene.gone = set()
        telling.round()
        held, over = telling.events(EventKind.HELD, EventKind.HOLD_OVER)
        assert (held.kind, held.subject) == ("held", "cluster m1")
        known = {"why": GUARD, "by": "guard", "held": 1, "objects": ["ConfigMap demo/app"]}
        assert known.items() <= held.data.items()
        assert (held.data["revision"], held.data["source"]) == ("r1", "all.yaml:16")
        assert (over.kind, over.subject, over.data["since"]) == ("hold-over", "cluster m1", held.time)


def test_a_hold_of_several_is_told_with_reason_line_and_remedy_of_one_and_the_same(tmp_path: Path) -> None:
    class Mixed(Scene):
        def facts(self) -> StateFacts:
            facts = super().facts()
            (change,) = facts.changes[COPY]
            one = replace(change, identity=ROLE, source=Source("role.yaml", 3), hold=Hold(HeldBy.REPLACEMENT, "no"))
            return replace(facts, changes={**facts.changes, ("m1", ROLE): (one,)})

    with Journal.open(tmp_path / "journal.db") as journal:
        scene = Mixed("m1", names=("app", "other"))
        Scene.apply(scene)
        telling = Telling(journal, scene)
        scene.gone, scene.held = {"app"}, {COPY: GUARD}
        for _ in range(2):
            telling.round()
        (held,) = telling.events(EventKind.HELD)
        assert held.data["objects"] == ["ClusterRole view", "ConfigMap demo/app"]
        assert (held.data["why"], held.data["source"]) == ("no", "role.yaml:3")


def test_a_hold_that_goes_on_is_told_with_the_present_digest_after_a_restart(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        scene = Scene("m1", names=("app", "other"))
        scene.apply()
        telling = Telling(journal, scene)
        scene.held = {COPY: GUARD, ("m1", APP._replace(name="other")): GUARD}
        for gone, telling.digest in (("app", "3507"), ("other", "5823")):
            scene.gone = {gone}
            telling.round()
        telling.begin()
        telling.round()
        assert len(telling.events(EventKind.HELD)) == 1
        (lasting,) = telling.told.continuing((), ())
        assert "spec.guards.confirm: 5823 " in lasting.data["todo"]


def test_a_hold_that_has_shrunk_names_what_is_held_still_and_tells_what_joins_it(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        scene = Scene("m1", names=("app", "other", "third"))
        scene.apply()
        telling = Telling(journal, scene)
        scene.held = {("m1", APP._replace(name=name)): GUARD for name in ("app", "other", "third")}
        for scene.gone in ({"app", "other"}, {"app"}):
            telling.round()
        telling.begin()
        telling.round()
        (lasting,) = telling.told.continuing((), ())
        assert lasting.data["objects"] == ["ConfigMap demo/app"]
        scene.gone = {"app", "third"}
        telling.round()
        assert telling.events(EventKind.HELD)[-1].data["objects"] == ["ConfigMap demo/app", "ConfigMap demo/third"]


def test_each_hold_has_the_revision_that_brought_it_after_others_and_a_restart_too(tmp_path: Path) -> None:
    other = ("m1", APP._replace(name="other"))
    with Journal.open(tmp_path / "journal.db") as journal:
        scene = Scene("m1", names=("app", "other", "third"))
        scene.apply()
        telling = Telling(journal, scene)
        scene.gone, scene.held, scene.revision = {"app"}, {COPY: GUARD, other: GUARD}, "r2"
        telling.round()
        scene.revision = "r3"
        telling.round()
        scene.gone, scene.revision = {"app", "other"}, "r4"
        telling.round()
        scene.revision = "r5"
        for _ in range(2):
            telling.round()
            assert telling.told.held_by == {COPY: "r2", other: "r4"}
            telling.begin()
        scene.away, scene.revision = {"m1": "no answer"}, "r6"
        telling.round()
        scene.away, scene.revision = {}, "r7"
        telling.round()
        assert telling.told.held_by == {COPY: "r2", other: "r4"}, "its cluster was away at the start"
        third = ("m1", APP._replace(name="third"))
        telling.begin()
        scene.gone, scene.held, scene.revision = {"other", "third"}, {other: GUARD, third: GUARD}, "r8"
        telling.round()
        assert telling.told.held_by == {other: "r4", third: "r8"}, "a commit came while the service was stopped"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_hold_for_another_reason_begins_with_its_own_revision(tmp_path: Path, restarts: bool) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        scene = Scene("m1", names=("app", "other"))
        scene.apply()
        telling = Telling(journal, scene)
        scene.gone, scene.held, scene.revision = {"app"}, {COPY: "spec.selector cannot be changed in place"}, "r2"
        telling.round()
        if restarts:
            telling.begin()
        scene.held, scene.revision = {COPY: GUARD}, "r3"
        telling.round()
        assert telling.told.held_by == {COPY: "r3"}


def refuses(scene: Scene) -> None:
    scene.put_foreign("m1", "app")


def holds(scene: Scene) -> None:
    scene.gone = {"app"}
    scene.held = {COPY: GUARD}


def degrades(scene: Scene) -> None:
    scene.health = {COPY: PULL}


def is_fought_over(scene: Scene) -> None:
    scene.edit("m1", "app", "theirs")
    scene.fights = {COPY: Fought(("kubectl",), UNTIL)}


def is_away(scene: Scene) -> None:
    scene.away = {"m1": "connection refused"}


def freezes(scene: Scene) -> None:
    scene.broken = BROKEN


CONDITIONS: Mapping[str, tuple[Callable[[Scene], None], EventKind, EventKind]] = {
    "refused": (refuses, EventKind.OBJECT_REFUSED, EventKind.WAY_IS_FREE),
    "held": (holds, EventKind.HELD, EventKind.HOLD_OVER),
    "degraded": (degrades, EventKind.DEGRADED, EventKind.RECOVERED),
    "fought": (is_fought_over, EventKind.FIGHT_DETECTED, EventKind.FIGHT_OVER),
    "away": (is_away, EventKind.CLUSTER_AWAY, EventKind.CLUSTER_BACK),
    "frozen": (freezes, EventKind.FROZEN, EventKind.FREEZE_OVER),
}
CAUSES: Mapping[str, Callable[[Telling], None]] = {
    "nothing": lambda telling: None,
    "an unrelated broken file": lambda telling: setattr(telling.scene, "broken", BROKEN),
    "its cluster is away": lambda telling: telling.scene.away.update({"m1": "no answer within 10 s"}),
    "it cannot be read": lambda telling: telling.scene.unread.update({COPY: "forbidden"}),
    "it is being written": lambda telling: telling.scene.under_way.add(COPY),
    "a restart": lambda telling: telling.begin(),
}


@pytest.mark.parametrize("restarts", [False, True], ids=["", "restarted in between"])
@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_nothing_is_over_that_was_not_looked_at(tmp_path: Path, condition: str, cause: str, restarts: bool) -> None:
    """Whatever hides it, it is told once, and over only when it was seen to be over."""
    begins, kind, end = CONDITIONS[condition]
    with Journal.open(tmp_path / "journal.db") as journal:
        scene = applied()
        telling = Telling(journal, scene)
        telling.round()
        begins(scene)
        telling.round()
        assert [event.kind for event in telling.events(kind, end)] == [kind]
        CAUSES[cause](telling)
        if condition == "fought":
            scene.fights = {}  # Its time passes while nobody looks.
        if condition == "degraded":
            scene.health = {} if cause in ("its cluster is away", "it cannot be read") else scene.health
        for _ in range(2):
            if restarts:
                telling.begin()
            telling.round()
        if cause not in ("nothing", "a restart") or condition != "fought":
            assert [event.kind for event in telling.events(kind, end)] == [kind]


@pytest.mark.parametrize(("fought", "is_told"), [("data.value", True), ("data.other", False)])
def test_drift_is_told_as_left_where_all_of_it_is_fought_over(tmp_path: Path, fought: str, is_told: bool) -> None:
    """Else it is written, together with what a commit changes."""
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        telling.scene.edit("m1", "app", "theirs")
        telling.scene.fights = {COPY: Fought(("kubectl",), UNTIL, (fought,))}
        telling.round()
        assert [event.data["outcome"] for event in telling.events(EventKind.DRIFT)] == ["left"] * is_told


def test_a_hand_edit_that_is_set_back_is_told_without_what_it_did_to_health(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        telling.round()
        telling.scene.edit("m1", "app", "by hand")
        (change,) = telling.scene.facts().changes[COPY]
        telling.scene.apply()
        telling.told.news([ChangeResult(change=change)])
        telling.scene.health = {COPY: PULL}
        telling.round()
        assert telling.told.due_at()
        telling.scene.health = {}
        telling.round()
        telling.round(after_s=2 * timing.SETTLING_S)
        assert not telling.events(EventKind.DEGRADED, EventKind.RECOVERED)
        assert not telling.told.due_at()


def test_what_does_not_come_up_again_after_a_hand_edit_is_told(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        telling.round()
        telling.scene.edit("m1", "app", "by hand")
        (change,) = telling.scene.facts().changes[COPY]
        telling.scene.apply()
        telling.scene.health = {COPY: PULL}
        for _ in range(4):
            # Somebody edits it again and again.
            telling.told.news([ChangeResult(change=change)])
            telling.round(after_s=timing.SETTLING_S / 2)
        telling.told.news([ChangeResult(change=change)])
        telling.round(after_s=timing.SETTLING_S / 2)
        (event,) = telling.events(EventKind.DEGRADED)
        assert event.data["why"] == PULL.why
        assert event.data["revision"] == "r1"
        assert "git revert r1" in event.data["todo"]


def test_in_step_is_told_once_for_a_revision_however_often_it_is_left_and_reached(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        scene = Scene("m1", "m2")
        telling = Telling(journal, scene)
        revision = scene.fleet().revision
        journal.record_events([Event(round=1, time=NOW, kind=EventKind.ADVANCED, subject="store",
                                     data={"revision": revision})])  # fmt: skip
        telling.round(after_s=30)
        assert not telling.events(EventKind.IN_STEP)
        assert telling.told.steps.active_since == NOW
        scene.apply()
        telling.round(after_s=12)
        assert telling.fresh_s() == 42
        telling.round()
        assert telling.fresh_s() is None
        scene.edit("m1", "app", "by hand")
        telling.round()
        scene.apply()
        telling.round()
        telling.begin()
        telling.round()
        assert telling.told.steps.is_reported
        (event,) = telling.events(EventKind.IN_STEP)
        assert event.data == {"revision": revision, "clusters": 2, "since": NOW, "seconds": 42}


def test_no_cluster_is_in_step_that_was_not_read(tmp_path: Path) -> None:
    scene = applied()
    scene.away = {"m2": "no answer"}
    step = step_of(StateTables().update(scene.facts()))
    assert (step.clusters, step.in_step, step.away, step.is_complete) == (2, 1, ("m2",), False)


def test_nothing_is_in_step_with_a_revision_that_cannot_be_read_whole(tmp_path: Path) -> None:
    """Every object is as the last good content says, and nobody knows what the file says now."""
    facts, source = applied().facts(), Source("app.yaml")
    fleet = facts.schedule.fleet
    for read in (
        replace(fleet, frozen=(FrozenReach(source=source),)),
        replace(fleet, problems=(Problem(source=source, code="invalid-yaml", message="broken"),)),
    ):
        step = step_of(StateTables().update(replace(facts, schedule=replace(facts.schedule, fleet=read))))
        assert (step.in_step, step.clusters, step.is_complete) == (2, 2, False)
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        telling.scene.broken = BROKEN
        telling.round()
        assert not telling.events(EventKind.IN_STEP)
        telling.scene.broken = ""
        telling.round()
        assert telling.events(EventKind.IN_STEP)


def test_no_cluster_is_in_step_with_a_kind_that_cannot_be_read_there() -> None:
    widgets = Unlisted(Listed(GVK("shop.example", "v1", "Widget")), UnlistedCause.NOT_READ, "HTTP 503")
    facts = replace(applied().facts(), unlisted={"m1": (widgets, widgets)})
    step = step_of(StateTables().update(facts))
    assert (step.in_step, step.unread, step.is_complete) == (1, 1, False)


def test_nothing_is_in_step_while_something_is_placed_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster has a copy of it that could be out of step."""
    scene = applied()
    lost = [deployment("lost", 1), policy("Deployment", "m9", name="lost")]
    with Journal.open(tmp_path / "journal.db") as journal, monkeypatch.context() as patch:
        telling = Telling(journal, scene)
        complete = scene.fleet()
        rule = policy("ConfigMap", "m1", "m2", preserveResourcesOnDeletion=False)
        with_lost = fleet_of(FLEET, config_map(value="1"), rule, *lost, clusters=("m1", "m2"))
        patch.setattr(scene, "fleet", lambda: with_lost)
        telling.round()
        step = step_of(StateTables().update(scene.facts()))
        assert (step.in_step, step.clusters, step.unplaced, step.is_complete) == (2, 2, 1, False)
        assert not telling.events(EventKind.IN_STEP)
        patch.setattr(scene, "fleet", lambda: complete)
        telling.round()
        assert telling.events(EventKind.IN_STEP)


def test_what_waits_to_be_removed_has_not_recovered_and_is_told_so_once_it_is_gone() -> None:
    facts = applied().facts()
    excluded = ObjectState(Held(HeldBy.MOVE, "waits for m2 healthy"), HEALTHY, is_wanted=False)
    assert degraded(facts, COPY, excluded) is ConditionEnd.NOT_EVALUATED
    assert degraded(facts, COPY, None) is ConditionEnd.OVER


def test_that_another_cluster_answers_in_place_of_one_that_is_away_is_told_once(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        telling = Telling(journal, applied())
        for why in ("connection refused", "no answer within 10 s", ANOTHER_CLUSTER, ANOTHER_CLUSTER):
            telling.scene.away = {"m1": why}
            telling.round()
        telling.scene.away = {}
        telling.round()
        first, second, back = telling.events(EventKind.CLUSTER_AWAY, EventKind.CLUSTER_BACK)
        assert (first.data["why"], second.data["why"]) == ("connection refused", ANOTHER_CLUSTER)
        assert second.data["since"] == back.data["since"] == first.time
