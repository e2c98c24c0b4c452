"""The log on stderr: one line an event, JSON without a terminal, text with one; lasting conditions at begin and end.

Every line passes the scrubber of `report.mask` and is made harmless for a terminal. The keys are stable (`KEYS`).
Conditions are logged from history's events and the state of `status`; equal ones are one line with a count.
Source: design#history.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from reconciler.api.ledger import Event, EventKind
from reconciler.api.refs import listed
from reconciler.incremental import by_key
from reconciler.regex import regex
from reconciler.report.mask import scrub_text
from reconciler.report.safe_text import ascii_json, inert, visible
from reconciler.state import FleetState, Lag, Sync

if TYPE_CHECKING:
    from reconciler.report.status.history_text import Words

log = logging.getLogger("reconciler")

KEYS: Final = (
    *("event", "run", "rev", "author", "cluster", "policy", "obj", "op", "cause", "by", "why", "replicas_max"),
    *("dur_ms", "attempt", "err_code", "error", "todo"),
)
"""Fields of a record beside its message: `log.info("…", extra={"event": "Applied", "cluster": "m1"})`."""
_LONGEST: Final = 8_000
_SHORT: Final = 80
"""Names of clusters and objects recur with each line; longer texts hardly ever do."""
_LEVELS: Final = {"WARNING": "warn", "CRITICAL": "fatal"}


def set_up_logging(form: str | None = None, *, stream: TextIO | None = None, debug: bool = False) -> None:
    """Write the log of this process to stderr. `form` is `json` or `text`; None: text on a terminal, else JSON."""
    stream = stream or sys.stderr
    chosen = form or ("text" if stream.isatty() else "json")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if chosen == "json" else TextLines())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # of libraries, only what is wrong
    logging.getLogger("reconciler").setLevel(logging.DEBUG if debug else logging.INFO)
    logging.captureWarnings(True)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The keys of a record in their order, scrubbed; absent ones are left out."""
    fields: dict[str, Any] = {
        "ts": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        "level": _LEVELS.get(record.levelname, record.levelname.lower()),
        "msg": _scrubbed(record.getMessage()),
    }
    if record.exc_info and record.exc_info[0] is not None:
        # The place is what a report of a fault needs; values of variables are never written.
        fields["msg"] += " | " + _scrubbed("".join(traceback.format_exception(*record.exc_info)).strip())
    for key in KEYS:
        value = getattr(record, key, None)
        if value is not None:
            fields[key] = value if isinstance(value, int | float) else _scrubbed(str(value))
    return fields


def _scrubbed(text: str) -> str:
    return _scrubbed_anew(text) if len(text) > _SHORT else _scrubbed_once(text)


def _scrubbed_anew(text: str) -> str:
    clean = scrub_text(text)
    return clean if len(clean) <= _LONGEST else f"{clean[:_LONGEST]}… ({len(clean) - _LONGEST} more characters)"


