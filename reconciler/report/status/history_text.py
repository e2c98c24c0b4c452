"""`history`: the audit trail for machines (version 1) and for people: person, change, time and reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from reconciler.api.content import Json
from reconciler.api.ledger import Event, EventKind
from reconciler.api.plan import MISSING
from reconciler.api.refs import CommitWords, short_revision
from reconciler.report.difference import ABSENT, cut, value_texts
from reconciler.report.safe_text import visible
from reconciler.report.status.remedies import todo_of
from reconciler.report.terminal import Fit, table

Words = Callable[[str], CommitWords | None]
"""The words of a revision, None when it is no commit that is known."""
LastChange = Callable[[str, str], str]
"""The last commit up to a revision that changed a file of the store; the revision where none is known."""


def no_words(revision: str) -> CommitWords | None:
    """Return None: without a repository, no commit is known."""
    return None


def itself(revision: str, path: str) -> str:
    """Return the revision: without a repository, no earlier commit is known."""
    return revision


_OF_THE_STORE: Final = frozenset(
    {EventKind.ADVANCED, EventKind.STORE_BROKEN, EventKind.APPLY, EventKind.REBUILT, EventKind.TAKEN_OVER}
)
"""Events of a revision, whatever the person behind them."""
_NARROW: Final = 100
"""Below this many columns of a terminal, the person or commit stands in the line and not in a column."""
_VALUES_SHOWN: Final = 3
_LINE: Final = (20, 14, 36, 12)
"""Columns of a line that is printed by itself: time, event, subject, cluster."""


def history_document(events: Iterable[Event], words: Words) -> dict[str, Json]:
    """`{version, events: [entry]}` in the given order."""
    return {"version": 1, "events": [history_entry(event, words) for event in events]}


def history_entry(event: Event, words: Words) -> dict[str, Json]:
    """Return the JSON of an event. `who`: person, manager or tick, else the author; `author`: of a commit, or null."""
    data = dict(event.data)
    revision, cause = str(data.pop("revision", "")), data.get("cause")
    resource, _, cluster = event.subject.partition(" @ ")
    if not cluster and resource.startswith("cluster "):
        cluster = resource.removeprefix("cluster ")
    kind, _, named = resource.partition(" ")
    namespace, slash, _ = named.partition("/")
    behind = str(data.pop("who", "") or data.get("tick") or "")
    rests_on_commit = event.kind in _OF_THE_STORE or (not behind and cause != "drift")
    commit = words(revision) if revision and rests_on_commit else None
    todo = todo_of(event.kind, event.subject, event.data)
    return {
        **data,
        **({"todo": todo} if todo else {}),
        "time": event.time,
        "round": event.round or None,
        "event": event.kind,
        "subject": resource,
        "cluster": cluster or None,
        "namespace": namespace if slash and kind[:1].isupper() else None,
        "who": behind or (commit and commit.author),
        "why": data.get("why") or None,
        "revision": revision or None,
        "author": commit and commit.author,
        "commit": commit and commit.subject,
    }


def history_text(document: Mapping[str, Any], *, wide: bool = False, width: int | None = None) -> str:
    """Return the history as a table within `width` columns; `wide`: uncut, with the commits' subjects."""
    is_narrow = width is not None and width < _NARROW and not wide
    columns = ["TIME", "REVISION", "WHO", "EVENT", "SUBJECT", "CLUSTER", "DETAIL", *(["COMMIT"] if wide else [])]
    if is_narrow:
        # Who asked for one object knows which.
        is_one = len({entry["subject"] for entry in document["events"]}) == 1
        columns = [name for name in columns if name not in ("REVISION", "WHO", "SUBJECT" if is_one else "")]
    rows = []
    for entry in document["events"]:
        detail = _with_actor(entry, event_detail(entry)) if is_narrow else event_detail(entry)
        cells = {
            # The year is known to who reads it, and the zone is always UTC.
            "TIME": entry["time"][5:19] if is_narrow else entry["time"],
            "REVISION": short_revision(entry["revision"] or "-"),
            "WHO": entry["who"] or "-",
            "EVENT": entry["event"],
            "SUBJECT": entry["subject"],
            "CLUSTER": entry["cluster"] or "-",
            "DETAIL": detail if wide else cut(detail, 80),
            "COMMIT": entry["commit"] or "-",
        }
        rows.append([cells[name] for name in columns])
    drop = (len(columns) - 2,) if is_narrow else (1,)
    return table(columns, rows, fit=Fit(width=None if wide else width, drop=drop, cuts_last=True))


