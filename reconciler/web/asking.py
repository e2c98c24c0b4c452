"""Requests as questions of the views. Unknown parameters are refused with a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from reconciler.adapters.clock import epoch_s, rfc3339
from reconciler.adapters.durations import seconds_in
from reconciler.errors import ConfigurationError
from reconciler.report.views.questions import ROWS_MAX, HistoryQuestion, MatrixQuestion
from reconciler.stages.observations import told_moment

_LIMIT_MAX: Final = 10_000
_NUMBER_MAX: Final = 2**53
_NUMBER: Final = re.compile(r"[0-9]{1,16}")
_NO_NAMESPACE: Final = "-"


class BadQuestion(Exception):
    """A parameter is not understood. `str()` names it and its allowed values."""


def matrix_question(query: Mapping[str, str]) -> MatrixQuestion:
    """Which workloads are asked for. Raises BadQuestion."""
    only(query, "namespace", "kind", "q", "troubles", "offset", "limit")
    return MatrixQuestion(
        namespace=query.get("namespace", ""),
        kind=query.get("kind", ""),
        q=query.get("q", ""),
        troubles=_flag(query, "troubles"),
        offset=offset(query),
        limit=_number(query, "limit", ROWS_MAX, least=1, most=_LIMIT_MAX),
    )


def history_question(query: Mapping[str, str], now: str) -> HistoryQuestion:
    """Return the question about the history. `now`: RFC 3339, the end of spans. Raises BadQuestion."""
    only(query, "resource", "namespace", "cluster", "since", "limit", "after")
    return HistoryQuestion(
        resource=query.get("resource", ""),
        namespace=query.get("namespace", ""),
        cluster=query.get("cluster", ""),
        since=_since(query.get("since", ""), now),
        limit=_number(query, "limit", 50, least=1, most=_LIMIT_MAX),
        after=_number(query, "after", 0, most=_NUMBER_MAX) if "after" in query else None,
    )


def named(parts: Mapping[str, str]) -> tuple[str, str, str]:
    """Kind, namespace (empty: none) and name of the object in a path."""
    namespace = parts["namespace"]
    return parts["kind"], "" if namespace == _NO_NAMESPACE else namespace, parts["name"]


def offset(query: Mapping[str, str]) -> int:
    """The row from which on is asked. Raises BadQuestion."""
    return _number(query, "offset", 0, most=_NUMBER_MAX)


def only(query: Mapping[str, str], *names: str) -> None:
    """Refuse unknown parameters: a wrong name would look like a question that finds everything."""
    unknown = sorted(query.keys() - set(names))
    if unknown:
        known = f"there is {', '.join(names)}" if names else "there is none here"
        raise BadQuestion(f"a parameter is not known here; {known}")


def _since(text: str, now: str) -> str:
    if not text or told_moment(text):
        return text
    try:
        return rfc3339(epoch_s(now) - seconds_in(text))
    except ConfigurationError as error:
        raise BadQuestion("since: it is no time and no span; write 2h, 2d or 2026-11-21T18:00:00Z") from error


def _flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "0")
    if text not in ("0", "1"):
        raise BadQuestion(f"{name}: write 1 or 0")
    return text == "1"


def _number(query: Mapping[str, str], name: str, default: int, *, least: int = 0, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
        raise BadQuestion(f"{name}: it is no number from {least} to {most}")
    return int(text)
