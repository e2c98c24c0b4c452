"""The inputs of each identity in a schedule, as a value that is cheap to compare.

Two schedules with equal signatures of an identity render and compare it alike; so a commit concerns exactly the
identities whose signatures differ.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping

from msgspec.structs import replace

from reconciler.api.binding import Binding
from reconciler.api.policies import PropagationPolicy
from reconciler.api.refs import Identity, PolicyRef
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.incremental import changed_keys
from reconciler.kinds.jobs import is_single_run
from reconciler.overrides import OverrideIndex
from reconciler.ownership import read_owner
from reconciler.placement import fixed_share
from reconciler.policy import PolicyIndex
from reconciler.render.declared_body import template_of
from reconciler.render.outcome import only_follows
from reconciler.scheduler import Schedule, dependents, differing_prerequisites, signature_of_prerequisites


def signatures(schedule: Schedule) -> dict[Identity, Hashable]:
    """Return the signature of every bound or frozen identity. Others have none."""
    return _signatures(schedule, {*schedule.bindings, *schedule.frozen}, _index(schedule))


def changed_identities(
    before: Schedule | None, after: Schedule, changed: Collection[Identity] | None = None
) -> set[Identity]:
    """Return identities whose signatures differ between two schedules. `changed`: of `ScheduleTables`, if known."""
    if before is not None and before.interpreters != after.interpreters:
        # Signatures do not include the interpreter of a kind.
        return {*before.bindings, *before.frozen, *after.bindings, *after.frozen}
    if before is None or before.fleet.clusters != after.fleet.clusters:
        old = signatures(before) if before is not None else {}
        return changed_keys(old, signatures(after))
    if changed is None:
        pairs = (
            (before.bindings, after.bindings),
            (before.policies, after.policies),
            (before.fleet.templates, after.fleet.templates),
            (before.holds, after.holds),
            (before.yielded, after.yielded),
        )
        differing = (before.frozen ^ after.frozen).union(*(changed_keys(old, new) for old, new in pairs))
        changed = {*differing, *(identity for identity, _ in changed_keys(before.ticked, after.ticked))}
    suspects = {*changed, *_newly_overridden(before, after)}
    needed = differing_prerequisites(before, after, suspects)
    suspects |= dependents(before, needed) | dependents(after, needed)
    plain = {identity for identity in suspects if _differs_plainly(before, after, identity)}
    suspects -= plain
    # With the same rules a template of the same digest is selected for the same clusters: they need not be found.
    is_same = before.fleet.overrides == after.fleet.overrides
    indexes = (None, None) if is_same else (_index(before), _index(after))
    return plain | changed_keys(_signatures(before, suspects, indexes[0]), _signatures(after, suspects, indexes[1]))


def arrivals(before: Schedule, after: Schedule, identities: Collection[Identity]) -> dict[Identity, frozenset[str]]:
    """Return identities whose only difference are new clusters, with these; a first placement does not count."""
    widened = {
        identity: new
        for identity in identities
        if (new := _widened(before.bindings.get(identity), after.bindings.get(identity))) is not None
    }
    if not widened or before.interpreters != after.interpreters:
        return {}
    was = {identity: before.bindings[identity] for identity in widened}
    yielded = {
        identity: clusters & frozenset(was[identity].clusters) if identity in was else clusters
        for identity, clusters in after.yielded.items()
    }
    narrowed = replace(after, bindings={**after.bindings, **was}, yielded=yielded)
    signed = _signatures(before, widened, _index(before)), _signatures(narrowed, widened, _index(after))
    return {identity: clusters for identity, clusters in widened.items() if signed[0][identity] == signed[1][identity]}


def _widened(old: Binding | None, new: Binding | None) -> frozenset[str] | None:
    """Return the clusters that a binding gained, where that is all that happened to its targets; None: it is not."""
    if old is None or new is None or not old.targets or old.is_dependency != new.is_dependency:
        return None
    if not set(old.targets) < set(new.targets):
        return None
    return frozenset(new.clusters) - frozenset(old.clusters)


def _differs_plainly(before: Schedule, after: Schedule, identity: Identity) -> bool:
    """Return whether the targets or the template differ: most differences, found without a signature."""
    old, new = before.bindings.get(identity), after.bindings.get(identity)
    if old is None or new is None:
        return old is not new
    if old.targets != new.targets:
        return True
    was, is_now = before.fleet.templates.get(identity), after.fleet.templates.get(identity)
    return was is not None and is_now is not None and (was.digest != is_now.digest or was.sealed != is_now.sealed)


def _newly_overridden(before: Schedule, after: Schedule) -> set[Identity]:
    """Return the objects that added, removed or changed override policies select."""
    old = {policy.ref: policy for policy in before.fleet.overrides}
    new = {policy.ref: policy for policy in after.fleet.overrides}
    index = PolicyIndex(policies[ref] for ref in changed_keys(old, new) for policies in (old, new) if ref in policies)
    if index.is_empty:
        return set()
    templates = ((identity, template_of(after.fleet, identity)) for identity in after.bindings)
    return {identity for identity, template in templates if template is not None and index.matches(template)}


def _index(schedule: Schedule) -> OverrideIndex:
    return OverrideIndex(schedule.fleet.overrides, schedule.fleet.clusters)


def _signatures(
    schedule: Schedule, identities: Iterable[Identity], index: OverrideIndex | None
) -> dict[Identity, Hashable]:
    """Return signatures; without an index those of schedules whose rules are known to be the same."""
    digests = {policy.ref: policy.digest for policy in schedule.fleet.overrides}
    signed: dict[Identity, Hashable] = {}
    # Who took a copy away decides how it goes.
    ticked: dict[Identity, frozenset[Hashable]] = {}
    for (identity, cluster), constraint in schedule.ticked.items():
        ticked[identity] = ticked.get(identity, frozenset()) | {(cluster, constraint.tick)}
    for identity in identities:
        binding = schedule.bindings.get(identity)
        if binding is not None:
            signed[identity] = (*_signature(schedule, binding, index, digests), ticked.get(identity, frozenset()))
        elif identity in schedule.frozen:
            signed[identity] = "frozen"
    return signed


def _signature(
    schedule: Schedule, binding: Binding, index: OverrideIndex | None, digests: Mapping[PolicyRef, str]
) -> tuple[Hashable, ...]:
    identity = binding.identity
    template = template_of(schedule.fleet, identity)
    assert template is not None, f"{identity} is bound and has no template"
    return (
        template.digest,
        template.sealed,
        binding.targets,
        binding.is_dependency,
        _terms(schedule.policies.get(identity)),
        tuple(
            (rule.policy, rule.index, digests.get(rule.policy), tuple(filter(rule.is_for, binding.clusters)))
            for rule in (index.rules_of(template) if index is not None else ())
        ),
        tuple(sorted(schedule.yielded.get(identity, ()))),
        _holds(schedule, binding),
        signature_of_prerequisites(schedule, identity),
        identity in schedule.frozen,
        tuple(cluster for cluster in binding.clusters if only_follows(binding, cluster))
        if identity.kind == "Namespace"
        else (),
    )


def _holds(schedule: Schedule, binding: Binding) -> Hashable:
    policy = schedule.policies.get(binding.identity)
    if policy is not None and policy.suspension.is_any:
        return tuple([schedule.hold(binding.identity, cluster) for cluster in binding.clusters])
    return schedule.holds.get(binding.identity)


def _terms(policy: PropagationPolicy | None) -> Hashable:
    """Return the part of a policy that concerns a copy. An inherited one differs from its owner's here alone."""
    if policy is None:
        return None
    return (policy.ref, policy.flavor, policy.digest, policy.keep, policy.conflict_resolution)


def fixed_completions(schedule: Schedule, snapshot: FleetSnapshot) -> dict[Identity, dict[str, int]]:
    """Return by Job and cluster the unchangeable completions of our live part. Source: design#jobs."""
    bound = schedule.bindings.keys()
    # The members hold far more objects than there are Jobs in the store.
    jobs = [
        identity
        for identity in (bound if snapshot.only is None else bound & snapshot.only)
        if identity[:2] == ("batch", "Job") and identity in schedule.fleet.templates
    ]
    fixed: dict[Identity, dict[str, int]] = {}
    for name in snapshot.members if jobs else ():
        for identity in jobs:
            if name not in schedule.bindings[identity].clusters:
                continue  # A part that leaves takes its completions along: they go to the one that comes in its place.
            live, row = snapshot.live(name, identity), snapshot.journal.row(name, identity)
            # Where it has ended and is gone, it counts as it was sent.
            part = row.recorded if live is None and row is not None and row.finished else None
            if live is not None and read_owner(live.body) is not None:
                part = live.body
            single = is_single_run(schedule.fleet.templates[identity].body)
            share = fixed_share(part, is_single_run=single) if part is not None else None
            if share is not None:
                fixed.setdefault(identity, {})[name] = share
    return fixed
