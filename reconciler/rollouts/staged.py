"""A schedule with the active revisions: clusters that are behind keep their revision and its objects.

Source: ADR 18: staged are bodies, their overrides, and dependencies with their owners; placement is HEAD's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from reconciler.api.binding import Binding, PreviousPlacement, TargetCluster
from reconciler.api.content import Content
from reconciler.api.fleet import Template
from reconciler.api.ledger import AppliedRow, Ledger
from reconciler.api.policies import PropagationPolicy
from reconciler.api.problem import with_problems
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Staging
from reconciler.ownership import policy_ref
from reconciler.rollouts.differing import KeptObject, needs_of
from reconciler.rollouts.layout import best_of
from reconciler.rollouts.standing import RolloutStatus
from reconciler.scheduler import Schedule

Value = TypeVar("Value")


def staged(
    schedule: Schedule,
    standing: RolloutStatus,
    ledger: Ledger,
    copies: Mapping[Identity, Collection[str]],
    previous: Mapping[Identity, PreviousPlacement],
) -> Schedule:
    """Return the schedule with each copy's revision, objects that stay until their turn, and waiting placements."""
    in_force = {
        name: {cluster: record.revision for cluster, record in standing.records.get(name, {}).items()}
        for name in standing.progress
    }
    staging = Staging(
        rollouts=standing.selection.rollouts,
        in_force=in_force,
        newest=standing.newest,
        fleets=standing.fleets,
        order=standing.order,
        tied=standing.selection.tied,
    )
    said = (progress.problems for progress in standing.progress.values())
    schedule = replace(
        schedule,
        bindings=_with_placement_held(schedule, standing, previous),
        problems=with_problems(schedule.problems, standing.selection.problems, *said),
    )
    needed, early = needs_of(schedule, staging, ledger)
    left = dict(_lingering(schedule, standing, staging, ledger, copies))
    left |= dict(_definitions_of(schedule, left, staging, ledger, copies))
    kept = {**left, **needed}
    removed = {identity: one.rollouts for identity, one in kept.items() if one.rollouts}
    staging = replace(
        staging,
        rollouts={**staging.rollouts, **removed} if removed else staging.rollouts,
        lingering={identity: one.clusters for identity, one in kept.items()},
        early=early,
    )
    if not kept:
        return replace(schedule, staging=staging)
    templates = {identity: one.template for identity, one in kept.items()}
    policies = {identity: one.policy for identity, one in kept.items() if one.policy is not None}
    bound = {identity: _kept_binding(schedule, identity, one, ledger) for identity, one in kept.items()}
    fleet = schedule.fleet
    return replace(
        schedule,
        fleet=replace(fleet, templates=_sorted({**templates, **fleet.templates})),
        bindings=_sorted({**schedule.bindings, **bound}),
        policies=_sorted({**policies, **schedule.policies}),
        staging=staging,
    )


def _sorted(mapping: dict[Identity, Value]) -> dict[Identity, Value]:
    return {identity: mapping[identity] for identity in sorted(mapping)}


def _lingering(
    schedule: Schedule,
    standing: RolloutStatus,
    staging: Staging,
    ledger: Ledger,
    copies: Mapping[Identity, Collection[str]],
) -> Iterator[tuple[Identity, KeptObject]]:
    """Yield objects that left the store and whose deletion is not due."""
    templates, bindings = schedule.fleet.templates, schedule.bindings
    for identity in sorted(each for each in copies if each not in templates and each not in bindings):
        clusters = [cluster for cluster in sorted(copies[identity]) if identity in ledger.get(cluster, {})]
        if not clusters:
            continue
        rows = [ledger[cluster][identity] for cluster in clusters]
        template, policy = _as_applied(schedule, staging, rows)
        ref = policy.ref if policy is not None else next(filter(None, (policy_ref(row.policy) for row in rows)), None)
        names = best_of(schedule.fleet.rollouts, template, ref)
        due = [standing.progress[name].deletions_due for name in names if name in standing.progress]
        if not due:
            continue
        staying = frozenset(cluster for cluster in clusters if not any(cluster in each for each in due))
        staying &= schedule.fleet.clusters.keys()
        if staying:
            yield identity, KeptObject(template=template, policy=policy, rollouts=names, clusters=staying)


