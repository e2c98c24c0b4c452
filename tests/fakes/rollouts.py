"""States of rollouts, for tests of what shows them."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.api.rollout_progress import (
    ClusterProgress,
    Phase,
    RolloutProgress,
    StageKind,
    StageProgress,
    StageState,
)

NEW = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
OLD = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
ENTRY = f"- {{stage: canary, revision: {NEW[:12]}}}"


def at(canary: StageState, rest: StageState, **phases: Phase) -> RolloutProgress:
    """Two stages, canary with m1 and rest with m2 and m3; clusters are behind where nothing else is given."""
    found = {"m1": Phase.DONE, "m2": Phase.BEHIND, "m3": Phase.BEHIND, **phases}
    clusters = {
        name: ClusterProgress(
            revision=NEW if phase in (Phase.DONE, Phase.RUNNING, Phase.FAILED) else OLD,
            phase=phase,
            why=f"why {name} is {phase}",
            stage="canary" if name == "m1" else "rest",
        )
        for name, phase in found.items()
    }
    stages = (
        StageProgress(name="canary", clusters=("m1",), state=canary),
        StageProgress(name="rest", clusters=("m2", "m3"), state=rest),
    )
    return RolloutProgress(rollout="default", release=NEW, clusters=clusters, stages=stages)


WAITS = StageState(StageKind.WAITS_FOR_STAGE, stage="canary")
AWAITED = at(StageState(StageKind.WAITS_FOR_APPROVAL, entry=ENTRY), WAITS)
PAUSED = at(StageState(StageKind.PAUSED, failed=("m1",)), WAITS, m1=Phase.FAILED)
PINNED = at(StageState(StageKind.DONE), StageState(StageKind.PINNED, pinned=OLD), m2=Phase.PINNED, m3=Phase.PINNED)
DONE = replace(at(StageState(StageKind.DONE), StageState(StageKind.DONE), m2=Phase.DONE, m3=Phase.DONE), is_done=True)
