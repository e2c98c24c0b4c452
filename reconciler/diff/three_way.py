"""Three-way difference of one object: desired, live, and owned fields.

Ownership, from managedFields and the previous desired state, is the merge base; values come from the live object.
Fields that we never mentioned are ignored. A dry run's answer shows every difference; those outside our fields are side
effects (defaults, webhooks), which never cause a write. Source: design#dry-run; design#three-way-diff;
design#never-mentioned; design#removed-fields; pruning as measured on a kube-apiserver 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from reconciler.api.content import Json, JsonObject
from reconciler.api.plan import MISSING, Cause, FieldChange
from reconciler.api.refs import GVK
from reconciler.diff.canonical import equal
from reconciler.diff.foreign import Substitutes, substitutes
from reconciler.diff.immutable import immutable_change
from reconciler.diff.trees import NO_DIFFERENCE, Desired, Difference, declared, displaced, tree_changes
from reconciler.diff.walk import Owned, Walk, indexed
from reconciler.documents import FREE, Schema, SchemaNode, key_names, object_meta
from reconciler.ownership import (
    OWNER_ANNOTATION,
    FieldPath,
    Keyed,
    Member,
    child_of,
    entries_of,
    fields_of,
    is_applied_by,
    matches,
    owners_of,
    owns,
    parse_path,
    path_text,
    subtree,
    union,
    value_at,
)

_NOBODY: Final = "before-first-apply"
"""The manager that an API server invents at an apply, for all fields of an object whose managers somebody cleared."""
OWNER_PATH: Final = ("metadata", "annotations", OWNER_ANNOTATION)


def difference_from(
    wanted: Desired,
    live: JsonObject,
    *,
    manager: str,
    previous: JsonObject | None = None,
    schema: Schema | None,
    ignored: tuple[str, ...] = (),
) -> Difference:
    """Return the changes in `live` of a forced apply of the desired state as `manager`.

    `previous`: the last applied state (for Secrets with hashes); it tells drift from declarations, and fields that we
    lost. `ignored`: field paths left to others. A field that another manager owns too and that left the desired state
    is handed over: no change.
    """
    node = schema.root if schema is not None else FREE
    ours: list[Owned] = []
    held: list[Owned] = []
    unheld: list[Owned] = []
    for entry in entries_of(live):
        trees = ours if is_applied_by(entry, manager) else unheld if entry.get("manager") == _NOBODY else held
        trees.append(entry["fieldsV1"])
    owned = ours[0] if len(ours) == 1 else union(ours)
    # Hashes do not cover the defaults inside atomic values, and kinds with hashes have none.
    walk = Walk(live=live, previous=previous, schema=schema, others=tuple(held))
    metadata = live.get("metadata")
    fields = dict(owned)
    fields.pop("f:metadata", None)
    fields.pop("f:status", None)
    walk.objects(wanted.fields, live, fields, node, ())
    if isinstance(metadata, (dict, Mapping)):
        # Metadata is the API server's own type whatever the kind is.
        walk.keeps_empty = False
        walk.objects(wanted.metadata, metadata, owned.get("f:metadata", {}), object_meta(), ((), "metadata"))
    lost: tuple[FieldPath, ...] = ()
    if previous is not None and previous is not wanted.recorded:
        lost = _lost(previous, wanted.recorded, live, owned, manager, node)
    # Nobody lets go of what nobody holds: it goes when it is ours alone.
    lost += tuple(path for path in walk.removed if any(subtree(tree, path) is not None for tree in unheld))
    others: Substitutes = substitutes(walk.shared, live, manager) if walk.shared else ([], [])
    if not walk.changed and not walk.removed and not lost and not others[0]:
        return NO_DIFFERENCE if not walk.doubts and schema is not None else Difference(unsure=_uncertain(walk, schema))
    return _assembled(wanted, manager, schema, walk, lost, others, ignored)


def _assembled(
    wanted: Desired,
    manager: str,
    schema: Schema | None,
    walk: Walk,
    lost: tuple[FieldPath, ...],
    others: Substitutes,
    left: tuple[str, ...],
) -> Difference:
    live, previous = walk.live, walk.previous
    patterns = tuple(pattern for pattern in map(parse_path, left) if pattern is not None)

    def not_ignored(paths: Iterable[FieldPath]) -> list[FieldPath]:
        return [path for path in paths if not any(matches(pattern, path) for pattern in patterns)]

    def gone(path: FieldPath, cause: Cause = Cause.REMOVED) -> tuple[FieldPath, FieldChange]:
        cause = Cause.OWNERSHIP if path == OWNER_PATH else cause
        return path, _field_change(live, manager, path, value_at(live, path), MISSING, cause)

    changed = [one for one in walk.changed if not_ignored(one[:1])]
    removed, takeovers = not_ignored(path for path in walk.removed if path not in lost), not_ignored(lost)
    displacing: Mapping[FieldPath, FieldPath] = {}
    # Only one of two such fields may exist. The table is that of Kubernetes' own kinds.
    if schema is not None and not schema.keeps_empty:
        displacing = displaced(wanted.fields, live, schema.root, (path for path, _, _ in changed))
    contested = {path for path in not_ignored(displacing) if path not in removed and path not in takeovers}
    declaring = [
        entry["fieldsV1"]
        for entry in entries_of(live)
        if entry.get("operation") == "Apply" and not is_applied_by(entry, manager)
    ]
    rivals = [
        path for path in displacing if path in contested and all(subtree(fields, path) is None for fields in declaring)
    ]
    replaced, possible = not_ignored(others[0]), not_ignored(others[1])
    pairs = [
        *(
            (path, _field_change(live, manager, path, before, after, cause_of(path, previous, wanted.recorded)))
            for path, before, after in changed
        ),
        *map(gone, (*removed, *takeovers)),
        *(gone(path, cause_of(displacing[path], previous, wanted.recorded)) for path in rivals),
        *(gone(path, Cause.DRIFT) for path in replaced),
    ]
    if not pairs:
        return NO_DIFFERENCE
    pairs.sort(key=lambda pair: pair[1].path)
    version = wanted.body.get("apiVersion")
    replace = immutable_change(GVK.parse(str(version or ""), str(wanted.body.get("kind", ""))).group_kind, pairs, live)
    contested.difference_update(rivals)
    applied = (each.get("apiVersion") for each in entries_of(live) if is_applied_by(each, manager))
    # Recorded in another version of the kind, whose paths may differ.
    stale = next((each for each in applied if each != version), version)
    reasons = (
        _uncertain(walk, schema),
        f"our fields were recorded as {stale}" if stale != version else None,
        f"{replace} cannot be changed in place" if replace else None,
        f"{min(map(path_text, takeovers))} has to be taken over from others before it can go" if takeovers else None,
        f"{min(map(path_text, contested))} stands in the way, and another tool declares it" if contested else None,
        _ruled(schema, [path for path, _ in pairs]),
        f"{min(map(path_text, possible))} may stand in the place of an entry of ours" if possible else None,
    )
    return Difference(
        fields=tuple(change for _, change in pairs),
        removed_paths=tuple(sorted(map(path_text, (*takeovers, *rivals, *replaced)))),
        in_the_way=tuple(gone(path, Cause.DRIFT)[1] for path in possible),
        unsure=next((reason for reason in reasons if reason), None),
        replace=replace,
    )


def _uncertain(walk: Walk, schema: Schema | None) -> str | None:
    if schema is None:
        return "the schema of this kind is not known"
    return walk.doubts[0] if walk.doubts else None


def _ruled(schema: Schema | None, changed: Iterable[FieldPath]) -> str | None:
    """Return that a rule of the kind judges a new value by the old one, and may refuse the change; None: none does."""
    for path in changed:
        node: SchemaNode | None = schema.root if schema is not None else None
        for depth, step in enumerate((*path, None)):
            if node is not None and node.has_transition_rule:
                return f"a rule of the kind judges changes of {path_text(path[:depth]) or 'the object'}"
            node = None if node is None else node.child(step) if isinstance(step, str) else node.item
    return None


def cause_of(path: FieldPath, previous: JsonObject | None, recorded: JsonObject) -> Cause:
    """Return the cause of a difference in our field: drift if the desired value surely is unchanged, else declared."""
    if path == OWNER_PATH:
        return Cause.OWNERSHIP
    was = value_at(previous, path)
    return Cause.DECLARED if was is MISSING or was != value_at(recorded, path) else Cause.DRIFT


def _field_change(
    live: JsonObject, manager: str, path: FieldPath, before: Json, after: Json, cause: Cause
) -> FieldChange:
    """Return the change of a field, with the other manager that wrote at or below it last."""
    owners = (one for one in owners_of(live, path) if one.manager != manager) if before is not MISSING else iter(())
    return FieldChange(path=path_text(path), before=before, after=after, cause=cause, owner=next(owners, None))


def _lost(
    previous: JsonObject, recorded: JsonObject, live: JsonObject, owned: Owned, manager: str, node: SchemaNode
) -> tuple[FieldPath, ...]:
    """Return places that we sent last time, no longer want, and that an Update of another manager took from us.

    A field that another manager holds by Apply is its declared will, and is left. One without an owner (its ownership
    record was cleared) is ours while it still has the value that we sent; a default looks different.
    """
    if previous == recorded:
        return ()
    others = (entry for entry in entries_of(live) if not is_applied_by(entry, manager))
    trees = [(entry["fieldsV1"], entry.get("operation") == "Apply") for entry in others]
    lost = []
    for path, was in _vanished(declared(previous), declared(recorded), node, ()):
        now = value_at(live, path)
        if now is MISSING or subtree(owned, path) is not None:
            continue
        holders = [applied for tree, applied in trees if subtree(tree, path) is not None]
        is_unheld_and_same = not holders and equal(was, now, FREE, keeps_empty=True)
        if is_unheld_and_same or (holders and not any(holders)):
            lost.append(path)

    def falls_with_item(path: FieldPath) -> bool:
        """Return whether an undesired item around the path is ours alone, so that it goes as a whole with the path."""
        arounds = (path[:end] for end in range(len(path) - 1, 0, -1) if isinstance(path[end - 1], (Keyed, Member)))
        return any(
            owns(owned, around)
            and value_at(recorded, around) is MISSING
            and not any(owns(tree, around) for tree, _ in trees)
            for around in arounds
        )

    return tuple(path for path in lost if not falls_with_item(path))


def _vanished(was: Json, now: Json, node: SchemaNode, path: FieldPath) -> Iterator[tuple[FieldPath, Json]]:
    """Yield leaves of `was` that are not in `now`, by path; atomic values are leaves."""
    is_leaf = _is_leaf(was, node) or (isinstance(now, list) and _is_leaf(now, node))
    if now is MISSING and (not isinstance(was, (dict, list)) or not was or is_leaf):
        if was is not None:
            yield path, was
        return
    if isinstance(was, dict) and not node.is_atomic:
        for name, value in was.items():
            below = child_of(now, name) if now is not MISSING else MISSING
            yield from _vanished(value, below, node.child(name) or FREE, (*path, name))
    elif isinstance(was, list) and not is_leaf:
        for value in was:
            step: Keyed | Member | None = None
            if not node.is_set:
                assert isinstance(value, dict), "a list whose items have no keys is a leaf"
                names, defaults = key_names(node)
                pairs = [(name, value.get(name, other)) for name, other in zip(names, defaults, strict=True)]
                step = Keyed(tuple(pairs))
            elif not isinstance(value, (dict, list)):
                step = Member(value)
            if step is not None:
                below = child_of(now, step) if now is not MISSING else MISSING
                if below is MISSING and isinstance(step, Keyed):
                    yield (*path, step), value
                yield from _vanished(value, below, node.item or FREE, (*path, step))


def _is_leaf(value: Json, node: SchemaNode) -> bool:
    """Return whether a value is compared as a whole; so is a map list with ambiguous keys."""
    if node.is_atomic:
        return True
    if not isinstance(value, list) or node.is_set:
        return False
    return not node.keys or indexed(value, *key_names(node)) is None


def dry_run_changes(
    live: JsonObject, result: JsonObject, *, manager: str, schema: Schema | None
) -> tuple[FieldChange, ...]:
    """Return the fields that differ between the live object and the dry run's answer, sorted by path.

    Our field that went or fell back to a default is REMOVED, one that is never ours a SIDE_EFFECT, else DECLARED.
    """
    ours_before, ours_after = fields_of(live, manager), fields_of(result, manager)
    changes = []

    def is_in(fields: Mapping[str, Any], path: FieldPath) -> bool:
        # Without a schema the trees are compared below atomic maps as well, whose ownership is one leaf above.
        return subtree(fields, path) is not None or (schema is None and _within_leaf(fields, path))

    for path, before, after in tree_changes(live, result, schema):
        cause = Cause.DECLARED if is_in(ours_after, path) else Cause.REMOVED
        if cause is Cause.REMOVED and not is_in(ours_before, path):
            cause = Cause.SIDE_EFFECT
        elif path == OWNER_PATH:
            cause = Cause.OWNERSHIP
        changes.append(_field_change(live, manager, path, before, after, cause))
    return tuple(sorted(changes, key=lambda change: change.path))


def is_write_needed(changes: tuple[FieldChange, ...]) -> bool:
    """Return whether anything but side effects would change."""
    return any(change.cause is not Cause.SIDE_EFFECT for change in changes)


def _within_leaf(fields: Mapping[str, Any], path: FieldPath) -> bool:
    """Return whether a place above the path is owned as a whole (an atomic list or map)."""
    for end in range(1, len(path)):
        owned = subtree(fields, path[:end])
        if owned is None:
            return False
        if not owned:
            return True
    return False
