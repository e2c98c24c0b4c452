"""Which shard a cluster belongs to: a function of the commit, so that everybody knows it without asking anybody.

A label on the Cluster document says it, which is a reviewable decision about what one process may break. Of the others
each shard has about as many, by rendezvous hashing: a shard that comes or goes moves its own share alone.
Source: design#shards; ADR 22.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from reconciler.model.cluster import Cluster
from reconciler.model.fleet import Fleet

SHARD_LABEL: Final = "fleet.reconciler/shard"


def shard_of(cluster: Cluster, shards: Iterable[str]) -> str | None:
    """The shard of a cluster; None: there are no shards, it has a process of its own, or its label names none of them.

    A label that means nothing leaves the cluster to nobody: whoever wrote it did not want just any process there.
    """
    if cluster.pulls:
        return None
    named = cluster.labels.get(SHARD_LABEL)
    if named is not None:
        return named if named in set(shards) else None
    return max(shards, key=lambda shard: _score(shard, cluster.name), default=None)


def clusters_of(shard: str, fleet: Fleet) -> frozenset[str]:
    """The clusters of a shard by the fleet; none, where the fleet has no such shard."""
    shards = fleet.settings.ha.shards if fleet.settings.ha is not None else ()
    return frozenset(name for name, cluster in fleet.clusters.items() if shard_of(cluster, shards) == shard)


def preference(shards: Iterable[str], process: str) -> list[str]:
    """The shards in the order in which a process asks for them: no two processes begin with the same, mostly."""
    return sorted(shards, key=lambda shard: _score(shard, process), reverse=True)


def _score(shard: str, name: str) -> bytes:
    # Neither a label's value nor a name has a zero in it.
    return hashlib.blake2b(f"{shard}\0{name}".encode(), digest_size=16).digest()
