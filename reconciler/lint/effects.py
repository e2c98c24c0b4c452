"""The table of settings: what each field of each document changes for clusters, and which changes of it loosen.

A field without a row is an error of the program, which a test finds (`tests/unit/behaviour`). In a meaning, `{name}` is
the document, `{after}` and `{before}` are the values.

Source: design#settings-plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

from reconciler.api.content import Json
from reconciler.api.plan import MISSING, Direction
from reconciler.documents import Field, FieldSupport, Shape, parse_duration, walk


class Looser(Enum):
    """The change of a value that loosens. What cannot be compared loosens, unless it never does."""

    NEVER = auto()
    ALWAYS = auto()
    MORE = auto()
    """A larger number, a longer time, a later value of the order, further entries."""
    LESS = auto()
    WINDOW = auto()
    """A window: one of kind deny that goes, or one of kind allow that opens what others leave closed."""
    CONFIRMS = auto()
    """A new value lets something pass that a person has to confirm or approve."""


class Effect(Struct, frozen=True):
    """A row. `order`: values from the strictest; empty: any change loosens. `is_always_held`: needs a person.

    `is_block`: a mapping that counts by being there, whatever it says. `is_deep`: also for all below without a row.
    """

    meaning: str
    looser: Looser = Looser.NEVER
    order: tuple[str, ...] = ()
    is_always_held: bool = False
    is_block: bool = False
    is_deep: bool = False

    @property
    def has_scale(self) -> bool:
        """Return whether its values can be compared with the default."""
        return bool(self.order) or self.looser not in (Looser.ALWAYS, Looser.WINDOW)


ADDED: Final = "(added)"
REMOVED: Final = "(removed)"

Rows = Mapping[str, Effect]


def rows_of(looser: Looser, meanings: Mapping[str, str]) -> dict[str, Effect]:
    """Return a row for each path with its meaning."""
    return {path: Effect(meaning, looser) for path, meaning in meanings.items()}


def tree_of(prefix: str, paths: Iterable[str], meaning: str, looser: Looser = Looser.NEVER) -> dict[str, Effect]:
    """Return a row for each path below a prefix, with one meaning, which is that of all below it."""
    return {f"{prefix}{path}": Effect(meaning, looser, is_deep=True) for path in paths}


def with_deep_rows(shape: Shape, rows: Rows) -> Rows:
    """Return rows with one for each field below a deep one; fields without effect get none."""
    whole = dict(rows)
    for path, field in walk(shape):
        above = whole.get(path.rpartition(".")[0].removesuffix("[]"))
        if above is not None and above.is_deep and field.status is FieldSupport.SUPPORTED:
            whole.setdefault(path, above)
    return whole


DOCUMENT_ROWS: Final[Rows] = rows_of(
    Looser.NEVER,
    {
        "apiVersion": "{name} is read by the rules of {after}",
        "kind": "{name} becomes a document of another kind",
        "metadata": "its name, labels or annotations change",
        "metadata.name": "it has another name",
        "metadata.namespace": "it is in another namespace",
        "metadata.labels": "labels of the document itself; nothing selects it by them",
        "metadata.annotations": "notes on the document; the service reads only its own",
        "spec": "all of its settings change",
    },
)


def _windows(prefix: str, subject: str) -> dict[str, Effect]:
    times = f"other times at which {subject} may change"
    return {
        prefix: Effect(f"when {subject} may change", Looser.WINDOW),
        f"{prefix}[].kind": Effect(f"what was open for {subject} is closed, and the other way round", Looser.ALWAYS),
        **tree_of(f"{prefix}[].", ("cron", "duration", "timeZone"), times, Looser.ALWAYS),
    }


FLEET_ROWS: Final[Rows] = {
    ADDED: Effect("the store names a fleet: {name} may be applied"),
    REMOVED: Effect(
        "the store names no fleet: nothing is applied any more, and all limits are the defaults", Looser.ALWAYS
    ),
    **rows_of(Looser.ALWAYS, {
        "metadata.name": "another fleet: refused, unless spec.previousNames has the old name; then it takes all",
        "spec.ha": "who may act for the fleet: one process alone, or the one that holds the Lease",
        "spec.prometheus": "the Prometheus that gates ask: {after}",
        "spec.descheduling.unschedulableThreshold": "pods that cannot be scheduled move after {after}",
        "spec.ha.cluster": "the Lease is in another cluster: two processes may act until both have read this",
    }),
    **rows_of(Looser.MORE, {
        "spec.previousNames": "objects with the marks of {after} are taken for objects of this fleet",
        "spec.guards.maxDeletes": "guards: deletions and releases up to {after} at once are not held",
        "spec.guards.maxDeletePercent": "guards: deletions and releases up to {after} % at once are not held",
        "spec.descheduling.interval": "pods that cannot be scheduled are looked for every {after}",
        "spec.drift.resync": "a cluster is compared as a whole every {after}; until then, lost events stay unseen",
        "spec.ha.leaseDuration": "after a leader is lost, nobody acts for {after}",
        "spec.placement.partial": "when not all replicas fit: {after} (true: those that fit are placed)",
        "spec.ignore": "fields of objects are left to others: drift of them is neither shown nor healed",
        "spec.namespaces.allowed": "policies may distribute to the system namespaces {after}, and take over there",
        "spec.ignore[].paths": "fields of objects are left to others: drift of them is neither shown nor healed",
    }),
    **rows_of(Looser.LESS, {
        "spec.guards.window": "guards: deletions of the last {after} count with what is due",
        "spec.history.maxEvents": "history: the newest {after} events are kept; older ones are gone for good",
        "spec.history.maxAge": "history of {after} is kept; what is older is gone for good",
    }),
    **rows_of(Looser.CONFIRMS, {
        "spec.guards.confirm": "deletions that the guards hold are let through: those of the digest {after}",
        "spec.guards.confirmUntil": "the confirmation of deletions ends at {after}",
        "spec.review.confirm": "loosened settings are let through: those of the digest {after}",
    }),
    **rows_of(Looser.NEVER, {
        "spec.descheduling": "moving replicas that cannot be scheduled",
        "spec.failover": "failover of unhealthy applications",
        "spec.drift": "what happens to changes by others",
        "spec.namespaces": "system namespaces",
        "spec.guards": "how much an edit may delete at once",
        "spec.review": "what a review holds",
        "spec.history": "how much history is kept",
        "spec.placement": "placement of replicas",
        "spec.secrets": "Secrets in the store",
        "spec.ha.shards": "refused: shards were taken out",
        "spec.ignore[].reason": "why a field is left to others; no cluster changes by it",
    }),
    **tree_of("spec.ignore[]", (".group", ".kind", ".namespace", ".name"),
            "other objects: drift of the fields is neither shown nor healed there", Looser.ALWAYS),
    "spec.mode": Effect(
        "mode {after} (observe: nothing is applied, drift is not healed, nothing fails over)",
        Looser.ALWAYS, ("apply", "observe"),
    ),
    "spec.failover.mode": Effect(
        "failover: {after} (advise: unhealthy applications stay where they are)", Looser.MORE, ("act", "advise")
    ),
    "spec.drift.selfHeal": Effect("changes by others are put back: {after}", Looser.MORE, ("true", "false")),
    "spec.drift.mode": Effect("drift is seen by {after} (poll: only once each resync)", Looser.MORE, ("watch", "poll")),
    "spec.review.loosening": Effect(
        "loosened settings: {after} (allow: a review shows them and holds nothing)", Looser.MORE, ("hold", "allow")
    ),
    "spec.secrets.plain": Effect("Secrets in plain text: {after}", Looser.MORE, ("refuse", "warn", "allow")),
    **_windows("spec.windows", "clusters"),
    **tree_of("spec.windows[].", ["clusters"], "the window is for other clusters", Looser.ALWAYS),
    "spec.windows[].drift": Effect("drift outside of windows: {after} (hold: it waits)", Looser.MORE, ("hold", "heal")),
}  # fmt: skip

MEMBER_ROWS: Final[Rows] = {
    ADDED: Effect("cluster {name} joins: what policies place there is made in it"),
    REMOVED: Effect(
        "cluster {name} leaves the fleet: nothing in it is changed, healed or watched any more", Looser.ALWAYS
    ),
    "metadata.annotations[fleet.reconciler/context]": Effect(
        "cluster {name} is reached by another context: all of it will be compared with another cluster",
        Looser.ALWAYS, is_always_held=True,
    ),
    "metadata.namespace": Effect(
        "cluster {name} is reached by another profile, or by none: all of it will be compared with another cluster",
        Looser.ALWAYS, is_always_held=True,
    ),
    **rows_of(Looser.NEVER, {
        "metadata.labels": "policies, overrides, windows and stages that select by it may take or leave {name}",
        "metadata.annotations[fleet.reconciler/alias]": "the name of {name} for people",
    }),
}  # fmt: skip
TAINTS_ROWS: Final[Rows] = {
    "spec.taints": Effect("what does not tolerate the taints is not placed in {name}, or leaves it"),
    **tree_of("spec.taints[]", (".key", ".value", ".effect"), "other workloads are kept away from {name}"),
}  # fmt: skip
CLUSTER_ROWS: Final[Rows] = {
    **MEMBER_ROWS,
    **TAINTS_ROWS,
    **tree_of("spec.", ("provider", "region", "zone", "zones"),
            "policies and spread constraints that go by it may take or leave {name}"),
    "spec.syncMode": Effect(
        "who applies in {name}: {after} (Pull: a process of its own)", Looser.MORE, ("Push", "Pull")
    ),
    "spec.apiEndpoint": Effect(
        "it names another server and has no effect: how {name} is reached is said by the kubeconfig alone",
        Looser.ALWAYS, is_always_held=True,
    ),
}  # fmt: skip
PROFILE_ROWS: Final[Rows] = {
    **MEMBER_ROWS,
    **rows_of(Looser.NEVER, {
        "spec.displayName": "the name of {name} for people",
        "spec.clusterManager": "who published the profile of {name}",
        "spec.clusterManager.name": "a label of {name}: what selects by it may take or leave it",
    }),
}  # fmt: skip

ROLLOUT_ROWS: Final[Rows] = {
    ADDED: Effect("changes of its templates go over the clusters in its stages"),
    REMOVED: Effect(
        "Rollout {name} is removed: its clusters get each change at once, past every gate",
        Looser.ALWAYS, is_always_held=True,
    ),
    "spec.templates": Effect("other templates go by stages", Looser.ALWAYS),
    **tree_of("spec.templates.", ("policies", "namespaces", "labelSelector"),
            "other templates go by stages; those that leave it change at once", Looser.ALWAYS),
    **rows_of(Looser.ALWAYS, {
        "spec.stages": "other stages: clusters may change earlier, or past a gate",
        "spec.stages[].name": "another stage: its approvals and pins are no longer for it",
        "spec.stages[].orderByLabel": "clusters of a stage begin in another order",
        "spec.stages[].gate": "what a stage must show before the next begins",
        "spec.stages[].gate.metrics[].query": "a stage must show another metric",
        "spec.stages[].gate.metrics[].threshold": "a stage must show another value of a metric: {after}",
        "spec.stages[].gate.conditions[].type": "a stage must show another condition",
        "spec.stages[].gate.conditions[].status": "a stage must show another status of a condition",
        "spec.onNewCommit": "a commit while a release is under way: {after}",
    }),
    **tree_of("spec.stages[].", ["clusters"], "other clusters are in the stage, which may change them earlier",
            Looser.ALWAYS),
    **tree_of("spec.stages[].gate.conditions[]", (".apiVersion", ".kind", ".namespace", ".name", ".cel"),
            "a stage must show a condition of other objects", Looser.ALWAYS),
    "spec.stages[].after": Effect("what follows a stage before the next begins"),
    **rows_of(Looser.MORE, {
        "spec.stages[].maxConcurrency": "clusters of a stage that change at once: {after}",
        "spec.stages[].gate.maxFailures": "clusters that may fail before a stage is paused: {after}",
        "spec.stages[].gate.timeout": "a cluster has failed only after {after}",
        "spec.rollbackWindow": "for {after} clusters go back at once to what they had completed, past every gate",
        "spec.pin": "pinned past gate and approval: {key} gets {after} at once",
    }),
    **rows_of(Looser.LESS, {
        "spec.stages[].gate.conditions": "conditions that a stage must show before the next begins",
        "spec.stages[].gate.metrics": "metrics that a stage must show before the next begins",
        "spec.stages[].gate.metrics[].for": "a stage must show a metric for {after} before the next begins",
        "spec.stages[].gate.minSuccessTime": "a stage must be healthy for {after} before the next begins",
        "spec.stages[].after.wait": "after a stage the next waits {after}",
        "spec.stages[].after.approval": "after a stage a person must approve: {after}",
    }),
    "spec.stages[].gate.healthy": Effect(
        "whether a stage must be healthy before the next begins: {after}", Looser.MORE, ("true", "false")
    ),
    "spec.stages[].gate.onFailure": Effect(
        "after failures of a stage: {after} (Continue: the next begins all the same)",
        Looser.MORE, ("Pause", "Continue"),
    ),
    **_windows("spec.stages[].windows", "the clusters of the stage"),
    "spec.deletions": Effect(
        "deletions: {after} (withStage: not after all stages, but with each)", Looser.MORE, ("last", "withStage")
    ),
    "spec.placement": Effect("changes of placement: {after} (now: not staged)", Looser.MORE, ("last", "now")),
    **rows_of(Looser.CONFIRMS, {
        "spec.approvals": "approved: {after}",
        "spec.approvals[].stage": "approved for the stage {after}",
        "spec.approvals[].revision": "approved for the revision {after}",
        "spec.approvals[].until": "the approval ends: {after}",
    }),
}  # fmt: skip

Size = tuple[str, Any]
"""A unit, and a value of it: two sizes compare when their units are equal."""


def direction(effect: Effect, field: Field | None, before: Json, after: Json) -> Direction:
    """Return the direction; `before` and `after` are MISSING where the field is not written, and its default counts."""
    match effect.looser:
        case Looser.NEVER:
            return Direction.NEUTRAL
        case Looser.CONFIRMS:
            return Direction.NEUTRAL if after is MISSING else Direction.CONFIRMS
        case Looser.MORE | Looser.LESS:
            return _compared(effect, _size(effect, field, before), _size(effect, field, after))
        case _:
            is_same = bool(effect.order) and _size(effect, field, before) == _size(effect, field, after)
            return Direction.NEUTRAL if is_same else Direction.LOOSENS


def window_direction(item: Json, others: list[Json], *, is_new: bool) -> Direction:
    """Return the direction of a window that comes or goes. `others`: the windows of the other revision."""
    if isinstance(item, Mapping) and item.get("kind") == "deny":
        return Direction.TIGHTENS if is_new else Direction.LOOSENS
    has_allow = any(isinstance(other, Mapping) and other.get("kind") != "deny" for other in others)
    if is_new:
        return Direction.LOOSENS if has_allow else Direction.TIGHTENS
    return Direction.TIGHTENS if has_allow else Direction.LOOSENS


def _compared(effect: Effect, before: Size | None, after: Size | None) -> Direction:
    if before is None and effect.looser is Looser.MORE and after == ("order", 0):
        return Direction.TIGHTENS  # Whatever was there, nothing is stricter.
    if before is None or after is None or before[0] != after[0]:
        return Direction.LOOSENS
    if before[1] == after[1]:
        return Direction.NEUTRAL
    if before[0] == "entries":
        is_more, is_less = not after[1] <= before[1], not before[1] <= after[1]
    else:
        is_more, is_less = after[1] > before[1], after[1] < before[1]
    is_looser = is_more if effect.looser is Looser.MORE else is_less
    return Direction.LOOSENS if is_looser else Direction.TIGHTENS


def _size(effect: Effect, field: Field | None, value: Json) -> Size | None:
    if value is MISSING and field is not None and field.default:
        value = field.default
        if value in ("true", "false"):
            value = value == "true"
    if effect.order:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        text = field.values.get(text, text) if field is not None else text
        return ("order", effect.order.index(text)) if text in effect.order else None
    if value is MISSING:
        return (
            ("entries", frozenset()) if field is not None and field.type.startswith(("list", "map")) else ("there", 0)
        )
    if isinstance(value, bool | int | float):
        return "number", float(value)
    if isinstance(value, list):
        return "entries", frozenset(map(str, value))
    if isinstance(value, Mapping):
        return "there", 1
    text = str(value)
    if text.removesuffix("%").isdigit():
        return ("percent" if text.endswith("%") else "number"), float(text.removesuffix("%"))
    seconds = float("inf") if text == "any age" else parse_duration(text)
    return ("seconds", seconds) if seconds is not None else None
