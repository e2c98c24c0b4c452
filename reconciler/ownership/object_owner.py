"""Owners of objects in member clusters, preconditions of deletions, terminating and foreign objects.

Source: design#marks; design#before-a-deletion: it needs the annotation, a field of ours, the recorded uid, no
ownerReferences, no mark of another tool and a complete list. Kubernetes: metadata.deletionTimestamp and finalizers: a
second deletion has no effect. Karmada: `work.karmada.io/conflict-resolution`.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Final

from msgspec import Struct

from reconciler.api.clusters import LiveObject, Read
from reconciler.api.content import JsonObject, dig
from reconciler.api.policies import ConflictResolution, PropagationPolicy
from reconciler.api.problem import Problem, Source, warning
from reconciler.kinds.body_fields import mappings, text
from reconciler.ownership.managed_fields import fields_of, owns_within
from reconciler.ownership.marks import (
    FLEET_LABEL,
    OWNER_ANNOTATION,
    TAKE_OVER,
    ForeignMark,
    OwnershipRecord,
    controller_of,
    foreign_mark,
    read_owner,
    states,
)


class ObjectOwner(StrEnum):
    """The owner of an object."""

    OURS = "ours"
    NOBODYS = "nobody's"
    OTHER_FLEET = "another fleet's"
    OTHER_TOOL = "another tool's"
    OTHER_OBJECT = "another object's"


class Ownership(Struct, frozen=True, kw_only=True):
    """The owner of a live object. `holder`: other fleet, tool or controller, known by `mark`; `owner`: our terms."""

    standing: ObjectOwner
    holder: str = ""
    mark: ForeignMark | None = None
    owner: OwnershipRecord | None = None


@cache  # It is asked for with every object, of the few names of one fleet.
def field_manager(fleet: str) -> str:
    """Return the field manager that we apply as."""
    return f"fleet-reconciler/{fleet}"


def ownership_of(live: LiveObject, names: tuple[str, ...]) -> Ownership:
    """Return the owner of an object; ours by both marks, under any name: a person releases it by taking one off."""
    label = dig(live.body, "metadata", "labels", FLEET_LABEL)
    owner = read_owner(live.body)
    if owner is not None and label in names:
        return Ownership(standing=ObjectOwner.OURS, owner=owner)
    if owner is not None and label:
        return Ownership(standing=ObjectOwner.OTHER_FLEET, holder=str(label))
    mark, controller = foreign_mark(live.body), controller_of(live.body)
    if mark is not None and not (mark.is_stated and controller):
        return Ownership(standing=ObjectOwner.OTHER_TOOL, holder=mark.tool, mark=mark)
    if controller:
        return Ownership(standing=ObjectOwner.OTHER_OBJECT, holder=controller)
    return Ownership(standing=ObjectOwner.NOBODYS)


def ownership_for(template: JsonObject, ownership: Ownership) -> Ownership:
    """Return the owner, for the template that wants the object: a mark that the template states proves nothing."""
    mark = ownership.mark
    if mark is not None and mark.is_stated and states(template, mark):
        return Ownership(standing=ObjectOwner.NOBODYS)
    return ownership


def is_marked(live: LiveObject, names: tuple[str, ...]) -> bool:
    """Return whether the object has both of our marks. `names`: of the fleet, also earlier ones."""
    return ownership_of(live, names).standing is ObjectOwner.OURS


def missing_marks(body: JsonObject, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return our marks that the object lacks or that cannot be read, as they are to be put back."""
    lacks_label = () if dig(body, "metadata", "labels", FLEET_LABEL) in names else (f"the label {FLEET_LABEL}",)
    return lacks_label if read_owner(body) is not None else (*lacks_label, f"the annotation {OWNER_ANNOTATION}")


def holds_field(live: LiveObject, managers: tuple[str, ...]) -> bool:
    """Return whether one of the managers applied at least one field of the object."""
    entries = dig(live.body, "metadata", "managedFields") or ()
    return any(entry.get("manager") in managers and entry.get("operation") == "Apply" for entry in entries)


def missing_witness(live: LiveObject, member: Read, recorded_uid: str | None, managers: tuple[str, ...]) -> str:
    """Return why an object may not be deleted; empty: it may. `recorded_uid`: of the journal; None: no record."""
    if recorded_uid is None:
        return "the journal has no record of it"
    if recorded_uid != live.uid:
        return "it is another object than the one we applied (its uid differs)"
    if live.identity[:2] not in member.kinds:
        return f"the list of {live.gvk.kind} of {member.name} is not complete"
    if dig(live.body, "metadata", "ownerReferences"):
        return "another object owns it (ownerReferences)"
    if not holds_field(live, managers):
        return "none of its fields is ours any more"
    mark = foreign_mark(live.body)
    # Marks that manifests carry themselves, and the mark of the tool it was taken over from do not count.
    if mark is None or mark.is_stated or dig(live.body, "metadata", "annotations", TAKE_OVER) == mark.tool:
        return ""
    path = ("metadata", mark.place.value, mark.key)
    is_ours = any(owns_within(fields_of(live.body, manager), path) for manager in managers)
    return "" if is_ours else f"it carries the mark of {mark.tool} ({mark})"


def is_terminating(live: LiveObject) -> bool:
    """Return whether the object was deleted and is not gone yet."""
    return dig(live.body, "metadata", "deletionTimestamp") is not None


_OWN_DOMAIN = "kubernetes.io/"
_OWN = frozenset({
    "kubernetes", "foregroundDeletion", "orphan", "batch.kubernetes.io/job-tracking",
    "customresourcecleanup.apiextensions.k8s.io",
})  # fmt: skip


def finalizers_of(live: LiveObject) -> tuple[str, ...]:
    """Return the finalizers that keep an object once it is deleted, for a Namespace those of its spec too."""
    places = [dig(live.body, "metadata", "finalizers")]
    if live.identity.kind == "Namespace":
        places.append(dig(live.body, "spec", "finalizers"))
    return tuple(name for names in places if isinstance(names, list) for name in names if isinstance(name, str))


def finalizers_of_others(live: LiveObject) -> tuple[str, ...]:
    """Return the finalizers that no part of Kubernetes takes off: an operator has to."""
    return tuple(name for name in finalizers_of(live) if name not in _OWN and not name.startswith(_OWN_DOMAIN))


def terminating(live: LiveObject, cluster: str, source: Source, *, is_wanted: bool) -> Problem:
    """Return the problem of a terminating object: its finalizers, what a Namespace says of them, and its successor."""
    keepers = finalizers_of(live)
    waits = f"; it waits for its finalizers {', '.join(keepers)}" if keepers else ""
    for _, report in mappings(dig(live.body, "status", "conditions")):
        if text(report.get("type")).startswith("Namespace") and report.get("status") == "True":
            waits += f": {text(report.get('message'))}"
    after = ", and is made again when it is gone" if is_wanted else ""
    return warning(source, "", "being-deleted", f"{live.identity} is being deleted{after}{waits}", cluster)


CONFLICT_RESOLUTION: Final = "work.karmada.io/conflict-resolution"
"""Karmada's template annotation: `abort` or `overwrite`."""


def conflict_resolution(template: JsonObject, policy: PropagationPolicy | None) -> ConflictResolution:
    """Return the resolution: a template's annotation outranks its policy, unless its value is unknown."""
    written = str(dig(template, "metadata", "annotations", CONFLICT_RESOLUTION)).lower()
    other = policy.conflict_resolution if policy else ConflictResolution.ABORT
    return next((each for each in ConflictResolution if each.value.lower() == written), other)
