"""Seeded trials of moves: replicas are shared out otherwise again and again, where controllers are dead, slow, starved.

Each Deployment keeps most of its replicas over a commit, so that nearly every commit is a move.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tests.fakes.documents import policy
from tests.soak.apps import CLUSTERS, App
from tests.soak.chaos import Trial


class SharedApp(App):
    """A Deployment whose replicas its clusters share by static weights."""

    is_shared = True
    shares: dict[str, int]

    def change(self, rng: random.Random) -> None:
        """Other shares of the same number, or now and then of another one."""
        number = self.total if getattr(self, "shares", None) and rng.random() < 0.7 else rng.randint(2, 7)
        names = sorted(rng.sample(CLUSTERS, rng.randint(1, min(3, number))))
        cuts = sorted(rng.sample(range(1, number), len(names) - 1))
        counts = [end - begin for begin, end in zip([0, *cuts], [*cuts, number], strict=True)]
        self.shares = dict(zip(names, counts, strict=True))
        self.clusters, self.is_present, self.value = frozenset(names), True, 1

    def move(self, rng: random.Random) -> None:
        self.change(rng)

    @property
    def total(self) -> int:
        """The replicas that a commit asks for over all clusters."""
        return sum(self.shares.values())

    @property
    def replicas(self) -> int:
        """Those of the template."""
        return self.total

    @replicas.setter
    def replicas(self, number: int) -> None:
        """The shares say it."""

    def documents(self) -> list[dict[str, Any]]:
        """The template, and the policy that shares it out."""
        chosen = policy(self.name, self.kind, *sorted(self.clusters), keep=False)
        entries = [{"targetCluster": {"clusterNames": [name]}, "weight": count} for name, count in self.shares.items()]
        chosen["spec"]["placement"]["replicaScheduling"] = {
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": entries},
        }  # fmt: skip
        return [chosen, self.template()]

    def is_shown(self, body: dict[str, Any], cluster: str) -> bool:
        """Return whether a live object has the share of its cluster."""
        return bool(body["spec"]["replicas"] == self.shares[cluster])


class SharesTrial(Trial):
    async def _trouble(self) -> None:
        """Commits while parts of control planes sleep and nodes fill up; now and then a cluster is away."""
        for _ in range(self.rng.randint(8, 14)):
            name = self.rng.choice(CLUSTERS)
            match self.rng.randrange(10):
                case 0:
                    await self._move_while_away()
                case 1 | 2 | 3 | 4:
                    self._commit()
                case _:
                    self.strike(name)
            await asyncio.sleep(self.rng.uniform(0.0, 0.4))

    def make_apps(self) -> list[App]:
        return [SharedApp("Deployment", f"app-{number}", self.rng) for number in range(3)]
