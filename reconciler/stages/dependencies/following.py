"""What goes along with others: a dependency with what refers to it, a companion with the workload it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.model.binding import Binding, Reason, TargetCluster
from reconciler.model.refs import Identity


class Brought(NamedTuple):
    """One owner that brings something along, why, and to which clusters, each group of them with a text of its own."""

    owner: Identity
    reason: Reason
    clusters: Iterable[tuple[str, Iterable[str]]]


def following(own: Binding, brought: Iterable[Brought]) -> Binding:
    """The binding with the clusters of its owners beside its own; the first owner gives the reason of a cluster."""
    targets: dict[str, TargetCluster | None] = {target.cluster: target for target in own.targets}
    cluster_reasons, reasons, owners = dict(own.cluster_reasons), list(own.reasons), set(own.owners)
    for owner, reason, groups in brought:
        owners.add(owner)
        reasons.append(reason)
        for text, clusters in groups:
            added = [cluster for cluster in clusters if cluster not in targets]
            if added:
                targets.update(dict.fromkeys(added))
                cluster_reasons.update(dict.fromkeys(added, replace(reason, text=text)))
    names = sorted(targets)
    return replace(
        own,
        targets=tuple([targets[name] or TargetCluster(name) for name in names]) if own.targets else _bare(tuple(names)),
        owners=tuple(sorted(owners)),
        reasons=tuple(reasons),
        cluster_reasons=cluster_reasons,
    )


# What follows owners that are placed alike has the same targets, and what renders them finds that out by comparing.
@lru_cache(maxsize=4096)
def _bare(clusters: tuple[str, ...]) -> tuple[TargetCluster, ...]:
    """Targets without replicas."""
    return tuple([TargetCluster(cluster) for cluster in clusters])
