"""The log on stderr: one line an event, JSON without a terminal, text with one.

Every line passes the scrubber of `report.mask` and is made harmless for a terminal. The keys are stable: `ts level msg
event run rev cluster policy obj op cause by why replicas_max dur_ms attempt err_code error`.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Hashable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TextIO

from reconciler.report.mask import scrub_text
from reconciler.report.safe import ascii_json, inert, visible

KEYS: Final = (
    *("event", "run", "rev", "cluster", "policy", "obj", "op", "cause", "by", "why", "replicas_max"),
    *("dur_ms", "attempt", "err_code", "error"),
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
    found: dict[str, Any] = {
        "ts": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        "level": _LEVELS.get(record.levelname, record.levelname.lower()),
        "msg": _scrubbed(record.getMessage()),
    }
    if record.exc_info and record.exc_info[0] is not None:
        # The place is what a report of a fault needs; values of variables are never written.
        found["msg"] += " | " + _scrubbed("".join(traceback.format_exception(*record.exc_info)).strip())
    for key in KEYS:
        value = getattr(record, key, None)
        if value is not None:
            found[key] = value if isinstance(value, int | float) else _scrubbed(str(value))
    return found


def _scrubbed(text: str) -> str:
    return _scrubbed_anew(text) if len(text) > _SHORT else _scrubbed_once(text)


@lru_cache(maxsize=4096)
def _scrubbed_once(text: str) -> str:
    return _scrubbed_anew(text)


def _scrubbed_anew(text: str) -> str:
    shown = scrub_text(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}… ({len(shown) - _LONGEST} more characters)"


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record."""
        return ascii_json(json.dumps(fields_of(record), ensure_ascii=False))


class TextLines(logging.Formatter):
    """`10:00:00 info  message key=value`, for eyes."""

    def format(self, record: logging.LogRecord) -> str:
        """The record."""
        found = fields_of(record)
        moment, level, message = (found.pop(key) for key in ("ts", "level", "msg"))
        pairs = "".join(f" {key}={_quoted(value)}" for key, value in found.items())
        return inert(f"{moment[11:19]} {level:5} {visible(message)}{pairs}")


def _quoted(value: Any) -> str:
    text = visible(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text or not text else text


class Transitions:
    """Says a state once when it begins, and not again at each retry."""

    def __init__(self, log: logging.Logger) -> None:
        """Know no state."""
        self._log = log
        self._states: dict[Hashable, str] = {}

    def enter(self, subject: Hashable, state: str, level: int, message: str, **extra: Any) -> bool:
        """Log the message when the subject was in another state before; whether it was."""
        if self._states.get(subject) == state:
            return False
        self._states[subject] = state
        self._log.log(level, message, extra=extra)
        return True

    def fault(self, subject: Hashable, fault: Exception, message: str, **extra: Any) -> None:
        """Log a fault of the program with its trace, when the subject did not fail at that place before."""
        frames = traceback.extract_tb(fault.__traceback__)
        place = f"{type(fault).__name__} {frames[-1].filename}:{frames[-1].lineno}" if frames else type(fault).__name__
        if self._states.get(subject) != place:
            self._states[subject] = place
            self._log.error(message, exc_info=fault, extra=extra)

    def leave(self, subject: Hashable, message: str, **extra: Any) -> bool:
        """Log the message when the subject was in some state; whether it was."""
        if self._states.pop(subject, None) is None:
            return False
        self._log.info(message, extra=extra)
        return True
