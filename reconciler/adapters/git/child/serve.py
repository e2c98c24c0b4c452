"""One request on stdin, one answer on stdout, both a line of JSON; what is under way is told in lines before it.

It is a process of its own, because a fetch inside a thread can neither be ended nor be held to a limit of memory, and
because libgit2 knows home folder, certificates and time limits only for a whole process. What it is told comes in on
stdin alone: no secret is in an argument or in the environment. Its parent keeps stdin open for as long as it lives;
when that ends, this process ends at once with all that it has started, so that no orphan holds the clone.

Request: `url`, `rev` (null: the server's default branch), `folder` (the bare clone), `into` (the reference to write),
`user`, `key`, `passphrase`, `token`, `known_hosts` (text), `ca` (files), `proxy`, `home` (an empty folder), `git` and
`ssh` (programs, empty where they are not there).
Told: `{"received": bytes}` when something has come, `{"waiting": pid}` after each second of waiting for the clone.
Answer: `{"commit": …, "reference": …}` or `{"error": …, "code": …}`.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import pygit2

from reconciler.adapters.git.child.clone import is_at, join_packs, locked, opened
from reconciler.adapters.git.child.heads import Head, choose
from reconciler.adapters.git.child.over_libgit2 import OverLibgit2
from reconciler.adapters.git.child.over_openssh import OverOpenSsh, is_openssh
from reconciler.adapters.git.child.refusals import Refused, explain

_TELL_S: Final = 1.0
_STEP_BYTES: Final = 16 * 1024
"""What has to come to count as progress: a server that sends a byte now and then is a silent one."""


class Server(Protocol):
    """A way to ask a server."""

    def heads(self) -> Mapping[str, Head]:
        """The references of the server."""

    def bring(self, specs: Sequence[str]) -> None:
        """Write references of the server, and all that they lead to, into the clone."""


class Progress:
    """Tells the parent what has come: not more often than each second, and not when nothing has."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._told_s = -_TELL_S
        self._told = (-1, -1)

    def __call__(self, received_bytes: int, worked: int) -> None:
        """`worked`: grows as what came is worked on."""
        now_s, moved = time.monotonic(), (received_bytes // _STEP_BYTES, worked)
        if moved != self._told and now_s - self._told_s >= _TELL_S:
            self._told_s, self._told = now_s, moved
            say({"received": received_bytes})


def say(line: Mapping[str, Any]) -> None:
    """Write one line to the parent."""
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


def fetch(request: Mapping[str, Any]) -> dict[str, str]:
    """Ask the server for the revision, and bring it in unless the clone has it.

    Raises:
        Refused: the server, its answer or the revision cannot be used.
        pygit2.GitError, OSError, KeyError, ValueError: the same, in words of a library.
    """
    folder, into = Path(request["folder"]), request["into"]
    with locked(folder, lambda pid: say({"waiting": pid})):
        repository = opened(folder, into)
        server = _server(request, repository, Progress())
        heads = server.heads()
        reference = choose(heads, request["rev"])
        wanted = heads[reference].oid if reference else request["rev"]
        if wanted not in repository or (reference and not is_at(repository, into, wanted)):
            say({"received": 0})
            server.bring(
                [f"+{reference}:{into}"]
                if reference
                else ["+refs/heads/*:refs/fleet/heads/*", "+refs/tags/*:refs/fleet/tags/*"]
            )
            # What another process has written is not seen by who looked before.
            repository = pygit2.Repository(str(folder))
            join_packs(repository, folder)
        if not reference:
            if wanted not in repository:
                raise Refused("revision", f"no branch or tag leads to a commit {wanted}")
            repository.references.create(into, pygit2.Oid(hex=wanted), force=True)
        found = repository.references.get(into)
        if found is None:
            raise Refused("revision", f"{reference} went away while it was fetched")
        return {"commit": str(found.peel(pygit2.Commit).id), "reference": reference}


def _server(request: Mapping[str, Any], repository: Any, tell: Callable[[int, int], None]) -> Server:
    if request["url"].startswith("ssh:") and is_openssh(request):
        return OverOpenSsh(request, tell)
    return OverLibgit2(request, repository, tell)


def _end_with_parent(home: str) -> None:
    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        shutil.rmtree(home, ignore_errors=True)
        # A group of its own is what the parent starts this process in; git and ssh belong to it.
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Read the request, answer it."""
    # A store may hold Secrets: what is kept of it is its owner's alone.
    os.umask(0o077)
    # A crash leaves no memory behind that holds a key. A hardened service may not even ask, and has its own limit.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    request = json.loads(sys.stdin.buffer.readline())
    _end_with_parent(request["home"])
    try:
        answer = fetch(request)
    except (Refused, pygit2.GitError, OSError, KeyError, ValueError) as error:
        answer = explain(error, request)
    say(answer)
    # An ssh whose server keeps it waiting would live on.
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
