"""What decrypts the encrypted templates of a round, and which of them it is asked about."""

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
    """What an opener may know only after it was asked, since others have to be asked in their turn."""

    def listen(self, told: Callable[[Collection[Identity]], None]) -> None:
        """Call this, from any thread, with objects of which something else is known now."""
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
    """The values of the encrypted templates that a round settles, or why there are none. `only`: of these.

    Those of older revisions that are in force somewhere are among them: a value goes by its place and ciphertext.
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
