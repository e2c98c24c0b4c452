"""JSON patches on an object's ownership record: adopt, take fields over, release; manifests as the journal keeps them.

Every patch begins by writing the resourceVersion that was read, so that the API server answers 409 when the object
changed meanwhile. Source: Kubernetes field management; `kubectl apply --server-side`. Secret values become keyed
hashes, equal ones equal hashes; without the key nobody can try words. Source: design#secrets.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from reconciler.api.content import Json, JsonObject, Step, canonical_bytes, dig, with_leaf, with_value, without
from reconciler.api.plan import MISSING
from reconciler.api.refs import Identity
from reconciler.ownership.field_path import FieldPath, Keyed, Member, parse_path, value_at
from reconciler.ownership.managed_fields import difference, entries_of, is_applied_by, step_of, subtree, union
from reconciler.ownership.marks import FLEET_LABEL, OWNER_ANNOTATION, tool_of
from reconciler.regex import regex

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that holds a whole manifest, Secret values included."""

_OPEN = frozenset({"apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"})
"""Members of a Secret that hold no value, or are hashed one by one."""

_HASH_MARK = b'"hmac:'
_HASH_FORM = regex(r"hmac:[0-9a-f]{64}")


def recorded_form(body: JsonObject, key: bytes) -> JsonObject:
    """Return the manifest without any Secret value; itself if there is none to hide.

    A Secret's `stringData` is folded into `data`, where every value becomes `hmac:<64 hex>` over the decoded bytes.
    Applied to its own result it changes nothing: a hash is not base64, so it cannot be mistaken for a value.
    """
    if body.get("kind") == "Secret" and body.get("apiVersion") == "v1":
        body = _hashed_secret(body, key)
    last_applied = dig(body, "metadata", "annotations", LAST_APPLIED)
    if last_applied is None or _is_hash(last_applied):
        return body
    return with_value(body, ("metadata", "annotations", LAST_APPLIED), keyed_hash(_bytes_of(last_applied), key))


def hashed_leaves(body: JsonObject, leaves: Iterable[tuple[Step, ...]], key: bytes) -> JsonObject:
    """Return the body with hashes for decrypted values; those of a Secret, `recorded_form` hashes."""
    is_secret = body.get("kind") == "Secret" and body.get("apiVersion") == "v1"
    for steps in leaves:
        if not (is_secret and steps[0] in ("data", "stringData")):
            body = with_leaf(body, steps, lambda value: _hashed(value, key))
    return body


def holds_hashes(recorded: JsonObject | None) -> bool:
    """Return whether anything of a recorded manifest was secret."""
    return recorded is not None and _HASH_MARK in canonical_bytes(recorded)


def keyed_hash(value: bytes, key: bytes) -> str:
    """Return HMAC-SHA256 of the bytes as `hmac:<64 hex>`."""
    return "hmac:" + hmac.new(key, value, hashlib.sha256).hexdigest()


def recorded_digest(digest: str, identity: Identity, key: bytes) -> str:
    """Return a manifest's digest for the journal: a Secret's is keyed, or its values could be guessed."""
    return keyed_hash(digest.encode(), key) if identity[:2] == ("", "Secret") else digest


def decoded(value: Json) -> bytes:
    """Return the decoded bytes of a Secret's `data` value; the text itself if it is no base64."""
    if isinstance(value, str):
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            pass
    return _bytes_of(value)


def _hashed_secret(body: JsonObject, key: bytes) -> JsonObject:
    data, plain = body.get("data"), body.get("stringData")
    hashed: dict[str, Json] = {}
    for name, value in data.items() if isinstance(data, Mapping) else ():
        hashed[name] = value if _is_hash(value) else keyed_hash(decoded(value), key)
    for name, value in plain.items() if isinstance(plain, Mapping) else ():
        hashed[name] = keyed_hash(_bytes_of(value), key)
    # A misplaced field may be a value too.
    body = {name: below if name in _OPEN else _hashed(below, key) for name, below in body.items()}
    body = without(body, ("stringData",))
    # Neither `data: oops` nor an empty mapping may stay: the one could be a value, the other would differ from none.
    return {**body, "data": hashed} if hashed else without(body, ("data",))


