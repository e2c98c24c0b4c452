"""Lines about changes and placements that the terminal and the pull request share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from reconciler.api.plan import Action, Cause, Change, NotEvaluated, PlacementChange
from reconciler.incremental import by_key
from reconciler.report.difference import is_long_text, text_diff, value_texts
from reconciler.report.mask import is_hidden_ciphertext
from reconciler.report.plan.groups import FieldLine, PlanEntry, by_importance, counted
from reconciler.report.safe_text import visible
from reconciler.report.terminal import MARKS, PLAIN, Style, cluster_list

_INDENT = "      "
CLUSTERS_MAX = 20
"""More clusters are grouped by what they have alike."""

_CAUSES = {
    Cause.DECLARED: "",
    Cause.REMOVED: "left the store",
    Cause.DRIFT: "drift",
    Cause.PLACEMENT: "placement moved",
    Cause.OVERRIDE: "override",
    Cause.ADOPTION: "was not ours",
    Cause.OWNERSHIP: "another policy or owner takes over",
    Cause.POLICY: "no policy selects it any more",
    Cause.DEPENDENCY: "no longer needed",
    Cause.COMPLETED: "",
    Cause.SIDE_EFFECT: "set by the API server",
}

RELEASED = "stays in the cluster and becomes UNMANAGED"


class Detail(Struct, frozen=True, kw_only=True):
    """Level of detail. `fields_max` 0: no fields; `name_lines_max`: of equal changes; `is_whole`: diffs stay uncut."""

    fields_max: int = 1000
    value_chars: int = 200
    has_text_diffs: bool = True
    name_lines_max: int = 1_000_000
    is_whole: bool = False


FULL = Detail()
WHOLE = Detail(fields_max=1_000_000_000, value_chars=1_000_000_000, is_whole=True)


def entry_lines(entry: PlanEntry, style: Style = PLAIN, detail: Detail = FULL) -> list[str]:
    """The headline of an entry and a line for each field."""
    return [*headlines(entry, style), *field_lines(entry.fields, entry.cause, entry.clusters, style, detail)]


def headlines(entry: PlanEntry, style: Style = PLAIN, *, subject: str = "") -> list[str]:
    """Return `~ update hz-{a,b} Deployment demo/web apps/web.yaml:18` and lines below. `subject`: of several."""
    action = style.of_action(entry.action, f"{MARKS[entry.action]} {entry.action}".ljust(11))
    cause, place = _CAUSES[entry.cause], visible(str(entry.source))
    notes = style.dim(" · ".join(note for note in (cause, place) if note))
    parts = [action, cluster_list(entry.clusters), style.bold(subject or visible(str(entry.identity))), notes]
    below = [style.red(RELEASED)] if entry.action is Action.RELEASE else []
    below += [style.dim(f"because: {visible(entry.reason)}")] if entry.reason else []
    below += [style.yellow(f"HELD: {visible(entry.held)}")] if entry.held is not None else []
    return ["  ".join(part for part in parts if part), *(f"{_INDENT}{line}" for line in below)]


def field_lines(
    fields: tuple[FieldLine, ...], cause: Cause, clusters: tuple[str, ...], style: Style, detail: Detail
) -> list[str]:
    """A line for each field, long texts as a diff of lines. `cause`, `clusters`: of the entry that has them."""
    chosen = _most_important(fields, detail.fields_max)
    if not chosen:
        return []
    lines: list[str] = []
    width = min(max(len(visible(line.path)) for line in chosen), 60)
    for line in chosen:
        notes = "".join(f"  {note}" for note in _field_notes(line, cause, clusters, style))
        lines.extend(f"{_INDENT}{text}" for text in _field(line, notes, width, style, detail))
    if len(fields) > len(chosen):
        lines.append(f"{_INDENT}… {len(fields) - len(chosen)} more fields")
    return lines


def _most_important(fields: tuple[FieldLine, ...], most: int) -> tuple[FieldLine, ...]:
    """Return the most important lines, in their order; those of all clusters before those of some."""
    if len(fields) <= most:
        return fields
    ranks = {path: rank for rank, path in enumerate(by_importance(line.path for line in fields))}
    clusters = max(len(line.clusters) for line in fields)
    alike = Counter((repr(line.before), repr(line.after)) for line in fields)
    often = max(alike.values())

    def rank(line: FieldLine) -> tuple[bool, bool, int]:
        # One that changes as no other does is what a long list would hide.
        is_like_others = 1 < often == alike[repr(line.before), repr(line.after)]
        return len(line.clusters) < clusters, is_like_others, ranks[line.path]

    ordered = sorted(fields, key=rank)
    chosen = {id(line) for line in ordered[:most]}
    return tuple(line for line in fields if id(line) in chosen)


def _field(line: FieldLine, notes: str, width: int, style: Style, detail: Detail) -> Iterable[str]:
    path = (visible(line.path) or "(whole object)").ljust(width)
    if detail.has_text_diffs and is_long_text(line.before, line.after):
        paints = {"-": style.red, "+": style.green}
        yield f"{path}{notes}"
        for text in text_diff(line.before, line.after, is_whole=detail.is_whole):
            yield f"  {paints.get(text[:1], style.dim)(text)}"
    elif is_hidden_ciphertext(line.before) and is_hidden_ciphertext(line.after):
        yield f"{path}  encrypted value changed{notes}"
    else:
        before, after = value_texts(line.before, line.after, detail.value_chars)
        yield f"{path}  {before} → {after}{notes}"


def _field_notes(line: FieldLine, cause: Cause, clusters: tuple[str, ...], style: Style) -> Iterable[str]:
    if line.manager:
        first, last = line.times
        when = f" at {visible(last)}" if last else ""
        when = f" between {visible(first)} and {visible(last)}" if first != last else when
        yield style.yellow(f"(set by {visible(line.manager)}{when})")
    if line.cause is not cause and _CAUSES[line.cause]:
        yield style.dim(f"[{_CAUSES[line.cause]}]")
    if line.clusters != clusters:
        yield style.dim(f"[only {cluster_list(line.clusters)}]")


def unjudged_lines(one: NotEvaluated, style: Style = PLAIN, detail: Detail = FULL) -> list[str]:
    """Return `? unjudged Deployment demo/web apps/web.yaml:18`, the reason, and its differences."""
    subject = style.bold(visible(str(one.identity)))
    head = [style.yellow("? unjudged".ljust(11)), subject, style.dim(visible(str(one.source)))]
    lines = ["  ".join(part for part in head if part), f"{_INDENT}because {visible(one.why)}"]
    fields = tuple(
        FieldLine(path=field.path, before=field.before, after=field.after)
        for field in (*one.fields, *one.policy_fields)
    )
    notes = [f"{_INDENT}{visible(note)}" for note in one.notes]
    return [*lines, *notes, *field_lines(fields, Cause.DECLARED, (), style, detail)]


def placement_lines(placement: PlacementChange, style: Style = PLAIN, *, has_reasons: bool = True) -> list[str]:
    """`~ place  Deployment demo/web  9 replicas: a 6 → 4, b 3, idc-1 0 → 2` and the reasons."""
    before = {target.cluster: target.replicas for target in placement.before}
    after = {target.cluster: target.replicas for target in placement.after}
    step_by_name = {name: _step(before, after, name) for name in sorted({*before, *after})}
    if len(step_by_name) <= CLUSTERS_MAX:
        steps = ", ".join(f"{mark}{visible(name)}{count}" for name, (mark, count) in step_by_name.items())
    else:
        alike = by_key((step, name) for name, step in step_by_name.items())
        steps = "; ".join(f"{mark}{count} in {cluster_list(names)}".strip() for (mark, count), names in alike.items())
    had, have = (
        sum(known) if (known := [each.replicas for each in targets if each.replicas is not None]) else None
        for targets in (placement.before, placement.after)
    )
    counts = f"{had or 0} → {have or 0} replicas: " if had != have else f"{have} replicas: " if have is not None else ""
    subject = style.bold(visible(str(placement.identity)))
    lines = [f"{style.yellow('~ place'.ljust(11))}  {subject}  {counts}{steps}"]
    if placement.overridden:
        replaced = ", ".join(f"{visible(target.cluster)} {target.replicas}" for target in placement.overridden)
        lines.append(f"{_INDENT}an override makes it {replaced}")
    if has_reasons:
        lines.extend(f"{_INDENT}because: {visible(str(reason))}" for reason in placement.reasons)
    return lines


def _step(before: dict[str, int | None], after: dict[str, int | None], name: str) -> tuple[str, str]:
    """Return the mark before the name of a cluster, and the replicas after it."""
    had, has = before.get(name), after.get(name)
    if (had or 0) != (has or 0):
        return "", f" {had or 0} → {has or 0}"
    mark = "" if name in before and name in after else "+" if name in after else "-"
    return mark, "" if had is None and has is None else f" {has or 0}"


def counts_by_cluster(changes: Iterable[Change]) -> dict[str, dict[str, int]]:
    """Per cluster, sorted: how many changes of each action, how many are held, how many undo drift."""
    counts: dict[str, dict[str, int]] = {}
    for change in changes:
        row = counts.setdefault(change.cluster, dict.fromkeys(SUMMARY_COLUMNS, 0))
        row["held" if change.held is not None else str(change.action)] += 1
        row["drift"] += change.cause is Cause.DRIFT or any(field.cause is Cause.DRIFT for field in change.fields)
    return dict(sorted(counts.items()))


SUMMARY_COLUMNS = (*map(str, Action), "held", "drift")


def totals(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """The sum over clusters."""
    rows = list(counts)
    return {name: sum(row[name] for row in rows) for name in SUMMARY_COLUMNS}


_NOUNS = {"delete": "deletion", "replace": "replacement", "release": "release"}


def spoken_losses(counts: dict[str, int]) -> str:
    """`2 deletions, 1 release`; empty when nothing is deleted, replaced or released."""
    return ", ".join(counted(counts[name], noun) for name, noun in _NOUNS.items() if counts.get(name))


def spoken(counts: dict[str, int]) -> str:
    """Return `2 create, 5 update, 1 held`; empty if none. Drift is not an action, so it is left out."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count and name != "drift")
