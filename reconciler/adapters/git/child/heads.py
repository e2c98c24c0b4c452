"""Which branch or tag of a server is meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from reconciler.adapters.git.child.refusals import Refused

MAX_HEADS: Final = 1_000_000


class Head(NamedTuple):
    """Where a reference of the server leads. `target`: the reference that HEAD stands for, else empty."""

    oid: str
    target: str = ""


def choose(heads: Mapping[str, Head], rev: str | None) -> str:
    """The full name of the reference that is meant; empty for a commit id.

    Raises:
        Refused: the server has none of that name, or two.
    """
    if not heads:
        raise Refused("empty", "the repository has no commit yet; push the store first")
    if len(heads) > MAX_HEADS:
        raise Refused("too-big", "the repository has more branches and tags than can be looked through")
    if rev is None or rev == "HEAD":
        if "HEAD" not in heads:
            raise Refused("revision", "the server's default branch does not exist; name one with --rev")
        target = heads["HEAD"].target
        return target if target in heads else "HEAD"
    names = (rev,) if rev.startswith("refs/") else (f"refs/heads/{rev}", f"refs/tags/{rev}")
    found = [name for name in names if name in heads]
    if len({heads[name].oid for name in found}) > 1:
        raise Refused("revision", f"{rev} is a branch and a tag; write refs/heads/{rev} or refs/tags/{rev}")
    if found:
        return found[0]
    if re.fullmatch(r"[0-9a-f]{40}", rev):
        return ""
    branches = sorted(name.removeprefix("refs/heads/") for name in heads if name.startswith("refs/heads/"))
    shown = ", ".join(branches[:5]) + (", …" if len(branches) > 5 else "")
    raise Refused("revision", f"there is no branch or tag {rev} any more, or there never was (branches: {shown})")
