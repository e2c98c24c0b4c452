"""Objects that differ between two revisions of the store, and what follows for their Rollouts and dependencies.

Source: ADR 18: placement is never staged, so policies that propagate, Cluster documents and replicas that placement
assigns are not compared; a dependency moves with its owner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.fleet import Fleet, Template
from reconciler.api.ledger import AppliedRow
from reconciler.api.policies import PropagationPolicy
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Staging
from reconciler.containment import try_call
from reconciler.incremental import changed_keys, patched
from reconciler.policy import PolicyIndex
from reconciler.rollouts.layout import concerns_definitions, definitions_of, select
from reconciler.scheduler import Schedule, Sources, travel
from reconciler.templates import references_of


class SelectedTables:
    """The selection of the last schedule. Source: design#incremental."""

    def __init__(self) -> None:
        self._schedule: Schedule | None = None
        self._selection = Staging()

    def update(self, schedule: Schedule) -> Staging:
        """Return the selection of a schedule; the same object as before if nothing differs."""
        before = self._schedule
        if before is not schedule:
            selection = self._patched(before, schedule) if before is not None else None
            self._selection = selected_of(schedule) if selection is None else selection
            self._schedule = schedule
        return self._selection

    def _patched(self, before: Schedule, schedule: Schedule) -> Staging | None:
        """Return the selection with differences updated; None: that is not enough, since more may depend on it."""
        known = self._selection
        if before.fleet.rollouts != schedule.fleet.rollouts or known.problems:
            return None
        dirty = changed_keys(before.fleet.templates, schedule.fleet.templates)
        if before.definitions is not schedule.definitions:
            return None  # A definition goes with its objects, and what serves its conversion goes with it.
        dirty |= changed_keys(before.policies, schedule.policies) | changed_keys(before.bindings, schedule.bindings)
        if concerns_definitions(schedule, dirty):
            return None
        selection = selected_of(schedule, dirty)
        if selection.problems:
            return None
        for identity in dirty:
            is_other = known.rollouts.get(identity) != selection.rollouts.get(identity)
            if is_other and identity in before.bindings and identity in schedule.bindings:
                return None  # What it brings along may go with another Rollout, too.
        rollouts = patched(known.rollouts, {identity: selection.rollouts.get(identity) for identity in dirty})
        return known if rollouts is known.rollouts else replace(known, rollouts=rollouts)


def selected_of(schedule: Schedule, identities: Collection[Identity] | None = None) -> Staging:
    """Return the Rollouts of templates, dependencies by owner. `identities`: these; None: all. Source: ADR 18."""
    fleet = schedule.fleet
    if not fleet.rollouts:
        return Staging()
    among = schedule.bindings if identities is None else identities
    owners: dict[Identity, tuple[Identity, ...]] = {}
    for identity in among:
        binding = schedule.bindings.get(identity)
        if binding is not None and binding.owners and identity[:2] != ("", "Namespace"):
            owners[identity] = binding.owners
    if identities is not None:
        wanted = sorted({*identities, *chain.from_iterable(owners.values())} & fleet.templates.keys())
        fleet = replace(fleet, templates={identity: fleet.templates[identity] for identity in wanted})
    policies = schedule.policies
    governing = {identity: policies[identity].ref for identity in fleet.templates if identity in policies}
    return select(fleet, governing, owners, definitions_of(schedule) if identities is None else {})


def differing(
    one: Fleet,
    other: Fleet,
    is_governed: Callable[[Identity], bool],
    is_equal: Callable[[Template, Template], bool] = lambda one, other: False,
) -> set[Identity]:
    """Return selected templates that differ between revisions, or by overrides. `is_equal`: of differing bodies."""
    if one is other:
        return set()
    differences = set()
    for identity in changed_keys(one.templates, other.templates):
        before, after = one.templates.get(identity), other.templates.get(identity)
        is_same = (
            before is not None
            and after is not None
            and before.gvk == after.gvk
            and (before.digest == after.digest or is_equal(before, after))
        )
        if not is_same and is_governed(identity):
            differences.add(identity)
    old, new = ({(policy.ref, policy.digest): policy for policy in fleet.overrides} for fleet in (one, other))
    index = PolicyIndex(side[key] for key in sorted(old.keys() ^ new.keys()) for side in (old, new) if key in side)
    if index.is_empty:
        return differences
    for fleet in (one, other):
        differences.update(
            identity
            for identity, template in fleet.templates.items()
            if identity not in differences and is_governed(identity) and index.matches(template)
        )
    return differences


def stages_the_same(older: Fleet, schedule: Schedule, is_governed: Callable[[Identity], bool]) -> bool:
    """Return whether a Rollout of the selected templates brings the same with an older revision as with HEAD."""

    def is_equal(before: Template, after: Template) -> bool:
        binding = schedule.bindings.get(after.identity)
        if binding is None or any(replicas is None for _, replicas in binding.targets):
            return False
        with_replicas = schedule.interpreters.of(*after.identity[:2]).with_replicas
        bodies = [try_call(with_replicas, template.body, 1).value for template in (before, after)]
        return bodies[0] is not None and bodies[0] == bodies[1]

    return not differing(older, schedule.fleet, is_governed, is_equal)


