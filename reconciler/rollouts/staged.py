"""The state of a schedule's Rollouts, and the schedule with the active revisions.

Each Rollout is judged by itself, from records and observations. Clusters that are behind keep their revision and its
objects. Source: ADR 18: staged are bodies, their overrides, and dependencies with their owners; placement is HEAD's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from reconciler.api.binding import Binding, PreviousPlacement, TargetCluster
from reconciler.api.content import Content
from reconciler.api.fleet import Fleet, Template
from reconciler.api.ledger import AppliedRow, Ledger
from reconciler.api.policies import PropagationPolicy
from reconciler.api.problem import with_problems
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Record, ReleaseFacts, RolloutProgress, Staging
from reconciler.api.rollouts import Rollout
from reconciler.observations import moment_of
from reconciler.ownership import policy_ref
from reconciler.rollouts.differing import RetainedObject, needs_of, stages_the_same
from reconciler.rollouts.layout import best_of, lay_out
from reconciler.rollouts.progress import adopted, progress
from reconciler.rollouts.release import newest, rollback_revisions
from reconciler.scheduler import Schedule, bare_namespace

Records = Mapping[str, Mapping[str, Record]]
"""By Rollout and cluster."""


def stand(
    schedule: Schedule, selection: Staging, records: Records, facts: ReleaseFacts, now: str
) -> tuple[Staging, dict[str, RolloutProgress]]:
    """Return the active revisions, and the state of each Rollout with the records to write. `now`: RFC 3339."""
    fleet = schedule.fleet
    states: dict[str, RolloutProgress] = {}
    heads: dict[str, str] = {}
    for rollout in fleet.rollouts:
        known = records.get(rollout.name, {})
        # Those of the revisions in force, or to which clusters may roll back, that stage the same as HEAD.
        older = sorted(revisions_of(rollout, known, now) - {"", fleet.revision})
        alike = frozenset(
            revision
            for revision in older
            if (there := facts.fleets.get(revision)) is not None
            and stages_the_same(there, schedule, _selects(schedule, selection, rollout, there, facts.applied))
        )
        of_rollout = replace(facts, alike=alike | {fleet.revision})
        # The newest recorded revision that stages the same as HEAD, else HEAD.
        head = heads[rollout.name] = newest(alike, {}, facts.order) or fleet.revision
        layout, sights = lay_out(rollout, fleet.clusters), facts.sights.get(rollout.name, {})
        states[rollout.name] = progress(rollout, layout, head, known, sights, now, of_rollout)
    recorded = in_force({name: each.records for name, each in states.items()})
    return replace(selection, in_force=recorded, newest=heads, fleets=facts.fleets, order=facts.order), states


def in_force(records: Records) -> dict[str, dict[str, str]]:
    """Return the recorded revision of each cluster, by Rollout."""
    return {name: {cluster: one.revision for cluster, one in known.items()} for name, known in records.items()}


def begun_with(
    schedule: Schedule, selection: Staging, records: Records, applied: Collection[Identity], before: str, now: str
) -> dict[str, dict[str, Record]]:
    """Return records of new Rollouts over `applied` objects, at revision `before`; without any there is none."""
    new = [rollout for rollout in schedule.fleet.rollouts if before and not records.get(rollout.name)]
    selected = selection.rollouts.items() if new else ()
    running = {name for identity, names in selected if identity in applied for name in names}
    layouts = {rollout.name: lay_out(rollout, schedule.fleet.clusters) for rollout in new if rollout.name in running}
    return {name: adopted(layout, before, now) for name, layout in layouts.items()}


def revisions_of(rollout: Rollout, records: Mapping[str, Record], now: str) -> set[str]:
    """Return the revisions of a Rollout that are in force, and those to which clusters may roll back."""
    earlier = (rollback_revisions(rollout, record, moment_of(now)) for record in records.values())
    return {record.revision for record in records.values()}.union(*earlier)


def _selects(
    schedule: Schedule, selection: Staging, rollout: Rollout, older: Fleet, applied: Collection[Identity]
) -> Callable[[Identity], bool]:
    """Return a check whether a Rollout selects a template, also one gone from HEAD. Unplaced templates do not count."""
    policies = dict.fromkeys(policy.ref for policy in (*older.propagation, *schedule.fleet.propagation))

    def is_governed(identity: Identity) -> bool:
        if identity in schedule.fleet.templates:
            return identity in schedule.bindings and rollout.name in selection.rollouts.get(identity, ())
        template = older.templates.get(identity)
        if template is None or identity not in applied:
            return False
        # By which policy it was governed is not known any more: by any that a Rollout may name.
        return any(
            rollout.name in best_of(schedule.fleet.rollouts, template, policy)
            for policy in (None, *(policies if rollout.templates.policies else ()))
        )

    return is_governed


def staged(
    schedule: Schedule,
    staging: Staging,
    progress: Mapping[str, RolloutProgress],
    ledger: Ledger,
    copies: Mapping[Identity, Collection[str]],
    previous: Mapping[Identity, PreviousPlacement],
) -> Schedule:
    """Return the schedule with active revisions, objects that stay until their turn, and held placements."""
    schedule = replace(
        schedule,
        bindings=_with_placement_held(schedule, staging, progress, previous),
        problems=with_problems(schedule.problems, staging.problems, *(each.problems for each in progress.values())),
    )
    spaces = [identity for identity in staging.rollouts if identity[:2] == ("", "Namespace")]
    staging = replace(staging, fleets={name: _with_spaces(fleet, spaces) for name, fleet in staging.fleets.items()})
    needed, early = needs_of(schedule, staging, ledger)
    left = dict(_lingering(schedule, progress, staging, ledger, copies))
    left |= dict(_definitions_of(schedule, left, staging, ledger, copies))
    retained = {**left, **needed}
    removed = {identity: one.rollouts for identity, one in retained.items() if one.rollouts}
    staging = replace(
        staging,
        rollouts={**staging.rollouts, **removed} if removed else staging.rollouts,
        lingering={identity: one.clusters for identity, one in retained.items()},
        early=early,
    )
    if not retained:
        return replace(schedule, staging=staging)
    templates = {identity: one.template for identity, one in retained.items()}
    policies = {identity: one.policy for identity, one in retained.items() if one.policy is not None}
    bound = {identity: _kept_binding(schedule, identity, one, ledger) for identity, one in retained.items()}
    fleet = schedule.fleet
    return replace(
        schedule,
        fleet=replace(fleet, templates=dict(sorted({**templates, **fleet.templates}.items()))),
        bindings=dict(sorted({**schedule.bindings, **bound}.items())),
        policies=dict(sorted({**policies, **schedule.policies}.items())),
        staging=staging,
    )


def _with_spaces(older: Fleet, spaces: Sequence[Identity]) -> Fleet:
    """Return an older revision with the Namespaces that it lacks and has objects in: there, they only follow these."""
    missing = [space for space in spaces if space not in older.templates]
    inhabited = {identity.namespace for identity in older.templates} if missing else ()
    bare = {space: bare_namespace(space.name) for space in missing if space.name in inhabited}
    return replace(older, templates={**older.templates, **bare}) if bare else older


def _lingering(
    schedule: Schedule,
    progress: Mapping[str, RolloutProgress],
    staging: Staging,
    ledger: Ledger,
    copies: Mapping[Identity, Collection[str]],
) -> Iterator[tuple[Identity, RetainedObject]]:
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
        due = [progress[name].deletions_due for name in names if name in progress]
        if not due:
            continue
        staying = frozenset(cluster for cluster in clusters if not any(cluster in each for each in due))
        staying &= schedule.fleet.clusters.keys()
        if staying:
            yield identity, RetainedObject(template=template, policy=policy, rollouts=names, clusters=staying)


def _definitions_of(
    schedule: Schedule,
    left: Mapping[Identity, RetainedObject],
    staging: Staging,
    ledger: Ledger,
    copies: Mapping[Identity, Collection[str]],
) -> Iterator[tuple[Identity, RetainedObject]]:
    """Yield definitions that left the store where objects of their group stay. Source: Kubernetes: PLURAL.GROUP."""
    gone = [each for each in copies if each.kind == "CustomResourceDefinition" and each not in schedule.fleet.templates]
    for identity in sorted(gone):
        objects = [one for each, one in left.items() if each.group == identity.name.partition(".")[2]]
        clusters = frozenset(name for one in objects for name in one.clusters if identity in ledger.get(name, {}))
        if clusters:
            names = tuple(sorted({name for one in objects for name in one.rollouts}))
            rows = [ledger[cluster][identity] for cluster in sorted(clusters)]
            template, policy = _as_applied(schedule, staging, rows)
            yield identity, RetainedObject(template=template, policy=policy, rollouts=names, clusters=clusters)


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
    content = Content(tree=row.recorded or bare)
    return Template(gvk=row.gvk, identity=identity, content=content, source=row.source), policy


def _kept_binding(schedule: Schedule, identity: Identity, retained: RetainedObject, ledger: Ledger) -> Binding:
    """Return HEAD's binding, if any, with the clusters that keep a copy and their replicas."""
    rows = {cluster: ledger.get(cluster, {}).get(identity) for cluster in sorted(retained.clusters)}
    own = schedule.bindings.get(identity) or Binding(
        identity=identity,
        policy=retained.policy.ref if retained.policy is not None else None,
        is_dependency=all(row is None or row.dependency for row in rows.values()),
        owners=retained.owners,
    )
    held = {cluster: TargetCluster(cluster, row.replicas if row is not None else None) for cluster, row in rows.items()}
    targets = {**held, **{target.cluster: target for target in own.targets}}
    return replace(own, targets=tuple(targets[cluster] for cluster in sorted(targets)))


def _with_placement_held(
    schedule: Schedule,
    staging: Staging,
    progress: Mapping[str, RolloutProgress],
    previous: Mapping[Identity, PreviousPlacement],
) -> Mapping[Identity, Binding]:
    """Return bindings, held ones unchanged; what a tick or a person takes goes at once. Source: ADR 18."""
    waiting = {name for name, each in progress.items() if not each.placement_due}
    if not waiting:
        return schedule.bindings
    ticked = {identity for identity, _ in schedule.ticked}
    held = {}
    for identity, names in staging.rollouts.items():
        binding, before = schedule.bindings.get(identity), previous.get(identity)
        if binding is None or before is None or identity in ticked or not waiting.intersection(names):
            continue
        are_there = all(target.cluster in schedule.fleet.clusters for target in before.targets)
        if before.targets and before.targets != binding.targets and are_there:
            held[identity] = replace(binding, targets=before.targets)
    return {**schedule.bindings, **held} if held else schedule.bindings
