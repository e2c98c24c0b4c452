"""Equal changes of different objects as one entry, but for object, file and clusters; and entries by folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec.structs import replace

from reconciler.api.plan import Change, Plan
from reconciler.api.problem import Source
from reconciler.incremental import by_key
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import Masker
from reconciler.report.plan.change_lines import FULL, Detail, entry_lines, headlines
from reconciler.report.plan.groups import (
    FieldLine,
    PlanEntry,
    counted_kind,
    grouped,
    order_of,
    value_key,
    without_chart_labels,
)
from reconciler.report.power import joined_holders, object_name, power_lines, rare_registries
from reconciler.report.safe_text import visible
from reconciler.report.terminal import PLAIN, Style, cluster_list, name_lines

_INDENT = "      "
_NAMES_CHARS_MAX = 110
"""As much as forges show of a line of code without scrolling."""


_FEW = 8


class PlanParts(NamedTuple):
    """A redacted plan as reports show it: its parts sorted, the labels of charts apart, equal changes as one entry."""

    plan: Plan
    losses: list[PlanEntry]
    others: list[PlanEntry]
    labels: list[str]

    @property
    def ready(self) -> list[PlanEntry]:
        """Return the changes without loss that are made now."""
        return [one for one in self.others if one.held is None]

    @property
    def held(self) -> list[PlanEntry]:
        """Return the changes without loss that wait."""
        return [one for one in self.others if one.held is not None]


def redacted(plan: Plan) -> Plan:
    """Return the plan without secret values, with placements, objects not evaluated and problems sorted."""
    plan = Masker().plan(plan)
    placements, unjudged = (tuple(sorted(of, key=attrgetter("identity"))) for of in (plan.placements, plan.unjudged))
    return replace(plan, placements=placements, unjudged=unjudged, problems=tuple(sorted_problems(plan.problems)))


def parts_of(plan: Plan) -> PlanParts:
    """Return what reports show of a plan."""
    plan = redacted(plan)
    changes, labels = without_chart_labels(plan.changes)
    entries = alike(changes)
    losses, others = ([one for one in entries if one.is_destructive is is_loss] for is_loss in (True, False))
    return PlanParts(plan, losses, others, labels)


def alike(changes: Iterable[Change]) -> tuple[PlanEntry, ...]:
    """Return groups, as `order_of` sorts them."""
    groups = by_key((_key(entry), entry) for entry in grouped(changes))
    entries = [*map(_alike, groups.values())]
    rare = rare_registries(one.gains for one in entries)
    return tuple(sorted(entries, key=lambda one: order_of(one, rare)))


def _key(entry: PlanEntry) -> tuple[Any, ...]:
    places = [None if line.clusters == entry.clusters else line.clusters for line in entry.fields]
    fields = tuple(
        (line.path, value_key(line.before), value_key(line.after), line.cause, line.manager, where)
        for line, where in zip(entry.fields, places, strict=True)
    )
    where = entry.clusters if any(place is not None for place in places) else None
    return (entry.action, entry.gvk, entry.cause, entry.held, entry.reason, fields, where)


def _alike(entries: Sequence[PlanEntry]) -> PlanEntry:
    by_clusters = by_key((entry.clusters, place) for entry in entries for _, places in entry.places for place in places)
    clusters = tuple(sorted({cluster for entry in entries for cluster in entry.clusters}))
    sources = tuple(sorted({entry.source for entry in entries}))
    first = entries[0]
    return replace(
        first,
        clusters=clusters,
        source=sources[0] if len(sources) == 1 else Source(common_folder(sources)),
        fields=tuple(_spread(line, first, entries, clusters) for line in first.fields),
        identities=tuple(sorted({entry.identity for entry in entries})),
        places=tuple((where, tuple(sorted(members))) for where, members in sorted(by_clusters.items())),
        sources=sources,
        count=sum(entry.count for entry in entries),
        powers=joined_holders(entry.powers for entry in entries),
        gains=joined_holders(entry.gains for entry in entries),
    )


def _spread(line: FieldLine, first: PlanEntry, entries: Sequence[PlanEntry], clusters: tuple[str, ...]) -> FieldLine:
    """Return the line of the first for all: in all clusters if it is in all of the first's."""
    where = clusters if line.clusters == first.clusters else line.clusters
    place = first.fields.index(line)
    times = [time for entry in entries for time in entry.fields[place].times if time]
    return replace(line, clusters=where, times=(min(times), max(times)) if times else ("", ""))


def common_folder(sources: Iterable[Source]) -> str:
    """The folder that all of them are in, with a slash at its end; empty: the top."""
    split = [source.path.split("/")[:-1] for source in sources]
    shared = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "".join(f"{part}/" for part in shared)


def alike_lines(entry: PlanEntry, style: Style = PLAIN, detail: Detail = FULL) -> list[str]:
    """A headline, a line for each field, and the names of the objects where there are several."""
    powers = [f"{_INDENT}{line}" for line in power_lines(entry.powers, entry.objects)] if detail.fields_max else []
    lines = [*entry_lines(entry, style, detail), *powers]
    if entry.objects == 1:
        return lines
    head = headlines(entry, style, subject=counted_kind(entry.identity.kind, entry.objects))
    names = _names(entry)
    listed = names[: detail.name_lines_max]
    if len(names) > len(listed):
        listed.append(f"… and more: {entry.objects:,} objects in all" if listed else f"… {entry.objects:,} objects")
    return [*head, *lines[len(head) :], *(f"{_INDENT}{line}" for line in listed)]


def _names(entry: PlanEntry) -> list[str]:
    """The names of all objects, with their clusters where they are not all in the same; of few with their places."""
    lines: list[str] = []
    is_few = entry.objects <= _FEW
    for clusters, members in entry.places:
        if is_few:
            names = ["  ".join(filter(None, (object_name(one), visible(str(at))))) for one, at in members]
        else:
            names = name_lines((object_name(one) for one, _ in members), chars_max=_NAMES_CHARS_MAX)
        if len(entry.places) > 1:
            where = f"{cluster_list(clusters)}: "
            names = [where + names[0], *(f"  {line}" for line in names[1:])]
        lines.extend(names)
    return lines


_ENTRIES_MIN = 12
_FOLDERS_MAX = 25
SEVERAL = "several folders"


def by_folder(entries: Sequence[PlanEntry]) -> dict[str, list[PlanEntry]]:
    """Return the entries by folder, `SEVERAL` first; all under an empty name if dividing would not help."""
    paths = {source.path for one in entries for source in one.sources}
    divided: dict[str, list[PlanEntry]] = {}
    if len(entries) >= _ENTRIES_MIN:
        top = common_folder(source for one in entries for source in one.sources)
        for one in entries:
            folders = {_below(source.path, top) for source in one.sources}
            divided.setdefault(folders.pop() if len(folders) == 1 else SEVERAL, []).append(one)
    if not 1 < len(divided) <= _FOLDERS_MAX or len(divided) == len(paths):
        return {"": list(entries)} if entries else {}
    return {name: divided[name] for name in sorted(divided, key=lambda name: (name != SEVERAL, name))}


def _below(path: str, top: str) -> str:
    """Return the folder of a path one step below the common one; the common one for a file directly in it."""
    step, slash, _ = path[len(top) :].partition("/")
    return f"{top}{step}/" if slash else top or "./"
