"""One writer per journal: a lock beside the file, and a refusal of file systems that cannot keep one.

The kernel holds the lock for the open file, so it ends with its process however that ends: the content of a dead
process's file is a note, not a lock.
"""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import orjson

from reconciler.containment import try_call
from reconciler.errors import JournalError, JournalLocked

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.ceph", "fuse.sshfs", "fuse.glusterfs"}
)
"""File systems without working locks and write-ahead log (shared memory). Source: SQLite, "Write-Ahead Logging"."""


class LockHolder(NamedTuple):
    """The writer of the journal. `pid` 0: a process that left no note."""

    pid: int
    host: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.pid else "another process"


class JournalLock:
    """The lock on a journal, held from construction until `close`."""

    def __init__(self, journal: Path) -> None:
        """Take the lock beside the journal.

        Raises:
            JournalLocked: another process, or another journal of this one, holds it; the message names it.
            JournalError: the lock file cannot be made.
        """
        path = lock_path(journal)
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise JournalError(f"{path}: {exc.strerror}{whose(journal)}") from exc
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            owner = _note(self._descriptor)
            os.close(self._descriptor)
            raise JournalLocked(f"{journal}: {owner} writes this journal; stop it first, or read only") from exc
        note = orjson.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        with suppress(OSError):  # a full disk: the lock holds without its note
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, note, 0)

    def close(self) -> None:
        """Let the next writer in. The file stays: removing it could take a lock from under its next holder."""
        if self._descriptor >= 0:
            with suppress(OSError):  # a disk that became read-only: a note without a lock says nothing
                os.ftruncate(self._descriptor, 0)
            # A child that another thread has just forked has a copy, which keeps the lock until it runs its program.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = -1


def lock_path(journal: Path) -> Path:
    """Return the path of a journal's lock: `journal.db.lock`."""
    return journal.with_name(f"{journal.name}.lock")


def whose(path: Path) -> str:
    """Return which folder or file of a journal (or other file) this user may not use, and the remedy; empty: none."""
    above, *farther = Path(os.path.realpath(path)).parents
    beside = (above / f"{path.name}{end}" for end in ("", "-wal", "-shm", ".lock"))
    folders = [(file, os.X_OK) for file in (*reversed(farther), above)]
    for file, rights in (*folders, *((file, os.R_OK | os.W_OK) for file in (*beside, above))):
        if os.access(file, os.F_OK) and not os.access(file, rights, effective_ids=True):
            owner, user = try_call(file.owner).value or "a user without a name", os.geteuid()
            todo = "fix its mode" if file.stat().st_uid == user else f"work as {owner}, or fix its owner or mode"
            return f"; user {user} may not use {file} of {owner}: {todo}"
    return ""


def holder(journal: Path) -> LockHolder | None:
    """Return the present writer of the journal; None: nobody. Raises JournalError: this user may not ask."""
    try:
        descriptor = os.open(lock_path(journal), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except PermissionError as exc:
        raise JournalError(f"{lock_path(journal)}: {exc.strerror}{whose(journal)}") from exc
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _note(descriptor)
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
    return None


def _note(descriptor: int) -> LockHolder:
    try:
        note = orjson.loads(os.pread(descriptor, 4096, 0))
        return LockHolder(int(note["pid"]), str(note["host"]))
    except (ValueError, KeyError, TypeError):
        return LockHolder(0, "")


def file_system_of(path: Path, mountinfo: str) -> str:
    """The type of the file system that holds the path, from the text of /proc/self/mountinfo; empty: not known."""
    best, kind = "", ""
    for line in mountinfo.splitlines():
        mount, separator, rest = line.partition(" - ")
        fields = mount.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = fields[4].replace("\\040", " ")
        if len(point) >= len(best) and (path == Path(point) or Path(point) in path.parents):
            best, kind = point, rest.split(" ")[0]
    return kind


def refuse_network_file_system(path: Path) -> None:
    """Raise when the journal would be on a network file system."""
    try:
        mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux, or /proc is not mounted: nothing can be said
        return
    kind = file_system_of(path.resolve(), mountinfo)
    if kind in NETWORK_FILE_SYSTEMS:
        raise JournalError(f"{path}: lies on {kind}, where two writers could break it; put the journal on a local disk")
