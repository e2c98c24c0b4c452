"""Decryption of a round's templates, and the choice of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from reconciler.daemon.tasks import in_thread
from reconciler.engine import Decision
from reconciler.model.content import Opened
from reconciler.model.fleet import Fleet, Template
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity

Opener = Callable[[Collection[Template], bool], Mapping[Identity, Opened | Problem]]
"""Decrypts the encrypted ones among templates; True: they are all of the fleet."""


class LaterKeys(Protocol):
    """A decryption with later results, since others have to be asked."""

    def listen(self, told: Callable[[Collection[Identity]], None]) -> None:
        """Register a callback, from any thread, for objects with a new result."""
        ...

    def again(self) -> None:
        """Try anew, when next asked, what could not be opened."""
        ...


def no_keys(templates: Collection[Template], is_all: bool) -> Mapping[Identity, Opened | Problem]:
    """Nothing is decrypted."""
    return {}


async def opened_for(
    decision: Decision, only: frozenset[Identity] | None, opener: Opener
) -> Mapping[Identity, Opened | Problem]:
    """Return the values of a round's encrypted templates, or the problem of each. `only`: of these.

    Those of older active revisions are among them: a value depends on its place and ciphertext.
    """
    found = dict(await _opened(decision.fleet, decision, only, opener, is_newest=True))
    for fleet in decision.staging.fleets.values() if decision.staging is not None else ():
        for identity, older in (await _opened(fleet, decision, only, opener, is_newest=False)).items():
            newest = found.get(identity)
            if isinstance(older, Opened) and isinstance(newest, Opened):
                found[identity] = Opened(values={**older.values, **newest.values})
            elif newest is None:
                found[identity] = older
    return found


async def _opened(
    fleet: Fleet, decision: Decision, only: frozenset[Identity] | None, opener: Opener, *, is_newest: bool
) -> Mapping[Identity, Opened | Problem]:
    bound = decision.bindings.keys()
    chosen = [fleet.templates[one] for one in (bound if only is None else bound & only) if one in fleet.templates]
    sealed = [template for template in chosen if template.sealed is not None]
    return await in_thread(opener, sealed, is_newest and only is None) if sealed else {}