def _hashed(value: Json, key: bytes) -> Json:
    return value if _is_hash(value) else keyed_hash(_bytes_of(value), key)


def _is_hash(value: Json) -> bool:
    return isinstance(value, str) and _HASH_FORM.fullmatch(value) is not None


def _bytes_of(value: Json) -> bytes:
    return value.encode(errors="surrogatepass") if isinstance(value, str) else canonical_bytes(value)


Operation = dict[str, Any]
"""One RFC 6902 operation."""

PREDECESSORS: Final = frozenset({
    "kubectl-client-side-apply", "kubectl-create", "kubectl-replace", "kubectl", "before-first-apply",
    "helm", "argocd-controller", "kustomize-controller", "helm-controller", "fleetagent", "fleet-agent",
    "karmada-agent", "karmada-controller-manager", "execution-controller", "work-agent", "config-sync", "configsync",
    "kapp", "kluctl", "work-api-agent", "gardener-resource-manager",
})  # fmt: skip
"""Field managers that write declared values, and not a controller's findings; adoption takes their fields."""

_BORROWED: Final[Mapping[str, frozenset[str]]] = {
    tool: frozenset({"application/apply-patch"}) for tool in ("Sveltos", "cli-utils")
}
"""Managers that tools copied from an example, as controllers of all kinds did: they are a tool's where its mark is.

Source: client-go, dynamic create-update-delete example; Sveltos: addon-controller; GitLab agent and Plural: cli-utils.
"""


def adoption_operations(
    live: JsonObject, manager: str, predecessors: Iterable[str] | None = None
) -> tuple[Operation, ...]:
    """Return the patch that makes the predecessors' fields (None: those of tools) ours; empty if others have all.

    Else a field that leaves the store would stay for ever. Of client-side apply only fields in its annotation count.
    """
    fields = _adopted_fields(live, manager, predecessors)
    return () if fields is None else _guarded(live, fields)


def adopted(live: JsonObject, manager: str, predecessors: Iterable[str] | None = None) -> JsonObject:
    """Return the live object after the adoption patch, for comparing an adoption."""
    fields = _adopted_fields(live, manager, predecessors)
    return live if fields is None else {**live, "metadata": {**live["metadata"], "managedFields": fields}}


def takeover_operations(live: JsonObject, manager: str, paths: Iterable[str]) -> tuple[Operation, ...]:
    """Return the patch that moves the places at the paths from Update entries of others to our Apply entry.

    The next apply then prunes them as if they had always been ours: defaults come back unowned, and list items go as
    a whole. Empty when nothing at the paths is there.
    """
    parsed = [path for path in map(parse_path, paths) if path is not None and value_at(live, path) is not MISSING]
    if not parsed:
        return ()
    entries = entries_of(live)
    ours: Mapping[str, Any] = union([e["fieldsV1"] for e in entries if is_applied_by(e, manager)])
    others = []
    for entry in entries:
        if is_applied_by(entry, manager):
            continue
        left = entry["fieldsV1"]
        if entry.get("operation") == "Update":
            left = difference(left, union([_branch(path, subtree(left, path)) for path in parsed]))
        if left:
            others.append({**entry, "fieldsV1": left})
    ours = union([ours, *(_branch(path, {}) for path in parsed if subtree(ours, path) is None)])
    return _guarded(live, [_our_entry(live, manager, ours), *others])


