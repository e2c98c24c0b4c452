"""Which cluster is in which stage, and in which order the clusters of a stage have their turns.

Source: KubeFleet: each cluster in exactly one stage, sorted by a label as a number, then by name; Rancher Fleet: a
cluster that no partition selects was dropped in silence, which is an error here.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.cluster import Cluster
from reconciler.model.problem import Problem, Severity
from reconciler.model.rollouts.layout import Layout, StageLayout
from reconciler.model.rollouts.rollout import Chosen, Rollout, Stage
from reconciler.stages.claims import matching_clusters


def lay_out(rollout: Rollout, clusters: Mapping[str, Cluster]) -> Layout:
    """The clusters of each stage. In no stage, or in two: an error each, and the layout is not sound."""
    chosen = {
        stage.name: matching_clusters(stage.clusters.affinity, clusters.values())
        for stage in rollout.stages
        if isinstance(stage.clusters, Chosen)
    }
    in_stages: dict[str, list[str]] = {name: [] for name in clusters}
    for of_stage, chosen_names in chosen.items():
        for name in chosen_names:
            in_stages[name].append(of_stage)
    rest = tuple(name for name, stages in in_stages.items() if not stages)
    problems: list[Problem] = []
    found = []
    for stage in rollout.stages:
        names = chosen.get(stage.name, rest)
        found.append(StageLayout(stage, tuple(sorted(names, key=lambda name: _order(stage, clusters[name])))))
        problems.extend(_remarks(stage, [clusters[name] for name in names]))
    has_rest = len(chosen) < len(rollout.stages)
    outside = () if has_rest else tuple(sorted(rest))
    errors = [_in_no_stage(rollout, name) for name in outside]
    errors += [_in_two(rollout, name, stages) for name, stages in sorted(in_stages.items()) if len(stages) > 1]
    for subject in rollout.pins:
        if subject in clusters and any(stage.name == subject for stage in rollout.stages):
            errors.append(_ambiguous_pin(rollout, subject))
    return Layout(
        stages=tuple(found),
        outside=outside,
        problems=tuple(sorted({*problems, *errors})),
        is_sound=not errors,
    )


def _order(stage: Stage, cluster: Cluster) -> tuple[bool, int, str]:
    number = _number(cluster.labels.get(stage.order_by_label, ""))
    return (number is None, number or 0, cluster.name)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() else None


def _remarks(stage: Stage, clusters: list[Cluster]) -> list[Problem]:
    if not clusters:
        message = f"no cluster is in the stage {stage.name}; it is skipped"
        return [Problem(source=stage.source, code="rollout-stage-empty", message=message, severity=Severity.WARNING)]
    label = stage.order_by_label
    without = sorted(c.name for c in clusters if label and _number(c.labels.get(label, "")) is None)
    if not without:
        return []
    shown = ", ".join(without[:5]) + (f" and {len(without) - 5} more" if len(without) > 5 else "")
    message = f"the label {label} is no whole number at {shown}; they come last in the stage {stage.name}"
    code = "rollout-order-not-a-number"
    return [Problem(source=stage.source, code=code, message=message, severity=Severity.WARNING)]


def _in_no_stage(rollout: Rollout, cluster: str) -> Problem:
    message = f"no stage of the Rollout {rollout.name} has the cluster {cluster}; add a stage with clusters: {{}}"
    return Problem(source=rollout.source, code="rollout-cluster-in-no-stage", message=message, cluster=cluster)


def _in_two(rollout: Rollout, cluster: str, stages: list[str]) -> Problem:
    message = f"the stages {' and '.join(stages)} of the Rollout {rollout.name} both have the cluster {cluster}"
    return Problem(source=rollout.source, code="rollout-cluster-in-two-stages", message=message, cluster=cluster)


def _ambiguous_pin(rollout: Rollout, subject: str) -> Problem:
    message = f"{subject} is a stage and a cluster; rename the stage, so that it is clear which one is pinned"
    return Problem(source=rollout.source, path="spec.pin", code="rollout-pin-ambiguous", message=message)
