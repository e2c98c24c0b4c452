"""Unkind worlds for trials: what may go wrong inside a cluster while its API server answers.

A further world is a class with `strike` and `end` in `WORLDS`: a trial draws from them, and ends all of them before it
asks the fleet to come to rest.
"""

from __future__ import annotations

import random
from typing import Protocol

from reconciler.sim import Cluster, Part


class UnkindWorld(Protocol):
    """One thing that goes wrong in a cluster, as often as it likes."""

    def strike(self, cluster: Cluster, rng: random.Random) -> None:
        """Let it go wrong, or better, or otherwise."""

    def end(self, cluster: Cluster) -> None:
        """Let all be well."""


class PartsAsleep:
    """Controllers, scheduler and kubelets that are dead or, woken and put to sleep again, slow."""

    def strike(self, cluster: Cluster, rng: random.Random) -> None:
        """Some parts do nothing until the next strike."""
        cluster.let_sleep(*rng.sample(tuple(Part), rng.randint(0, len(Part))))

    def end(self, cluster: Cluster) -> None:
        """All parts work."""
        cluster.let_sleep()


class NodesStarved:
    """A node with room for less: pods that come find none, those that run go on."""

    ROOM = "110"

    def strike(self, cluster: Cluster, rng: random.Random) -> None:
        """The only node has room for a few pods, or for all."""
        cluster.set_capacity("n1", pods=rng.choice(("1", "3", self.ROOM)))

    def end(self, cluster: Cluster) -> None:
        """There is room for all."""
        cluster.set_capacity("n1", pods=self.ROOM)


WORLDS: tuple[UnkindWorld, ...] = (PartsAsleep(), NodesStarved())