def release_operations(live: JsonObject, manager: str) -> tuple[Operation, ...]:
    """Return the patch that takes our marks and our field manager off and leaves everything else as it is."""
    operations: list[Operation] = []
    for name, key in (("labels", FLEET_LABEL), ("annotations", OWNER_ANNOTATION)):
        if key in (dig(live, "metadata", name) or {}):
            operations.append({"op": "remove", "path": f"/metadata/{name}/{key.replace('/', '~1')}"})
    entries = dig(live, "metadata", "managedFields")
    others = [entry for entry in entries or () if entry.get("manager") != manager]
    if len(others) != len(entries or ()):
        # An empty list would count as "not given"; a list with one empty entry means no owners.
        operations.append({"op": "replace", "path": "/metadata/managedFields", "value": others or [{}]})
    return (_version_guard(live), *operations) if operations else ()


def _adopted_fields(live: JsonObject, manager: str, predecessors: Iterable[str] | None) -> list[JsonObject] | None:
    if predecessors is None:
        predecessors = PREDECESSORS | _BORROWED.get(tool_of(live), frozenset())
    names, entries = frozenset(predecessors), entries_of(live)
    trees: list[Mapping[str, Any]] = []
    others = []
    last_applied = _last_applied(live)
    for entry in entries:
        if is_applied_by(entry, manager):
            trees.append(entry["fieldsV1"])
        elif entry.get("manager") in names and not entry.get("subresource"):
            is_client_side = last_applied is not None and entry.get("manager") == "kubectl-client-side-apply"
            tree = entry["fieldsV1"]
            trees.append(_mentioned(tree, last_applied) if is_client_side else tree)
        else:
            others.append(entry)
    if not entries:
        # To the first apply of an object without managers the API server adds one that holds all fields, for ever.
        trees = [_branch(("metadata", "annotations", OWNER_ANNOTATION), {})]
    elif len(others) + sum(is_applied_by(entry, manager) for entry in entries) == len(entries):
        return None
    return [_our_entry(live, manager, union(trees)), *others]


def _last_applied(live: JsonObject) -> JsonObject | None:
    """Return the last input of client-side apply, with the annotation that holds it as one more field."""
    text = dig(live, "metadata", "annotations", LAST_APPLIED)
    try:
        body = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(body, dict):
        return None
    annotations = dig(body, "metadata", "annotations") or {}
    return {**body, "metadata": {**(body.get("metadata") or {}), "annotations": {**annotations, LAST_APPLIED: text}}}


def _mentioned(fields: Mapping[str, Any], body: Json) -> dict[str, Any]:
    """Return the part of a FieldsV1 tree that a manifest mentions."""
    left: dict[str, Any] = {}
    for raw, inner in fields.items():
        if raw == ".":
            left[raw] = inner
            continue
        step = step_of(raw)
        value = value_at(body, (step,)) if step is not None else MISSING
        if value is MISSING:
            continue
        below_it = _mentioned(inner, value)
        if below_it or not inner:
            left[raw] = below_it
    return left


def _our_entry(live: JsonObject, manager: str, fields: Mapping[str, Any]) -> JsonObject:
    times = [str(e.get("time", "")) for e in entries_of(live)]
    created = str(dig(live, "metadata", "creationTimestamp") or "")
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": live.get("apiVersion"),
        "time": max([created, *times]),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _branch(path: FieldPath, tree: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return a FieldsV1 tree with `tree` at the path; nothing when there is no such tree."""
    if tree is None:
        return {}
    for step in reversed(path):
        match step:
            case str():
                raw = f"f:{step}"
            case Keyed(pairs):
                raw = "k:" + orjson.dumps(dict(pairs), option=orjson.OPT_SORT_KEYS).decode()
            case Member(value):
                raw = "v:" + orjson.dumps(value).decode()
            case _:
                raw = f"i:{step}"
        tree = {raw: tree}
    return tree


def _version_guard(live: JsonObject) -> Operation:
    # Writing it back makes the API server compare it and answer 409; a failed `test` would be a 422.
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": dig(live, "metadata", "resourceVersion")}


def _guarded(live: JsonObject, fields: list[JsonObject]) -> tuple[Operation, ...]:
    # Without managers there is nothing to replace.
    return (_version_guard(live), {"op": "add", "path": "/metadata/managedFields", "value": fields})
