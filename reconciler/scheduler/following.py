"""Followers of other objects: a dependency of its owner, a companion of its workload, and where references lead.

A reference leads to a template of the store, or to its maker in the cluster. References of makers and ServiceAccounts
are followed, those of other dependencies are not. Source: Karmada, which follows none. References to other namespaces
need a ReferenceGrant there, which is then a dependency itself. Source: Gateway API: ReferenceGrant; design#grants.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.binding import Binding, Reason, TargetCluster
from reconciler.api.content import Json, dig
from reconciler.api.demand import DependencyRef
from reconciler.api.fleet import Fleet, Template
from reconciler.api.policies import ConflictResolution, PropagationPolicy, Suspension
from reconciler.api.refs import Identity
from reconciler.containment import with_subject
from reconciler.kinds.body_fields import mappings, text
from reconciler.kinds.registry import Registry
from reconciler.placement import LazyReasons
from reconciler.scheduler.makers import Makers, MakerTables
from reconciler.templates import references_of

_ACCOUNT: Final = ("", "ServiceAccount")
_GRANT: Final = ("gateway.networking.k8s.io", "ReferenceGrant")


def grants_place(ref: DependencyRef) -> tuple[str, str, str]:
    """Return group, kind and namespace of the grants that may allow a reference."""
    return (*_GRANT, ref.identity.namespace)


def _texts_of(entry: Mapping[str, Json], *more: str) -> tuple[str, ...]:
    return tuple(text(entry.get(field)) for field in ("group", "kind", *more))


class ReferenceTarget(NamedTuple):
    """A template that must be where its referrers are. `product`: the object that it makes, if that is the target."""

    identity: Identity
    product: Identity | None = None


class ResolvedReference(NamedTuple):
    """The targets of a reference. `is_there`: it is satisfied wherever these are. `is_refused`: without a grant."""

    sources: tuple[ReferenceTarget, ...]
    is_there: bool
    is_refused: bool = False


class Sources:
    """Finds the targets of a reference: one template and its makers, or all of a kind and namespace by labels."""

    def __init__(self, fleet: Fleet, makers: Makers) -> None:
        self.fleet = fleet
        self._by_place: dict[tuple[str, str, str], list[Template]] | None = None
        self.makers = makers

    @classmethod
    def among(cls, fleet: Fleet, interpreters: Registry) -> Sources:
        """Return the sources of a fleet without earlier results."""
        tables = MakerTables()
        tables.follow(fleet.templates, fleet.templates.keys(), interpreters)
        return cls(fleet, tables.makers)

    def find(self, ref: DependencyRef, owner: Identity) -> ResolvedReference:
        """Return the dependencies of a reference of `owner`: its targets, with their grants."""
        reference = self._with_name(ref, owner)
        if not ref.granted_to or not (reference.sources or reference.is_there):
            return reference
        if grants := self._grants(ref):
            return reference._replace(sources=(*reference.sources, *map(ReferenceTarget, grants)))
        return ResolvedReference((), False, is_refused=True)

    def ever_needed(self, ref: DependencyRef, owner: Identity) -> set[Identity]:
        """Return the targets of a reference and their possible grants, whether all of them exist or not."""
        return {source.identity for source in self._with_name(ref, owner).sources} | set(self._grants(ref))

    def _with_name(self, ref: DependencyRef, owner: Identity) -> ResolvedReference:
        """Return the targets of a reference, sorted. An object that the owner makes itself needs no other maker."""
        if ref.labels:
            there = self.at(ref.identity[:3])
            matches = [one for one in there if all(one.labels.get(key) == value for key, value in ref.labels)]
            return ResolvedReference(tuple([ReferenceTarget(one.identity) for one in matches]), bool(matches))
        templates = (ReferenceTarget(ref.identity),) if ref.identity in self.fleet.templates else ()
        makers = self.makers.of.get(ref.identity)
        if makers is None:
            return ResolvedReference(templates, bool(templates))
        if any(maker.identity == owner and maker.is_whole for maker in makers):
            return ResolvedReference(templates, is_there=True)
        others = [maker for maker in makers if maker.identity != owner]
        products = tuple([ReferenceTarget(maker.identity, ref.identity) for maker in others])
        return ResolvedReference((*templates, *products), bool(templates) or any(maker.is_whole for maker in others))

    def _grants(self, ref: DependencyRef) -> tuple[Identity, ...]:
        """Return the grants of the namespace that allow a reference."""
        return tuple(
            grant.identity
            for grant in (self.at(grants_place(ref)) if ref.granted_to else ())
            if ref.granted_to in (_texts_of(one, "namespace") for _, one in mappings(dig(grant.body, "spec", "from")))
            and any(
                _texts_of(one) == ref.identity[:2] and text(one.get("name")) in ("", ref.identity.name)
                for _, one in mappings(dig(grant.body, "spec", "to"))
            )
        )

    def at(self, place: tuple[str, str, str]) -> Sequence[Template]:
        """Return the templates of a group, a kind and a namespace, sorted."""
        if self._by_place is None:
            self._by_place = defaultdict(list)
            for identity, template in sorted(self.fleet.templates.items()):
                self._by_place[identity[:3]].append(template)
        return self._by_place.get(place, ())


class DependencyPath(NamedTuple):
    """The way to a dependency. `path`: the referring field, of the owner, or of `by`. `product`: what it makes."""

    path: str
    by: Identity | None = None
    product: Identity | None = None

    def sentence(self, owner: Identity, dependency: Identity) -> str:
        """Return why a dependency is placed with its owner, as a sentence about "it"."""
        refers, with_owner = (owner, "") if self.by is None else (self.by, f", which travels with {owner},")
        if self.product is None:
            return f"{refers}{with_owner} refers {'by' if dependency[:2] == _GRANT else 'to'} it in {self.path}"
        return f"it makes {self.product}, which {refers}{with_owner} refers to in {self.path}"


class TemplateDependencies(NamedTuple):
    """The dependencies of one template, with the ways to each, and the references of it and of `followed` objects."""

    paths: Mapping[Identity, list[DependencyPath]]
    refs: tuple[DependencyRef, ...]
    followed: tuple[Identity, ...] = ()


def travel(
    owner: Template,
    refs: tuple[DependencyRef, ...],
    sources: Sources,
    interpreters: Registry,
    *,
    is_followed: bool = False,
    at_first: Sequence[ResolvedReference] | None = None,
) -> TemplateDependencies:
    """Return the dependencies of a template. `is_followed`: as of a maker. `at_first`: known targets of `refs`."""
    paths: dict[Identity, list[DependencyPath]] = {}
    follows = is_followed or owner.identity in sources.makers.products
    followed: dict[Identity, tuple[DependencyRef, ...]] = {owner.identity: refs}
    todo = [owner.identity]
    while todo:
        at = todo.pop(0)
        by = None if at == owner.identity else at
        for number, ref in enumerate(followed[at]):
            leads_to = at_first[number] if at_first is not None and by is None else sources.find(ref, at)
            for identity, product in leads_to.sources:
                paths.setdefault(identity, []).append(DependencyPath(ref.path, by, product))
                is_next = follows or by is not None or identity in sources.makers.products or identity[:2] == _ACCOUNT
                if is_next and identity not in followed:
                    template = sources.fleet.templates[identity]
                    followed[identity] = with_subject(identity, references_of, template, interpreters)
                    todo.append(identity)
    if len(followed) == 1:
        return TemplateDependencies(paths, refs)
    beyond = [ref for identity, more in followed.items() if identity != owner.identity for ref in more]
    return TemplateDependencies(
        paths, (*refs, *beyond), tuple([identity for identity in followed if identity != owner.identity])
    )


class FollowerPlacement(NamedTuple):
    """One owner of a follower, the reason, and its clusters in groups with a text of their own."""

    owner: Identity
    reason: Reason
    clusters: Sequence[tuple[str, Iterable[str]]]


def following(own: Binding, mentions: Sequence[FollowerPlacement]) -> Binding:
    """Return the binding with its owners' clusters beside its own; the first owner gives a cluster's reason."""
    if len(mentions) == 1 and not own.targets and not own.cluster_reasons and len(mentions[0].clusters) == 1:
        # A follower without own clusters and with one owner, as nearly all dependencies.
        owner, reason, ((text, clusters),) = mentions[0]
        of_owner = _in_order(tuple(clusters))
        return replace(
            own,
            targets=_bare(of_owner),
            owners=tuple(sorted({*own.owners, owner})),
            reasons=(*own.reasons, reason),
            cluster_reasons=SharedReason(of_owner, replace(reason, text=text)) if of_owner else {},
        )
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


class SharedReason(LazyReasons):
    """One reason for several clusters: in a large fleet, a dictionary for each dependency would be 1 KB."""

    __slots__ = ("_clusters", "_reason")

    def __init__(self, clusters: tuple[str, ...], reason: Reason) -> None:
        """Take the clusters, which are in order, and their reason."""
        self._clusters: tuple[str, ...] = clusters
        self._reason = reason

    def __getitem__(self, cluster: str) -> Reason:
        place = bisect_left(self._clusters, cluster)
        if self._clusters[place : place + 1] == (cluster,):
            return self._reason
        raise KeyError(cluster)


# Followers of owners with equal placement have equal targets, which rendering finds by comparing.
@lru_cache(maxsize=4096)
def _bare(clusters: tuple[str, ...]) -> tuple[TargetCluster, ...]:
    return tuple([TargetCluster(cluster) for cluster in clusters])


@lru_cache(maxsize=4096)
def _in_order(clusters: tuple[str, ...]) -> tuple[str, ...]:
    """Return the clusters by name, the same object for the same."""
    return tuple(sorted(set(clusters)))


def inherited_policy(owners: Sequence[PropagationPolicy]) -> PropagationPolicy:
    """Return the first owner's policy with all owners' requirements. Source: design#dependencies; Karmada."""
    overwrites = any(owner.conflict_resolution is ConflictResolution.OVERWRITE for owner in owners)
    return replace(
        owners[0],
        keep=any(owner.keep for owner in owners),
        conflict_resolution=ConflictResolution.OVERWRITE if overwrites else ConflictResolution.ABORT,
        suspension=_common([owner.suspension for owner in owners]),
        propagate_deps=False,
        dependent_overrides=(),
        application_failover=None,
        brings=frozenset(),
    )


def _common(suspensions: Sequence[Suspension]) -> Suspension:
    """Return what all of them suspend."""
    named = [set(each.clusters) for each in suspensions if not each.dispatching]
    clusters = tuple(sorted(set.intersection(*named))) if named else ()
    has_former = any(each.former is not None for each in suspensions)
    former = _common([each.former or each for each in suspensions]) if has_former else None
    return Suspension(dispatching=not named, clusters=clusters, former=former)
