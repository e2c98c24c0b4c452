"""`status` for people: rollouts by stage, clusters, policies, and everything that waits for something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reconciler.api.ledger import EventKind
from reconciler.api.refs import short_revision
from reconciler.api.rollout_progress import Phase
from reconciler.planner import CLUSTER_NOT_READ
from reconciler.report.plan.plan_text import confirm_lines
from reconciler.report.plan.stages import short, stage_name
from reconciler.report.safe_text import joined, visible
from reconciler.report.status.history_text import event_detail
from reconciler.report.status.remedies import todo_of
from reconciler.report.status.state_document import ReplacedFile
from reconciler.report.status.status_document import constraint_words
from reconciler.report.terminal import PLAIN, Fit, Style, aligned, cluster_list

_LOUD: Final = frozenset({"paused", "pinned", "unclear"})
_EXPLAINED: Final = frozenset({Phase.FAILED, Phase.FROZEN, Phase.PINNED, Phase.RUNNING})
"""Phases that are shown with their reason; clusters in other phases are as their stage is."""

Document = Mapping[str, Any]


def status_lines(rollouts: Sequence[Document], style: Style, limit: int | None) -> list[str]:
    """The block of a status document's `rollouts`; empty where there are none. `limit`: of clusters, None: all."""
    lines: list[str] = []
    for rollout in rollouts:
        lines += ([""] if lines else []) + _rollout(rollout, style, limit)
    return lines


def _rollout(rollout: Document, style: Style, limit: int | None) -> list[str]:
    doing = "is done everywhere" if rollout["done"] else "goes over the clusters"
    waiting = f"; {short(rollout['waiting'])} waits until it is" if rollout["waiting"] else ""
    clusters = {entry["name"]: entry for entry in rollout["clusters"]}
    rows = [["STAGE", "CLUSTERS", "AT IT", "STATE"]]
    for stage in rollout["stages"]:
        members = [clusters[name] for name in stage["clusters"] if name in clusters]
        there = sum(entry["revision"] == rollout["release"] for entry in members)
        names = stage_name(stage["clusters"]) or "none"
        rows.append([visible(stage["name"]), names, f"{there} of {len(members)}", visible(stage["why"])])
    head, *body = aligned(rows, fit=Fit(width=style.width, drop=(1,), cuts_last=True))
    lines = [
        style.bold(f"Rollout {visible(rollout['name'])}") + f"  {short(rollout['release'])} {doing}{waiting}",
        f"  {head}",
    ]
    for stage, line in zip(rollout["stages"], body, strict=True):
        lines.append("  " + (style.red(line) if stage["state"] in _LOUD else line))
        if stage["state"] == "paused":
            todo = todo_of(EventKind.ROLLOUT_PAUSED, "", {"revision": rollout["release"]})
            lines.append(style.dim(f"    to do: {todo}"))
        if stage["approval"]:
            lines.append(style.yellow(f"    to approve, add under spec.approvals: {visible(stage['approval'])}"))
            lines.append(style.dim(f"    or run: reconciler approve {visible(stage['name'])}"))
    return lines + _clusters(rollout, style, limit)


def _clusters(rollout: Document, style: Style, limit: int | None) -> list[str]:
    """Those that are not as their stage is, equal ones once."""
    names: dict[tuple[str, str, str], list[str]] = {}
    for entry in rollout["clusters"]:
        if entry["phase"] in _EXPLAINED:
            names.setdefault((entry["phase"], entry["revision"] or "", entry["why"]), []).append(entry["name"])
    lines = []
    for (phase, revision, why), clusters in list(names.items())[:limit]:
        paint = style.dim if phase == Phase.RUNNING else style.red
        lines.append(f"  {paint(phase)} {stage_name(clusters)} at {short(revision)}: {visible(why)}")
    rest = len(names) - len(lines)
    return [*lines, style.dim(f"  and {rest} more; -o wide shows all")] if rest else lines


_SHOWN_MAX = 20
"""Longer lists are cut; `-o wide` shows all of them, and `-o json` always does."""


