"""PersistentVolumeClaim."""

from __future__ import annotations

from typing import Final

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.server_fields import prune_server_fields, without_annotations
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig

_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"


def _health(live: JsonObject) -> Health:
    """Source: Karmada: healthy when Bound. Pending is Progressing: with WaitForFirstConsumer it waits for a pod."""
    match dig(live, "status", "phase"):
        case "Bound":
            return Health.HEALTHY
        case "Lost":
            return Health.UNHEALTHY
        case _:
            return Health.PROGRESSING


def _sanitize(body: JsonObject) -> JsonObject:
    """Source: Karmada: the node that a scheduler selected in one cluster means nothing in another."""
    return without_annotations(prune_server_fields(body), (_SELECTED_NODE,))


INTERPRETER = Interpreter(kinds=(("", "PersistentVolumeClaim"),), health=_health, sanitize=_sanitize)
