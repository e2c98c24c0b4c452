"""`history`: the audit trail for machines (version 1) and for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reconciler.model.ledger import Event
from reconciler.model.tree import Json
from reconciler.report.plan.lines import short_revision
from reconciler.report.text.table import Fit, table
from reconciler.report.text.values import cut

Words = Callable[[str], tuple[str, str] | None]
"""Author and subject of a revision, None when it is no commit that is known."""


def history_document(events: Iterable[Event], words: Words) -> dict[str, Json]:
    """`{version, events: [{time, round, event, subject, revision, author, commit, …}]}` in the given order."""
    return {"version": 1, "events": [_entry(event, words) for event in events]}


def _entry(event: Event, words: Words) -> dict[str, Json]:
    revision = str(event.data.get("revision", ""))
    author, subject = (words(revision) if revision else None) or (None, None)
    resource, _, cluster = event.subject.partition(" @ ")
    return {
        **{key: value for key, value in event.data.items() if key != "revision"},
        "time": event.time,
        "round": event.round or None,
        "event": event.kind,
        "subject": resource,
        "cluster": cluster or None,
        "revision": revision or None,
        "author": author,
        "commit": subject,
    }


def history_text(document: Mapping[str, Any], *, wide: bool = False, width: int | None = None) -> str:
    """The history document as a table; `wide` adds the commits' subjects and does not cut.

    `width`: columns of the terminal, in which it fits unless `wide`.
    """
    header = ["TIME", "REVISION", "AUTHOR", "EVENT", "SUBJECT", "CLUSTER", "DETAIL"]
    rows = [
        [
            entry["time"],
            short_revision(entry["revision"] or "-"),
            entry["author"] or "-",
            entry["event"],
            entry["subject"],
            entry["cluster"] or "-",
            _detail(entry) if wide else cut(_detail(entry), 80),
            *([entry["commit"] or "-"] if wide else []),
        ]
        for entry in document["events"]
    ]
    fit = Fit(width=None if wide else width, drop=(1, 2), cuts_last=True)
    return table([*header, *(["COMMIT"] if wide else [])], rows, fit=fit)


def _detail(entry: Mapping[str, Any]) -> str:
    if entry.get("error"):
        return f"{entry.get('action', '')}: {entry['error']}".removeprefix(": ")
    if "after" in entry:
        return f"{_placement(entry.get('before', ()))} to {_placement(entry['after'])}"
    parts = [entry.get("why") or entry.get("cause", ""), entry.get("source", "")]
    return "  ".join(part for part in (*parts, ", ".join(entry.get("fields", ()))) if part) or "-"


def _placement(targets: Sequence[Mapping[str, Any]]) -> str:
    named = [
        target["cluster"] if target["replicas"] is None else f"{target['cluster']}={target['replicas']}"
        for target in targets
    ]
    return ",".join(named) or "nowhere"
