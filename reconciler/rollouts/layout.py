"""The stage of each cluster, the order of clusters in a stage, and the Rollout of each template.

Source: KubeFleet: each cluster in exactly one stage, sorted by a label as a number, then by name; a cluster in no stage
is an error (Rancher Fleet drops it in silence); Karmada: the most specific policy wins, and a tie is an error (ADR 18).
Kubernetes, "Versions in CustomResourceDefinitions": API servers drop stored fields that a definition lacks, so that a
definition goes with the revision of its objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from reconciler.api.clusters import Cluster
from reconciler.api.content import dig
from reconciler.api.fleet import Fleet, Template
from reconciler.api.problem import Problem, warning
from reconciler.api.refs import Identity, PolicyRef, listed
from reconciler.api.rollout_progress import Staging
from reconciler.api.rollouts import Layout, Rollout, Stage, StageLayout, TemplateScope
from reconciler.containment import try_call
from reconciler.policy import matching_clusters
from reconciler.scheduler import Schedule


def lay_out(rollout: Rollout, clusters: Mapping[str, Cluster]) -> Layout:
    """Return the clusters of each stage. In no stage, or in two: an error each, and the layout is not sound."""
    chosen = {
        stage.name: matching_clusters(stage.clusters, clusters.values())
        for stage in rollout.stages
        if stage.clusters is not None
    }
    in_stages: dict[str, list[str]] = {name: [] for name in clusters}
    for of_stage, chosen_names in chosen.items():
        for name in chosen_names:
            in_stages[name].append(of_stage)
    rest = tuple(name for name, stages in in_stages.items() if not stages)
    problems: list[Problem] = []
    layouts = []
    for stage in rollout.stages:
        names = chosen.get(stage.name, rest)
        layouts.append(StageLayout(stage, tuple(sorted(names, key=lambda name: _order(stage, clusters[name])))))
        problems.extend(_remarks(stage, [clusters[name] for name in names]))
    outside = () if len(chosen) < len(rollout.stages) else tuple(sorted(rest))
    errors = []
    for name in outside:
        message = f"no stage of the Rollout {rollout.name} has the cluster {name}; add a stage with clusters: {{}}"
        code = "rollout-cluster-in-no-stage"
        errors.append(Problem(source=rollout.source, code=code, message=message, cluster=name))
    for name, stages in sorted(in_stages.items()):
        if len(stages) > 1:
            message = f"the stages {' and '.join(stages)} of the Rollout {rollout.name} both have the cluster {name}"
            code = "rollout-cluster-in-two-stages"
            errors.append(Problem(source=rollout.source, code=code, message=message, cluster=name))
    for subject in rollout.pins:
        if subject in clusters and any(stage.name == subject for stage in rollout.stages):
            message = f"{subject} is a stage and a cluster; rename the stage, so that it is clear which one is pinned"
            code = "rollout-pin-ambiguous"
            errors.append(Problem(source=rollout.source, path="spec.pin", code=code, message=message))
    return Layout(
        stages=tuple(layouts), outside=outside, problems=tuple(sorted({*problems, *errors})), is_sound=not errors
    )


def _order(stage: Stage, cluster: Cluster) -> tuple[bool, int, str]:
    number = _number(cluster.labels.get(stage.order_by_label, ""))
    return (number is None, number or 0, cluster.name)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() else None


def _remarks(stage: Stage, clusters: list[Cluster]) -> list[Problem]:
    if not clusters:
        message = f"no cluster is in the stage {stage.name}; it is skipped"
        return [warning(stage.source, "", "rollout-stage-empty", message)]
    label = stage.order_by_label
    without = sorted(c.name for c in clusters if label and _number(c.labels.get(label, "")) is None)
    if not without:
        return []
    message = f"the label {label} is no whole number at {listed(without, 5)}; they come last in the stage {stage.name}"
    return [warning(stage.source, "", "rollout-order-not-a-number", message)]


AT_ONCE = ""
"""In place of the name of a Rollout: none speaks for the template, and it changes everywhere at once."""

Definitions = Mapping[Identity, tuple[list[Identity], tuple[Identity, ...]]]
"""By CustomResourceDefinition its objects, and what serves its conversion webhook."""

NO_DEFINITIONS: Final[Definitions] = MappingProxyType({})


def select(
    fleet: Fleet,
    governing: Mapping[Identity, PolicyRef],
    owners: Mapping[Identity, Iterable[Identity]],
    definitions: Definitions = NO_DEFINITIONS,
) -> Staging:
    """Return the Rollouts of each template of a fleet; a template without any changes at once.

    A dependency goes with its owners, whatever selects it (several: the most advanced), a definition with its objects.
    """
    if not fleet.rollouts:
        return Staging()
    own: dict[Identity, str] = {}
    tied: dict[Identity, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for identity, template in fleet.templates.items():
        best = best_of(fleet.rollouts, template, governing.get(identity))
        if len(best) > 1:
            tied[identity] = best
            message = (
                f"the Rollouts {' and '.join(best)} both speak for {identity}, and neither is more specific; "
                "it stays as it is"
            )
            problems.append(Problem(source=template.source, code="rollout-template-tied", message=message))
        elif best:
            own[identity] = best[0]
    rollouts: dict[Identity, tuple[str, ...]] = {identity: (name,) for identity, name in own.items()}
    for identity, bringing in owners.items():
        names = {own.get(owner, AT_ONCE) for owner in bringing if owner not in tied}
        tied_owners = sorted({name for owner in bringing for name in tied.get(owner, ())})
        if tied_owners:
            tied[identity] = tuple(tied_owners)
        problems += _shared(
            fleet.templates.get(identity),
            names,
            "rollout-dependency-shared",
            f"what brings {identity} changes",
            "it goes with the earlier one",
        )
        if AT_ONCE in names:
            rollouts.pop(identity, None)
        elif names:
            rollouts[identity] = tuple(sorted(names))
    for identity, (of, converters) in definitions.items():
        names = set(chain.from_iterable(rollouts.get(each, (AT_ONCE,)) for each in of if each not in tied))
        if names - {AT_ONCE}:
            rollouts |= dict.fromkeys((identity, *converters), tuple(sorted(names - {AT_ONCE})))
        problems += _shared(
            fleet.templates[identity],
            names,
            "rollout-definition-shared",
            f"objects of {identity.name} change",
            "in each cluster it goes with the last of them, so that no live field is lost, and the others wait for it "
            "there",
        )
    return Staging(
        rollouts={identity: names for identity, names in sorted(rollouts.items()) if identity not in tied},
        tied=dict(sorted(tied.items())),
        problems=tuple(sorted(problems)),
    )


def refused_without_revisions(rollouts: Iterable[Rollout]) -> tuple[Problem, ...]:
    """Return the error of each Rollout in a plain directory, which has no revisions."""
    message = "a directory has no revisions, so that no cluster could stay at an earlier one; follow a Git repository"
    return tuple(
        Problem(source=rollout.source, code="rollout-needs-revisions", message=f"Rollout {rollout.name}: {message}")
        for rollout in rollouts
    )


def best_of(rollouts: Iterable[Rollout], template: Template, policy: PolicyRef | None) -> tuple[str, ...]:
    """Return the names of the most specific Rollouts that select a template."""
    selecting = [rollout for rollout in rollouts if _selects(rollout.templates, template, policy)]
    ranks = {rollout.name: (not rollout.is_yielding, rollout.templates.precision) for rollout in selecting}
    best = max(ranks.values(), default=None)
    return tuple(sorted(name for name, rank in ranks.items() if rank == best))


def _selects(scope: TemplateScope, template: Template, policy: PolicyRef | None) -> bool:
    ref = "" if policy is None else f"{policy.namespace}/{policy.name}" if policy.namespace else policy.name
    if scope.policies and ref not in scope.policies:
        return False
    if scope.namespaces and template.identity.namespace not in scope.namespaces:
        return False
    return scope.labels is None or scope.labels.matches(template.labels)


def _shared(template: Template | None, names: Collection[str], code: str, subject: str, outcome: str) -> list[Problem]:
    """Return the warning about a template that goes with several Rollouts."""
    if template is None or len(names) < 2:
        return []
    ways = " and ".join(f"with the Rollout {name}" if name else "at once" for name in sorted(names))
    return [warning(template.source, "", code, f"{subject} {ways}; {outcome}")]


def definitions_of(schedule: Schedule) -> Definitions:
    """Return the placed CustomResourceDefinitions of the store, with their objects."""
    kinds = {kind: definition for kind, definition in schedule.definitions.items() if definition in schedule.bindings}
    objects: dict[Identity, list[Identity]] = {definition: [] for definition in kinds.values()}
    for identity in schedule.bindings if kinds else ():
        definition = kinds.get(identity[:2])
        if definition is not None and identity in schedule.fleet.templates:
            objects[definition].append(identity)
    return {definition: (each, _converters(schedule, definition)) for definition, each in objects.items()}


def _converters(schedule: Schedule, definition: Identity) -> tuple[Identity, ...]:
    """Return the Service of a conversion webhook and the workloads behind it, as far as the store has them."""
    templates = schedule.fleet.templates
    service = _service(templates[definition])
    if service is None:
        return ()
    selector = dig(templates[service].body, "spec", "selector") if service in templates else None
    wanted = selector if isinstance(selector, Mapping) else {}
    parts = [service]
    for identity, template in templates.items() if wanted else ():
        if identity.namespace == service.namespace:
            pods = try_call(schedule.interpreters.of(*identity[:2]).pod_template, template.body).value
            labels = dig(pods, "metadata", "labels")
            if isinstance(labels, Mapping) and wanted.items() <= labels.items():
                parts.append(identity)
    return tuple(identity for identity in parts if identity in schedule.bindings)


def _service(definition: Template) -> Identity | None:
    named = dig(definition.body, "spec", "conversion", "webhook", "clientConfig", "service")
    namespace, name = dig(named, "namespace"), dig(named, "name")
    if not isinstance(namespace, str) or not isinstance(name, str):
        return None
    return Identity("", "Service", namespace, name)


def concerns_definitions(schedule: Schedule, dirty: Collection[Identity]) -> bool:
    """Return whether one of these is a definition, an object of one, or may serve its conversion."""
    if not schedule.definitions:
        return False
    defining, templates = set(schedule.definitions.values()), schedule.fleet.templates
    services = [_service(templates[one]) for one in defining if one in templates]
    spaces = {service.namespace for service in services if service is not None}
    return any(each in defining or each[:2] in schedule.definitions or each.namespace in spaces for each in dirty)
