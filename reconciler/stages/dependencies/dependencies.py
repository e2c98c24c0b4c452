"""Dependencies: what a template refers to goes where the template goes, under `propagateDeps`.

Source: "PropagationPolicy and OverridePolicy", propagateDeps; design#dependencies; design#dependency-stays; Karmada:
dependencies distributor. They are not followed further, so a dependency brings nothing along; a ConfigMap that several
owners need is on the clusters of all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from reconciler.containment import named
from reconciler.interpreters.registry import Registry
from reconciler.model.binding import Binding, Reason
from reconciler.model.demand import DependencyRef
from reconciler.model.fleet import Fleet, Template
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity, PolicyRef
from reconciler.stages.dependencies.following import Brought, following
from reconciler.stages.dependencies.grants import granting, grants_place, how, not_granted
from reconciler.stages.dependencies.inherited_policy import inherited_policy
from reconciler.stages.dependencies.links import Links, LinkTables, Mention
from reconciler.stages.incremental import union
from reconciler.stages.templates import references_of

DEPENDENCY = "dependency"
"""The rule of reasons that rest on an owner."""

_MADE_BY_CLUSTERS = frozenset({("ConfigMap", "kube-root-ca.crt")})
"""What every namespace of every cluster has by itself."""


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
    """The bindings with those of dependencies.

    `policies`: the policy that claims each template. `bindings`: what placement gave the claimed templates. `held`: the
    clusters where an owner's old copy still is, which its dependencies must not leave before it. With the `tables` of
    an earlier call, `dirty` are those whose template, policy, placement or old copies came, went or changed.
    """
    tables, dirty = tables or LinkTables(), bindings.keys() if dirty is None else dirty
    by_labels = LabelledTemplates(fleet)

    def links_of(owner: Identity) -> Links | None:
        template = fleet.templates.get(owner) if owner in bindings else None
        refs = references_of(template, interpreters) if template is not None else ()
        if template is None or not refs:
            return None
        brings = owner in policies and policies[owner].propagate_deps
        return _links(template, brings, refs, by_labels, fleet.is_complete)

    owners = union(dirty, tables.seekers(dirty))
    left = tables.brought_by(owners)
    known = tables.links.rows
    tables.link({owner: found for owner in owners if (found := named(owner, links_of, owner)) or owner in known})
    followers = union(dirty, left, tables.brought_by(owners))
    _follow_all(fleet, policies, bindings, held or {}, tables, followers)
    return tables


def _links(
    template: Template,
    brings: bool,
    refs: tuple[DependencyRef, ...],
    by_labels: LabelledTemplates,
    is_complete: bool,
) -> Links:
    """What a bound template refers to."""
    found: set[Identity] = set()
    brought: dict[Identity, list[str]] = {}
    problems: list[Problem] = []
    for ref in refs:
        targets = by_labels.find(ref)
        found.update(targets)
        if brings:
            for target in targets:
                brought.setdefault(target, []).append(ref.path)
            if not targets and is_complete and not may_be_missing(ref):
                problems.append((not_granted if by_labels.named(ref) else _missing)(template, ref))
    needs = frozenset(found - {template.identity})
    return Links(refs=refs, needs=needs, brought=brought, problems=tuple(problems))


def _follow_all(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]],
    tables: LinkTables,
    followers: Collection[Identity],
) -> None:
    """Find the bindings and policies of followers anew: of what is brought along, or was, or is bound by itself."""
    mentions = {identity: tables.mentions_of(identity) for identity in tables.brought(followers)}
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

    tables.policies.update(followers, policy_of)
    tables.bindings.update(followers, binding_of)


def _follow(
    fleet: Fleet,
    own: Binding,
    mentions: Sequence[Mention],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]],
) -> Binding:
    """The binding of a dependency: its own clusters and those of its owners."""

    def brought() -> Iterator[Brought]:
        for owner, path in mentions:
            source = fleet.templates[owner].source
            reason = Reason(rule=DEPENDENCY, text=f"{owner} {how(own.identity, path)}", source=source)
            yield Brought(owner, reason, _clusters_of(owner, bindings, held))

    return following(own, brought())


def _clusters_of(
    owner: Identity, bindings: Mapping[Identity, Binding], held: Mapping[Identity, Collection[str]]
) -> list[tuple[str, Iterable[str]]]:
    """Why, and where to: with an owner, and with its old copies."""
    found: list[tuple[str, Iterable[str]]] = [(f"follows {owner}", bindings[owner].clusters)]
    if owner in held:
        found.append((f"follows {owner}, whose old copy is still there", sorted(held[owner])))
    return found


class LabelledTemplates:
    """Finds what a reference names: one template, or all of a kind and namespace that carry labels."""

    __slots__ = ("_by_place", "_fleet")

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._by_place: dict[tuple[str, str, str], list[Template]] | None = None

    def find(self, ref: DependencyRef) -> tuple[Identity, ...]:
        """What goes along with a reference: what it names, with what grants it; empty when there is none."""
        found = self.named(ref)
        if not found or not ref.granted_to:
            return found
        grants = self.grants(ref)
        return (*found, *grants) if grants else ()

    def named(self, ref: DependencyRef) -> tuple[Identity, ...]:
        """Identities of the templates that the reference means, sorted, whether it may or not."""
        if not ref.labels:
            return (ref.identity,) if ref.identity in self._fleet.templates else ()
        return tuple(
            template.identity
            for template in self._at(ref.identity[:3])
            if all(template.labels.get(key) == value for key, value in ref.labels)
        )

    def grants(self, ref: DependencyRef) -> tuple[Identity, ...]:
        """What lets an object of another namespace refer so, sorted; empty when nobody is asked, or nobody does."""
        return granting(ref, self._at(grants_place(ref))) if ref.granted_to else ()

    def _at(self, place: tuple[str, str, str]) -> Sequence[Template]:
        if self._by_place is None:
            self._by_place = defaultdict(list)
            for identity, template in sorted(self._fleet.templates.items()):
                self._by_place[identity[:3]].append(template)
        return self._by_place.get(place, ())


def may_be_missing(ref: DependencyRef) -> bool:
    """Whether its owner runs without it, or every cluster makes it."""
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
