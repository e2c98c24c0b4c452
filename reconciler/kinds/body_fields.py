"""Typed reads of fields of bodies, the fields that only servers write, and health by the conditions that are shared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from reconciler.api.clusters import Health, RunOutcome
from reconciler.api.content import Json, JsonObject, dig, with_value, without
from reconciler.kinds.cluster_fields import without_cluster_fields

EMPTY: Mapping[str, Any] = {}


def mapping(value: Json) -> Mapping[str, Any]:
    """The value when it is a mapping, else an empty one."""
    # A dict first: the check against the abstract class costs five times as much.
    return value if isinstance(value, (dict, Mapping)) else EMPTY


def mappings(value: Json) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The mappings of a list with their indexes; nothing when it is no list."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, (dict, Mapping)):
                yield index, item


def text(value: Json) -> str:
    """The value when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


COUNT_MAX = 2**31 - 1
"""The limit of counts in API servers."""


def count(value: Json, default: int) -> int:
    """The value when it is a count that an API server may store, else the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX else default


def namespace_of(body: JsonObject) -> str:
    """Return metadata.namespace, empty if missing."""
    return text(dig(body, "metadata", "namespace"))


def condition(live: JsonObject, kind: str) -> Mapping[str, Any]:
    """Return the entry of status.conditions with this type, empty if missing."""
    for _, entry in mappings(dig(live, "status", "conditions")):
        if entry.get("type") == kind:
            return entry
    return EMPTY


def status_count(live: JsonObject, *names: str) -> int | None:
    """The first of the counts of the status that is there, else 0; None before a controller has seen the object."""
    if not has_report(live):
        return None
    status = mapping(live.get("status"))
    return next((count(status[name], 0) for name in names if name in status), 0)


def has_report(live: JsonObject) -> bool:
    """Return whether a controller has ever reported a generation."""
    return "observedGeneration" in mapping(live.get("status"))


def is_observed(live: JsonObject) -> bool:
    """Return whether the controller has seen the newest spec: status.observedGeneration is metadata.generation."""
    generation = dig(live, "metadata", "generation")
    return generation is None or bool(dig(live, "status", "observedGeneration") == generation)


REPLICAS = ("spec", "replicas")


def replicas_of(body: JsonObject) -> int:
    """spec.replicas; 1 when it is missing, as the API server fills it in (Karmada counts 0)."""
    return count(dig(body, *REPLICAS), 1)


def with_count(body: JsonObject, path: tuple[str, ...], number: int) -> JsonObject:
    """The body with the number at the path, copy on write; the body itself when it has it already."""
    return body if dig(body, *path) == number else with_value(body, path, number)


SERVER_METADATA: Final = frozenset({
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation",
    "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
})  # fmt: skip

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def prune_server_fields(body: JsonObject) -> JsonObject:
    """Return the body without status, server-written metadata and fields of the cluster; itself if it has none."""
    pruned = without_cluster_fields(body)  # While it still shows that it was exported.
    if "status" in pruned:
        pruned = without(pruned, ("status",))
    metadata = pruned.get("metadata")
    if isinstance(metadata, (dict, Mapping)) and not SERVER_METADATA.isdisjoint(metadata):
        rest = {key: value for key, value in metadata.items() if key not in SERVER_METADATA}
        pruned = {**pruned, "metadata": rest}
    return without_annotations(pruned, (LAST_APPLIED,))


def without_annotations(body: JsonObject, keys: Collection[str]) -> JsonObject:
    """The body without these annotations; an annotation map that becomes empty goes too."""
    return without_entries(body, ("metadata", "annotations"), keys)


def without_entries(body: JsonObject, steps: tuple[str, ...], keys: Collection[str]) -> JsonObject:
    """The body without these keys of the map at the steps; a map that becomes empty goes too."""
    entries = dig(body, *steps)
    if not entries or not isinstance(entries, (dict, Mapping)) or entries.keys().isdisjoint(keys):
        return body
    rest = {key: value for key, value in entries.items() if key not in keys}
    return with_value(body, steps, rest) if rest else without(body, steps)


def kstatus_health(live: JsonObject) -> Health:
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


def is_stale(condition: Mapping[str, Any], live: JsonObject) -> bool:
    """Return whether a status or condition is about another generation than the newest."""
    observed, generation = condition.get("observedGeneration"), dig(live, "metadata", "generation")
    return isinstance(observed, int) and isinstance(generation, int) and observed != generation


def outcome_by_condition(live: JsonObject, outcomes: Mapping[str, RunOutcome]) -> RunOutcome:
    """Return the outcome of the first of these conditions that is True."""
    outcomes_met = (outcome for kind, outcome in outcomes.items() if condition(live, kind).get("status") == "True")
    return next(outcomes_met, RunOutcome.RUNS)


def by_condition(live: JsonObject, kind: str) -> Health:
    """Healthy when the condition is True, Unhealthy when it is False; Progressing before it is about the newest spec.

    Stricter than kstatus, which takes an object without conditions for one that is there: here nothing was made yet.
    """
    if is_on_its_way(live):
        return Health.PROGRESSING
    entry = condition(live, kind)
    if is_stale(entry, live):
        return Health.PROGRESSING
    return {"True": Health.HEALTHY, "False": Health.UNHEALTHY}.get(str(entry.get("status")), Health.PROGRESSING)
