"""Changes of a server-side apply with `dryRun=All`, from its answer.

Nothing is stripped or rebuilt: every difference is shown, and those outside our fields are labelled as side effects
(defaults, webhooks), which never cause a write. Source: design#dry-run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.api.content import JsonObject
from reconciler.api.plan import MISSING, Cause, FieldChange
from reconciler.diff.three_way import OWNER_PATH, cause_of, holder_of
from reconciler.diff.trees import tree_changes
from reconciler.documents import Schema
from reconciler.ownership import FieldPath, fields_of, path_text, subtree


def dry_run_changes(
    live: JsonObject,
    result: JsonObject,
    *,
    manager: str,
    schema: Schema | None,
    desired: JsonObject,
    previous: JsonObject | None = None,
) -> tuple[FieldChange, ...]:
    """Return the fields that differ between the live object and the dry run's answer, sorted by path.

    `previous` is as for `diff.difference_from`, and `desired` in the form of `previous`, where that has hashes. A field
    of ours that went, or fell back to a default, is REMOVED; one that is neither ours before nor after is a
    SIDE_EFFECT. The dry run does not cover fields that are to be taken over first (`Difference.removed_paths`).
    """
    ours_before, ours_after = fields_of(live, manager), fields_of(result, manager)
    changes = []

    def is_in(fields: Mapping[str, Any], path: FieldPath) -> bool:
        # Without a schema the trees are compared below atomic maps as well, whose ownership is one leaf above.
        return subtree(fields, path) is not None or (schema is None and _within_leaf(fields, path))

    for path, before, after in tree_changes(live, result, schema):
        if is_in(ours_after, path):
            cause = cause_of(path, previous, desired)
        elif is_in(ours_before, path):
            cause = Cause.OWNERSHIP if path == OWNER_PATH else Cause.REMOVED
        else:
            cause = Cause.SIDE_EFFECT
        owner = holder_of(live, manager, path) if before is not MISSING else None
        changes.append(FieldChange(path=path_text(path), before=before, after=after, cause=cause, owner=owner))
    return tuple(sorted(changes, key=lambda change: change.path))


def is_write_needed(changes: tuple[FieldChange, ...]) -> bool:
    """Return whether anything but side effects would change."""
    return any(change.cause is not Cause.SIDE_EFFECT for change in changes)


def _within_leaf(fields: Mapping[str, Any], path: FieldPath) -> bool:
    """Return whether a place above the path is owned as a whole (an atomic list or map)."""
    for end in range(1, len(path)):
        found = subtree(fields, path[:end])
        if found is None:
            return False
        if not found:
            return True
    return False