_NOTHING = Staging()


def changed_by_staging(before: Schedule | None, after: Schedule) -> set[Identity]:
    """Return objects to evaluate, beside the differences between the two schedules themselves."""
    if before is None or before.staging is after.staging:
        return set()
    old, new = before.staging or _NOTHING, after.staging or _NOTHING
    changed = changed_keys(old.rollouts, new.rollouts) | changed_keys(old.tied, new.tied)
    changed |= changed_keys(old.lingering, new.lingering) | changed_keys(old.early, new.early)
    for name in sorted({*old.in_force, *new.in_force}):
        in_force, in_force_now = old.in_force.get(name, {}), new.in_force.get(name, {})
        # The revisions that clusters of a Rollout changed between, each pair once.
        turned = {}
        for cluster in {*in_force, *in_force_now}:
            was = _side(before.fleet, old, name, in_force.get(cluster, ""))
            is_now = _side(after.fleet, new, name, in_force_now.get(cluster, ""))
            turned[was and was[0], is_now and is_now[0]] = was, is_now

        def is_of(identity: Identity, name: str = name) -> bool:
            return name in old.rollouts.get(identity, ()) or name in new.rollouts.get(identity, ())

        for (earlier, later), (was, is_now) in turned.items():
            changed.update(each for each in {*old.lingering, *new.lingering} if earlier != later and is_of(each))
            if was is not None and is_now is not None:
                changed |= differing(was[1], is_now[1], is_of) if earlier != later else set()
            elif earlier != later:
                changed.update(identity for side in (old, new) for identity, of in side.rollouts.items() if name in of)
    return changed


def _side(head: Fleet, staging: Staging, name: str, revision: str) -> tuple[str, Fleet] | None:
    """Return the revision that is active, with its fleet; None: none is, or it cannot be read."""
    # Where no Rollout of the name is, HEAD is in force.
    if name not in staging.in_force or (revision and revision == staging.newest.get(name)):
        return head.revision, head
    fleet = staging.fleets.get(revision) if revision else None
    return (revision, fleet) if fleet is not None else None


class RetainedObject(Struct, frozen=True, kw_only=True):
    """An object that HEAD does not have in some clusters, and that these keep. `owners`: those of a dependency."""

    template: Template
    policy: PropagationPolicy | None
    rollouts: tuple[str, ...]
    clusters: frozenset[str]
    owners: tuple[Identity, ...] = ()


def needs_of(
    schedule: Schedule, staging: Staging, ledger: Mapping[str, Mapping[Identity, AppliedRow]]
) -> tuple[dict[Identity, RetainedObject], dict[Identity, frozenset[str]]]:
    """Return the needs of owners that are behind: objects that stay, and by object clusters where HEAD is too early."""
    templates: dict[Identity, Template] = {}
    owners, missing, early, needed = (defaultdict[Identity, set[Any]](set) for _ in range(4))
    at_head = Sources(schedule.fleet, schedule.makers)
    for revision, fleet in sorted(staging.fleets.items()):
        at_revision = Sources.among(fleet, schedule.interpreters)
        for owner in sorted(changed_keys(fleet.templates, schedule.fleet.templates)):
            names, binding = staging.rollouts.get(owner), schedule.bindings.get(owner)
            if not names or binding is None or owner not in fleet.templates:
                continue
            clusters = {name for name in binding.clusters if staging.revision_of(names, name) == revision}
            if not clusters:
                continue
            before = _brought(schedule, fleet, at_revision, owner)
            after = _brought(schedule, schedule.fleet, at_head, owner)
            for identity in sorted((before - after) & fleet.templates.keys()):
                bound = schedule.bindings.get(identity)
                templates[identity] = fleet.templates[identity]
                owners[identity].add(owner)
                missing[identity] |= clusters.difference(bound.clusters if bound is not None else ())
            for identity in after - before:
                early[identity] |= {name for name in clusters if identity not in ledger.get(name, {})}
            for identity in before & after:
                needed[identity] |= clusters
    retained = {
        identity: RetainedObject(
            template=template,
            policy=schedule.policies.get(min(owners[identity])),
            rollouts=tuple(sorted({name for owner in owners[identity] for name in staging.rollouts[owner]})),
            clusters=frozenset(missing[identity]),
            owners=tuple(sorted(owners[identity])),
        )
        for identity, template in templates.items()
        if any(identity in ledger.get(cluster, {}) for cluster in missing[identity])
    }
    left = {identity: frozenset(clusters - needed[identity]) for identity, clusters in early.items()}
    return retained, {identity: clusters for identity, clusters in left.items() if clusters}


def _brought(schedule: Schedule, fleet: Fleet, sources: Sources, owner: Identity) -> set[Identity]:
    """Return the dependencies of a revision's template under the active policy, its own or as a followed one."""
    template, policy = fleet.templates.get(owner), schedule.policies.get(owner)
    is_followed = owner in schedule.followed
    if template is None or policy is None or not (policy.propagate_deps or is_followed):
        return set()
    refs = references_of(template, schedule.interpreters)
    return set(travel(template, refs, sources, schedule.interpreters, is_followed=is_followed).paths) - {owner}
