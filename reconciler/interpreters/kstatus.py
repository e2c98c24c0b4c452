"""Health by the conventions that controllers share, for a kind without a rule of its own.

Source: kstatus (sigs.k8s.io/cli-utils/pkg/kstatus), the rules that Flux, kpt and Config Sync wait by: "Current" is
Healthy here, "InProgress" and "Terminating" Progressing, "Failed" Unhealthy. One rule is stricter: a condition with an
observedGeneration counts only for that generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.interpreters.reading import condition, mappings
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig


def health(live: JsonObject) -> Health:
    """By kstatus: Progressing until its controller has seen the newest spec, and while it is being deleted.

    The condition Reconciling makes it Progressing, Stalled Unhealthy, and Ready Healthy when True and Progressing when
    not. Without any of them it is Healthy: nothing says otherwise.
    """
    if is_on_its_way(live):
        return Health.PROGRESSING
    for _, entry in mappings(dig(live, "status", "conditions")):
        if entry.get("status") == "True" and entry.get("type") in ("Reconciling", "Stalled"):
            return Health.PROGRESSING if entry["type"] == "Reconciling" else Health.UNHEALTHY
    ready = condition(live, "Ready")
    if not ready or (ready.get("status") == "True" and not is_stale(ready, live)):
        return Health.HEALTHY
    return Health.PROGRESSING


def is_on_its_way(live: JsonObject) -> bool:
    """Return whether it is being deleted, or its status is about an older spec: its conditions do not count yet."""
    if dig(live, "metadata", "deletionTimestamp"):
        return True
    status = live.get("status")
    return isinstance(status, Mapping) and is_stale(status, live)


def is_stale(said: Mapping[str, Any], live: JsonObject) -> bool:
    """Return whether a status or condition is about another generation than the newest."""
    observed, generation = said.get("observedGeneration"), dig(live, "metadata", "generation")
    return isinstance(observed, int) and isinstance(generation, int) and observed != generation
