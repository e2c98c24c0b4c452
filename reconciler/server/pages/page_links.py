"""Addresses of pages, each part quoted, and times as words. `page.js` has the same rules; a test compares them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from reconciler.report.views.queries import FILTERS, FOLDS, ROWS_MAX, HistoryQuery, MatrixQuery
from reconciler.report.views.view_shapes import ClusterHead, ResourceView, SourcePart

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SUBJECT = re.compile(r"(?P<kind>[A-Z][A-Za-z0-9]*) (?:(?P<namespace>[^/ ]+)/)?(?P<name>[^/ ]+)")


def kind_of(resource: ResourceView) -> str:
    """The kind with its group, as `get` and the addresses of objects take it.

    >>> kind_of(ResourceView(api_version="apps/v1", kind="Deployment", namespace="shop", name="web"))
    'Deployment.apps'
    """
    group, slash, _ = resource.api_version.partition("/")
    return f"{resource.kind}.{group}" if slash else resource.kind


def object_link(resource: ResourceView, cluster: str = "") -> str:
    """The page of an object, at its copy in a cluster."""
    place = f"#{quote(copy_anchor(cluster), safe='', errors='replace')}" if cluster else ""
    return f"{_object_path(kind_of(resource), resource.namespace, resource.name)}{place}"


def live_link(resource: ResourceView, cluster: str) -> str:
    """Return the page of an object with a look at its copy in a cluster."""
    return f"{object_link(resource)}?{urlencode({'cluster': cluster}, errors='replace')}#live"


def commit_link(source: SourcePart, revision: str | None) -> str:
    """Return where the forge shows a commit; empty: not known.

    >>> commit_link(SourcePart(description="", commit_url="https://forge/o/r/commit/{revision}"), "a" * 40)[-6:]
    'aaaaaa'
    """
    is_commit = revision is not None and _COMMIT.fullmatch(revision) is not None
    return source.commit_url.replace("{revision}", revision or "") if source.commit_url and is_commit else ""


def file_link(source: SourcePart, revision: str | None, where: str) -> str:
    """Return where the forge shows a line of the store (`apps/web.yaml:18`); empty: not known."""
    if not source.file_url or revision is None or _COMMIT.fullmatch(revision) is None or not where:
        return ""
    path, colon, line = where.rpartition(":")
    path, line = (path, line) if colon and line.isdecimal() else (where, "1")
    parts = {"{revision}": revision, "{path}": quote(path, errors="replace"), "{line}": line}
    url = source.file_url
    for name, value in parts.items():
        url = url.replace(name, value)
    return url


def copy_anchor(cluster: str) -> str:
    """The place of a copy on the page of its object."""
    return f"in-{cluster}"


def cluster_link(name: str) -> str:
    """The page of a cluster."""
    return f"/clusters/{_part(name)}"


def subject_link(subject: str) -> str:
    """Return the page of an event's subject; empty if it has none.

    >>> subject_link("Deployment shop/web"), subject_link("cluster m1"), subject_link("fleet")
    ('/objects/Deployment/shop/web', '/clusters/m1', '')
    """
    if subject.startswith("cluster "):
        return cluster_link(subject.removeprefix("cluster "))
    match = _SUBJECT.fullmatch(subject)
    return "" if match is None else _object_path(match["kind"], match["namespace"], match["name"])


def history_link(subject: str, **query: str) -> str:
    """Return the history of a subject, as events name it; of all where it is empty.

    >>> history_link("Deployment shop/web", since="2h"), history_link("cluster m1")
    ('/history?resource=Deployment%2Fweb&namespace=shop&since=2h', '/history?cluster=m1')
    """
    named: dict[str, str] = {}
    if subject.startswith("cluster "):
        named = {"cluster": subject.removeprefix("cluster ")}
    elif match := _SUBJECT.fullmatch(subject):
        named = {"resource": f"{match['kind']}/{match['name']}", "namespace": match["namespace"] or ""}
    parts = {name: value for name, value in {**named, **query}.items() if value}
    return f"/history?{urlencode(parts, errors='replace')}" if parts else "/history"


def named_link(words: str) -> str:
    """Return the page of a name as on the command line; empty if it is no object.

    >>> named_link("Deployment/web -n shop"), named_link("Namespace/shop"), named_link("m1")
    ('/objects/Deployment/shop/web', '/objects/Namespace/-/shop', '')
    """
    what, _, namespace = words.partition(" -n ")
    kind, slash, name = what.partition("/")
    return _object_path(kind, namespace, name) if slash else ""


def shown_name(resource: ResourceView) -> str:
    """Return `shop/web`, or the name alone if cluster-scoped."""
    return f"{resource.namespace}/{resource.name}" if resource.namespace else resource.name


def _object_path(kind: str, namespace: str | None, name: str) -> str:
    return f"/objects/{_part(kind)}/{_part(namespace or '-')}/{_part(name)}"


@lru_cache(maxsize=4096)
def _part(text: str) -> str:
    # A part of dots alone would be taken as a way up.
    quoted = quote(text, safe="", errors="replace")
    return quoted.replace(".", "%2E") if set(text) == {"."} else quoted


def is_narrowed(query: MatrixQuery | HistoryQuery) -> bool:
    """Return whether a filter leaves anything out."""
    if isinstance(query, HistoryQuery):
        return bool(query.resource or query.namespace or query.cluster or query.since or query.until)
    return query.troubles or any(getattr(query, name) for name in (*(each.name for each in FILTERS), *FOLDS))


def matrix_query(query: MatrixQuery, offset: int = 0, **other: Any) -> str:
    """The same question from another row on, with `other` fields.

    >>> matrix_query(MatrixQuery(q="a&b", troubles=True), 500)
    'q=a%26b&troubles=1&offset=500'
    >>> matrix_query(MatrixQuery(columns="region"), columns="", region="north")
    'region=north'
    """
    query = replace(query, **other)
    parts = {
        **{each.name: getattr(query, each.name) for each in FILTERS},
        "troubles": "1" if query.troubles else "",
        **{name: getattr(query, name) for name in FOLDS},
        "offset": str(offset or ""),
        "limit": str(query.limit) if query.limit != ROWS_MAX else "",
    }
    return urlencode({name: value for name, value in parts.items() if value}, errors="replace")


def column_link(query: MatrixQuery, column: ClusterHead) -> str:
    """Return where the head of a column leads: to its cluster, or to the clusters that are folded in it."""
    if not column.clusters:
        return cluster_link(column.name)
    unfolded: dict[str, Any] = {query.columns: column.name, "columns": ""}
    return f"/?{matrix_query(query, **unfolded)}"


_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 86400
_FINE_S: Final = 10 * _MINUTE_S
"""Below this, future spans show seconds."""


def seconds_of(text: str) -> float | None:
    """Return an RFC 3339 time as epoch seconds; None if it is no time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


