"""Bring a branch, tag or commit of a Git server into a bare clone. No shell and no git binary takes part."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from reconciler.adapters.git.credentials import access_from
from reconciler.adapters.git.url import GitUrl
from reconciler.errors import RevisionNotFound, StoreError

DEADLINE_S: Final = 600.0
"""A first clone may take this long; a server that falls silent is left after a minute (see the child)."""
_CHILD: Final = Path(__file__).with_name("fetch_child.py")
_LACKING: Final = frozenset({"revision", "empty"})


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


async def fetch(wanted: FetchRequest, environ: Mapping[str, str], deadline_s: float = DEADLINE_S) -> Fetched:
    """Ask the server, and make the clone hold the commit. The event loop stays free; cancelling ends the process.

    Raises:
        RevisionNotFound: the server has no such branch, tag or commit, or no commit at all.
        StoreError: the server or its answer is unusable; the message says why and holds no credentials.
    """
    access = await asyncio.to_thread(access_from, environ, wanted.url)
    with tempfile.TemporaryDirectory(prefix="fleet-git-") as home:
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
        }
        answer = await _ask(request, deadline_s, wanted.url)
    if "error" in answer:
        kind = RevisionNotFound if answer["code"] in _LACKING else StoreError
        raise kind(f"{wanted.url}: {answer['error']}")
    return Fetched(answer["commit"], answer["reference"])


async def _ask(request: dict[str, Any], deadline_s: float, url: GitUrl) -> dict[str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"LC_ALL": "C.UTF-8", "HOME": request["home"], "TMPDIR": request["home"]},
        cwd=request["home"],
    )
    try:
        async with asyncio.timeout(deadline_s):
            output, complaint = await process.communicate(json.dumps(request).encode())
    except TimeoutError as error:
        raise StoreError(f"{url}: the fetch did not end within {deadline_s:.0f} s and was given up") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        answer: dict[str, str] = json.loads(output)
    except ValueError as error:
        raise StoreError(f"{url}: {_ending(process.returncode, complaint, url)}") from error
    return answer


def _ending(code: int | None, complaint: bytes, url: GitUrl) -> str:
    """Why there was no answer."""
    # A traceback names files and lines of ours; its last line is what is of use, and it holds no request.
    last = "".join(complaint.decode(errors="replace").strip().splitlines()[-1:])[:200]
    if code is None or code >= 0:
        return f"the fetch ended without an answer (exit code {code}: {last})"
    # Measured: libssh2 1.11 writes past the end of its memory when it signs with an RSA key.
    advice = "; if the key is RSA, take an Ed25519 one" if url.scheme == "ssh" else ""
    return f"the process that fetches crashed (signal {-code}: {last}){advice}"
