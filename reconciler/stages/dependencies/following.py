"""Followers of other objects: a dependency of its owner, a companion of its workload."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.model.binding import Binding, Reason, TargetCluster
from reconciler.model.policy import ConflictResolution, PropagationPolicy, Suspension
from reconciler.model.refs import Identity


class Brought(NamedTuple):
    """One owner of a follower, the reason, and its clusters in groups with a text of their own."""

    owner: Identity
    reason: Reason
    clusters: Sequence[tuple[str, Iterable[str]]]


def following(own: Binding, brought: Iterable[Brought]) -> Binding:
    """The binding with the clusters of its owners beside its own; the first owner gives the reason of a cluster."""
    mentions = list(brought)
    if len(mentions) == 1 and not own.targets and not own.cluster_reasons and len(mentions[0].clusters) == 1:
        return _following_one(own, mentions[0])
    targets: dict[str, TargetCluster | None] = {target.cluster: target for target in own.targets}
    cluster_reasons, reasons, owners = dict(own.cluster_reasons), list(own.reasons), set(own.owners)
    for owner, reason, groups in mentions:
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


def _following_one(own: Binding, brought: Brought) -> Binding:
    """Return the same for a follower without own clusters and with one owner, as nearly all dependencies."""
    owner, reason, ((text, clusters),) = brought
    names = _in_order(tuple(clusters))
    return replace(
        own,
        targets=_bare(names),
        owners=tuple(sorted({*own.owners, owner})),
        reasons=(*own.reasons, reason),
        cluster_reasons=Alike(names, replace(reason, text=text)) if names else {},
    )


class Alike(Mapping[str, Reason]):
    """One reason for several clusters: in a large fleet, a dictionary for each dependency would be 1 KB."""

    __slots__ = ("_clusters", "_reason")

    def __init__(self, clusters: tuple[str, ...], reason: Reason) -> None:
        """The reason of each of these clusters, which are in order."""
        self._clusters = clusters
        self._reason = reason

    def __getitem__(self, cluster: str) -> Reason:
        """The reason, for one of the clusters."""
        place = bisect_left(self._clusters, cluster)
        if self._clusters[place : place + 1] == (cluster,):
            return self._reason
        raise KeyError(cluster)

    def __iter__(self) -> Iterator[str]:
        """The clusters, in their order."""
        return iter(self._clusters)

    def __len__(self) -> int:
        """Return the number of clusters."""
        return len(self._clusters)

    def __repr__(self) -> str:
        """As a dictionary of the same reasons."""
        return repr(dict(self))


# Followers of owners with equal placement have equal targets, which rendering finds by comparing.
@lru_cache(maxsize=4096)
def _bare(clusters: tuple[str, ...]) -> tuple[TargetCluster, ...]:
    """Targets without replicas."""
    return tuple([TargetCluster(cluster) for cluster in clusters])


@lru_cache(maxsize=4096)
def _in_order(clusters: tuple[str, ...]) -> tuple[str, ...]:
    """The clusters by name, the same object for the same."""
    return tuple(sorted(set(clusters)))


def inherited_policy(owners: Sequence[PropagationPolicy]) -> PropagationPolicy:
    """Return the policy of the first owner, with all owners' requirements on a dependency.

    Source: design#dependencies; Karmada: any Overwrite, any preserve. It is suspended where every owner is. It neither
    fails over by itself nor has dependencies.
    """
    overwrites = any(owner.conflict_resolution is ConflictResolution.OVERWRITE for owner in owners)
    suspended = set.intersection(*(set(owner.suspension.clusters) for owner in owners))
    return replace(
        owners[0],
        keep=any(owner.keep for owner in owners),
        conflict_resolution=ConflictResolution.OVERWRITE if overwrites else ConflictResolution.ABORT,
        suspension=Suspension(
            dispatching=all(owner.suspension.dispatching for owner in owners), clusters=tuple(sorted(suspended))
        ),
        propagate_deps=False,
        dependent_overrides=(),
        application_failover=None,
        brings=frozenset(),
    )
