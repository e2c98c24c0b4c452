"""What runs to an end in a cluster of another process is not begun here. Source: design#runs-once; ADR 21."""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.problem import NOWHERE, Problem, Severity
from reconciler.model.refs import Identity
from reconciler.stages.comparison import Scene
from reconciler.stages.decision import RUNS_ONCE


def runs_elsewhere(
    scene: Scene, identity: Identity, target: Collection[str], in_force: Collection[str]
) -> Problem | None:
    """A warning where a run stays, as far as is known, in a cluster of another process; None: it does not.

    `target`: where it is to be; `in_force`: where it is or may come now.
    """
    if identity[:2] not in RUNS_ONCE:
        return None
    where = ", ".join(sorted(scene.elsewhere & set(in_force) - set(target)))
    if not where:
        return None
    template = scene.decision.fleet.templates.get(identity)
    message = (
        f"{identity} was placed in {where}, where another process applies, and may run there: it is not begun in "
        f"{', '.join(sorted(target)) or 'another cluster'}; to run it once more, give it another name"
    )
    return Problem(
        source=template.source if template is not None else NOWHERE,
        code="runs-elsewhere",
        message=message,
        severity=Severity.WARNING,
    )
