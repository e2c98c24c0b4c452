"""Asks sops about files, beside whoever waits for them: each file once, and keys that are away ever more rarely.

Files that name the same keys share a pause, so that a key service that is away, or hangs, costs one run at a time.

Opens the encrypted templates of a fleet, each file once as long as neither it nor the identities change.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from reconciler.api.content import DecryptedValues, SopsMetadata
from reconciler.api.fleet import Template
from reconciler.api.problem import Problem, error
from reconciler.api.refs import Identity
from reconciler.clock import BackOff
from reconciler.errors import ConfigurationError
from reconciler.secret_files import credential_file, file_stamp, read_secret_file
from reconciler.secrets import TAMPERED, UNKNOWN
from reconciler.sops.decrypt import NO_KEY, DecryptRefused, decrypted_file
from reconciler.sops.program import Program, ProgramResult, unfit, values_of

_MAC_MISMATCH: Final = 51
_MAC_NOT_FOUND: Final = 52
_NO_DATA_KEY: Final = 128
"""Exit codes of sops. Source: sops 3.13, cmd/sops/codes/codes.go."""
BACK_OFF: Final = BackOff(least_s=10.0, most_s=600.0)
"""Pauses after which unavailable keys are tried again."""
_AT_ONCE: Final = 4
"""So many files of the same keys are asked about at a time."""

Listener = Callable[[Collection[Identity]], None]
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
        self.waiting: dict[SopsMetadata, None] = {}
        self.running: dict[SopsMetadata, int] = {}
        self.workers = 0
        self.failed: _Failed | None = None


class Attempts:
    """Answers of sops about files that age alone does not decrypt. Every method may be called from any thread."""

    def __init__(self, program: Program, back_off: BackOff = BACK_OFF) -> None:
        self._program, self._back_off = program, back_off
        self._changed = threading.Condition()
        self._lines: dict[_Keys, _KeyQueue] = {}
        self._answers: dict[SopsMetadata, DecryptedValues | DecryptRefused] = {}
        self._failed: dict[SopsMetadata, _Failed] = {}
        self._about: dict[SopsMetadata, set[Identity]] = {}
        self._awaited: frozenset[SopsMetadata] = frozenset()
        self._listener: Listener = lambda _: None
        self._renewals = 0

    def listen(self, listener: Listener) -> None:
        """Call this whenever something else is known of files than `ask` said."""
        self._listener = listener

    def again(self) -> None:
        """Somebody says that things are otherwise now: what failed is tried at once when it is asked for next."""
        with self._changed:
            self._renewals += 1
            self._answers = {part: one for part, one in self._answers.items() if isinstance(one, DecryptedValues)}
            self._failed.clear()
            for line in self._lines.values():
                line.failed = None
            self._changed.notify_all()

    def keep(self, parts: Collection[SopsMetadata]) -> None:
        """Forget all other files."""
        with self._changed:
            self._answers = {part: answer for part, answer in self._answers.items() if part in parts}
            self._failed = {part: failed for part, failed in self._failed.items() if part in parts}
            self._about = {part: about for part, about in self._about.items() if part in parts}
            for line in self._lines.values():
                line.waiting = {part: None for part in line.waiting if part in parts}
            self._lines = {keys: line for keys, line in self._lines.items() if line.waiting or line.workers}
            self._changed.notify_all()

    def ask(
        self, wanted: Mapping[SopsMetadata, Iterable[Identity]], wait_s: float
    ) -> dict[SopsMetadata, DecryptedValues | DecryptRefused]:
        """Return the result of each file, after at most so many seconds. Later results are reported."""
        with self._changed:
            for part, identities in wanted.items():
                self._about.setdefault(part, set()).update(identities)
                if part not in self._answers:
                    self._begin(part)
            self._awaited = frozenset(wanted)
            self._changed.wait_for(
                # Until it is answered, or it or its keys are paused.
                lambda: all(
                    part in self._answers or part in self._failed or self._lines[part.recipients].failed is not None
                    for part in wanted
                ),
                wait_s,
            )
            self._awaited = frozenset()
            return {part: self._cached_answer(part) for part in wanted}

    def _cached_answer(self, part: SopsMetadata) -> DecryptedValues | DecryptRefused:
        answer = self._answers.get(part)
        if answer is not None:
            return answer
        failed = self._failed.get(part) or self._lines[part.recipients].failed
        why = failed.why if failed is not None else "sops was asked to open it, and has not answered yet"
        return DecryptRefused(NO_KEY, f"{why}; it is encrypted for {', '.join(part.recipients)}")

    def _begin(self, part: SopsMetadata) -> None:
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
        while (part := self._next(line)) is not None:
            answer = _answer(part, self._program.decrypt(part.data, is_json=part.is_json))
            with self._changed:
                is_news = self._record(line, part, answer) and part not in self._awaited
                about = frozenset(self._about.get(part, ())) if is_news else frozenset()
                self._changed.notify_all()
            if about:
                self._listener(about)

    def _next(self, line: _KeyQueue) -> SopsMetadata | None:
        """The next file that may be asked about, once there is one; None: this worker is not needed."""
        with self._changed:
            while line.waiting:
                due_s = {part: self._failed[part].until_s if part in self._failed else 0.0 for part in line.waiting}
                part = min(due_s, key=due_s.__getitem__)
                rest_s = max(due_s[part], line.failed.until_s if line.failed is not None else 0.0) - time.monotonic()
                if rest_s <= 0:
                    del line.waiting[part]
                    line.running[part] = self._renewals
                    return part
                if line.workers > 1:
                    break
                self._changed.wait(rest_s)
            line.workers -= 1
            return None

    def _record(self, line: _KeyQueue, part: SopsMetadata, answer: DecryptedValues | DecryptRefused) -> bool:
        """Note what came of a file; whether that is something else than was known."""
        is_old = line.running.pop(part) != self._renewals
        if isinstance(answer, DecryptedValues) or answer.code != NO_KEY:
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


def _answer(part: SopsMetadata, ran: ProgramResult) -> DecryptedValues | DecryptRefused:
    if ran.code == 0:
        return values_of(part, ran.output)
    if ran.code in (_MAC_MISMATCH, _MAC_NOT_FOUND):
        return DecryptRefused(TAMPERED, "the file was changed without sops; restore the file, or encrypt it again")
    if ran.code is None:
        return DecryptRefused(UNKNOWN if ran.is_large else NO_KEY, f"sops did not open it: {ran.why}")
    if ran.code < 0:
        return DecryptRefused(NO_KEY, f"sops was ended by signal {-ran.code}")
    if ran.code == _NO_DATA_KEY:
        # It has no value yet that it could repeat.
        return DecryptRefused(NO_KEY, f"sops could not have its key: {ran.complaint}")
    return DecryptRefused(UNKNOWN, f"sops ended with {ran.code}; `sops decrypt` says why; encrypt it again")


KEY_FILE: Final = "sops-key-file"
CREDENTIAL: Final = "sops-age"
"""The name of the file among the credentials of a systemd service."""
_OPTION: Final = "--sops-age-key-file"
_BEGIN: Final = "AGE-SECRET-KEY-1"


class Identities(NamedTuple):
    """Identities of a file, and a digest of its content. `digest` is of secrets: it stays in memory."""

    keys: tuple[Any, ...] = ()
    digest: bytes = b""


def read_identities(file: Path, environ: Mapping[str, str]) -> Identities:
    """The identities of a file as `age-keygen` writes it: one a line, lines with # are comments.

    Raises ConfigurationError: as `read_secret_file`, or a line is no identity. No message quotes it.
    """
    from pyrage import x25519  # noqa: PLC0415 - few stores have anything encrypted

    data = read_secret_file(file, _OPTION, environ)
    keys = []
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            where = f"{_OPTION} {file}:{number}"
            if not text.startswith(_BEGIN):
                raise ConfigurationError(
                    f"{where}: no identity of age; one begins with {_BEGIN}, others are not known here"
                )
            try:
                keys.append(x25519.Identity.from_str(text))
            except Exception:
                raise ConfigurationError(f"{where}: an identity that is cut off, or changed") from None
    if not keys:
        raise ConfigurationError(f"{_OPTION} {file}: it holds no identity; `age-keygen` makes one")
    return Identities(tuple(keys), hashlib.sha256(data).digest())


class Keyring:
    """Decryption on this machine. Decrypted values stay in its memory, for files that are in the fleet."""

    def __init__(
        self,
        named: Path | None = None,
        environ: Mapping[str, str] | None = None,
        attempts: Attempts | None = None,
        wait_s: float = 0.0,
    ) -> None:
        """Use the identities of a file, else those of the credential `sops-age`, else none.

        `attempts`: asks the operator's sops about files for other keys than age; None: nothing is started. `wait_s`:
        the time to wait for that; later results are reported to listeners.
        """
        self._named, self._attempts, self._wait_s = named, attempts, wait_s
        self._environ = os.environ if environ is None else environ
        self._known: dict[SopsMetadata, DecryptedValues | DecryptRefused] = {}
        self._digest = b""
        self._recent: set[SopsMetadata] = set()
        self._reported: Hashable = None
        self.closed: Mapping[Identity, Hashable] = {}
        """Objects without a key, with the stamp of the file of identities that was read last for them."""

    def open(self, templates: Collection[Template], is_all: bool) -> Mapping[Identity, DecryptedValues | Problem]:
        """The values of each encrypted template, or why there are none.

        `is_all`: these are all of the fleet, so that nothing else need be remembered.
        """
        sealed = [(template, part) for template in templates if (part := template.sealed) is not None]
        stamp = file_stamp(self._file)
        try:
            identities, fault = self.identities(), None
        except ConfigurationError as error:
            identities, fault = Identities(), str(error)
        if identities.digest != self._digest:
            self._known.clear()
            self.again()
            self._digest = identities.digest
        parts = dict.fromkeys([part for _, part in sealed])
        known = {part: self._known.get(part) or decrypted_file(part, identities.keys) for part in parts}
        self._known = known if is_all else {**self._known, **known}
        if is_all and self._attempts is not None:
            # Older revisions that are in force are asked for after the newest, and must not be asked about again.
            self._attempts.keep(self._recent | known.keys())
            self._recent.clear()
        self._recent |= known.keys()
        answers = {**known, **self._answered(sealed, known)}
        values: dict[Identity, DecryptedValues | Problem] = {}
        for template, part in sealed:
            one = answers[part]
            values[template.identity] = _problem_of(template, one, fault) if isinstance(one, DecryptRefused) else one
        closed = {one: stamp for one, value in values.items() if isinstance(value, Problem)}
        self.closed = closed if is_all else {**{o: s for o, s in self.closed.items() if o not in values}, **closed}
        return values

    def renewed(self) -> Collection[Identity]:
        """Return, once, the objects without a key for which the file of identities is another one now."""
        now = file_stamp(self._file)
        again = [one for one, stamp in self.closed.items() if stamp != now] if now != self._reported else []
        self._reported = now if again else self._reported
        return again

    def listen(self, listener: Listener) -> None:
        """Call this, from another thread, with objects of files that were answered after `open` returned."""
        if self._attempts is not None:
            self._attempts.listen(listener)

    def again(self) -> None:
        """Try failed files again, at the next `open`."""
        if self._attempts is not None:
            self._attempts.again()

    def _answered(
        self,
        sealed: Iterable[tuple[Template, SopsMetadata]],
        known: Mapping[SopsMetadata, DecryptedValues | DecryptRefused],
    ) -> Mapping[SopsMetadata, DecryptedValues | DecryptRefused]:
        """Return the results of the operator's sops for files that age alone does not decrypt."""
        if self._attempts is None:
            return {}
        wanted: dict[SopsMetadata, set[Identity]] = {}
        for template, part in sealed:
            answer = known[part]
            if isinstance(answer, DecryptRefused) and answer.code == NO_KEY and part.has_others:
                wanted.setdefault(part, set()).add(template.identity)
        return self._attempts.ask(wanted, self._wait_s) if wanted else {}

    @property
    def _file(self) -> Path | None:
        return credential_file(self._named, CREDENTIAL, self._environ)

    def identities(self) -> Identities:
        """Return the identities; none where no file is named. Raises ConfigurationError: it cannot be used."""
        file = self._file
        return read_identities(file, self._environ) if file is not None else Identities()


def _problem_of(template: Template, why: DecryptRefused, fault: str | None) -> Problem:
    code, message = why
    if fault and code == NO_KEY:
        is_for_sops = template.sealed is not None and template.sealed.has_others
        code, message = (code, f"{fault}: {message}") if is_for_sops else (KEY_FILE, fault)
    return error(template.source, "sops", code, f"{template.identity} stays as it is in all clusters: {message}")
