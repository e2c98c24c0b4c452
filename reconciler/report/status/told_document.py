"""What other processes of a fleet with shards tell, as a part of what `status` says.

A process writes it into its journal beside the picture of its own last round; whoever reads puts both together.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge
from typing import Any, Final

from msgspec.structs import replace

from reconciler.model.problem import Problem
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import Json, JsonObject
from reconciler.report.json_parts import problem_part, resource_part, sorted_problems
from reconciler.report.mask import Masker, scrub_text
from reconciler.report.status.state_document import Picture, cluster_part, state_document, sums
from reconciler.report.status.troubles import RANKS, ROWS_MAX, Troubles
from reconciler.stages.shards import ToldChange
from reconciler.stages.state import ClusterState, Others

_OF_COPIES: Final = ("held", "failed", "troubles")


def told_document(
    picture: Picture, others: Others, problems: Iterable[Problem], base: Picture | None = None
) -> dict[str, Json]:
    """The clusters of other shards, masked. `picture`: of the whole fleet; `problems`: those that others tell of.

    `base`: what a process that stands by shows beside; None: it makes rounds, and each leaves a picture.
    """
    theirs = {name: found for name, found in picture.state.clusters.items() if found.is_told}
    facts, masker = picture.state.facts, Masker()
    shards = facts.decision.fleet.settings.ha.shards if facts is not None and facts.decision.fleet.settings.ha else ()
    troubles = Troubles(replace(picture.state, clusters=theirs), scrub_text)
    changes = [
        change
        for told in others.told.values()
        for change in (told.picture.changes if told.picture is not None and not told.why else ())
        if change.cluster in theirs
    ]
    changes.sort(key=lambda change: (change.cluster, change.group, change.kind, change.namespace, change.name))
    return {
        "shard": others.shard,
        "process": others.process,
        "shards": [_shard(name, others) for name in sorted(shards)],
        "clusters": [{**cluster_part(found), **_applier(found)} for _, found in sorted(theirs.items())],
        "held": [_change(change, "why") for change in changes if change.is_held],
        "heldDigest": picture.round.plan.held_digest,
        "failed": [_change(change, "error") for change in changes if not change.is_held],
        "troubles": troubles.rows(),
        "troublesTotal": troubles.total,
        "problems": [problem_part(masker.problem(found)) for found in sorted_problems(problems)],
        **({"base": state_document(base)} if base is not None else {}),
    }


def with_told(document: JsonObject, told: JsonObject | None) -> dict[str, Json]:
    """The document of a process with what the others tell; as it is where there are none."""
    if not told:
        return dict(document)
    own: Any = {"shard": told["shard"] or None, "process": told["process"] or None}
    names = {row["name"] for row in told["clusters"]}
    # What this process knew of a cluster that another one has by now is of before.
    document = {
        **document,
        **{key: [row for row in document[key] if row["cluster"] not in names] for key in _OF_COPIES},
    }
    mine = [{**row, **own} for row in document["clusters"] if row["name"] not in names]
    clusters = sorted([*mine, *told["clusters"]], key=lambda row: str(row["name"]))
    is_told = all(not row["why"] for row in told["shards"])
    found: dict[str, Json] = {
        **document,
        "complete": document["complete"] and is_told and all(row["up"] or row["left"] for row in told["clusters"]),
        "objects": sums(clusters, "objects"),
        "health": sums(clusters, "health"),
        "clusters": clusters,
        "shards": told["shards"],
        "held": sorted([*document["held"], *told["held"]], key=_by_place),
        "heldDigest": document["heldDigest"] or told["heldDigest"],
        "failed": sorted([*document["failed"], *told["failed"]], key=_by_place),
        "troubles": list(merge(document["troubles"], told["troubles"], key=_how_bad))[:ROWS_MAX],
        "troublesTotal": document["troublesTotal"] + told["troublesTotal"],
        "problems": _joined(document["problems"], told["problems"]),
    }
    left = [name for name in document.get("elsewhere", ()) if name not in names]
    found.pop("elsewhere", None)
    return {**found, **({"elsewhere": left} if left else {})}


def _shard(name: str, others: Others) -> dict[str, Json]:
    told = others.told.get(name)
    if name == others.shard:
        return {"name": name, "process": others.process or None, "here": True, "why": "", "revision": None}
    picture = told.picture if told is not None else None
    return {
        "name": name,
        "process": scrub_text(picture.process) or None if picture is not None else None,
        "here": False,
        "why": scrub_text(told.why) if told is not None else "it has told nothing yet",
        "revision": scrub_text(picture.revision) or None if picture is not None else None,
    }


def _applier(found: ClusterState) -> dict[str, Json]:
    assert found.applier is not None, "another process applies there"
    applier = found.applier
    return {
        "shard": scrub_text(applier.shard) or None,
        "process": scrub_text(applier.process) or None,
        "told": not applier.why,
    }


def _change(change: ToldChange, key: str) -> dict[str, Json]:
    identity = Identity(change.group, change.kind, change.namespace, change.name)
    return {
        "action": change.action,
        "cluster": change.cluster,
        "resource": resource_part(GVK(change.group, change.version, change.kind), identity),
        key: scrub_text(change.why),
    }


def _by_place(row: JsonObject) -> tuple[str, ...]:
    resource = row["resource"]
    return (row["cluster"], *(resource[key] for key in ("apiVersion", "kind", "namespace", "name")), row["action"])


def _how_bad(row: JsonObject) -> tuple[Any, ...]:
    return RANKS["state"][row["state"]], RANKS["health"][row["health"]]


def _joined(own: Iterable[JsonObject], theirs: Iterable[JsonObject]) -> list[Json]:
    """Problems of both, each once, the worst first; of the documents everybody tells the same."""
    by_severity: dict[str, list[Json]] = {"error": [], "warning": [], "hint": []}
    known: set[tuple[Any, ...]] = set()
    for row in (*own, *theirs):
        key = tuple(row[name] for name in ("severity", "code", "source", "path", "message"))
        if key not in known:
            known.add(key)
            by_severity.setdefault(row["severity"], []).append(row)
    return [row for rows in by_severity.values() for row in rows]