def spoken_span(span_s: float, *, is_fine: bool = False) -> str:
    """A length of time in its two biggest units at most.

    >>> spoken_span(42), spoken_span(64), spoken_span(64, is_fine=True), spoken_span(7500), spoken_span(180000)
    ('42 s', '1 min', '1 min 04 s', '2 h 05 min', '2 d 2 h')
    """
    whole_s = max(0, int(span_s))
    if whole_s < _MINUTE_S:
        return f"{whole_s} s"
    if whole_s < _HOUR_S:
        rest = f" {whole_s % _MINUTE_S:02d} s" if is_fine and whole_s < _FINE_S else ""
        return f"{whole_s // _MINUTE_S} min{rest}"
    if whole_s < _DAY_S:
        return f"{whole_s // _HOUR_S} h {whole_s % _HOUR_S // _MINUTE_S:02d} min"
    return f"{whole_s // _DAY_S} d {whole_s % _DAY_S // _HOUR_S} h"


def ago(text: str, now: str) -> str:
    """Return the span since then; the text itself if either is no time."""
    then_s, now_s = seconds_of(text), seconds_of(now)
    return text if then_s is None or now_s is None else f"{spoken_span(now_s - then_s)} ago"


def lasting(text: str, now: str) -> str:
    """For how long it has been so: `for 12 min`."""
    then_s, now_s = seconds_of(text), seconds_of(now)
    return f"since {text}" if then_s is None or now_s is None else f"for {spoken_span(now_s - then_s)}"


def until(text: str, now: str) -> str:
    """Return the span until then: `in 1 min 04 s`, and `now` from then on."""
    then_s, now_s = seconds_of(text), seconds_of(now)
    if then_s is None or now_s is None:
        return f"at {text}"
    return f"in {spoken_span(then_s - now_s, is_fine=True)}" if then_s - now_s >= 1 else "now"


def clock_time(text: str, now: str) -> str:
    """The hour of a time of today, the day and the hour of another one; in UTC, as everything here.

    >>> clock_time("2026-11-23T10:31:07Z", "2026-11-23T12:00:00Z"), clock_time("2026-11-21T10:31:07Z", "2026-11-23")
    ('10:31:07', '11-21 10:31')
    """
    if seconds_of(text) is None:
        return text
    day, _, hour = text.partition("T")
    return hour[:8] if now.startswith(day) else f"{day[5:]} {hour[:5]}"
