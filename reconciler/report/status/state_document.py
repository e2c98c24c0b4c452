"""The picture that a round leaves for commands that only read: what `status` shows. Version 1.

A cluster that could not be read keeps the counts of its last success. Source: design#journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.engine import Round
from reconciler.model.observation import Member, Read
from reconciler.model.plan import Change
from reconciler.model.refs import Identity
from reconciler.model.tree import Json, JsonObject, dig
from reconciler.report.json_parts import resource_part
from reconciler.report.mask import Masker, scrub_text, scrubber, secrets_among
from reconciler.report.plan.json import summary
from reconciler.report.status.fleet_tables import FleetTables

VERSION = 1


class Picture(Struct, frozen=True, kw_only=True):
    """What is shown: a round over the whole fleet, what became of its changes, and the members as they were read.

    `done` and `failed`: (cluster, identity) of changes that were made, and the error of those that were not.
    `source`: how the store was named; `source_error`: why it cannot be read now, empty when it can.
    """

    round: Round
    members: Mapping[str, Member]
    time: str
    number: int = 0
    done: frozenset[tuple[str, Identity]] = frozenset()
    failed: Mapping[tuple[str, Identity], str] = field(default_factory=dict)
    source: str = ""
    source_error: str = ""


def state_document(
    picture: Picture, before: JsonObject | None = None, tables: FleetTables | None = None
) -> dict[str, Json]:
    """The picture as a JSON document, masked.

    `before`: the document of the round before it. `tables`: what it was made with, so that only what differs is made.
    """
    tables, masker = tables or FleetTables(), Masker()
    policies, unclaimed = tables.of(picture.round.decision)
    decision, plan = picture.round.decision, masker.plan(replace(picture.round.plan, problems=()))
    due = tuple(change for change in plan.changes if (change.cluster, change.identity) not in picture.done)
    held = [change for change in due if change.held is not None]
    return {
        "version": VERSION,
        "revision": decision.fleet.revision,
        "source": scrub_text(picture.source) or (before or {}).get("source", ""),
        "sourceError": scrub_text(picture.source_error),
        "time": picture.time,
        "round": picture.number,
        "complete": plan.is_complete,
        "summary": summary(due),
        "clusters": _clusters(picture, due, before),
        "policies": policies,
        "held": [_held(change) for change in sorted(held, key=_order)],
        "heldDigest": plan.held_digest,
        "failed": _failures(picture),
        "problems": tables.problems.of(picture.round.plan.problems, masker),
        "unclaimed": unclaimed,
    }


def with_source_error(document: JsonObject, error: str) -> dict[str, Json]:
    """The document with why the store cannot be read now; empty: it can again."""
    return {**document, "sourceError": scrub_text(error)}


def _order(change: Change) -> tuple[str, Identity, str]:
    return (change.cluster, change.identity, change.action)


def _held(change: Change) -> dict[str, Json]:
    return {
        "action": str(change.action),
        "cluster": change.cluster,
        "resource": resource_part(change.gvk, change.identity),
        "why": change.held,
    }


def _failures(picture: Picture) -> list[Json]:
    changes = picture.round.plan.changes
    # What an API server says may quote what was sent to it.
    scrubbed = scrubber(secrets_among(changes))
    failed = [change for change in changes if (change.cluster, change.identity) in picture.failed]
    return [
        {
            "action": str(change.action),
            "cluster": change.cluster,
            "resource": resource_part(change.gvk, change.identity),
            "error": scrubbed(picture.failed[change.cluster, change.identity]),
        }
        for change in sorted(failed, key=_order)
        if change.held is None
    ]


def _clusters(picture: Picture, due: Iterable[Change], before: JsonObject | None) -> list[Json]:
    by_cluster: dict[str, list[Change]] = {}
    for change in due:
        by_cluster.setdefault(change.cluster, []).append(change)
    known = {entry["name"]: entry for entry in (dig(before, "clusters") or ())}
    return [
        _cluster(picture, name, by_cluster.get(name, []), known.get(name))
        for name in sorted(picture.round.decision.fleet.clusters)
    ]


def _cluster(picture: Picture, name: str, due: list[Change], before: JsonObject | None) -> JsonObject:
    member = picture.members.get(name)
    if isinstance(member, Read):
        objects = _counts(picture, name, due)
        return {"name": name, "up": True, "why": "", "objects": objects, "lastSuccess": picture.time}
    if member is None and before is not None:
        return before  # this round did not ask it
    why = member.why if member is not None else "not asked yet"
    nothing = {"synced": 0, "pending": 0, "held": 0, "failed": 0}
    return {
        "name": name,
        "up": False,
        "why": scrub_text(why),
        "objects": dig(before, "objects") or nothing,
        "lastSuccess": dig(before, "lastSuccess") or "",
    }


def _counts(picture: Picture, name: str, due: list[Change]) -> dict[str, int]:
    """How many objects are as wanted, and what keeps each of the others; an object counts once."""
    failed = {identity for cluster, identity in picture.failed if cluster == name}
    held = {change.identity for change in due if change.held is not None} - failed
    wanted = picture.round.manifests.get(name, {}).keys()
    member = picture.members.get(name)
    # What a cluster has not told yet may be as wanted, or not.
    unknown = member.under_way & wanted if isinstance(member, Read) else frozenset()
    waiting = ({change.identity for change in due} | unknown) - failed - held
    return {
        "synced": len(wanted) - len((failed | held | waiting) & wanted),
        "pending": len(waiting),
        "held": len(held),
        "failed": len(failed),
    }
