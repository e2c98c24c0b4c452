"""States of rollouts, for tests of what shows them."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.api.rollout_progress import (
    ClusterProgress,
    Paused,
    Phase,
    Pinned,
    RolloutProgress,
    StageDone,
    StageProgress,
    StageState,
    WaitsForApproval,
    WaitsForStage,
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


AWAITED = at(WaitsForApproval(ENTRY), WaitsForStage("canary"))
PAUSED = at(Paused(("m1",)), WaitsForStage("canary"), m1=Phase.FAILED)
PINNED = at(StageDone(), Pinned(OLD), m2=Phase.PINNED, m3=Phase.PINNED)
DONE = replace(at(StageDone(), StageDone(), m2=Phase.DONE, m3=Phase.DONE), is_done=True)
