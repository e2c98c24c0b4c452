"""Objects that a comparison of two revisions cannot evaluate without observations, and their differences.

Without free capacity the placement of such a workload is unknown. Source: design#one-plan: an offline plan names its
unknowns. Policies are compared in the model's form, by the fields that people write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import Cluster, LiveObject, Read
from reconciler.api.content import Json
from reconciler.api.plan import MISSING, FieldChange, NotEvaluated
from reconciler.api.policies import Division, PropagationPolicy
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import Identity, PolicyRef
from reconciler.diff import FleetCopies, tree_changes
from reconciler.documents import builtin_schema
from reconciler.incremental import changed_keys
from reconciler.overrides import OverrideIndex
from reconciler.ownership import DirectiveEffect, ObjectOwner, Ownership, OwnershipRecord, has_effect, path_text
from reconciler.placement import concerned_by
from reconciler.planner.deletion import DeletionAction, LossInputs, lost_copies
from reconciler.scheduler import Schedule

_RELEASED = "released in the clusters where it runs: it stays there and becomes unmanaged"
_FATES: Mapping[DeletionAction, str] = {
    DeletionAction.DELETE: "deleted in the clusters where it runs",
    DeletionAction.RELEASE: _RELEASED,
    DeletionAction.MOVE: "deleted in the clusters where it runs",
    DeletionAction.FROZEN: "it stays as it is, since the store cannot be read completely",
}
_ANYWHERE = "the clusters where it runs"


def not_evaluated(before: Schedule, after: Schedule) -> tuple[NotEvaluated, ...]:
    """Return objects placed by unknown capacity, and their followers, that differ between the revisions; sorted."""
    bindings = [(side, identity, one) for side in (before, after) for identity, one in side.bindings.items()]
    lacking = {identity: (one.unknown_room, side) for side, identity, one in bindings if one.unknown_room}
    if not lacking:
        return ()
    reasons = {}
    for identity, (clusters, side) in lacking.items():
        policy, way = side.policies.get(identity), "it is placed by free room"
        if policy is not None and policy.placement.scheduling.gang:
            way = "a gang goes where all of it fits"
        elif policy is not None:
            chooses = "spread constraints choose clusters by free room"
            way = _BY_DIVISION.get(policy.placement.scheduling.division, chooses)
        reasons[identity] = f"{way}, and the free room of {', '.join(clusters)} is not known without observations"
    for _, identity, binding in bindings:
        owner = next((owner for owner in binding.owners if owner in lacking), None)
        if owner is not None:
            reasons.setdefault(identity, f"it follows {owner}, whose placement is not computed")
    differences = _Differences(before, after)
    entries = (differences.of(identity, reasons[identity]) for identity in sorted(reasons.keys() - after.frozen))
    return tuple(one for one in entries if one is not None)


_BY_DIVISION: Mapping[Division, str] = {
    Division.DYNAMIC: "dynamic weights divide by free room",
    Division.AGGREGATED: "Aggregated fills clusters by free room",
}


class _Differences:
    def __init__(self, before: Schedule, after: Schedule) -> None:
        self._before, self._after = before, after
        self._old = OverrideIndex(before.fleet.overrides, before.fleet.clusters)
        self._new = OverrideIndex(after.fleet.overrides, after.fleet.clusters)
        self._losses = LossInputs(after)

    def of(self, identity: Identity, why: str) -> NotEvaluated | None:
        """Return the entry of one resource; None when nothing about it differs."""
        was, is_now = self._before.fleet.templates.get(identity), self._after.fleet.templates.get(identity)
        template = is_now or was
        if template is None:
            # A Namespace without a document.
            return None
        fields: tuple[FieldChange, ...] = ()
        notes: list[str] = []
        if was is not None and is_now is not None and was.digest != is_now.digest:
            changes = tree_changes(was.body, is_now.body, builtin_schema(is_now.gvk))
            fields = tuple(FieldChange(path=path_text(path), before=old, after=new) for path, old, new in changes)
            notes.append("its template changes")
        elif was is None:
            notes.append("its template is new")
        policy_fields = self._policy(identity, notes)
        if identity in self._before.bindings and identity in self._after.bindings:
            notes += self._surroundings(identity)
        elif identity in self._before.bindings:
            notes.append(self._effect_of_removal(identity))
        if not notes:
            return None
        return NotEvaluated(
            gvk=template.gvk,
            identity=identity,
            source=template.source,
            why=why,
            notes=tuple(notes),
            fields=fields,
            policy_fields=policy_fields,
        )

    def _policy(self, identity: Identity, notes: list[str]) -> tuple[FieldChange, ...]:
        was, is_now = self._before.policies.get(identity), self._after.policies.get(identity)
        if was is None or is_now is None or was.ref != is_now.ref:
            if was is not is_now and (was is not None or is_now is not None):
                notes.append(f"its policy was {was.ref if was else 'none'} and is {is_now.ref if is_now else 'none'}")
            return ()
        fields = policy_changes(was, is_now) if was.digest != is_now.digest else ()
        if fields:
            notes.append(f"{was.ref} changes")
        return fields

    def _surroundings(self, identity: Identity) -> Iterator[str]:
        rules = (_rules(self._old, self._before, identity), _rules(self._new, self._after, identity))
        yield from (f"{ref} changes what it overrides" for ref in sorted(changed_keys(*rules)))
        # The places of their documents do not matter here.
        old, new = (
            {name: replace(cluster, source=NOWHERE) for name, cluster in side.fleet.clusters.items()}
            for side in (self._before, self._after)
        )
        for name in sorted(changed_keys(old, new)):
            reaching = (_reaches(self._before, old.get(name), identity), _reaches(self._after, new.get(name), identity))
            if any(reaching):
                word = "changes" if name in old and name in new else "is new" if name in new else "left the store"
                yield f"the document of cluster {name} {word}"
        if self._before.fleet.settings.partial != self._after.fleet.settings.partial:
            yield "spec.placement.partial of the Fleet changes"
        if self._before.holds.get(identity) != self._after.holds.get(identity):
            hold = self._after.holds.get(identity)
            yield f"it {hold.why}" if hold else f"it no longer {self._before.holds[identity].why}"

    def _effect_of_removal(self, identity: Identity) -> str:
        """Return the effect on its copies, wherever they are."""
        template, policy = self._before.fleet.templates[identity], self._before.policies.get(identity)
        binding = self._before.bindings[identity]
        if policy is None:
            return _RELEASED
        keep = policy.keep or has_effect({"annotations": template.annotations}, DirectiveEffect.KEEP)
        owner = OwnershipRecord(policy.ref, policy.flavor, keep, None, binding.is_dependency)
        live = LiveObject(gvk=template.gvk, identity=identity, uid="", resource_version="", body=template.body)
        copies = FleetCopies({_ANYWHERE: Ownership(standing=ObjectOwner.OURS, owner=owner)}, {_ANYWHERE: None})
        members = {_ANYWHERE: Read(name=_ANYWHERE, objects={identity: live})}
        (lost,) = lost_copies(identity, copies, members, self._losses)
        return f"{lost.why}: {_FATES[lost.fate]}"


def _rules(index: OverrideIndex, schedule: Schedule, identity: Identity) -> dict[PolicyRef, str]:
    template = schedule.fleet.templates.get(identity)
    digests = {policy.ref: policy.digest for policy in schedule.fleet.overrides}
    return {rule.policy: digests[rule.policy] for rule in index.rules_of(template)} if template is not None else {}


def _reaches(schedule: Schedule, cluster: Cluster | None, identity: Identity) -> bool:
    policy = schedule.policies.get(identity)
    return cluster is not None and policy is not None and bool(list(concerned_by([cluster], {identity: policy})))


_FIELDS: Final[Mapping[str, str]] = {
    "flavor": "apiVersion",
    "selectors": "spec.resourceSelectors",
    "placement.affinity": "spec.placement.clusterAffinity",
    "placement.terms": "spec.placement.clusterAffinities",
    "placement.tolerations": "spec.placement.clusterTolerations",
    "placement.spread": "spec.placement.spreadConstraints",
    "placement.scheduling.division": "spec.placement.replicaScheduling",
    "placement.scheduling.static_weights": "spec.placement.replicaScheduling.weightPreference.staticWeightList",
    "placement.scheduling.gang": "spec.placement.replicaScheduling.customSchedulingType",
    "keep": "spec.preserveResourcesOnDeletion",
    "propagate_deps": "spec.propagateDeps",
    "priority": "spec.priority",
    "dependent_overrides": "spec.dependentOverrides",
    "application_failover": "spec.failover.application",
    "conflict_resolution": "spec.conflictResolution",
    "suspension": "spec.suspension",
    "priority_class": "spec.schedulePriority",
    "ecs_provision": "spec.autoScaling.ecsProvision",
    "affinity_mode": "metadata.annotations['fleet.reconciler/affinity-mode']",
    "fail_back": "metadata.annotations['fleet.reconciler/fail-back']",
    "brings": "metadata.annotations['fleet.reconciler/bring']",
}


def policy_changes(before: PropagationPolicy, after: PropagationPolicy) -> tuple[FieldChange, ...]:
    """Return the fields that differ, sorted by path; a value that was not written is its default."""
    changes = []
    for attribute, path in _FIELDS.items():
        was, is_now = (_plain(attrgetter(attribute)(policy)) for policy in (before, after))
        if was != is_now:
            changes.append(FieldChange(path=path, before=was, after=is_now))
    return tuple(sorted(changes, key=lambda change: change.path))


def _plain(value: Any) -> Json:
    """Return the value as JSON without places in files and without unset fields; MISSING for nothing."""
    if isinstance(value, Struct):
        fields = {name: _plain(getattr(value, name)) for name in value.__struct_fields__ if name != "source"}
        named = ((name.partition("_"), item) for name, item in fields.items() if item is not MISSING)
        return {first + rest.title().replace("_", ""): item for (first, _, rest), item in named} or MISSING
    if isinstance(value, (frozenset, set)):
        return sorted(map(str, value)) or MISSING
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value] or MISSING
    if isinstance(value, Enum):
        return str(value)
    return MISSING if value in (None, "") else value