def status_text(document: Document, style: Style = PLAIN, *, wide: bool = False) -> str:
    """The status document (`report.status_document`) for a terminal."""
    limit = None if wide else _SHOWN_MAX
    away: list[Entry] = [
        (visible(f"{one['name']}: {one['why']}"), {"todo": one["todo"]})
        for one in document["clusters"]
        if one.get("todo")
    ]
    sections = [
        _head(document, style),
        _text_clusters(document["clusters"], document.get("rollouts", ()), style),
        _cut("Not reachable", away, style, limit),
        _policies(document["policies"], style, wide=wide),
        status_lines(document.get("rollouts", ()), style, limit),
        _cut("Held", _changes(document, "held", style), style, limit) + confirm_lines(document["heldDigest"], style),
        *(_cut(title, entries, style, limit) for title, entries in _entries(document, style).items()),
    ]
    lines: list[str] = []
    for section in sections:
        lines += ["", *section] if section and lines else section
    return joined(lines)


def released_text(document: Document) -> str:
    """The objects that were left to themselves, newest first; empty when there are none."""
    facts = (
        (one["subject"], one["time"], short_revision(one["revision"] or "-"), one["cause"] or "-")
        for one in document["released"]
    )
    rows = [[*map(visible, each)] for each in facts]
    return joined(aligned([["OBJECT", "RELEASED", "REVISION", "WHY"], *rows])) if rows else ""


def _head(document: Document, style: Style) -> list[str]:
    commit = document.get("commit")
    words = f"  {commit['subject']} ({commit['author']})" if commit else ""
    number = f"round {document['round']}" if document["round"] else "no complete round yet"
    lines = [
        style.bold(visible(f"Fleet {document['fleet'] or 'without a name'}")),
        visible(f"  revision  {short_revision(document['revision'])}{words}"),
        visible(f"  source    {document['source'] or 'not known'}"),
        visible(f"  seen      {document['time']}  ({number})"),
        visible(f"  writer    {document['writer'] or 'none; no daemon runs'}"),
        *(
            [visible(f"  standby   led by {document['ledBy']}; what follows is of before")]
            if document.get("ledBy")
            else []
        ),
    ]
    if others := document.get("elsewhere"):
        names = ", ".join(others[:_SHOWN_MAX]) + (", …" if len(others) > _SHOWN_MAX else "")
        by = "is applied by another process" if len(others) == 1 else "are applied by other processes"
        lines.append(visible(f"  others    {names} {by}"))
    if document.get("journalError"):
        lines.append("  " + style.red(visible(f"the journal has hardly any room: {document['journalError']}")))
    if document.get("todo"):
        lines.append(style.dim(visible(f"    to do: {document['todo']}")))
    if document["sourceError"]:
        lines.append("  " + style.red(visible(f"the store cannot be read: {document['sourceError']}")))
        lines.append(style.dim(f"    to do: {todo_of(EventKind.SOURCE_FAILED, '', {})}"))
    if not document["complete"]:
        lines.append("  " + style.red("INCOMPLETE: not everything could be read"))
    lines += ["    " + style.red(visible(line)) for line in broken_lines(document.get("broken", ()))]
    return lines


_FILES_SHOWN_MAX: Final = 5
"""Limit of unreadable files in the first lines; the problems name all of them."""
_NAMED_IN_LINES: Final = 3


