"""Similar names for an unknown name. A module of its own: completing a word need not load it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from reconciler.model.refs import Identity


def close_to(identities: Iterable[Identity], resource: str) -> tuple[str, ...]:
    """Return those with a name similar to the given one, as KIND/NAME -n NAMESPACE; at most three."""
    known = sorted(identities)
    name = resource.partition("/")[2]
    close = difflib.get_close_matches(name, sorted({identity.name for identity in known}), n=3, cutoff=0.7)
    found = [identity for identity in known if identity.name in close]
    return tuple(f"{identity.kind}/{identity.name} -n {identity.namespace}" for identity in found[:3])
