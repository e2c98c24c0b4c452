"""How copies fare, kept up by rounds, by events of watches and by answers to our own writes; without any request.

What is healthy is not kept. The newest version of an object counts, whichever way it came to be known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from reconciler.model.observation import Read
from reconciler.model.refs import Identity
from reconciler.stages.state import Copy, HealthState, Healthy

_VERSIONS_MAX = 100_000
"""So many versions are kept at most; without the version of an object, what is told later counts."""


class Healths:
    """What is not healthy, by cluster."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        """Nothing is known. `wake` is told when an event shows another health than was known."""
        self._found: dict[str, dict[Identity, HealthState]] = {}
        self._shared: set[str] = set()
        self._versions: dict[Copy, int] = {}
        self._wake = wake
        self.has_news = False
        """Whether anything is otherwise than when it was shown last."""

    def shown(self) -> Mapping[str, Mapping[Identity, HealthState]]:
        """What is known now; what comes later does not change it."""
        self._shared.update(self._found)
        self.has_news = False
        return dict(self._found)

    def note(self, cluster: str, identity: Identity, resource_version: str, health: HealthState) -> None:
        """An event, a round, or the answer to a write shows an object of this version."""
        copy, version = (cluster, identity), _number(resource_version)
        if version < self._versions.get(copy, 0):
            return
        if len(self._versions) >= _VERSIONS_MAX:
            self._versions.clear()
        self._versions[copy] = version
        self._put(cluster, identity, health)

    def gone(self, cluster: str, identity: Identity, health: HealthState | None) -> None:
        """An event shows that an object went. `health`: of what is wanted and not there; None: it is not wanted."""
        self._versions.pop((cluster, identity), None)
        self._put(cluster, identity, health)

    def read(self, member: Read, found: Mapping[Identity, HealthState], asked: Iterable[Identity] | None) -> None:
        """A round read these: what it asked for and was not told of is forgotten. `asked` None: everything."""
        known = self._found.get(member.name, {})
        for identity in set(known) - found.keys() if asked is None else set(asked) & known.keys() - found.keys():
            if identity not in member.under_way and identity not in member.unread:
                self._put(member.name, identity, None)
        for identity, health in found.items():
            live = member.objects.get(identity)
            if live is None:
                self._put(member.name, identity, health)
            elif identity in known or not isinstance(health, Healthy):
                self.note(member.name, identity, live.resource_version, health)

    def _put(self, cluster: str, identity: Identity, health: HealthState | None) -> None:
        kept = None if isinstance(health, Healthy) else health
        known = self._found.setdefault(cluster, {})
        if known.get(identity) == kept:
            return
        if cluster in self._shared:
            # What was handed out stays as it was.
            known = self._found[cluster] = dict(known)
            self._shared.discard(cluster)
        if kept is None:
            del known[identity]
        else:
            known[identity] = kept
        self.has_news = True
        self._wake()


def _number(version: str) -> int:
    """A version as a number. Source: Kubernetes, resource versions of one kind in one cluster are numbers that grow."""
    return int(version) if version.isdecimal() else 0
