"""A plan in one line: losses first, then changes of most objects, held ones, objects not evaluated, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from msgspec import Struct

from reconciler.api.plan import Action, Change, Direction, HeldBy, Hold, Plan, SettingChange
from reconciler.api.problem import Severity
from reconciler.incremental import by_key
from reconciler.lint import is_judge
from reconciler.planner import CLUSTER_IN_NO_POLICY
from reconciler.regex import regex
from reconciler.report.difference import cut, value_texts
from reconciler.report.plan.change_lines import spoken_losses
from reconciler.report.plan.equal_changes import alike
from reconciler.report.plan.groups import (
    OWNER_PATH,
    FieldLine,
    PlanEntry,
    by_importance,
    counted,
    counted_kind,
    leaf,
    without_chart_labels,
)
from reconciler.report.power import gravest, joined_holders
from reconciler.report.safe_text import visible
from reconciler.report.terminal import DESTRUCTIVE, cluster_list

_GROUPS_MAX = 2
_STORIES_MAX = 3
_NAME_CHARS_MAX = 60
_OBJECT_CHARS_MAX = 160
_VALUE_CHARS_MAX = 40
_IMAGE_CHARS_MAX = 300
_WORD = regex(r"[A-Za-z]{1,40}")
_ITEM = regex(r"\[name=[^\]]*\]")
_HIDDEN = "«value"
_UNKNOWN = "incomplete: not all that changes is known"


class Code(str):
    """A piece of the line that comes from the store or a cluster: it is shown as code where there is any."""

    __slots__ = ()


_INCOMPLETE = "incomplete"


def first_line(plan: Plan, *, groups_max: int = _GROUPS_MAX) -> tuple[str, ...]:
    """Return the line of a redacted plan. `groups_max`: number of kinds of change to describe; 0: they are counted."""
    settings = sum(
        not (one.direction in (Direction.LOOSENS, Direction.PROMOTES) or one.held or _is_of_check(one))
        for one in plan.settings
    )
    errors = sum(problem.severity is Severity.ERROR for problem in set(plan.problems))
    parts = [
        *_loosened(plan, is_named=bool(groups_max)),
        *(_stories(plan)[:_STORIES_MAX] if groups_max else []),
        *([[lost]] if (lost := spoken_losses(losses(plan)[HoldGroup.NONE])) else []),
        *_changes(plan, groups_max),
        *([[f"{counted(settings, 'setting')} changed"]] if settings else []),
        *_held(plan),
        *([[f"{len(plan.unjudged):,} not judged"]] if plan.unjudged else []),
        *([[counted(errors, "error")]] if errors else []),
        *([] if plan.is_complete else [[_INCOMPLETE]]),
    ]
    if parts == [[_INCOMPLETE]]:
        parts = [[_UNKNOWN]]
    words: list[str] = []
    for part in parts or [["no changes"]]:
        words.extend(["; ", *part] if words else part)
    return tuple(words)


def plain(words: Iterable[str]) -> str:
    """The line as text."""
    return "".join(map(visible, words))


def _stories(plan: Plan) -> list[list[str]]:
    """Return in words what counts would not say: promotions, policies removed, replacements, new namespaces."""
    rows = [one for one in plan.settings if one.direction is Direction.PROMOTES and one.path]
    promotions = Counter(one.document.partition(":")[0] for one in rows)
    stories = [[_names([document]), f": {counted(count, 'field')}"] for document, count in sorted(promotions.items())]
    lost = by_key((change.policy_lost, change) for change in plan.changes if change.policy_lost)
    for words, changes in sorted(lost.items()):
        held = " (held)" if all(change.held is not None for change in changes) else ""
        leaving = _names(one.identity.name for one in changes)
        stories.append([Code(words), ": ", leaving, " leave ", _names(one.cluster for one in changes), held])
    stories += [*_replaced(plan), *_renamed(plan)]
    new = [problem.cluster for problem in plan.problems if problem.code == CLUSTER_IN_NO_POLICY]
    return [*stories, ["new cluster ", _names(new), " in no policy"]] if new else stories


def _names(names: Iterable[str]) -> str:
    return Code(cut(cluster_list(list(names)), _NAME_CHARS_MAX))


def _code_unless_word(text: str, name: str) -> str:
    return text if _WORD.fullmatch(name) else Code(text)


def _replaced(plan: Plan) -> Iterator[list[str]]:
    """`3 Deployments replaced: selector of shop/web`."""
    replaced: dict[tuple[str, str], list[Change]] = {}
    for change in plan.changes:
        if change.action is Action.REPLACE and change.fields:
            path = min((field.path for field in change.fields), key=lambda path: (path.count("."), path))
            replaced.setdefault((change.identity.kind, leaf(path)), []).append(change)
    for (kind, name), changes in sorted(replaced.items()):
        where = sorted({f"{one.identity.namespace}/{one.identity.name}".removeprefix("/") for one in changes})
        done = "replaced" if any(one.held is None for one in changes) else "to be replaced"
        yield [_code_unless_word(cut(counted_kind(kind, len(changes)), _NAME_CHARS_MAX), kind),
               f" {done}: ", _code_unless_word(cut(name, _NAME_CHARS_MAX), name), " of ",
               _names(where)]  # fmt: skip


def _renamed(plan: Plan) -> Iterator[list[str]]:
    """`namespace shop becomes store: 9 objects are made again`."""
    come = by_key(
        ((change.cluster, *_nameless(change)), change)
        for change in plan.changes
        if change.action is Action.CREATE and change.identity.namespace
    )
    moves = Counter(
        (change.identity.namespace, new.identity.namespace)
        for change in plan.changes
        if change.action in (Action.DELETE, Action.RELEASE)
        for new in come.get((change.cluster, *_nameless(change)), ())
    )
    for (old, new), count in moves.most_common(1):
        yield ["namespace ", _names([old]), " becomes ", _names([new]),
               f": {counted(count, 'object')} {'is' if count == 1 else 'are'} made again"]  # fmt: skip


def _nameless(change: Change) -> tuple[str, ...]:
    return change.identity.group, change.identity.kind, change.identity.name


class HoldGroup(Enum):
    """The hold of a change: none, for a person, or for a time."""

    NONE = ""
    GUARD = "held by the guard"
    WAITING = "held for now"


def group_of(hold: Hold | None) -> HoldGroup:
    """Return the group of changes with this hold."""
    if hold is None:
        return HoldGroup.NONE
    return HoldGroup.GUARD if hold.by is HeldBy.GUARD else HoldGroup.WAITING


def losses(plan: Plan) -> dict[HoldGroup, dict[str, int]]:
    """Return the number of deletions, replacements and releases, by hold."""
    counts = {hold: {str(action): 0 for action in DESTRUCTIVE} for hold in HoldGroup}
    for change in plan.changes:
        if change.action in DESTRUCTIVE:
            counts[group_of(change.hold)][str(change.action)] += 1
    return counts


def loss_words(plan: Plan) -> list[str]:
    """Return `Contains 2 deletions.`, what the guard holds, and what is held for now, as far as there is any."""
    words = {HoldGroup.NONE: "Contains", HoldGroup.GUARD: "The guard holds", HoldGroup.WAITING: "Held for now:"}
    return [f"{words[hold]} {spoken_losses(counts)}." for hold, counts in losses(plan).items() if any(counts.values())]


def _loosened(plan: Plan, *, is_named: bool) -> list[list[str]]:
    """Return the settings that come first: those of the check itself, and those that loosen; `is_named`: by name."""
    judges = [change.document for change in plan.settings if _is_of_check(change)]
    held = [change for change in plan.settings if change.held]
    loose = [change for change in plan.settings if change.direction is Direction.LOOSENS and not change.held]
    stories = []
    if judges:
        more = f" and {len(judges) - 1:,} more" if len(judges) > 1 else ""
        first = Code(visible(judges[0])[:_NAME_CHARS_MAX])
        stories.append(["the check of pull requests itself changes: ", first, *([more] if more else [])])
    kinds = (
        (f"{counted(len(held), 'loosened setting')} held", held),
        (f"{counted(len(loose), 'setting')} loosened", loose),
    )
    return [*stories, *([words, *_loosest(changes, is_named)] for words, changes in kinds if changes)]


def _loosest(changes: list[SettingChange], is_named: bool) -> list[str]:
    """`: Fleet shop spec.guards.maxDeletes 5 → 100000` of one, or the first with the number of the others."""
    first = changes[0]
    if not is_named:
        return []
    words = [": ", Code(cut(f"{first.document} {first.path}".strip(), _IMAGE_CHARS_MAX))]
    if len(changes) > 1:
        return [*words, f" and {len(changes) - 1:,} more"]
    before, after = value_texts(first.before, first.after, _VALUE_CHARS_MAX) if first.path else ("", "")
    return [*words, " ", Code(before), " → ", Code(after)] if after else words


def _is_of_check(change: SettingChange) -> bool:
    return not change.path and is_judge(change.document)


def _held(plan: Plan) -> list[list[str]]:
    lost = losses(plan)
    others = Counter(group_of(change.hold) for change in plan.changes if change.action not in DESTRUCTIVE)
    parts = []
    for hold in (HoldGroup.GUARD, HoldGroup.WAITING):
        words = [spoken_losses(lost[hold]), counted(others[hold], "change") if others[hold] else ""]
        if any(words):
            parts.append([f"{', '.join(part for part in words if part)} {hold.value}"])
    return parts


class _Group(Struct):
    """Changes with the same action, kind and names of fields."""

    action: Action
    kind: str
    members: list[PlanEntry]

    @property
    def count(self) -> int:
        return sum(member.count for member in self.members)

    @property
    def objects(self) -> int:
        return len({identity for member in self.members for identity in member.identities})

    @property
    def gravest(self) -> str:
        return gravest(joined_holders(member.gains for member in self.members), self.objects)


def _changes(plan: Plan, groups_max: int) -> list[list[str]]:
    changes, labels = without_chart_labels(plan.changes)
    ready = alike(change for change in changes if change.held is None and change.action not in DESTRUCTIVE)
    groups: dict[tuple[Any, ...], _Group] = {}
    for member in ready:
        shapes = tuple(sorted({_shape(line.path) for line in member.fields}))
        key = (member.action, member.gvk.group, member.gvk.kind, shapes)
        groups.setdefault(key, _Group(member.action, member.gvk.kind, [])).members.append(member)
    ordered = sorted(groups.values(), key=lambda group: (not group.gravest, -group.count))
    chosen = ordered[:groups_max]
    parts = [_described(group) for group in chosen]
    if rest := sum(group.count for group in ordered[groups_max:]):
        parts.append([f"{counted(rest, 'more change' if chosen else 'change')}"])
    charts = [chart for line in labels if (chart := line.strip().partition("helm.sh/chart  ")[2])]
    named = [": ", Code(cut(", ".join(charts), _NAME_CHARS_MAX))] if charts else []
    return [*parts, *([["labels of charts", *named]] if labels else [])]


def _described(group: _Group) -> list[str]:
    if group.objects == 1:
        subject: list[str] = [Code(cut(str(group.members[0].identity), _OBJECT_CHARS_MAX))]
    elif _WORD.fullmatch(group.kind):
        subject = [counted_kind(group.kind, group.objects)]
    else:
        subject = [f"{group.objects:,} of ", Code(cut(group.kind, _NAME_CHARS_MAX))]
    done = {Action.CREATE: " created", Action.ADOPT: " adopted"}.get(group.action, "")
    clusters = {cluster for member in group.members for cluster in member.clusters}
    where = Code(cut(min(clusters), _NAME_CHARS_MAX)) if len(clusters) == 1 else f"{len(clusters):,} clusters"
    image = group.gravest
    return [
        *subject,
        f"{done} in ",
        where,
        *([] if done else _changed_fields(group)),
        *([" (", Code(cut(image, _IMAGE_CHARS_MAX)), ")"] if image else []),
    ]


def _changed_fields(group: _Group) -> list[str]:
    lines = group.members[0].fields
    if not lines:
        return []
    paths = by_importance(line.path for line in lines)
    if paths[0] == OWNER_PATH:
        return [": the record of its policy"]
    name = leaf(paths[0])
    shape = _shape(paths[0])
    word = "scaled" if name == "replicas" else name
    words = [": ", _code_unless_word(cut(word, _NAME_CHARS_MAX), name)]
    words += _values([line for one in group.members for line in one.fields if _shape(line.path) == shape])
    return [*words, f" and {counted(len(paths) - 1, 'more field')}"] if len(paths) > 1 else words


def _shape(path: str) -> str:
    """Return the path without names of items: containers of many workloads have one each."""
    return _ITEM.sub("[name]", path)


def _values(lines: list[FieldLine]) -> list[str]:
    """Return before and after, if equal everywhere, short and not hidden; of images, what their tags differ in."""
    pairs = {value_texts(line.before, line.after, _IMAGE_CHARS_MAX) for line in lines}
    if any(_HIDDEN in value for pair in pairs for value in pair):
        return []
    tags = {_tags(*pair) if leaf(lines[0].path) == "image" else None for pair in pairs}
    shared = tags if len(pairs) > 1 else {tag or pair for tag, pair in zip(tags, pairs, strict=True)}
    if len(shared) > 1 or None in shared:
        return []
    ((before, after),) = (pair for pair in shared if pair is not None)
    if max(len(before), len(after)) > _VALUE_CHARS_MAX:
        return []
    return [" ", Code(before), " → ", Code(after)]


def _tags(before: str, after: str) -> tuple[str, str] | None:
    """`nginx:1.27` and `1.28` of two images that differ in their tags alone; None: they are none."""
    (name, colon, tag), (after_name, _, after_tag) = before.rpartition(":"), after.rpartition(":")
    if not colon or name != after_name or "/" in tag + after_tag:
        return None
    return f"{name.rpartition('/')[2]}:{tag}", after_tag
