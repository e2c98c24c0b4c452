"""History entries for a page, in the words of the command `history`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from reconciler.model.ledger import EventKind
from reconciler.report.history_text import event_detail
from reconciler.report.plan.lines import short_revision
from reconciler.web.pages.links import subject_link

_TONES: Final = {
    EventKind.FAILED: "bad",
    EventKind.SOURCE_FAILED: "bad",
    EventKind.STORE_BROKEN: "bad",
    EventKind.CLUSTER_AWAY: "bad",
    EventKind.KIND_UNREAD: "bad",
    EventKind.CLUSTER_WENT_BACK: "warn",
    EventKind.OBJECT_REFUSED: "bad",
    EventKind.ROLLOUT_PAUSED: "bad",
    EventKind.APPROVAL_AWAITED: "warn",
    EventKind.PINNED: "warn",
    EventKind.FROZEN: "warn",
    EventKind.FIGHT_DETECTED: "warn",
    EventKind.DRIFT: "warn",
    EventKind.DELETED: "warn",
    EventKind.EVICTED: "warn",
    EventKind.SUSPENDED: "warn",
}


class Change(NamedTuple):
    """One event. `link` is empty if its subject has no page."""

    time: str
    event: str
    tone: str
    subject: str
    link: str
    cluster: str
    who: str
    revision: str
    detail: str


def changes(entries: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Return the rows of the entries, in their order."""
    return tuple(_change(entry) for entry in entries)


def _change(entry: Mapping[str, Any]) -> Change:
    subject, cluster, detail = entry["subject"], entry["cluster"] or "", event_detail(entry)
    return Change(
        time=entry["time"],
        event=entry["event"],
        tone=_TONES.get(entry["event"], "plain"),
        subject=subject,
        link=subject_link(subject),
        cluster="" if subject == f"cluster {cluster}" else cluster,
        who=entry["who"] or "",
        revision=short_revision(entry["revision"]) if entry["revision"] else "",
        detail="" if detail == "-" else detail,
    )
