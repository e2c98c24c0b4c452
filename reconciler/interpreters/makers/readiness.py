"""Health of objects that an operator works on, from one condition."""

from __future__ import annotations

from reconciler.interpreters.kstatus import is_on_its_way, is_stale
from reconciler.interpreters.reading import condition
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject


def by_condition(live: JsonObject, kind: str) -> Health:
    """Healthy when the condition is True, Unhealthy when it is False; Progressing before it is about the newest spec.

    Stricter than kstatus, which takes an object without conditions for one that is there: here nothing was made yet.
    """
    if is_on_its_way(live):
        return Health.PROGRESSING
    found = condition(live, kind)
    if is_stale(found, live):
        return Health.PROGRESSING
    known = {"True": Health.HEALTHY, "False": Health.UNHEALTHY}
    return known.get(str(found.get("status")), Health.PROGRESSING)