def _definitions_of(
    schedule: Schedule,
    left: Mapping[Identity, KeptObject],
    staging: Staging,
    ledger: Ledger,
    copies: Mapping[Identity, Collection[str]],
) -> Iterator[tuple[Identity, KeptObject]]:
    """Yield definitions that left the store, in clusters where objects of their group stay: these would go with them.

    Source: Kubernetes: the name of a definition is that of its plural, a dot and its group.
    """
    gone = [each for each in copies if each.kind == "CustomResourceDefinition" and each not in schedule.fleet.templates]
    for identity in sorted(gone):
        objects = [found for each, found in left.items() if each.group == identity.name.partition(".")[2]]
        clusters = frozenset(name for found in objects for name in found.clusters if identity in ledger.get(name, {}))
        if clusters:
            names = tuple(sorted({name for found in objects for name in found.rollouts}))
            rows = [ledger[cluster][identity] for cluster in sorted(clusters)]
            template, policy = _as_applied(schedule, staging, rows)
            yield identity, KeptObject(template=template, policy=policy, rollouts=names, clusters=clusters)


def _as_applied(
    schedule: Schedule, staging: Staging, rows: Sequence[AppliedRow]
) -> tuple[Template, PropagationPolicy | None]:
    """Return the template of an object that left the store, and the policy under which copies were applied."""
    names, identity = {row.policy for row in rows}, rows[0].identity
    fleets = (schedule.fleet, *staging.fleets.values())
    policy = next((one for fleet in fleets for one in fleet.propagation if str(one.ref) in names), None)
    places = {revision: index for index, revision in enumerate(staging.order)}
    newest_first = sorted(staging.fleets, key=lambda one: (places.get(one, -1), one), reverse=True)
    known = (staging.fleets[revision].templates.get(identity) for revision in newest_first)
    if (template := next(filter(None, known), None)) is not None:
        return template, policy
    # The release has come to every cluster. This is enough to find its Rollouts; nothing is rendered from it.
    row = max(rows, key=lambda row: row.recorded is not None)
    metadata = {"name": identity.name, **({"namespace": identity.namespace} if identity.namespace else {})}
    bare = {"apiVersion": row.gvk.api_version, "kind": row.gvk.kind, "metadata": metadata}
    body = Content(tree=row.recorded or bare)
    return Template(gvk=row.gvk, identity=identity, body=body, source=row.source), policy


def _kept_binding(schedule: Schedule, identity: Identity, kept: KeptObject, ledger: Ledger) -> Binding:
    """The binding of HEAD, if it has one, and the clusters that keep a copy, with the replicas that they have."""
    rows = {cluster: ledger.get(cluster, {}).get(identity) for cluster in sorted(kept.clusters)}
    own = schedule.bindings.get(identity) or Binding(
        identity=identity,
        policy=kept.policy.ref if kept.policy is not None else None,
        is_dependency=all(row is None or row.dependency for row in rows.values()),
        owners=kept.owners,
    )
    held = {cluster: TargetCluster(cluster, row.replicas if row is not None else None) for cluster, row in rows.items()}
    targets = {**held, **{target.cluster: target for target in own.targets}}
    return replace(own, targets=tuple(targets[cluster] for cluster in sorted(targets)))


def _with_placement_held(
    schedule: Schedule, standing: RolloutStatus, previous: Mapping[Identity, PreviousPlacement]
) -> Mapping[Identity, Binding]:
    """Return the bindings, with held placements unchanged; clusters taken by a tick or a person go at once.

    Source: ADR 18, `placement: last`.
    """
    waiting = {name for name, progress in standing.progress.items() if not progress.placement_due}
    if not waiting:
        return schedule.bindings
    ticked = {identity for identity, _ in schedule.ticked}
    held = {}
    for identity, names in standing.selection.rollouts.items():
        binding, before = schedule.bindings.get(identity), previous.get(identity)
        if binding is None or before is None or identity in ticked or not waiting.intersection(names):
            continue
        are_there = all(target.cluster in schedule.fleet.clusters for target in before.targets)
        if before.targets and before.targets != binding.targets and are_there:
            held[identity] = replace(binding, targets=before.targets)
    return {**schedule.bindings, **held} if held else schedule.bindings