def history_line(entry: Mapping[str, Any]) -> str:
    """Return one event as a line with fixed columns, for `--follow`."""
    cells = (entry["time"], entry["event"], entry["subject"], entry["cluster"] or "-")
    padded = (visible(str(cell)).ljust(width) for cell, width in zip(cells, _LINE, strict=True))
    return "   ".join((*padded, visible(_with_actor(entry, event_detail(entry))))).rstrip()


def _with_actor(entry: Mapping[str, Any], detail: str) -> str:
    return f"{entry['who']}: {detail}" if entry["who"] else detail


def event_detail(entry: Mapping[str, Any]) -> str:
    """Return the detail of a history entry beside its subject."""
    if entry.get("error"):
        return f"{entry.get('action', '')}: {entry['error']}".removeprefix(": ")
    why = entry.get("why") or ""
    if "after" in entry:
        moved = f"{_placement(entry.get('before', ()))} to {_placement(entry['after'])}"
        return f"{moved}: {why}" if why else moved
    match entry["event"]:
        case EventKind.DRIFT:
            done = entry.get("outcome", "")
            changed = _values(entry) or {"create": "it was gone"}.get(entry.get("action", ""), entry.get("action", ""))
            return "; ".join(part for part in (f"{done}: {changed}", why) if part)
        case EventKind.ADVANCED:
            return entry["commit"] or entry["revision"] or "-"
        case EventKind.APPLY:
            return "; ".join(part for part in (f"{entry.get('changes', 0)} changes", entry["commit"]) if part)
        case EventKind.IN_STEP:
            after = f" after {entry['seconds']} s" if "seconds" in entry else ""
            return f"{entry.get('clusters', 0)} clusters{after}"
        case EventKind.HELD:
            return f"{entry.get('held', 0)} held: {why}"
        case EventKind.SUSPENDED | EventKind.EVICTED | EventKind.FIGHT_DETECTED:
            return f"until {entry['until']}: {why}" if entry.get("until") else why or "-"
    if entry.get("since"):
        return f"since {entry['since']}: {why}"
    # The change comes first: without space for all, the rest is cut.
    values = _values(entry)
    fields = "" if values else ", ".join(entry.get("fields", ()))
    parts = (values, why or entry.get("cause", ""), entry.get("source", ""), fields)
    return "; ".join(part for part in parts if part) or "-"


def _values(entry: Mapping[str, Any]) -> str:
    """`spec.replicas 5 → 3`, the first ones; absent ones are null in history."""
    values, texts = entry.get("values", ()), []
    for value in values[:_VALUES_SHOWN]:
        old, new = (MISSING if value[side] is None else value[side] for side in ("before", "after"))
        pair = ("nothing" if text == ABSENT else text for text in value_texts(old, new, 40))
        texts.append(f"{value['path']} {' → '.join(pair)}")
    more = max(len(values), len(entry.get("fields", ()))) - len(texts)
    return ", ".join([*texts, *([f"and {more} more"] if texts and more > 0 else [])])


def _placement(targets: Sequence[Mapping[str, Any]]) -> str:
    named = [
        target["cluster"] if target["replicas"] is None else f"{target['cluster']}={target['replicas']}"
        for target in targets
    ]
    return ",".join(named) or "nowhere"
