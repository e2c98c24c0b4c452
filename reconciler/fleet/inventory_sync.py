"""Edits that make cluster documents of a store equal to an inventory, and the message of their commit.

A document follows an inventory by its annotation; every other one is a person's, and never touched. When a profile is
gone, its document is removed, which is an edit that people review: nothing in a cluster is deleted by it.
Source: design#members; docs/concepts/deletion.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import sha1
from typing import Any, Final

from msgspec import Struct, field

from reconciler.api.content import JsonObject, dig
from reconciler.api.fleet import Fleet, StoreFile
from reconciler.api.problem import Severity
from reconciler.api.refs import listed
from reconciler.errors import ConfigurationError
from reconciler.fleet.cluster_documents import CLUSTER_APIS, Profile, read_profile
from reconciler.fleet.parse import parse_file
from reconciler.yaml import NotEdited, Write, edited, read_yaml

ORIGIN_ANNOTATION: Final = "fleet.reconciler/inventory"
"""`NAME/NAMESPACE`: the inventory that a document follows, and the namespace of its profile there."""
LABELS_ANNOTATION: Final = "fleet.reconciler/inventory-labels"
"""Keys of the labels that came from the profile, so that those of people stay when the profile loses one."""
PROFILES_MAX: Final = 20_000
DOCUMENT_MAX_BYTES: Final = 64 * 1024
_API_VERSION: Final = "multicluster.x-k8s.io/v1alpha1"
_KIND: Final = "ClusterProfile"


class InventoryOrigin(Struct, frozen=True, kw_only=True):
    """An inventory: a name, and the namespace that is looked at; empty: all of them."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.name}/{self.namespace}" if self.namespace else self.name

    def covers(self, annotation: str) -> bool:
        """Return whether a document with this annotation follows this inventory."""
        name, slash, namespace = annotation.rpartition("/")
        return bool(slash) and name == self.name and self.namespace in ("", namespace)


class InventoryRefused(ConfigurationError):
    """The list is refused, since it may be incomplete. The message has the reason."""


class EditKind(StrEnum):
    """The change of a document."""

    ADDED = "added"
    CHANGED = "changed"
    RETIRED = "retired"


class DocumentEdit(Struct, frozen=True):
    """One file. `data` None: delete it. `before` None: create it."""

    kind: EditKind
    cluster: str
    path: str
    data: bytes | None
    before: bytes | None


