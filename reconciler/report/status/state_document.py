"""The picture of a round for `status`, version 1: counts and lists of objects' states. Source: design#journal."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, to_builtins

from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.fleet import FrozenReach
from reconciler.api.ledger import EventKind
from reconciler.api.plan import Change, HeldBy
from reconciler.api.problem import Problem, Severity
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.fleet import LAST_GOOD
from reconciler.incremental import by_key
from reconciler.planner import Round
from reconciler.report.json_parts import resource_part
from reconciler.report.mask import masker_of, scrub_text
from reconciler.report.plan.plan_json import rollouts_part, summary
from reconciler.report.status.remedies import behind, todo_of
from reconciler.report.status.status_document import StatusTables
from reconciler.scheduler import Schedule
from reconciler.state import ClusterState, FleetState, HealthWord, Lag, ObjectState

ROWS_MAX: Final = 1000
"""So many are listed; a fleet that comes up has a hundred thousand that wait for their turn."""

_SYNCS: Final = (
    *(Lag.FAILED, Lag.REFUSED, Lag.FOUGHT, Lag.FROZEN, Lag.HELD, Lag.UNKNOWN, Lag.LEFT, Lag.PENDING, Lag.SYNCED),
)
_HEALTHS: Final = (
    HealthWord.DEGRADED,
    HealthWord.MISSING,
    HealthWord.UNKNOWN,
    HealthWord.PROGRESSING,
    HealthWord.HEALTHY,
)
_SYNC_RANK: Final = {lag: rank for rank, lag in enumerate(_SYNCS)}
_HEALTH_RANK: Final = {word: rank for rank, word in enumerate(_HEALTHS)}

Rank = tuple[int, int]
"""Severity of a state: the worst has the lowest."""
NOMINAL_RANK: Final[Rank] = (len(_SYNCS) - 1, len(_HEALTHS) - 1)


def troubles_of(state: FleetState, scrubbed: Callable[[str], str]) -> tuple[list[Json], int]:
    """Return copies in trouble, worst first, with person, line and remedy, and their number; none of clusters away."""
    clusters = [copy for copy in state.clusters.values() if copy.why_away is None]
    ranked = ((rank_of(copy), identity, cluster.name, copy) for cluster in clusters
              for identity, copy in cluster.notable.items())  # fmt: skip
    rows: list[Json] = []
    for _, identity, cluster, copy in heapq.nsmallest(ROWS_MAX, ranked, key=lambda row: row[:3]):
        # Of a kind without a known version the group stands alone.
        gvk = state.gvk(cluster, identity) or GVK("", identity.group, identity.kind)
        by = getattr(copy.sync, "by", None)
        cause, of_health = (behind(state.facts, cluster, identity, part) for part in (copy.sync, copy.health))
        more = {"healthTodo": scrubbed(of_health.todo)} if of_health.todo and copy.sync.lag is not Lag.SYNCED else {}
        rows.append(
            {
                "cluster": cluster,
                "resource": resource_part(gvk, identity),
                "sync": str(copy.sync.sync),
                "state": str(copy.sync.lag),
                "by": str(by) if isinstance(by, HeldBy) else None,
                "why": scrubbed(copy.sync.why),
                "health": str(copy.health.word),
                "healthWhy": scrubbed(copy.health.why),
                **{key: scrubbed(value) for key, value in to_builtins(cause if cause.todo else of_health).items()},
                **more,
            }
        )
    return rows, sum(len(copy.notable) for copy in clusters)


def rank_of(state: ObjectState) -> Rank:
    """Return the severity of a state."""
    return _SYNC_RANK[state.sync.lag], _HEALTH_RANK[state.health.word]


VERSION = 1

LEFT_WHY: Final = (
    "the store has no Cluster document for it any more; what was applied there stays as it is. Bring the document back "
    "to manage it again, or take the objects away by hand"
)


class StateOfFleet(Struct, frozen=True, kw_only=True):
    """The fleet after a round. `source`: name of the store; `source_error`: its present error, empty if readable."""

    round: Round
    state: FleetState
    time: str
    number: int = 0
    source: str = ""
    source_error: str = ""
    rollouts: tuple[RolloutProgress, ...] = ()


def state_document(
    picture: StateOfFleet, before: JsonObject | None = None, tables: StatusTables | None = None
) -> dict[str, Json]:
    """Return the redacted picture. `before`: the last document; `tables`: its tables, to make only what changed."""
    schedule, plan, facts = picture.round.schedule, picture.round.plan, picture.state.facts
    tables, masker = tables or StatusTables(), masker_of(plan.changes)
    policies, unclaimed = tables.of(schedule, facts.journal.ledger, facts.frozen)
    due = tuple(change for change in plan.changes if change.copy in facts.changes)
    held = [change for change in due if change.held is not None]
    clusters = _clusters(picture, before)
    troubles, troubles_total = troubles_of(picture.state, masker.text)
    broken = broken_part(schedule, picture.time, before, masker.text)
    return {
        "version": VERSION,
        "revision": schedule.fleet.revision,
        "source": scrub_text(picture.source) or (before or {}).get("source", ""),
        "sourceError": scrub_text(picture.source_error),
        "time": picture.time,
        "round": picture.number,
        "since": _since(picture, clusters, before),
        "complete": plan.is_complete,
        "summary": summary(due),
        "objects": sums(clusters, "objects"),
        "health": sums(clusters, "health"),
        "clusters": clusters,
        **({"elsewhere": sorted(facts.elsewhere)} if facts.elsewhere else {}),
        "policies": policies,
        # Where every file can be read, documents of before stay as they are.
        **({"broken": broken} if broken else {}),
        "held": [_row(change, why=masker.text(change.held or "")) for change in sorted(held, key=_order)],
        "heldDigest": plan.held_digest,
        "failed": [
            _row(change, error=masker.text(facts.failures[change.copy].why))
            for change in sorted((one for one in plan.changes if one.copy in facts.failures), key=_order)
            if change.held is None
        ],
        "troubles": troubles,
        "troublesTotal": troubles_total,
        "problems": tables.problems.of(plan.problems, masker),
        "unclaimed": unclaimed,
        # Where there is no Rollout, documents of before stay as they are.
        **({"rollouts": rollouts_part(picture.rollouts, masker.text)} if picture.rollouts else {}),
    }


def _since(picture: StateOfFleet, clusters: list[JsonObject], before: JsonObject | None) -> str:
    """Since when every cluster is in step, or the first one is not (RFC 3339)."""
    since = (before or {}).get("since")
    return since if since and _are_in_step(clusters) == _are_in_step(dig(before, "clusters") or ()) else picture.time


def _are_in_step(clusters: Iterable[JsonObject]) -> bool:
    return all(
        cluster["up"] and sum(cluster["objects"].values()) == cluster["objects"].get(Lag.SYNCED, 0)
        for cluster in clusters
    )


def with_source_error(document: JsonObject, error: str) -> dict[str, Json]:
    """The document with why the store cannot be read now; empty: it can again."""
    return {**document, "sourceError": scrub_text(error)}


def _order(change: Change) -> tuple[str, Identity, str]:
    return (change.cluster, change.identity, change.action)


def _row(change: Change, **more: Json) -> dict[str, Json]:
    resource = resource_part(change.gvk, change.identity)
    return {"action": str(change.action), "cluster": change.cluster, "resource": resource, **more}


def _clusters(picture: StateOfFleet, before: JsonObject | None) -> list[JsonObject]:
    known = {entry["name"]: entry for entry in (dig(before, "clusters") or ())}
    members = picture.state.facts.members
    return [
        # A cluster that the command excludes keeps its entry.
        known[name] if name not in members and name in known and not cluster.is_left else _cluster(cluster)
        for name, cluster in sorted(picture.state.clusters.items())
    ]


def _cluster(cluster: ClusterState) -> JsonObject:
    why = LEFT_WHY if cluster.is_left else cluster.why_away
    away = {"why": cluster.why_away}
    todo = todo_of(EventKind.CLUSTER_AWAY, f"cluster {cluster.name}", away) if cluster.why_away is not None else ""
    return {
        "name": cluster.name,
        "up": why is None,
        "why": scrub_text(why or ""),
        **({"todo": todo} if todo else {}),
        "left": cluster.is_left,
        "objects": {str(lag): count for lag, count in cluster.syncs.items()},
        "health": {str(word): count for word, count in cluster.healths.items()},
        "lastSuccess": cluster.last_contact,
    }


def sums(clusters: Iterable[Mapping[str, Any]], key: str) -> dict[str, Json]:
    """The counts of all clusters together."""
    counts: dict[str, Json] = {}
    for cluster in clusters:
        for name, count in (cluster.get(key) or {}).items():
            counts[name] = counts.get(name, 0) + count
    return counts


_NAMED_MAX: Final = 20


class ReplacedFile(StrEnum):
    """The replacement of an unreadable file."""

    LAST_GOOD = "last-good"
    """Its last good content."""
    NOTHING = "nothing"
    """It is new: placed objects go on, unplaced ones wait."""
    FROZEN = "frozen"
    """Unknown: all objects that it could concern stay as they are in the clusters."""


def broken_part(schedule: Schedule, time: str, before: JsonObject | None, masked: Callable[[str], str]) -> list[Json]:
    """Return unreadable files. `before`: has the start times; `frozen`: how many resources wait for it."""
    fleet = schedule.fleet
    if not fleet.frozen:
        return []
    since = {entry["file"]: entry["since"] for entry in (dig(before, "broken") or ())}
    waiting = by_key((reach.source.path, identity) for identity, reach in sorted(schedule.claims.frozen.items()))
    reaches = by_key((reach.source.path, reach) for reach in fleet.frozen)
    # Errors first; that the last good content stays is told last.
    ordered = sorted(fleet.problems, key=lambda one: (one.severity is not Severity.ERROR, one.code == LAST_GOOD))
    problems = by_key((problem.source.path, problem) for problem in ordered if not problem.cluster)
    return [
        {
            "file": path,
            "since": since.get(path, time),
            "why": masked(problems[path][0].message if path in problems else ""),
            "inForce": str(_in_force(of_path, problems.get(path, ()))),
            # For a new file none: `frozen` counts its effect.
            "reach": sorted({words for reach in of_path if not reach.is_new for words in _words(reach)}),
            "frozen": len(waiting.get(path, ())),
            "resources": [str(identity) for identity in waiting.get(path, ())[:_NAMED_MAX]],
        }
        for path, of_path in sorted(reaches.items())
    ]


def _in_force(reaches: Iterable[FrozenReach], problems: Iterable[Problem]) -> ReplacedFile:
    if any(problem.code == LAST_GOOD for problem in problems):
        return ReplacedFile.LAST_GOOD
    return ReplacedFile.NOTHING if all(reach.is_new for reach in reaches) else ReplacedFile.FROZEN


def _words(reach: FrozenReach) -> Iterable[str]:
    if reach.everything:
        yield "everything"
    if reach.selectors:
        yield f"what {reach.policy} selects" if reach.policy is not None else "what its selectors select"
    elif reach.namespace:
        yield f"everything in namespace {reach.namespace}"
    yield from map(str, reach.identities)
