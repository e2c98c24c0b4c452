"""Branches and tags of a server, and which of them is meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from reconciler.errors import RevisionNotFound, StoreError

_HEADS_MAX: Final = 1_000_000
_NAME: Final = r"(HEAD|refs/[^\x00-\x20\x7f:?*\[\\^~]{1,1000})"
_HEAD: Final = re.compile(rf"(?m)^([0-9a-f]{{40}})\t{_NAME}$")
_TARGET: Final = re.compile(rf"(?m)^ref: {_NAME}\t(HEAD)$")


class Head(NamedTuple):
    """Where a reference of the server leads. `target`: the reference that HEAD stands for, else empty."""

    oid: str
    target: str = ""


def parse_heads(listed: str) -> dict[str, Head]:
    """The references in the output of `git ls-remote --symref`; names that could be read as more are left out."""
    targets = {name: target for target, name in _TARGET.findall(listed)}
    return {name: Head(oid, targets.get(name, "")) for oid, name in _HEAD.findall(listed)}


def choose(heads: Mapping[str, Head], rev: str | None) -> str:
    """The full name of the reference that is meant; empty for a commit id.

    Raises:
        RevisionNotFound: the server has none of that name, or two.
        StoreError: it has too many.
    """
    if not heads:
        raise RevisionNotFound("the repository has no commit yet; push the store first")
    if len(heads) > _HEADS_MAX:
        raise StoreError("the repository has more branches and tags than can be looked through")
    if rev is None or rev == "HEAD":
        if "HEAD" not in heads:
            raise RevisionNotFound("the server's default branch does not exist; name one with --rev")
        target = heads["HEAD"].target
        return target if target in heads else "HEAD"
    names = (rev,) if rev.startswith("refs/") else (f"refs/heads/{rev}", f"refs/tags/{rev}")
    found = [name for name in names if name in heads]
    if len({heads[name].oid for name in found}) > 1:
        raise RevisionNotFound(f"{rev} is a branch and a tag; write refs/heads/{rev} or refs/tags/{rev}")
    if found:
        return found[0]
    if re.fullmatch(r"[0-9a-f]{40}", rev):
        return ""
    branches = sorted(name.removeprefix("refs/heads/") for name in heads if name.startswith("refs/heads/"))
    shown = ", ".join(branches[:5]) + (", …" if len(branches) > 5 else "")
    raise RevisionNotFound(f"there is no branch or tag {rev} any more, or there never was (branches: {shown})")