class InventoryEdits(Struct, frozen=True, kw_only=True):
    """The edits, in the order of clusters. `left_out`: cluster to why its profile changes nothing."""

    edits: tuple[DocumentEdit, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Parts that were left out of accepted profiles."""


class _Owned(Struct, frozen=True):
    body: JsonObject
    file: StoreFile
    is_alone: bool


def synced(
    origin: InventoryOrigin,
    bodies: Iterable[JsonObject],
    fleet: Fleet,
    files: Iterable[StoreFile],
    properties: Mapping[str, str],
    text: Write,
) -> InventoryEdits:
    """Return the edits that make the documents of a store that follow `origin` equal to the profiles of a whole list.

    `fleet` is parsed from the `files`. `properties`: properties of a profile to the labels that they become.

    Raises InventoryRefused: the store is not read as a whole, the list is too long, or it is empty though documents
    follow it.
    """
    # An unreadable file might be a cluster's document, to be written a second time, or taken for gone.
    if any(reach.everything for reach in fleet.frozen):
        errors = [f"{one.source}: {one.message}" for one in fleet.problems if one.severity is Severity.ERROR]
        raise InventoryRefused("\n".join(["the store cannot be read as a whole; fix it first", *errors[:5]]))
    files = list(files)
    owned = _owned(origin, files)
    profiles, left_out = _read(list(bodies), properties)
    if owned and not profiles and not left_out:
        raise InventoryRefused(
            f"{origin}: it has no ClusterProfile, and {len(owned)} documents follow it; nothing is retired because of "
            "an empty list. If that is meant, take the documents out by hand"
        )
    paths = {file.path for file in files}
    edits: list[DocumentEdit] = []
    notes: list[str] = []
    for name, profile in profiles.items():
        outcome = _edit(profile, origin, owned.get(name), fleet, paths, text)
        if isinstance(outcome, str):
            left_out[name] = outcome
            continue
        notes += [f"{name}: {why}" for why in profile.dropped]
        edits += [outcome] if outcome is not None else []
    for name in sorted(owned.keys() - profiles.keys() - left_out.keys()):
        one = owned[name]
        if one.is_alone:
            edits.append(DocumentEdit(EditKind.RETIRED, name, one.file.path, None, one.file.data))
        else:
            left_out[name] = f"its profile is gone, and {_shares(one)}"
    return InventoryEdits(
        edits=tuple(sorted(edits, key=lambda edit: edit.cluster)),
        left_out=dict(sorted(left_out.items())),
        notes=tuple(notes),
    )


def followed(origin: InventoryOrigin, files: Iterable[StoreFile]) -> frozenset[tuple[str, str]]:
    """(namespace, name) of the profiles that documents of these files follow."""
    steps = ("metadata", "annotations", ORIGIN_ANNOTATION)
    owned = _owned(origin, files).items()
    return frozenset((str(dig(one.body, *steps)).rpartition("/")[2], name) for name, one in owned)


def _read(bodies: list[JsonObject], properties: Mapping[str, str]) -> tuple[dict[str, Profile], dict[str, str]]:
    """Profiles by name, and why the others are left out, by name."""
    if len(bodies) > PROFILES_MAX:
        raise InventoryRefused(f"the list has {len(bodies):,} profiles; at most {PROFILES_MAX:,} are taken")
    profiles: dict[str, list[Profile]] = {}
    left_out: dict[str, str] = {}
    for body in bodies:
        read = read_profile(body, properties)
        if isinstance(read, str):
            left_out[str(dig(body, "metadata", "name"))[:80]] = read
        else:
            profiles.setdefault(read.name, []).append(read)
    for name, twins in profiles.items():
        if len(twins) > 1:
            places = ", ".join(sorted(twin.namespace for twin in twins))
            left_out[name] = f"several namespaces have a profile of this name ({places}); sync one namespace"
    return {name: profiles[name][0] for name in sorted(profiles.keys() - left_out.keys())}, left_out


def _owned(origin: InventoryOrigin, files: Iterable[StoreFile]) -> dict[str, _Owned]:
    owned: dict[str, _Owned] = {}
    for file in files:
        if ORIGIN_ANNOTATION.encode() not in file.data:
            continue
        documents = read_yaml(file.path, file.data).documents
        for document in documents:
            body = document.body
            is_cluster = CLUSTER_APIS.get(str(body.get("apiVersion"))) == body.get("kind")
            name, annotation = dig(body, "metadata", "name"), dig(body, "metadata", "annotations", ORIGIN_ANNOTATION)
            if is_cluster and isinstance(name, str) and isinstance(annotation, str) and origin.covers(annotation):
                owned[name] = _Owned(body, file, len(documents) == 1)
    return owned


def _edit(
    profile: Profile, origin: InventoryOrigin, owned: _Owned | None, fleet: Fleet, paths: set[str], text: Write
) -> DocumentEdit | str | None:
    """Return the edit for a profile; None: the document is equal already; a text: the reason of a refusal."""
    path = f"clusters/{profile.name}.yaml"
    if owned is None:
        known = fleet.clusters.get(profile.name)
        if known is not None:
            return f"{known.source} is the document of this cluster and does not follow {origin}; it stays as it is"
        if path in paths:
            return f"{path} is there and is not of {origin}; it stays as it is"
        body = _document(profile, origin, {})
        return _checked(DocumentEdit(EditKind.ADDED, profile.name, path, _bytes(text(body)), None))
    if owned.body.get("kind") != _KIND:
        return f"{owned.file.path} is no {_KIND}; take the annotation {ORIGIN_ANNOTATION} out to keep it as yours"
    body = _document(profile, origin, owned.body)
    if body == owned.body:
        return None
    if not owned.is_alone:
        return _shares(owned)
    try:
        data = edited(owned.file.path, owned.file.data, [body], text)
    except NotEdited:
        data = _bytes(text(body))
    return _checked(DocumentEdit(EditKind.CHANGED, profile.name, owned.file.path, data, owned.file.data))


def _shares(owned: _Owned) -> str:
    return f"{owned.file.path} has other documents beside this one; give it a file of its own"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")


def _document(profile: Profile, origin: InventoryOrigin, before: JsonObject) -> JsonObject:
    """Return the document, with people's additions to the earlier one: labels, annotations and other fields."""
    metadata: Mapping[str, Any] = dig(before, "metadata") or {}
    annotations = dict(metadata.get("annotations") or {})
    theirs = set(str(annotations.get(LABELS_ANNOTATION, "")).split(" "))
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in theirs}
    annotations[ORIGIN_ANNOTATION] = f"{origin.name}/{profile.namespace}"
    annotations.pop(LABELS_ANNOTATION, None)
    if profile.labels:
        annotations[LABELS_ANNOTATION] = " ".join(profile.labels)
    labels |= profile.labels
    merged = {**metadata, "name": profile.name, "namespace": profile.namespace, "annotations": annotations}
    merged.pop("labels", None)
    if labels:
        merged["labels"] = labels
    spec: dict[str, Any] = {"displayName": profile.display_name} if profile.display_name else {}
    if profile.manager:
        spec["clusterManager"] = {"name": profile.manager}
    document: dict[str, Any] = {**before, "apiVersion": before.get("apiVersion", _API_VERSION), "kind": _KIND}
    document["metadata"] = merged
    document.pop("spec", None)
    if spec:
        document["spec"] = spec
    return document


def _checked(edit: DocumentEdit) -> DocumentEdit | str:
    assert edit.data is not None, "a file is written"
    if len(edit.data) > DOCUMENT_MAX_BYTES:
        return f"its document would have {len(edit.data):,} bytes; at most {DOCUMENT_MAX_BYTES:,} are written"
    blob = sha1(edit.data, usedforsecurity=False).hexdigest()
    parsed = parse_file(StoreFile(path=edit.path, blob=blob, data=edit.data))
    if [cluster.name for cluster in parsed.clusters] == [edit.cluster] and not parsed.frozen:
        return edit
    errors = "; ".join(one.message for one in parsed.problems if one.severity is Severity.ERROR)
    return f"{edit.path} would not be read as a cluster: {errors or 'files of this name are for something else'}"


_NAMES_MAX: Final = 200
_RETIRING: Final = """\
A cluster without a document is no member any more. Nothing is deleted there: what runs there stays as it is, and nobody
manages it. What policies place by replicas or by selection goes to the clusters that are left. To keep a cluster,
restore its document and take the annotation fleet.reconciler/inventory out of it.
"""


def commit_message(origin: InventoryOrigin, edits: InventoryEdits) -> str:
    """The message, subject first."""
    named = {kind: [edit.cluster for edit in edits.edits if edit.kind is kind] for kind in EditKind}
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in named.items() if names)
    parts = [f"Sync clusters with {origin}: {counts or 'nothing to change'}\n"]
    lines = [f"{kind.capitalize()}: {listed(names, _NAMES_MAX)}\n" for kind, names in named.items() if names]
    parts += ["".join(lines)] if lines else []
    parts += [_RETIRING] if named[EditKind.RETIRED] else []
    return "\n".join(parts)
