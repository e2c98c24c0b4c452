"""The judge of moves in trials: counts available replicas of each Deployment at every moment, by the clusters' word.

What somebody takes away shows when a spec shrinks or an object goes: less than the floor must not be left then. What
else falls has failed by itself. Source: docs/concepts/moves.md.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from functools import partial
from typing import Any

from reconciler.sim import Event, FleetInABox
from tests.fakes.floor import Floor

STEADY_S = 1.0
"""So long replicas have to serve before they count: a copy that served nothing when it was read may shrink at once."""


class AvailabilityJudge:
    """Follows the stores of all clusters of a box; `violations` says what was taken away too early."""

    def __init__(self, box: FleetInABox) -> None:
        """Begin to listen."""
        self._box = box
        self.violations: list[str] = []
        self.falls = 0
        """The number of times that replicas were taken away."""
        self._floors: dict[str, Floor] = {}
        self._left: Counter[tuple[str, str]] = Counter()
        self._rises: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        for cluster in box.names:
            box[cluster].state.store.listeners.append(partial(self._note, cluster))

    def asked(self, name: str, replicas: int) -> None:
        """A commit asks for so many replicas of a Deployment, over all clusters."""
        floor = self._floors.setdefault(name, Floor())
        self._count_steady(floor, name)
        # What a person takes is taken of what serves now: what came a moment ago does not count afterwards.
        self._rises[name].clear()
        floor.ask_for(replicas)

    def recount(self, cluster: str) -> None:
        """Something else than a request took replicas away or brought them back, and told nobody."""
        for name in self._floors:
            body = self._box[cluster].state.get("Deployment", "demo", name)
            after = 0 if body is None else _left(body)
            if after != self._left[name, cluster]:
                self._rises[name].append((time.monotonic(), after - self._left[name, cluster]))
            self._left[name, cluster] = after

    def _note(self, cluster: str, event: Event) -> None:
        body, previous = event.body, event.previous
        name = body["metadata"]["name"]
        floor = self._floors.get(name)
        if body["kind"] != "Deployment" or floor is None:
            return
        key, is_gone = (name, cluster), event.type == "DELETED"
        before, after = self._left[key], 0 if is_gone else _left(body)
        self._left[key] = after
        if not is_gone and (previous is None or _wanted(previous) <= _wanted(body)):
            self._rises[name].append((time.monotonic(), after - before))
        elif after < before:
            self._count_steady(floor, name)
            self.falls += 1
            self._judge(floor, name, f"{cluster} has {after} after {before}, others {self._of(name)}")

    def _count_steady(self, floor: Floor, name: str) -> None:
        """Count what has failed, and what has risen long enough ago."""
        now = time.monotonic()
        left = []
        for when, more in self._rises[name]:
            if more < 0 or now - when >= STEADY_S:
                floor.count(more)
            else:
                left.append((when, more))
        self._rises[name] = left

    def _judge(self, floor: Floor, name: str, what: str) -> None:
        try:
            floor.check(sum(self._of(name).values()), f"Deployment {name}: {what}")
        except AssertionError as error:
            self.violations.append(str(error))
            floor.replicas = 0  # Said once: what follows from it is no other fault.

    def _of(self, name: str) -> dict[str, int]:
        return {cluster: left for (other, cluster), left in self._left.items() if other == name}


def _left(body: dict[str, Any]) -> int:
    """Return the available replicas of the remaining ones, by their cluster."""
    if body["metadata"].get("deletionTimestamp"):
        return 0
    return min(int((body.get("status") or {}).get("availableReplicas", 0)), _wanted(body))


def _wanted(body: dict[str, Any]) -> int:
    return 0 if body["metadata"].get("deletionTimestamp") else int(body["spec"]["replicas"])
