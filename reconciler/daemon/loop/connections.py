"""How the clusters are reached: a value of the state, which the loop alone exchanges, between two rounds.

What is under way ends with the clients that it began with. Source: design#clusters-are-a-value.
"""

from __future__ import annotations

import logging
from typing import Final

from msgspec.structs import replace

from reconciler.adapters.kube.members import Members
from reconciler.containment import INTERNAL_ERROR, contained
from reconciler.daemon.loop.parts import Parts
from reconciler.daemon.loop.state import State
from reconciler.errors import ConfigurationError
from reconciler.model.fleet import Fleet

log = logging.getLogger("reconciler")

_UNMET: Final = "it is reached in another way now, and has not said who it is yet"


def reconnected(parts: Parts, state: State, fleet: Fleet) -> tuple[State, frozenset[str]]:
    """The state with clusters reached as the kubeconfig says now, and which of them are reached otherwise.

    Both are as before while the kubeconfig is unusable, which is logged.
    """
    read = contained(parts.configs_in_reach, fleet)
    if read.value is not None:
        return exchanged(state, state.members.reached_by(read.value))
    is_told = isinstance(read.fault, ConfigurationError)
    log.error("the kubeconfig cannot be read; the old one stays in force", exc_info=None if is_told else read.fault,
              extra={"event": "ReloadFailed", "error": str(read.fault) if is_told else INTERNAL_ERROR})  # fmt: skip
    return state, frozenset()


def exchanged(state: State, members: Members) -> tuple[State, frozenset[str]]:
    """The state with these clusters, and which of them are reached otherwise: these have to say first who they are."""
    before = state.members
    other = frozenset(name for name in {*before, *members} if members.get(name) is not before.get(name))
    unmet = dict.fromkeys(other & state.reachable.keys(), _UNMET)
    return replace(state, members=members, reachable={**state.reachable, **unmet}), other
