"""Artifacts of a registry as commits of a bare clone of ours, so that they have what commits have.

The artifact of a digest is a commit that a reference of its name holds. The one that a tag names next comes after it:
a registry tells nothing of what came before.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pygit2
from pygit2.enums import FileMode

from reconciler.api.refs import DIGEST, listed, short_revision
from reconciler.errors import RevisionNotFound, StoreError
from reconciler.store.git.repository import ARTIFACTS, is_ancestor, using_repository
from reconciler.store.git.url import GitUrl
from reconciler.store.oci.artifact import Artifact, pull
from reconciler.store.oci.registry_client import registry_access

_NEWEST: Final = "refs/fleet/newest"
_SIGNED: Final = "refs/fleet/signed"
TOTAL_S: Final = 1800.0
_CHECK_S: Final = 0.1
_LISTED_MAX: Final = 3


def bring_artifact(
    folder: Path,
    url: GitUrl,
    rev: str | None,
    environ: Mapping[str, str],
    tell: Callable[[str], None],
    stop: threading.Event,
) -> str:
    """Make a clone hold the artifact of a tag or digest, and return its digest (64 hex digits).

    `rev` None: that of the URL, whose artifacts come one after the other.

    Raises:
        RevisionNotFound: the registry has none of that name.
        StoreError: the registry, the artifact or its signature is unusable, or `stop` was set.
    """
    access = registry_access(environ)
    # Another key is another answer to what is signed.
    signed = f"{_SIGNED}/{hashlib.sha256(access.keys).hexdigest()[:16]}/" if access.keys else ""
    with using_repository(folder) as repository:

        def is_known(digest: str) -> bool:
            names = (ARTIFACTS + digest, signed + digest) if signed else (ARTIFACTS + digest,)
            return all(name in repository.references for name in names)

        wanted = _whole_digest(repository, rev) if rev and rev.startswith(DIGEST) else rev or url.rev
        digest, artifact = asyncio.run(_until(stop, pull(url, wanted, access, is_known, tell)))
        commit = _commit(repository, url, digest, artifact, is_next=rev is None)
        if signed:
            repository.references.create(signed + digest, commit, force=True)
    return digest


def _whole_digest(repository: Any, short: str) -> str:
    """Return the digest of an artifact of the clone that begins so; a registry cannot be asked for it."""
    named = ARTIFACTS + short.removeprefix(DIGEST)
    known: list[str] = sorted(name.removeprefix(ARTIFACTS) for name in repository.references if name.startswith(named))
    if len(known) == 1:
        return known[0]
    if known:
        names = listed([DIGEST + each for each in known], _LISTED_MAX)
        raise RevisionNotFound(f"{short} is ambiguous: {names}; write more digits of it")
    raise RevisionNotFound(f"no artifact {short}… was pulled here; write all 64 digits, or its tag")


async def _until(stop: threading.Event, pulling: Any) -> tuple[str, Artifact | None]:
    task = asyncio.ensure_future(pulling)
    deadline_s = time.monotonic() + TOTAL_S
    while not task.done() and not stop.is_set() and time.monotonic() < deadline_s:
        await asyncio.wait({task}, timeout=_CHECK_S)
    if task.done():
        result: tuple[str, Artifact | None] = task.result()
        return result
    task.cancel()
    await asyncio.wait({task})
    raise StoreError("the fetch was stopped" if stop.is_set() else f"the pull did not end within {TOTAL_S:.0f} s")


def _commit(repository: Any, url: GitUrl, digest: str, artifact: Artifact | None, *, is_next: bool) -> Any:
    """Return the id of the artifact's commit, which is made where it is missing, or not in line yet."""
    there, newest = (repository.references.get(name) for name in (ARTIFACTS + digest, _NEWEST))
    commit, tip = (ref.target if ref is not None else None for ref in (there, newest))
    after = tip if is_next else None
    is_new = commit is None or not (after is None or is_ancestor(repository, commit, after))
    if is_new:
        if commit is not None:
            earlier, tree = repository[commit], repository[commit].tree.id
            author, message = earlier.author, earlier.message
        else:
            assert artifact is not None, "it is known only if it has a commit"
            index = pygit2.Index()
            for count, file in enumerate(artifact.files, start=1):
                mode = FileMode.BLOB_EXECUTABLE if file.is_executable else FileMode.BLOB
                fault = ""
                try:
                    index.add(pygit2.IndexEntry(file.path, repository.create_blob(file.data), mode))
                except (pygit2.GitError, ValueError, OSError) as error:
                    fault = str(error)
                if fault or len(index) != count:  # A file in the place of a folder takes it away.
                    raise StoreError(
                        f"it holds {file.path[:200]!r}, which no store can have ({fault or 'file and folder'})"
                    )
            tree = index.write_tree(repository)
            author, message = _words(url, digest, artifact.annotations)
        commit = repository.create_commit(None, author, author, message, tree, [after] if after is not None else [])
        repository.references.create(ARTIFACTS + digest, commit, force=True)
    if is_next and (is_new or tip is None):
        repository.references.create(_NEWEST, commit, force=True)
    return commit


def _words(url: GitUrl, digest: str, annotations: Mapping[str, str]) -> tuple[pygit2.Signature, str]:
    """Return the author and the message of a commit: where the artifact came from, as whoever pushed it says.

    Source: OCI Image Specification 1.1, "Annotations"; `flux push artifact` writes source and revision.
    """
    source, revision = (
        "".join(char for char in annotations.get(f"org.opencontainers.image.{name}", "") if char.isprintable())[:500]
        for name in ("source", "revision")
    )
    name = "".join(char for char in source or url.address if char not in "<>").strip() or url.host
    subject = revision or f"artifact {short_revision(digest)}"
    return pygit2.Signature(name, "oci@localhost"), f"{subject}\n\nsha256:{digest}\n"
