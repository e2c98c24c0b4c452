"""Dependencies: references of a template are placed with it, under `propagateDeps`.

Source: "PropagationPolicy and OverridePolicy", propagateDeps; design#dependencies; design#dependency-stays; Karmada:
dependencies distributor. They are not followed further, but for makers (`travel`); a ConfigMap that several owners need
is on the clusters of all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from reconciler.containment import named
from reconciler.interpreters.registry import Registry
from reconciler.model.binding import Binding, Reason
from reconciler.model.demand import DependencyRef
from reconciler.model.fleet import Fleet, Template
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity, PolicyRef
from reconciler.stages.dependencies.following import Brought, following, inherited_policy
from reconciler.stages.dependencies.grants import not_granted
from reconciler.stages.dependencies.links import Links, LinkTables, Mention
from reconciler.stages.dependencies.sources import Found, Sources
from reconciler.stages.dependencies.travel import Travel, travel
from reconciler.stages.incremental import among, union
from reconciler.stages.templates import references_of

DEPENDENCY = "dependency"
"""The rule of reasons that come from an owner."""

_MADE_BY_CLUSTERS = frozenset({("ConfigMap", "kube-root-ca.crt")})
"""Objects that every namespace of every cluster has by itself."""


def dependencies(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]] | None = None,
    *,
    interpreters: Registry,
    tables: LinkTables | None = None,
    dirty: Collection[Identity] | None = None,
) -> LinkTables:
    """Return the bindings with those of dependencies.

    `policies`: the policy that claims each template. `bindings`: of the claimed templates. `held`: the clusters where
    an owner's old copy still is, which its dependencies must not leave before it. With the `tables` of an earlier call,
    `dirty` are templates with a changed body, policy, placement or old copies.
    """
    tables, dirty = tables or LinkTables(), union(fleet.templates, bindings) if dirty is None else dirty
    stirred = tables.makers.follow(fleet.templates, dirty, interpreters)
    sources = Sources(fleet, tables.makers.makers)

    def links_of(owner: Identity) -> Links | None:
        template = fleet.templates.get(owner)
        is_bound, is_followed = owner in bindings, owner in tables.followed
        if template is None or not (is_bound or is_followed):
            return None
        refs = references_of(template, interpreters)
        if not refs:
            return None
        brings = is_bound and owner in policies and policies[owner].propagate_deps
        is_told = fleet.is_complete and (brings or is_followed)
        found = [sources.find(ref, owner) for ref in refs]
        going = travel(template, refs, sources, interpreters, at_first=found) if brings else None
        return _links(template, zip(refs, found, strict=True), going or Travel({}, refs), is_told=is_told)

    owners = union(dirty, tables.seekers(union(dirty, stirred)))
    left, released = tables.brought_by(owners), tables.followed_by(owners)
    _link(tables, owners, bindings.keys(), links_of)
    # The links of others show which objects are newly followed, or no more.
    _link(tables, released | tables.followed_by(owners), bindings.keys(), links_of)
    followers = union(dirty, left, tables.brought_by(owners))
    _follow_all(fleet, policies, bindings, held or {}, tables, followers)
    return tables


def _link(
    tables: LinkTables,
    owners: Collection[Identity],
    bindings: Collection[Identity],
    links_of: Callable[[Identity], Links | None],
) -> None:
    """Compute the links of owners anew. An object that is neither bound nor followed has none."""
    known = tables.links.rows
    owners = among(owners, bindings, tables.followed, known)
    tables.link({owner: found for owner in owners if (found := named(owner, links_of, owner)) or owner in known})


def _links(owner: Template, refs: Iterable[tuple[DependencyRef, Found]], going: Travel, *, is_told: bool) -> Links:
    """Return the references of a template, and its dependencies. `is_told`: missing ones are reported."""
    needs: set[Identity] = set()
    problems: list[Problem] = []
    for ref, (targets, is_there, is_refused) in refs:
        needs.update([target.identity for target in targets])
        if is_told and not is_there and not may_be_missing(ref):
            problems.append((not_granted if is_refused else _missing)(owner, ref))
    needs.discard(owner.identity)
    return Links(
        refs=going.refs,
        needs=frozenset(needs),
        brought=going.found,
        followed=going.followed,
        problems=tuple(problems),
    )


def _follow_all(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]],
    tables: LinkTables,
    followers: Collection[Identity],
) -> None:
    """Compute the bindings and policies of followers anew: present and former dependencies, with their own bindings."""
    mentions = tables.mentions(followers)
    # Many dependencies share the policies of their owners.
    of_owners: dict[tuple[PolicyRef, ...], PropagationPolicy] = {}

    def policy_of(identity: Identity) -> PropagationPolicy | None:
        if identity not in mentions or identity in policies:
            return None
        owners = [policies[mention.owner] for mention in mentions[identity]]
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
        return _follow(fleet, own, mentions[identity], bindings, held)

    tables.policies.update(among(followers, mentions, tables.policies.rows), policy_of)
    tables.bindings.update(among(followers, bindings, mentions, tables.bindings.rows), binding_of)


def _follow(
    fleet: Fleet,
    own: Binding,
    mentions: Sequence[Mention],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]],
) -> Binding:
    """The binding of a dependency: its own clusters and those of its owners."""

    def brought() -> Iterator[Brought]:
        for owner, way in mentions:
            source = fleet.templates[owner].source
            reason = Reason(rule=DEPENDENCY, text=way.told(owner, own.identity), source=source)
            yield Brought(owner, reason, _clusters_of(owner, bindings, held))

    return following(own, brought())


def _clusters_of(
    owner: Identity, bindings: Mapping[Identity, Binding], held: Mapping[Identity, Collection[str]]
) -> list[tuple[str, Iterable[str]]]:
    """Return the clusters of an owner, and of its old copies, each with its reason."""
    found: list[tuple[str, Iterable[str]]] = [(f"follows {owner}", bindings[owner].clusters)]
    if owner in held:
        found.append((f"follows {owner}, whose old copy is still there", sorted(held[owner])))
    return found


def may_be_missing(ref: DependencyRef) -> bool:
    """Return whether its owner runs without it, or every cluster makes it."""
    return ref.optional or (ref.identity.kind, ref.identity.name) in _MADE_BY_CLUSTERS


def _missing(owner: Template, ref: DependencyRef) -> Problem:
    """Karmada ignores a missing dependency silently; the workload then waits for it in the member for ever."""
    message = (
        f"{owner.identity} refers to {ref.identity}, which is not in the store and so does not travel with it; "
        "add it, or make sure that every target cluster has it"
    )
    return Problem(
        source=owner.source, path=ref.path, code="dependency-missing", message=message, severity=Severity.WARNING
    )
