"""Whose an object in a member cluster is, and whether it may be deleted.

Source: design#marks: the label lists our objects and is never enough to delete; design#before-a-deletion: it needs the
annotation, a field of ours, the recorded uid, no ownerReferences and a complete list.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache

from msgspec import Struct

from reconciler.model.observation import LiveObject, Read
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.ownership.marks import FLEET_LABEL, OWNER_ANNOTATION, Owner, read_owner


class Standing(StrEnum):
    """Whose an object is."""

    OURS = "ours"
    NOBODYS = "nobody's"
    OTHER_FLEET = "another fleet's"
    OTHER_TOOL = "another tool's"


class Ownership(Struct, frozen=True, kw_only=True):
    """The standing of one live object; `holder` names the other fleet or tool; `owner` is our mark when it is ours."""

    standing: Standing
    holder: str = ""
    owner: Owner | None = None


TAKE_OVER = "fleet.reconciler/take-over"
"""Template annotation that names the tool whose object may be taken over, e.g. `Argo CD`; with Overwrite only."""

_TOOL_ANNOTATIONS = (
    ("argocd.argoproj.io/tracking-id", "Argo CD"),
    ("meta.helm.sh/release-name", "Helm"),
    ("objectset.rio.cattle.io/id", "Rancher Fleet"),
)
_TOOL_LABELS = (
    ("kustomize.toolkit.fluxcd.io/name", "Flux"),
    ("helm.toolkit.fluxcd.io/name", "Flux"),
    ("fleet.cattle.io/bundle-name", "Rancher Fleet"),
    ("argocd.argoproj.io/instance", "Argo CD"),
    ("work.karmada.io/permanent-id", "Karmada"),
    ("karmada.io/managed", "Karmada"),
)


@cache  # It is asked for with every object, of the few names of one fleet.
def field_manager(fleet: str) -> str:
    """The field manager that we apply as."""
    return f"fleet-reconciler/{fleet}"


def managers_of_fleet(fleet: str, previous_names: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The field manager that we apply as, then those of earlier names."""
    return tuple(field_manager(name) for name in (fleet, *previous_names))


def tool_of(body: JsonObject) -> str:
    """The other GitOps tool whose mark the object carries; empty when there is none."""
    annotations = dig(body, "metadata", "annotations") or {}
    labels = dig(body, "metadata", "labels") or {}
    for key, tool in _TOOL_ANNOTATIONS:
        if key in annotations:
            return tool
    for key, tool in _TOOL_LABELS:
        if key in labels:
            return tool
    return "Helm" if labels.get("app.kubernetes.io/managed-by") == "Helm" else ""


def ownership_of(live: LiveObject, fleet: str, previous_names: tuple[str, ...] = ()) -> Ownership:
    """Whose the object is. `previous_names` of the fleet count as its own.

    It is ours by both marks: taking one off is how a person has it let go at once.
    """
    label = dig(live.body, "metadata", "labels", FLEET_LABEL)
    owner = read_owner(live.body)
    if owner is not None and (label == fleet or label in previous_names):
        return Ownership(standing=Standing.OURS, owner=owner)
    if owner is not None and label:
        return Ownership(standing=Standing.OTHER_FLEET, holder=str(label))
    tool = tool_of(live.body)
    if tool:
        return Ownership(standing=Standing.OTHER_TOOL, holder=tool)
    return Ownership(standing=Standing.NOBODYS)


def is_marked(live: LiveObject, fleet: str, previous_names: tuple[str, ...] = ()) -> bool:
    """Whether the object has both of our marks."""
    return ownership_of(live, fleet, previous_names).standing is Standing.OURS


def missing_marks(live: LiveObject, fleet: str, previous_names: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Our marks that the object lacks, as they are to be put back; one that states no terms that we can read is one."""
    names = (fleet, *previous_names)
    is_labelled = dig(live.body, "metadata", "labels", FLEET_LABEL) in names
    lacks_label = () if is_labelled else (f"the label {FLEET_LABEL}",)
    return lacks_label if read_owner(live.body) is not None else (*lacks_label, f"the annotation {OWNER_ANNOTATION}")


def holds_field(live: LiveObject, managers: tuple[str, ...]) -> bool:
    """Whether one of the managers applied at least one field of the object."""
    entries = dig(live.body, "metadata", "managedFields") or ()
    return any(entry.get("manager") in managers and entry.get("operation") == "Apply" for entry in entries)


def missing_witness(live: LiveObject, member: Read, recorded_uid: str | None, managers: tuple[str, ...]) -> str:
    """Why the object may not be deleted; empty when every witness is there.

    `recorded_uid` is what the journal holds, None when it has no record of the object. `managers`: our own.
    """
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
    return ""
