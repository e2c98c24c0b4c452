"""Validation of override operations as RFC 6902, by the jsonpatch package."""

from __future__ import annotations

from reconciler.model.override import OverrideOperator
from reconciler.model.tree import Json


def operation_fault(operator: OverrideOperator, path: str, value: Json) -> str:
    """Return the fault of a JSON Patch operation, as the end of a sentence; empty if it is valid.

    An operation on the whole document is legal there, and none of an override.
    """
    import jsonpatch  # noqa: PLC0415 - it takes as long as a whole small command, and few stores have patches

    operation = {"op": str(operator), "path": path, "value": value}
    try:
        jsonpatch.JsonPatch([operation])
    except jsonpatch.JsonPointerException as refused:
        return _in_our_words(str(refused))
    except jsonpatch.JsonPatchException as refused:
        return str(refused)
    return "" if path else "it is empty, which is the whole object"


def _in_our_words(refused: str) -> str:
    if "escape" in refused:
        return "~ stands before 0 or 1 only: ~0 is a tilde, ~1 a slash"
    return "it begins with a slash, as in /spec/replicas"
