"""managedFields in short: `{"kubectl-edit Update": ["spec.replicas"]}`, paths as diffs print them."""

from __future__ import annotations

import json
from typing import Any

from reconciler.ownership import FieldPath, Keyed, Member, parse_path

US = "fleet-reconciler/test"


def fields_v1(*texts: str) -> dict[str, Any]:
    """The FieldsV1 tree that owns the places; an item of a list on the way is owned as well."""
    tree: dict[str, Any] = {}
    for text in texts:
        path = parse_path(text)
        assert path is not None, text
        here = tree
        for position, step in enumerate(path):
            here = here.setdefault(_raw(step), {})
            if isinstance(step, Keyed) and position < len(path) - 1:
                here.setdefault(".", {})
    return tree


def _raw(step: FieldPath | Any) -> str:
    match step:
        case str():
            return f"f:{step}"
        case Keyed(pairs):
            return "k:" + json.dumps(dict(pairs), separators=(",", ":"), sort_keys=True)
        case Member(value):
            return "v:" + json.dumps(value)
        case _:
            return f"i:{step}"


def managed(owners: dict[str, list[str]], api_version: str = "apps/v1") -> list[dict[str, Any]]:
    """metadata.managedFields; `us` is us by Apply, any other key is `MANAGER OPERATION [SUBRESOURCE]`."""
    entries = []
    for number, (words, paths) in enumerate(owners.items()):
        manager, operation, *rest = (f"{US} Apply" if words == "us" else words).split()
        entry = {
            "manager": manager,
            "operation": operation,
            "apiVersion": api_version,
            "time": f"2026-11-21T10:00:{number:02}Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields_v1(*paths),
        }
        entries.append({**entry, "subresource": rest[0]} if rest else entry)
    return entries