def broken_lines(broken: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first lines of `status` about unreadable files; none where the store is whole."""
    lines = [
        f"{entry['file']} since {entry['since']}: {entry['why']}; {_effect(entry)}"
        for entry in broken[:_FILES_SHOWN_MAX]
    ]
    if len(broken) > _FILES_SHOWN_MAX:
        lines.append(f"and {len(broken) - _FILES_SHOWN_MAX} more files, see the problems below")
    return (
        [*lines, "until the store is fixed, nothing is taken for deleted because it is gone from it"] if lines else []
    )


def _effect(entry: Mapping[str, Any]) -> str:
    names = ", ".join(entry["resources"][:_NAMED_IN_LINES])
    more = entry["frozen"] - min(entry["frozen"], _NAMED_IN_LINES)
    whom = f"{names} and {more} more" if more else names
    if entry["inForce"] == ReplacedFile.FROZEN:
        reach = ", ".join(entry["reach"]) or "nothing"
        return f"frozen is {reach}" + (f" ({whom})" if whom and whom != reach else "")
    effect = (
        "its last good content stays in force"
        if entry["inForce"] == ReplacedFile.LAST_GOOD
        else "what is placed goes on"
    )
    return f"{effect}, and {whom} {'wait' if entry['frozen'] > 1 else 'waits'}" if whom else effect


_ALWAYS = ("synced", "pending", "held", "failed")
_WHERE_ANY = ("fought", "refused", "frozen", "unknown", "left")
_HEALTHS = ("Progressing", "Degraded", "Missing")
_CALM = frozenset({"synced", "pending", "held"})


def _text_clusters(clusters: Sequence[Document], rollouts: Sequence[Document], style: Style) -> list[str]:
    """Return a row for each cluster. BEHIND: Rollouts whose newest revision is not in force there."""
    if not clusters:
        return [style.yellow("No clusters: the store has no document of kind Cluster.")]
    states = [*_ALWAYS, *(name for name in _WHERE_ANY if any(_count(cluster, "objects", name) for cluster in clusters))]
    healths = [name for name in _HEALTHS if any(_count(cluster, "health", name) for cluster in clusters)]
    behind = {
        (rollout["name"], entry["name"])
        for rollout in rollouts
        for entry in rollout["clusters"]
        if entry["revision"] != (rollout["waiting"] or rollout["release"])
    }
    rows = [
        [
            visible(cluster["name"]),
            "left" if cluster.get("left") else "yes" if cluster["up"] else "no",
            *([cluster_list(sorted(of for of, name in behind if name == cluster["name"])) or "-"] if rollouts else ()),
            *(str(_count(cluster, "objects", name)) for name in states),
            *(str(_count(cluster, "health", name)) for name in healths),
            cluster["lastSuccess"] or "never",
            visible(cluster["why"]),
        ]
        for cluster in clusters
    ]
    column = ["BEHIND"] if rollouts else []
    words = (name.upper() for name in (*states, *healths))
    header = ["CLUSTER", "REACHABLE", *column, *words, "LAST SUCCESS", "WHY NOT"]
    first = 2 + len(column)
    contact = first + len(states) + len(healths)
    # The reason of an unreachable cluster matters more than its last contact. Other omissions are listed below.
    extra = range(first + len(_ALWAYS), contact)
    fit = Fit(width=style.width, drop=(contact, first + 1, 1, *reversed(extra)), cuts_last=True)
    lines = aligned([header, *rows], right=frozenset(range(first, contact)), fit=fit)
    painted = [
        line
        if cluster["up"]
        and not (_count(cluster, "health", "Degraded") or _count(cluster, "health", "Missing"))
        and all(not count or name in _CALM for name, count in cluster["objects"].items())
        else style.red(line)
        for line, cluster in zip(lines[1:], clusters, strict=True)
    ]
    return [style.bold(lines[0]), *painted]


def _count(cluster: Document, key: str, name: str) -> int:
    return int(cluster.get(key, {}).get(name, 0))


def _policies(policies: Sequence[Document], style: Style, *, wide: bool) -> list[str]:
    if not policies:
        return []
    is_any_frozen = any(policy.get("frozen") for policy in policies)
    rows = [
        [
            visible(policy["policy"]),
            str(policy["resources"]),
            "-" if policy.get("replicas") is None else str(policy["replicas"]),
            str(policy["unplaced"]),
            *([str(policy.get("frozen", 0))] if is_any_frozen else ()),
            visible(", ".join(policy["clusters"])) if wide else cluster_list(policy["clusters"]),
        ]
        for policy in policies
    ]
    header = ["POLICY", "RESOURCES", "REPLICAS", "UNPLACED", *(["FROZEN"] if is_any_frozen else ()), "CLUSTERS"]
    fit = Fit(width=style.width, drop=(1, 2), cuts_last=True)
    lines = aligned([header, *rows], right=frozenset({1, 2, 3, 4} if is_any_frozen else {1, 2, 3}), fit=fit)
    painted = [
        style.yellow(line) if policy["unplaced"] or policy.get("frozen") or not policy["resources"] else line
        for line, policy in zip(lines[1:], policies, strict=True)
    ]
    return [style.bold(lines[0]), *painted]


Entry = tuple[str, Document | None]
"""A line, and the trouble whose person and remedy it has."""


def _cut(title: str, entries: Sequence[Entry], style: Style, limit: int | None) -> list[str]:
    """Return the lines under a title; the person and the remedy once for lines in a row that share them."""
    if not entries:
        return []
    rest = len(entries) - limit if limit is not None and len(entries) > limit else 0
    lines = [style.bold(f"{title} ({len(entries)})")]
    listed = entries[:limit] if rest else entries
    for number, (line, trouble) in enumerate(listed):
        lines.append(f"  {line}")
        behind = _behind(trouble)
        if behind and (number + 1 == len(listed) or _behind(listed[number + 1][1]) != behind):
            lines += [style.dim(f"    {one}") for one in behind]
    return [*lines, style.dim(f"  and {rest} more; -o wide shows all")] if rest else lines


def _behind(trouble: Document | None) -> list[str]:
    """`by ann  5f3c9d2a1b7e  web.yaml:3`, and `to do: …`."""
    if trouble is None or not trouble.get("todo"):
        return []
    revision = trouble.get("revision")
    by = (trouble.get("who") and f"by {trouble['who']}", revision and short_revision(revision), trouble.get("source"))
    facts = visible("  ".join(filter(None, by)))
    return [*([facts] if facts else []), visible(f"to do: {trouble['todo']}")]


def _subject(resource: Document) -> str:
    name = f"{resource['namespace']}/{resource['name']}" if resource["namespace"] else resource["name"]
    return f"{resource['kind']} {name}"


def _place(entry: Document) -> str:
    return f"{_subject(entry['resource'])} @ {entry['cluster']}"


def _changes(document: Document, key: str, style: Style) -> list[Entry]:
    """Return held or failed changes, each with its copy's trouble; what waits for a stage has only the trouble."""
    troubles = {_place(entry): entry for entry in document.get("troubles", ())}
    entries = []
    for entry in document.get(key, ()):
        action, why = (style.yellow(entry["action"]), "why") if key == "held" else (visible(entry["action"]), "error")
        entries.append((action + visible(f" {_place(entry)}: {entry[why]}"), troubles.get(_place(entry))))
    staged = (entry for entry in troubles.values() if key == entry["state"] and entry["by"] == "stage")
    return [*entries, *((visible(f"{_place(entry)}: {entry['why']}"), entry) for entry in staged)]


_SHOWN_ELSEWHERE = frozenset({"synced", "pending", "held", "failed", "left"})


def _entries(document: Document, style: Style) -> dict[str, list[Entry]]:
    """Return the lines under each title. "Not as wanted" leaves out held and failed ones, which have their own."""
    troubles = document.get("troubles", ())
    healths = {"Degraded": style.red, "Missing": style.yellow, "Progressing": style.dim}
    return {
        "Failed": _changes(document, "failed", style),
        "Not as wanted": [
            (style.red(f"{entry['sync']} ({entry['state']})") + visible(f" {_place(entry)}: {entry['why']}"), entry)
            for entry in troubles
            if entry["state"] not in _SHOWN_ELSEWHERE
        ],
        "Not healthy": [
            (
                healths[entry["health"]](entry["health"]) + visible(f" {_place(entry)}: {entry['healthWhy']}"),
                entry if entry["sync"] == "Synced" else {"todo": entry.get("healthTodo")},
            )
            for entry in troubles
            if entry["health"] in healths
        ],
        "Changed by others within the hour": [
            (visible(f"{entry['time']}  {entry['subject']} @ {entry['cluster']}: {event_detail(entry)}"), entry)
            for entry in document.get("edits", ())
        ],
        "Left behind": [(visible(_place(entry)), None) for entry in troubles if entry["state"] == "left"],
        "Suspended": [
            (
                visible(f"{entry['scope']} by {entry['who']} until {entry['until'] or 'resumed'}: {entry['reason']}"),
                {"todo": entry.get("todo")},
            )
            for entry in document["suspensions"]
        ],
        "Constraints": [
            (
                visible(f"{entry['resource']} @ {entry['cluster']}: {constraint_words(entry)}"),
                {"todo": entry.get("todo")},
            )
            for entry in document["constraints"]
        ],
        "Claimed by no policy": [(visible(_subject(resource)), None) for resource in document["unclaimed"]],
        "Problems": _problems(document, style),
    }


def _problems(document: Document, style: Style) -> list[Entry]:
    """Return the lines of problems, without those of clusters that are listed as not reachable."""
    away = {one["name"] for one in document["clusters"] if one.get("todo")}
    colours = {"error": style.red, "warning": style.yellow}
    lines: list[Entry] = []
    rows = document["problems"]
    for entry in (row for row in rows if row["code"] != CLUSTER_NOT_READ or row.get("cluster") not in away):
        where = " ".join(filter(None, (entry["source"], entry["path"])))
        words = visible(f"{where}: {entry['message']}" if where else entry["message"])
        line = f"{colours.get(entry['severity'], style.dim)(entry['severity'])} {words} [{entry['code']}]"
        lines.append((line, {**entry, "source": ""}))
    return lines
