"""Members in memory under Rollouts: what is recorded is given, and a round is planned by it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.rollout_progress import GateStatus, Record, ReleaseFacts, RolloutProgress, Staging
from reconciler.planner import Round, copies_in, plan_round, previous_of
from reconciler.rollouts import in_force, selected_of, staged, stand
from reconciler.scheduler import Schedule, schedule_fleet
from tests.fakes.worlds import NOW, TestBed, fleet_of

ROLLOUT = "default"


def rollout(*stages: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A Rollout of all templates: m1, then m2, then the rest."""
    default = [
        {"name": "first", "clusters": {"clusterNames": ["m1"]}},
        {"name": "second", "clusters": {"clusterNames": ["m2"]}},
        {"name": "rest", "clusters": {}},
    ]
    return {
        "apiVersion": "fleet.reconciler/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": ROLLOUT},
        "spec": {"stages": list(stages) or default, **spec},
    }


def store(revision: str, *documents: dict[str, Any], clusters: tuple[str, ...] = ("m1", "m2", "m3")) -> Fleet:
    return replace(fleet_of(*documents, clusters=clusters), revision=revision)


def done(revision: str) -> Record:
    return Record(revision=revision, begun_at=NOW, completed_at=NOW)


def begun(revision: str) -> Record:
    return Record(revision=revision, begun_at=NOW)


class StagedBed(TestBed):
    """`records`: by cluster, of the one Rollout. `older`: the revisions that can be read."""

    __test__ = False

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.records: dict[str, Record] = {}
        self.older: dict[str, Fleet] = {}
        self.sights: dict[str, GateStatus] = {}

    def standing(self, fleet: Fleet) -> tuple[Schedule, Staging, dict[str, RolloutProgress]]:
        schedule = self.decided(fleet)
        named = {record.revision for record in self.records.values()} - {"", fleet.revision}
        facts = ReleaseFacts(
            fleets={revision: self.older[revision] for revision in sorted(named & self.older.keys())},
            order=(*sorted(named), fleet.revision),
            missing=frozenset(named - self.older.keys()),
            sights={ROLLOUT: self.sights},
            applied=copies_in(self.ledger),
        )
        return schedule, *stand(schedule, selected_of(schedule), {ROLLOUT: self.records}, facts, NOW)

    def decided(self, fleet: Fleet) -> Schedule:
        world = self.world(fleet)
        return schedule_fleet(
            fleet, world.observations, NOW, interpreters=world.interpreters, copies=copies_in(self.ledger)
        )

    def staged(self, fleet: Fleet, *, as_recorded: bool = True) -> Schedule:
        """`as_recorded`: by what is recorded now, not by what would begin."""
        schedule, staging, progress = self.standing(fleet)
        if as_recorded:
            staging = replace(staging, in_force=in_force({ROLLOUT: self.records}))
        return staged(schedule, staging, progress, self.ledger, copies_in(self.ledger), self.observations.previous)

    def plan_staged(self, fleet: Fleet) -> Round:
        return plan_round(self.world(fleet), self.staged(fleet))

    def run_staged(self, fleet: Fleet) -> Round:
        planned = self.plan_staged(fleet)
        for wave in planned.plan.waves:
            for index in wave:
                self.make(planned.plan.changes[index], fleet)
        self.record_rest(planned)
        self.observations = replace(self.observations, previous=previous_of(planned.schedule.bindings))
        return planned


def told(planned: Round) -> list[str]:
    """`update m1 Deployment demo/app`, and in brackets why it is held."""
    return [
        f"{change.action} {change.cluster} {change.identity}" + (f" ({change.held})" if change.held else "")
        for change in planned.plan.changes
    ]