_scrubbed_once = lru_cache(maxsize=4096)(_scrubbed_anew)


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record."""
        return ascii_json(json.dumps(fields_of(record), ensure_ascii=False))


class TextLines(logging.Formatter):
    """`10:00:00 info  message key=value`, for eyes."""

    def format(self, record: logging.LogRecord) -> str:
        """The record."""
        fields = fields_of(record)
        moment, level, message = (fields.pop(key) for key in ("ts", "level", "msg"))
        pairs = "".join(f" {key}={_quoted(value)}" for key, value in fields.items())
        return inert(f"{moment[11:19]} {level:5} {visible(message)}{pairs}")


def _quoted(value: Any) -> str:
    text = visible(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text or not text else text


class Transitions:
    """Says a state once when it begins, and not again at each retry."""

    def __init__(self) -> None:
        self._states: dict[Hashable, str] = {}

    def enter(self, subject: Hashable, state: str, level: int, message: str, **extra: Any) -> bool:
        """Log the message when the subject was in another state before; whether it was."""
        if self._states.get(subject) == state:
            return False
        self._states[subject] = state
        log.log(level, message, extra=extra)
        return True

    def fault(self, subject: Hashable, fault: Exception, message: str, **extra: Any) -> None:
        """Log a fault of the program with its trace, when the subject did not fail at that place before."""
        frames = traceback.extract_tb(fault.__traceback__)
        place = f"{type(fault).__name__} {frames[-1].filename}:{frames[-1].lineno}" if frames else type(fault).__name__
        if self._states.get(subject) != place:
            self._states[subject] = place
            log.error(message, exc_info=fault, extra=extra)

    def leave(self, subject: Hashable, message: str, **extra: Any) -> bool:
        """Log the message when the subject was in some state; whether it was."""
        if self._states.pop(subject, None) is None:
            return False
        log.info(message, extra=extra)
        return True


_REASONS_MAX: Final = 5
"""So many reasons of one cluster have a line each; more of them share one."""
_LINES_MAX: Final = 50
"""So many clusters have a line each at one time; more of them share one."""
_NAMED_MAX: Final = 5
_NUMBER: Final = regex(r"[0-9]+")


class _Words(NamedTuple):
    """`many`: with the count in it."""

    event: str
    level: int
    one: str
    many: str


_WORDS: Final[Mapping[EventKind, _Words]] = {
    EventKind.CLUSTER_AWAY: _Words("ClusterUnreachable", logging.WARNING,
        "cluster cannot be read", "%d clusters cannot be read"),
    EventKind.CLUSTER_BACK: _Words("ClusterRecovered", logging.INFO, "cluster can be read", "%d clusters can be read"),
    EventKind.KIND_UNREAD: _Words("KindNotRead", logging.WARNING,
        "a kind cannot be read in a cluster", "%d kinds cannot be read in a cluster"),
    EventKind.KIND_READ: _Words("KindRead", logging.INFO,
        "a kind can be read again in a cluster", "%d kinds can be read again in a cluster"),
    EventKind.OBJECT_REFUSED: _Words("ObjectRefused", logging.WARNING,
        "an object that is not ours is in the way", "%d objects that are not ours are in the way"),
    EventKind.WAY_IS_FREE: _Words("WayIsFree", logging.INFO,
        "nothing is in the way any more", "nothing is in the way of %d objects any more"),
    EventKind.FIGHT_DETECTED: _Words("FightDetected", logging.WARNING,
        "somebody keeps undoing our changes; backing off",
        "somebody keeps undoing our changes to %d objects; backing off"),
    EventKind.FIGHT_OVER: _Words("FightOver", logging.INFO,
        "nobody undoes our changes any more", "nobody undoes our changes to %d objects any more"),
    EventKind.HELD: _Words("ChangeHeld", logging.WARNING,
        "changes wait for a person", "changes in %d clusters wait for a person"),
    EventKind.HOLD_OVER: _Words("HoldOver", logging.INFO,
        "changes are held no longer", "changes in %d clusters are held no longer"),
    EventKind.FROZEN: _Words("Frozen", logging.WARNING,
        "objects are frozen by a broken file", "objects are frozen by %d broken files"),
    EventKind.FREEZE_OVER: _Words("FreezeOver", logging.INFO,
        "nothing is frozen any more", "nothing is frozen any more"),
    EventKind.DEGRADED: _Words("HealthDegraded", logging.WARNING,
        "an object is degraded", "%d objects are degraded"),
    EventKind.RECOVERED: _Words("HealthChanged", logging.INFO,
        "an object is degraded no longer", "%d objects are degraded no longer"),
    EventKind.FAILED: _Words("ChangeFailed", logging.WARNING,
        "a change cannot be computed", "changes of %d objects cannot be computed"),
    EventKind.ROLLOUT_PAUSED: _Words("RolloutPaused", logging.WARNING, "a rollout is paused", "%d rollouts are paused"),
    EventKind.PAUSE_OVER: _Words("RolloutGoesOn", logging.INFO, "a rollout continues", "%d rollouts continue"),
    EventKind.APPROVAL_AWAITED: _Words("ApprovalAwaited", logging.WARNING,
        "a rollout waits for an approval", "%d rollouts wait for an approval"),
    EventKind.IN_STEP: _Words("InStep", logging.INFO, "everything is as the revision says", "everything is as it says"),
}  # fmt: skip


def log_events(events: Iterable[Event], words: Words | None = None, *, goes_on: bool = False) -> None:
    """Log beginnings and ends. `words`: of revisions. `goes_on`: it began before this start of the service."""
    groups = by_key(((event.kind, _cluster(event), _reason(event)), event) for event in events if event.kind in _WORDS)
    groups = _joined(groups, lambda key: (key[0], key[1]), _REASONS_MAX)
    for (kind, *_), joined in _joined(groups, lambda key: (key[0],), _LINES_MAX).items():
        _log_group(_WORDS[EventKind(kind)], joined, words, goes_on=goes_on)


def _joined(groups: Mapping[Any, list[Event]], wider: Any, most: int) -> dict[Any, list[Event]]:
    joined: dict[Any, list[Event]] = {}
    for wide, keys in by_key((wider(key), key) for key in groups).items():
        if len(keys) > most:
            joined[(*wide, "")] = [event for key in keys for event in groups[key]]
        else:
            joined.update({key: groups[key] for key in keys})
    return joined


def _log_group(wording: _Words, events: Sequence[Event], words: Words | None, *, goes_on: bool) -> None:
    from reconciler.report.status.history_text import history_entry, no_words  # noqa: PLC0415 - commands write no history

    entry, data, is_one = history_entry(events[0], words or no_words), events[0].data, len(events) == 1
    message = wording.one if is_one or "%d" not in wording.many else wording.many % len(events)
    is_trouble = wording.level == logging.WARNING
    extra: dict[str, Any] = {
        "event": "GoesOn" if goes_on else wording.event,
        "cluster": _few(_clusters(events)),
        "obj": _few([name for event in events for name in _objects(event)]),
        "rev": data.get("revision"),
        "by": data.get("who") or data.get("by"),
        "author": entry["author"],
        "err_code": data.get("code"),
        "error" if is_trouble else "why": _why(events),
        "todo": entry.get("todo") if is_trouble else None,
    }
    text = f"{message}, as before this start" if goes_on else message
    log.log(wording.level, text, extra={key: value for key, value in extra.items() if value})


def _why(events: Sequence[Event]) -> str:
    data = events[0].data
    count = next((f"{data[key]} objects: " for key in ("held", "frozen") if key in data), "")
    why = f"{count}{data.get('error') or data.get('why', '')}"
    if data.get("since"):
        why = f"since {data['since']}: {why}".removesuffix(": ")
    others = len({_reason(event) for event in events}) - 1
    return f"{why}; and {others} other reasons" if others else why


def _few(names: Sequence[str]) -> str:
    return listed(list(dict.fromkeys(names)), _NAMED_MAX)


def _objects(event: Event) -> Sequence[str]:
    named, is_copy, _ = event.subject.rpartition(" @ ")
    return [named] if is_copy else event.data.get("objects", ())


def _clusters(events: Sequence[Event]) -> Sequence[str]:
    if events[0].kind in (EventKind.FROZEN, EventKind.FREEZE_OVER):
        return [str(name) for name in events[0].data.get("clusters", ())]
    return [name for name in map(_cluster, events) if name]


def _cluster(event: Event) -> str:
    """The cluster of the copy, or that is the subject itself; empty: it is about the whole fleet."""
    _, is_copy, cluster = event.subject.rpartition(" @ ")
    return cluster if is_copy else event.subject.partition("cluster ")[2]


def _reason(event: Event) -> str:
    """Return the key of equal events: numbers and names in a message do not count."""
    code = event.data.get("code")
    return str(code) if code else _NUMBER.sub("#", str(event.data.get("why", "")))


class SyncTransitions:
    """The clusters in which everything is as the store says, and those in which something is not."""

    def __init__(self) -> None:
        self._deviating: dict[str, str] = {}
        """Name to the time since when (RFC 3339)."""

    def log_changes(self, state: FleetState, now: str) -> None:
        """Log the clusters in which that is otherwise than before. One that cannot be judged is as it was."""
        begun: dict[str, list[str]] = {}
        over: dict[str, list[str]] = {}
        for name in self._deviating.keys() - state.clusters.keys():
            del self._deviating[name]
        for name, cluster in state.clusters.items():
            if cluster.is_left or cluster.why_away is not None:
                continue
            if cluster.total == cluster.syncs[Lag.SYNCED]:
                since = self._deviating.pop(name, "")
                if since:
                    over.setdefault(since, []).append(name)
            elif name not in self._deviating and any(
                one.sync.is_evaluated and one.sync.sync is not Sync.SYNCED for one in cluster.notable.values()
            ):
                self._deviating[name] = now
                lags = [f"{count} {lag}" for lag, count in cluster.syncs.items() if count and lag is not Lag.SYNCED]
                begun.setdefault(", ".join(lags), []).append(name)
        _log_sync("ClusterOutOfSync", "objects are not as the store says", begun)
        _log_sync(
            "ClusterInSync",
            "everything is as the store says again",
            {f"since {at}": names for at, names in over.items()},
        )


def _log_sync(event: str, message: str, names_by_why: Mapping[str, Sequence[str]]) -> None:
    """One line for those of equal words; where words differ too much, one for all."""
    if len(names_by_why) > _REASONS_MAX:
        names_by_why = {next(iter(names_by_why)): [name for names in names_by_why.values() for name in names]}
    for why, names in names_by_why.items():
        text = message if len(names) == 1 else f"{message} in {len(names)} clusters"
        log.info(text, extra={"event": event, "cluster": _few(names), "why": why})
