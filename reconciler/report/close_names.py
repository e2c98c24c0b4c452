"""What may have been meant by a name that nothing has. By itself, since completing a word need not load it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from reconciler.model.refs import Identity


def close_to(identities: Iterable[Identity], resource: str) -> tuple[str, ...]:
    """Those whose name is near to what was written, as KIND/NAME -n NAMESPACE; at most three."""
    known = sorted(identities)
    name = resource.partition("/")[2]
    close = difflib.get_close_matches(name, sorted({identity.name for identity in known}), n=3, cutoff=0.7)
    found = [identity for identity in known if identity.name in close]
    return tuple(f"{identity.kind}/{identity.name} -n {identity.namespace}" for identity in found[:3])
