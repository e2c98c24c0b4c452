"""Equal changes in many clusters as one entry, and the words for kinds and fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import starmap
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.plan import MISSING, Action, Cause, Change, FieldChange, Hold
from reconciler.api.problem import Source
from reconciler.api.refs import GVK, Identity
from reconciler.incremental import by_key
from reconciler.ownership import OWNER_ANNOTATION
from reconciler.regex import regex
from reconciler.report.difference import compact_json, value_texts
from reconciler.report.power import Holders, Power, gained, registry_of
from reconciler.report.safe_text import visible
from reconciler.report.terminal import DESTRUCTIVE

_VOWELS = frozenset("aeiou")
_PLURAL_ALREADY = frozenset({"Endpoints"})


def counted_kind(kind: str, count: int) -> str:
    """`1 Ingress`, `5,000 Deployments`, `2 NetworkPolicies`."""
    return f"{count:,} {visible(kind if count == 1 else plural(kind))}"


def plural(kind: str) -> str:
    """More than one of a kind, by the rules of English that Kubernetes' own names follow."""
    if kind in _PLURAL_ALREADY:
        return kind
    if kind.endswith("y") and kind[-2:-1].lower() not in _VOWELS:
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith(("s", "x", "ch", "sh")) else f"{kind}s"


def counted(count: int, noun: str) -> str:
    """`1 deletion`, `4,000 deletions`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


_QUOTED_END = regex(r"\['([^']*)'\]$|\[\"([^\"]*)\"\]$")
_LEADING = ("image", "replicas")


def leaf(path: str) -> str:
    """`image` of `spec.containers[name=a.b].image`, `nginx.conf` of `data['nginx.conf']`."""
    if quoted := _QUOTED_END.search(path):
        return quoted[1] or quoted[2] or path
    if not path or path.endswith("]"):
        return path or "whole object"
    return path.rpartition(".")[2]


def by_importance(paths: Iterable[str]) -> list[str]:
    """Return the paths, each once, by importance for readers."""

    def rank(path: str) -> tuple[int, str]:
        name = leaf(path)
        return _LEADING.index(name) if name in _LEADING else len(_LEADING), path

    return sorted(set(paths), key=rank)


OWNER_PATH = f"metadata.annotations['{OWNER_ANNOTATION}']"


class FieldLine(Struct, frozen=True, kw_only=True):
    """One field that changes alike in `clusters`. `times`: when `manager` wrote it, first and last."""

    path: str
    before: Any
    after: Any
    cause: Cause = Cause.DECLARED
    manager: str = ""
    times: tuple[str, str] = ("", "")
    clusters: tuple[str, ...] = ()


class PlanEntry(Struct, frozen=True, kw_only=True):
    """One action on one object, or on several alike, in `clusters`, all for the same reason.

    `identity`: the first object, `identities`: all, sorted. `places`: those in the same clusters, each with its place
    in the store. `sources`: all of these. `count`: the number of changes, each of an object in a cluster.
    """

    action: Action
    gvk: GVK
    identity: Identity
    cause: Cause
    source: Source
    hold: Hold | None
    reason: str
    clusters: tuple[str, ...]
    fields: tuple[FieldLine, ...]
    identities: tuple[Identity, ...]
    places: tuple[tuple[tuple[str, ...], tuple[tuple[Identity, Source], ...]], ...]
    sources: tuple[Source, ...]
    count: int
    powers: Holders
    """Gained powers, but for those that a line of a field shows by itself."""
    gains: Holders
    """All gained powers."""

    @property
    def objects(self) -> int:
        """Return the number of objects."""
        return len(self.identities)

    @property
    def held(self) -> str | None:
        """Return in words why it is not made now; None: it may be made."""
        return self.hold.why if self.hold is not None else None

    @property
    def is_destructive(self) -> bool:
        """Return whether it deletes, replaces or releases something."""
        return self.action in DESTRUCTIVE


_CHART_LABEL = regex(r"metadata\.labels(?:\['(helm\.sh/chart|app\.kubernetes\.io/version)'\]|\.(chart))")
"""Labels that charts put on all of their objects, with their version."""
_CHART_OBJECTS_MIN = 3
_CHART_LABELS_MAX = 4


def without_chart_labels(changes: Iterable[Change]) -> tuple[list[Change], list[str]]:
    """Return changes without the labels of charts that change alike in some objects, and lines about these."""
    changes = list(changes)
    objects_of: dict[tuple[str, str, str], set[Identity]] = {}
    for change in changes:
        for field in change.fields:
            if key := _chart_label(change, field):
                objects_of.setdefault(key, set()).add(change.identity)
    common = {key: objects for key, objects in objects_of.items() if len(objects) >= _CHART_OBJECTS_MIN}
    if not common:
        return changes, []
    rest = []
    for change in changes:
        fields = tuple(field for field in change.fields if _chart_label(change, field) not in common)
        if of_interest(fields) and [field.path for field in fields] != [OWNER_PATH]:
            rest.append(replace(change, fields=fields) if fields != change.fields else change)
    touched: set[Identity] = set().union(*common.values())
    alone = touched - {change.identity for change in rest}
    labels = [f"      {name}  {before} → {after}" for name, before, after in sorted(common)]
    more = [f"      … {len(labels) - _CHART_LABELS_MAX} more labels"] if len(labels) > _CHART_LABELS_MAX else []
    kinds = Counter(identity.kind for identity in alone)
    only = ", ".join(counted_kind(kind, count) for kind, count in sorted(kinds.items()))
    head = f"~ update     labels of charts in {len(touched):,} objects"
    return rest, [f"{head}; nothing else changes in {only}" if only else head, *labels[:_CHART_LABELS_MAX], *more]


def _chart_label(change: Change, field: FieldChange) -> tuple[str, str, str] | None:
    name = _CHART_LABEL.fullmatch(field.path)
    if (
        change.action is not Action.UPDATE
        or change.held is not None
        or name is None
        or MISSING in (field.before, field.after)
    ):
        return None
    return (name[1] or name[2], *value_texts(field.before, field.after, _LABEL_CHARS_MAX))


_LABEL_CHARS_MAX = 100


def grouped(changes: Iterable[Change]) -> tuple[PlanEntry, ...]:
    """Entries of one object each: destructive ones first, then by namespace, kind and name."""
    groups = by_key(
        (
            (one.action, one.gvk, one.identity, one.cause, one.source, one.hold, str(one.reason) if one.reason else ""),
            one,
        )
        for one in changes
    )
    entries = (
        PlanEntry(
            action=action,
            gvk=gvk,
            identity=identity,
            cause=cause,
            source=source,
            hold=hold,
            reason=reason,
            clusters=clusters,
            fields=_field_lines(members),
            identities=(identity,),
            places=((clusters, ((identity, source),)),),
            sources=(source,),
            count=len(clusters),
            powers=_gained(identity, members, in_parts=True),
            gains=_gained(identity, members, in_parts=False),
        )
        for (action, gvk, identity, cause, source, hold, reason), members in groups.items()
        for clusters in [tuple(sorted({member.cluster for member in members}))]
    )
    return tuple(sorted(entries, key=order_of))


def _gained(identity: Identity, changes: Iterable[Change], *, in_parts: bool) -> Holders:
    powers = (gained(change.fields, in_parts=in_parts).union(starmap(Power, change.powers)) for change in changes)
    # Sorted, since registries with equally many images are shown in this order.
    return dict.fromkeys(sorted(frozenset().union(*powers)), (identity,))


def _field_lines(members: list[Change]) -> tuple[FieldLine, ...]:
    lines: dict[tuple[Any, ...], list[tuple[str, FieldChange]]] = {}
    for member in sorted(members, key=lambda change: change.cluster):
        for field in of_interest(member.fields):
            manager = field.owner.manager if field.owner is not None else ""
            key = (field.path, value_key(field.before), value_key(field.after), field.cause, manager)
            lines.setdefault(key, []).append((member.cluster, field))
    rows = []
    for (*_, manager), alike in lines.items():
        field = alike[0][1]
        times = sorted(owner.time for _, one in alike if (owner := one.owner) is not None and owner.time)
        rows.append(
            FieldLine(
                path=field.path,
                before=field.before,
                after=field.after,
                cause=field.cause,
                manager=manager,
                times=(times[0], times[-1]) if times else ("", ""),
                clusters=tuple(cluster for cluster, _ in alike),
            )
        )
    return tuple(sorted(rows, key=lambda line: (line.path, line.clusters)))


def of_interest(fields: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    """Without our own mark where anything else changes: it follows from that (assigned replicas, policy)."""
    others = tuple(field for field in fields if field.path != OWNER_PATH)
    return others or fields


def value_key(value: Any) -> str | None:
    """Return the canonical form of a value; None: it is absent."""
    return None if value is MISSING else compact_json(value)


def order_of(entry: PlanEntry, rare: frozenset[str] = frozenset()) -> tuple[Any, ...]:
    """Return the sort key: losses first, then by number of objects; images from `rare` registries before others."""
    loss = (0, entry.held is not None, DESTRUCTIVE.index(entry.action)) if entry.is_destructive else (1, False, 0)
    identity = entry.identity
    more = -entry.objects if entry.objects > 1 else 0
    subject = (identity.namespace, identity.kind, identity.name, identity.group)
    rest = (entry.action, entry.clusters, entry.cause, entry.source, entry.held or "", entry.reason)
    is_rare = any(power.aspect == "image" and registry_of(power.value) in rare for power in entry.gains)
    return (*loss, not is_rare, more, *subject, *rest)
