"""RollingSync of an ApplicationSet as a Rollout: its steps select applications, a stage selects their clusters.

Source: argo-cd.readthedocs.io/en/stable/operator-manual/applicationset/Progressive-Syncs/.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from reconciler.api.content import JsonObject
from reconciler.importers.app import App
from reconciler.importers.names import safe_name
from reconciler.importers.reading import Reading

_WHY_NOT = "its steps share clusters, or another set is in its namespaces; write a Rollout (docs/how-to/rollouts.md)"


class Standing(NamedTuple):
    """The surroundings of a set: the clusters of the fleet, and namespaces of other Rollouts."""

    clusters: Set[str]
    namespaces: Set[str]


def rollout_of(rolling: Reading, name: str, apps: Sequence[App], beside: Standing) -> JsonObject | None:
    """Return the equivalent Rollout, for the namespaces of the set; None, with a remark, if there is none."""
    stages: list[dict[str, Any]] = []
    taken: set[str] = set()
    namespaces = {app.namespace for app in apps}
    steps = rolling.children("steps")
    for number, step in enumerate(steps):
        chosen = {app.cluster for app in apps if _selects(step, app)}
        most = step.text("maxUpdate")
        if chosen & taken or not chosen or most in ("0", "0%"):
            rolling.notes.leave(rolling.document, (*rolling.below, "steps", number), _WHY_NOT)
            return None
        taken |= chosen
        stage: dict[str, Any] = {"name": f"step-{number + 1}", "clusters": {"clusterNames": sorted(chosen)}}
        if most:
            stage["maxConcurrency"] = int(most) if most.isdecimal() else most
        stages.append(stage)
    left = {app.cluster for app in apps} - taken
    if not stages or left or "" in namespaces or namespaces & beside.namespaces:
        rolling.notes.leave(rolling.document, rolling.below, _WHY_NOT)
        return None
    if beside.clusters - taken:  # A Rollout has a stage for each cluster; what is in no step is not of this set.
        stages.append({"name": "others", "clusters": {}})
    return {
        "apiVersion": "fleet.reconciler/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": safe_name(name)},
        "spec": {"templates": {"namespaces": sorted(namespaces)}, "stages": stages},
    }


def _selects(step: Reading, app: App) -> bool:
    for wanted in step.children("matchExpressions"):
        value, values = app.labels.get(wanted.text("key")), wanted.texts("values")
        if (value in values) != (wanted.text("operator") == "In"):
            return False
    return True
