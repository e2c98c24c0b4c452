"""Dependencies: references of a template are placed with it, under `propagateDeps`; kept between rounds.

Source: "PropagationPolicy and OverridePolicy", propagateDeps; design#dependencies; design#dependency-stays; Karmada:
dependencies distributor. They are not followed further, but for some (`travel`); a ConfigMap that several owners need
is on the clusters of all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from reconciler.api.binding import Binding, Reason
from reconciler.api.demand import DependencyRef
from reconciler.api.fleet import Fleet, Template
from reconciler.api.policies import PropagationPolicy
from reconciler.api.problem import Problem, warning
from reconciler.api.refs import Identity, PolicyRef
from reconciler.containment import with_subject
from reconciler.incremental import Dependents, Table, among, union
from reconciler.kinds.registry import Registry
from reconciler.scheduler.following import (
    DependencyPath,
    FollowerPlacement,
    ResolvedReference,
    Sources,
    TemplateDependencies,
    following,
    grants_place,
    inherited_policy,
    travel,
)
from reconciler.scheduler.makers import MakerTables
from reconciler.templates import references_of

_Place = tuple[str, str, str]
"""Group, kind and namespace: where a reference by labels looks."""


class Links(Struct, frozen=True, kw_only=True):
    """The references of one template. `needs`: its own targets in the store, or their makers there."""

    going: TemplateDependencies
    needs: frozenset[Identity]
    problems: tuple[Problem, ...]


class LinkTables:
    """The links of all owners, and the results.

    `policies`: of each dependency without its own. `needs`: references to the store of each bound or followed template.
    """

    def __init__(self) -> None:
        self.makers = MakerTables()
        self.sources: Sources
        """Of the last fleet."""
        self.links = Table[Identity, Links]()
        self.needs = Table[Identity, frozenset[Identity]]()
        self.problems = Table[Identity, tuple[Problem, ...]]()
        self.bindings = Table[Identity, Binding]()
        self.policies = Table[Identity, PropagationPolicy]()
        self.sought = Dependents[Identity, Identity | _Place]()
        """Owner to where its references look."""
        self.brought_by = Dependents[Identity, Identity]()
        """Owner to what it brings along."""
        self.followed_by = Dependents[Identity, Identity]()
        """Owner to what of that is followed further."""

    @property
    def followed(self) -> Collection[Identity]:
        """Return makers that are dependencies, and the dependencies of makers: all their references are followed."""
        return self.followed_by.looked_at

    def link(self, links: Mapping[Identity, Links | None]) -> None:
        """Take the links of owners."""
        self.links.put(links)
        changed = {owner: self.links.rows.get(owner) for owner in self.links.changed}
        for owner, own in changed.items():
            going = own.going if own is not None else _NOWHERE
            sought: list[Identity | _Place] = [ref.identity[:3] if ref.labels else ref.identity for ref in going.refs]
            grants = [grants_place(ref) for ref in going.refs if ref.granted_to]
            self.sought.put(owner, [*sought, *grants, *going.followed])
            self.brought_by.put(owner, going.paths)
            if going.followed:
                self.followed_by.put(owner, going.followed)
            else:
                self.followed_by.drop(owner)
        self.needs.put({owner: links.needs if links else None for owner, links in changed.items()})
        self.problems.put({owner: links.problems or None if links else None for owner, links in changed.items()})

    def mentions(self, identities: Collection[Identity]) -> dict[Identity, list[tuple[Identity, DependencyPath]]]:
        """Return those that are a dependency of another template, each with its owners in order, never itself."""
        anywhere, links = self.brought_by.looked_at, self.links.rows
        mentions: dict[Identity, list[tuple[Identity, DependencyPath]]] = {}
        for identity in among(identities, anywhere):
            owners = self.brought_by.of((identity,)) if identity in anywhere else set()
            owners.discard(identity)
            if owners:
                ordered = sorted(owners) if len(owners) > 1 else owners
                mentions[identity] = [(owner, way) for owner in ordered for way in links[owner].going.paths[identity]]
        return mentions


_NOWHERE = TemplateDependencies({}, ())

DEPENDENCY = "dependency"
"""The rule of reasons that come from an owner."""

_MADE_BY_CLUSTERS = frozenset({("ConfigMap", "kube-root-ca.crt")})
"""Objects that every namespace of every cluster has by itself."""


def dependencies(
    fleet: Fleet,
    templates: Table[Identity, Template],
    policies: Table[Identity, PropagationPolicy],
    bindings: Table[Identity, Binding],
    held: Table[Identity, frozenset[str]],
    tables: LinkTables,
    interpreters: Registry,
) -> LinkTables:
    """Return the tables with the bindings of templates and of their dependencies.

    `bindings`: of claimed templates. `held`: clusters of an owner's old copies, which dependencies must not leave
    first.
    """
    dirty = union(templates.changed, policies.changed, bindings.changed, held.changed)
    stirred = tables.makers.follow(fleet.templates, dirty, interpreters)
    sources = tables.sources = Sources(fleet, tables.makers.makers)

    def links_of(owner: Identity) -> Links | None:
        template = fleet.templates.get(owner)
        is_bound, is_followed = owner in bindings.rows, owner in tables.followed
        if template is None or not (is_bound or is_followed):
            return None
        refs = references_of(template, interpreters)
        if not refs:
            return None
        brings = is_bound and owner in policies.rows and policies.rows[owner].propagate_deps
        reports_missing = fleet.is_complete and (brings or is_followed)
        known = [sources.find(ref, owner) for ref in refs]
        going = (
            travel(template, refs, sources, interpreters, at_first=known) if brings else TemplateDependencies({}, refs)
        )
        return _links(template, zip(refs, known, strict=True), going, reports_missing=reports_missing)

    def link(owners: Collection[Identity]) -> None:
        known = tables.links.rows
        # An object that is neither bound nor followed has none.
        computed = {
            owner: with_subject(owner, links_of, owner)
            for owner in among(owners, bindings.rows, tables.followed, known)
        }
        tables.link({owner: links for owner, links in computed.items() if links or owner in known})

    # Owners may find something else where templates came, went or changed, or have other makers.
    edited = union(dirty, stirred)
    places = {identity[:3] for identity in edited} if tables.sought.looked_at else set()
    owners = union(dirty, tables.sought.of({*edited, *places}) if places else ())
    left, released = tables.brought_by.on(owners), tables.followed_by.on(owners)
    link(owners)
    # The links of others show which objects are newly followed, or no more.
    link(released | tables.followed_by.on(owners))
    followers = union(dirty, left, tables.brought_by.on(owners))
    _follow_all(fleet, policies.rows, bindings.rows, held.rows, tables, followers)
    return tables


def _links(
    owner: Template,
    refs: Iterable[tuple[DependencyRef, ResolvedReference]],
    going: TemplateDependencies,
    *,
    reports_missing: bool,
) -> Links:
    """Return the references of a template, and its dependencies. `reports_missing`: missing ones are reported."""
    needs: set[Identity] = set()
    problems: list[Problem] = []
    for ref, (targets, is_there, is_refused) in refs:
        needs.update([target.identity for target in targets])
        if not reports_missing or is_there or may_be_missing(ref):
            continue
        if is_refused:
            code = "reference-not-granted"
            why = " in another namespace, and no ReferenceGrant there lets it, so it"
            remedy = f"add one to the namespace {ref.identity.namespace}, or take the reference out"
        else:
            # Karmada ignores a missing dependency silently; the workload then waits for it in the member for ever.
            code, why = "dependency-missing", ", which is not in the store and so"
            remedy = "add it, or make sure that every target cluster has it"
        message = f"{owner.identity} refers to {ref.identity}{why} does not travel with it; {remedy}"
        problems.append(warning(owner.source, ref.path, code, message))
    needs.discard(owner.identity)
    return Links(going=going, needs=frozenset(needs), problems=tuple(problems))


def _follow_all(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]],
    tables: LinkTables,
    followers: Collection[Identity],
) -> None:
    """Compute bindings and policies of followers again: present and former dependencies, with their own bindings."""
    mentions = tables.mentions(followers)
    # Many dependencies share the policies of their owners.
    of_owners: dict[tuple[PolicyRef, ...], PropagationPolicy] = {}

    def policy_of(identity: Identity) -> PropagationPolicy | None:
        if identity not in mentions or identity in policies:
            return None
        owners = [policies[owner] for owner, _ in mentions[identity]]
        names = tuple([owner.ref for owner in owners])
        return of_owners.get(names) or of_owners.setdefault(names, inherited_policy(owners))

    def binding_of(identity: Identity) -> Binding | None:
        own = bindings.get(identity)
        if identity not in mentions:
            return own
        policy = tables.policies.rows.get(identity)
        own = own or Binding(
            identity=identity, policy=(policy or policies[identity]).ref, is_dependency=policy is not None
        )
        placements = []
        for owner, way in mentions[identity]:
            reason = Reason(rule=DEPENDENCY, text=way.sentence(owner, identity), source=fleet.templates[owner].source)
            clusters: list[tuple[str, Iterable[str]]] = [(f"follows {owner}", bindings[owner].clusters)]
            if owner in held:
                clusters.append((f"follows {owner}, whose old copy is still there", sorted(held[owner])))
            placements.append(FollowerPlacement(owner, reason, clusters))
        return following(own, placements)

    tables.policies.derive(policy_of, followers, within=[mentions])
    tables.bindings.derive(binding_of, followers, within=[bindings, mentions])


def may_be_missing(ref: DependencyRef) -> bool:
    """Return whether its owner runs without it, or every cluster makes it."""
    return ref.optional or (ref.identity.kind, ref.identity.name) in _MADE_BY_CLUSTERS
