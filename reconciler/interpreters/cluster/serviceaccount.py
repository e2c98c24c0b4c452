"""ServiceAccount."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.reading import text
from reconciler.interpreters.server_fields import prune_server_fields
from reconciler.model.tree import JsonObject, dig, without


def _sanitize(body: JsonObject) -> JsonObject:
    """Without the token Secrets that a cluster makes. Source: Karmada, where the second of two neighbours stays."""
    pruned = prune_server_fields(body)
    secrets = pruned.get("secrets")
    if not isinstance(secrets, list):
        return pruned
    prefix = f"{text(dig(pruned, 'metadata', 'name'))}-token-"
    kept = [entry for entry in secrets if not _is_token(entry, prefix)]
    if len(kept) == len(secrets):
        return pruned
    return {**pruned, "secrets": kept} if kept else without(pruned, ("secrets",))


def _is_token(entry: Any, prefix: str) -> bool:
    return isinstance(entry, Mapping) and text(entry.get("name")).startswith(prefix)


INTERPRETER = Interpreter(kinds=(("", "ServiceAccount"),), sanitize=_sanitize)
