"""Bring a branch, tag or commit of a Git server into a bare clone, in a process of its own (`child`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from reconciler.adapters.git.credentials import access_from
from reconciler.adapters.git.url import GitUrl
from reconciler.errors import RevisionNotFound, StoreError

_CHILD: Final = Path(__file__).with_name("fetch_child.py")
_LACKING: Final = frozenset({"revision", "empty"})


class Patience(NamedTuple):
    """How long a fetch may take: as long as something comes, so that a slow link ends some time.

    `silence_s`: how long nothing may come, or next to nothing. `total_s`: what a first clone over a slow link may take.
    """

    silence_s: float = 300.0
    total_s: float = 6 * 3600.0


class Fetched(NamedTuple):
    """What the server has. `reference` is the branch's or tag's full name, empty for a commit id."""

    commit: str
    reference: str


class FetchRequest(Struct, frozen=True, kw_only=True):
    """What to fetch. `rev` None: the server's default branch. `into`: the reference of the clone that is written."""

    url: GitUrl
    rev: str | None
    folder: Path
    into: str


def _tell_nobody(text: str) -> None:
    pass


async def fetch(
    wanted: FetchRequest,
    environ: Mapping[str, str],
    *,
    tell: Callable[[str], None] = _tell_nobody,
    patience: Patience = Patience(),  # noqa: B008 - a value
) -> Fetched:
    """Ask the server, and make the clone hold the commit. The event loop stays free; cancelling ends the process.

    `tell`: called about each second with what is waited for or has come, as the end of a sentence.

    Raises:
        RevisionNotFound: the server has no such branch, tag or commit, or no commit at all.
        StoreError: the server or its answer is unusable; the message says why and holds no credentials.
    """
    access = await asyncio.to_thread(access_from, environ, wanted.url)
    git, ssh = await asyncio.to_thread(_programs, environ)
    with tempfile.TemporaryDirectory(prefix="fleet-git-", ignore_cleanup_errors=True) as home:
        request = {
            "url": wanted.url.address,
            "rev": wanted.rev,
            "folder": str(wanted.folder.absolute()),
            "into": wanted.into,
            "user": access.user,
            "key": access.key,
            "passphrase": access.passphrase,
            "token": access.token,
            "known_hosts": access.known_hosts,
            "ca": access.ca,
            "proxy": access.proxy,
            "home": home,
            "git": git,
            "ssh": ssh,
        }
        answer = await _ask(request, wanted.url, patience, tell)
    if "error" in answer:
        kind = RevisionNotFound if answer["code"] in _LACKING else StoreError
        raise kind(f"{wanted.url}: {answer['error']}")
    return Fetched(answer["commit"], answer["reference"])


def _programs(environ: Mapping[str, str]) -> tuple[str, str]:
    """Where git and ssh are; both empty where one is missing, or ssh would not run since the user has no name."""
    path = environ.get("PATH", os.defpath)
    git, ssh = shutil.which("git", path=path), shutil.which("ssh", path=path)
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return "", ""
    return (str(Path(git).absolute()), str(Path(ssh).absolute())) if git and ssh else ("", "")


async def _ask(request: dict[str, Any], url: GitUrl, patience: Patience, tell: Callable[[str], None]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"LC_ALL": "C.UTF-8", "HOME": request["home"], "TMPDIR": request["home"]},
        cwd=request["home"],
        # Without a terminal nothing can ask a person, and what it starts can be ended together with it.
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    assert process.stdout is not None
    complaint = asyncio.create_task(process.stderr.read())
    try:
        async with asyncio.timeout(patience.total_s):
            # It stays open: its end tells the process that this one is gone.
            process.stdin.write(f"{json.dumps(request)}\n".encode())
            answer = await _answer(process, url, patience.silence_s, tell)
            if answer is None:
                raise StoreError(f"{url}: {_ending(await process.wait(), await complaint, url)}")
    except TimeoutError as error:
        raise StoreError(f"{url}: the fetch did not end within {patience.total_s:.0f} s and was given up") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.stdin.close()
        # To their ends, so that nothing of the process is left open.
        await process.stdout.read()
        await complaint
        await process.wait()
    return answer


async def _answer(
    process: asyncio.subprocess.Process, url: GitUrl, silence_s: float, tell: Callable[[str], None]
) -> dict[str, Any] | None:
    """The answer, once what comes before it was told; None: the process ended without one.

    Raises:
        StoreError: nothing came for too long.
    """
    assert process.stdout is not None
    while True:
        try:
            async with asyncio.timeout(silence_s):
                line = await process.stdout.readline()
        except TimeoutError as error:
            why = (
                f"nothing more came for {silence_s:.0f} s and the fetch was given up; is the server or the link stuck?"
            )
            raise StoreError(f"{url}: {why}") from error
        try:
            told: dict[str, Any] = json.loads(line)
        except ValueError:
            return None
        if "waiting" in told:
            of = f"process {told['waiting']}" if told["waiting"] else "another process"
            tell(f"waiting for {of}, which fetches into the same clone")
        elif "received" in told:
            tell(f"{told['received'] / 1e6:.1f} MB have come")
        else:
            return told


def _ending(code: int, complaint: bytes, url: GitUrl) -> str:
    """Why there was no answer."""
    # A traceback names files and lines of ours; its last line is what is of use, and it holds no request.
    last = "".join(complaint.decode(errors="replace").strip().splitlines()[-1:])[:200]
    if code >= 0:
        return f"the fetch ended without an answer (exit code {code}: {last})"
    # Measured: libssh2 1.11 writes past the end of its memory when it signs with an RSA key.
    advice = "; install git and OpenSSH, which are used then, or take an Ed25519 key" if url.scheme == "ssh" else ""
    return f"the process that fetches crashed (signal {-code}: {last}){advice}"
