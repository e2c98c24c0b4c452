"""Asks sops about files, beside whoever waits for them: each file once, and keys that are away ever more rarely.

Files that name the same keys share a pause, so that a key service that is away, or hangs, costs one run at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from reconciler.api.content import Opened, Sealed
from reconciler.api.refs import Identity
from reconciler.clock import BackOff
from reconciler.secrets import TAMPERED, UNKNOWN
from reconciler.sops.answer import unfit, values_of
from reconciler.sops.decrypt import NO_KEY, DecryptRefused
from reconciler.sops.program import Program, Ran

_MAC_MISMATCH: Final = 51
_MAC_NOT_FOUND: Final = 52
_NO_DATA_KEY: Final = 128
"""Exit codes of sops. Source: sops 3.13, cmd/sops/codes/codes.go."""
BACK_OFF: Final = BackOff(least_s=10.0, most_s=600.0)
"""Pauses after which unavailable keys are tried again."""
_AT_ONCE: Final = 4
"""So many files of the same keys are asked about at a time."""

Told = Callable[[Collection[Identity]], None]
"""Called from another thread with the objects of files whose result has changed."""
_Keys = tuple[str, ...]


class _Failed(NamedTuple):
    """A file whose key could not be had: why, how often in a row, and when it is tried again."""

    why: str
    failures: int
    until_s: float


class _KeyQueue:
    """Files that name the same keys. `waiting`: those to be asked about. `failed`: nothing came of the last one.

    `running`: those that are asked about, and how often somebody had said by then that things are otherwise.
    """

    def __init__(self) -> None:
        self.waiting: dict[Sealed, None] = {}
        self.running: dict[Sealed, int] = {}
        self.workers = 0
        self.failed: _Failed | None = None


class Attempts:
    """Answers of sops about files that age alone does not decrypt. Every method may be called from any thread."""

    def __init__(self, program: Program, back_off: BackOff = BACK_OFF) -> None:
        """Nothing is started before a file is asked for."""
        self._program, self._back_off = program, back_off
        self._changed = threading.Condition()
        self._lines: dict[_Keys, _KeyQueue] = {}
        self._answers: dict[Sealed, Opened | DecryptRefused] = {}
        self._failed: dict[Sealed, _Failed] = {}
        self._about: dict[Sealed, set[Identity]] = {}
        self._awaited: frozenset[Sealed] = frozenset()
        self._told: Told = lambda _: None
        self._renewals = 0

    def listen(self, told: Told) -> None:
        """Call this whenever something else is known of files than `ask` said."""
        self._told = told

    def again(self) -> None:
        """Somebody says that things are otherwise now: what failed is tried at once when it is asked for next."""
        with self._changed:
            self._renewals += 1
            self._answers = {part: found for part, found in self._answers.items() if isinstance(found, Opened)}
            self._failed.clear()
            for line in self._lines.values():
                line.failed = None
            self._changed.notify_all()

    def keep(self, parts: Collection[Sealed]) -> None:
        """Forget all other files."""
        with self._changed:
            self._answers = {part: found for part, found in self._answers.items() if part in parts}
            self._failed = {part: failed for part, failed in self._failed.items() if part in parts}
            self._about = {part: about for part, about in self._about.items() if part in parts}
            for line in self._lines.values():
                line.waiting = {part: None for part in line.waiting if part in parts}
            self._lines = {keys: line for keys, line in self._lines.items() if line.waiting or line.workers}
            self._changed.notify_all()

    def ask(self, wanted: Mapping[Sealed, Iterable[Identity]], wait_s: float) -> dict[Sealed, Opened | DecryptRefused]:
        """Return the result of each file, after at most so many seconds. Later results are reported."""
        with self._changed:
            for part, identities in wanted.items():
                self._about.setdefault(part, set()).update(identities)
                if part not in self._answers:
                    self._begin(part)
            self._awaited = frozenset(wanted)
            self._changed.wait_for(lambda: all(self._is_settled(part) for part in wanted), wait_s)
            self._awaited = frozenset()
            return {part: self._known(part) for part in wanted}

    def _is_settled(self, part: Sealed) -> bool:
        """Return whether waiting is useless: it is answered, or it or its keys are paused."""
        return part in self._answers or part in self._failed or self._lines[part.recipients].failed is not None

    def _known(self, part: Sealed) -> Opened | DecryptRefused:
        answer = self._answers.get(part)
        if answer is not None:
            return answer
        failed = self._failed.get(part) or self._lines[part.recipients].failed
        why = failed.why if failed is not None else "sops was asked to open it, and has not answered yet"
        return DecryptRefused(NO_KEY, f"{why}; it is encrypted for {', '.join(part.recipients)}")

    def _begin(self, part: Sealed) -> None:
        why = unfit(part.data, self._program.environ, is_json=part.is_json)
        if why:
            self._answers[part] = DecryptRefused(NO_KEY, f"sops is not asked: {why}")
            return
        line = self._lines.setdefault(part.recipients, _KeyQueue())
        if part not in line.running:
            line.waiting[part] = None
        self._staff(line)

    def _staff(self, line: _KeyQueue) -> None:
        """One more worker, where there is something to do for it."""
        if line.waiting and line.workers < (1 if line.failed is not None else _AT_ONCE):
            line.workers += 1
            threading.Thread(target=self._work, args=(line,), name="sops", daemon=True).start()

    def _work(self, line: _KeyQueue) -> None:
        """Ask about the files of a line until there is none."""
        while (part := self._next(line)) is not None:
            answer = _answer(part, self._program.decrypt(part.data, is_json=part.is_json))
            with self._changed:
                is_news = self._take_in(line, part, answer) and part not in self._awaited
                about = frozenset(self._about.get(part, ())) if is_news else frozenset()
                self._changed.notify_all()
            if about:
                self._told(about)

    def _next(self, line: _KeyQueue) -> Sealed | None:
        """The next file that may be asked about, once there is one; None: this worker is not needed."""
        with self._changed:
            while line.waiting:
                due_s = {part: self._failed[part].until_s if part in self._failed else 0.0 for part in line.waiting}
                part = min(due_s, key=due_s.__getitem__)
                until_s = max(due_s[part], line.failed.until_s if line.failed is not None else 0.0)
                rest_s = until_s - time.monotonic()
                if rest_s <= 0:
                    del line.waiting[part]
                    line.running[part] = self._renewals
                    return part
                if line.workers > 1:
                    break
                self._changed.wait(rest_s)
            line.workers -= 1
            return None

    def _take_in(self, line: _KeyQueue, part: Sealed, answer: Opened | DecryptRefused) -> bool:
        """Note what came of a file; whether that is something else than was known."""
        is_old = line.running.pop(part) != self._renewals
        if isinstance(answer, Opened) or answer.code != NO_KEY:
            line.failed = None
            self._failed.pop(part, None)
            self._answers[part] = answer
            self._staff(line)
            return True
        if is_old:
            line.waiting[part] = None
            return False
        before = self._failed.get(part)
        self._failed[part] = self._failure(before, answer.message)
        line.failed = self._failure(line.failed, answer.message)
        # Behind the others: keys that are there open them, whatever is wrong with this file.
        if part in self._about:
            line.waiting[part] = None
        return before is None or before.why != answer.message

    def _failure(self, before: _Failed | None, why: str) -> _Failed:
        failures = 1 + (before.failures if before is not None else 0)
        return _Failed(why, failures, time.monotonic() + self._back_off.pause_s(failures))


def _answer(part: Sealed, ran: Ran) -> Opened | DecryptRefused:
    if ran.code == 0:
        return values_of(part, ran.output)
    if ran.code in (_MAC_MISMATCH, _MAC_NOT_FOUND):
        return DecryptRefused(TAMPERED, "the file was changed without sops; restore the file, or encrypt it anew")
    if ran.code is None:
        return DecryptRefused(UNKNOWN if ran.is_large else NO_KEY, f"sops did not open it: {ran.why}")
    if ran.code < 0:
        return DecryptRefused(NO_KEY, f"sops was ended by signal {-ran.code}")
    if ran.code == _NO_DATA_KEY:
        # It has no value yet that it could repeat.
        return DecryptRefused(NO_KEY, f"sops could not have its key: {ran.said}")
    return DecryptRefused(UNKNOWN, f"sops ended with {ran.code}; `sops decrypt` says why; encrypt it anew")
