"""Dependencies: what a template refers to goes where the template goes, under `propagateDeps`.

Source: "PropagationPolicy and OverridePolicy", propagateDeps; design#dependencies; design#dependency-stays; Karmada:
dependencies distributor. They are not followed further, so a dependency brings nothing along; a ConfigMap that several
owners need is on the clusters of all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from reconciler.interpreters.registry import Lookup, interpreter_for
from reconciler.model.binding import Binding, Reason
from reconciler.model.demand import DependencyRef
from reconciler.model.fleet import Fleet, Template
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity, PolicyRef
from reconciler.stages.dependencies.following import Brought, following
from reconciler.stages.dependencies.inherited_policy import inherited_policy
from reconciler.stages.dependencies.memo import Again, LinkMemo, Links, Mention
from reconciler.stages.incremental import patched
from reconciler.stages.templates import references_of

DEPENDENCY = "dependency"
"""The rule of reasons that rest on an owner."""

_MADE_BY_CLUSTERS = frozenset({("ConfigMap", "kube-root-ca.crt")})
"""What every namespace of every cluster has by itself."""


class DependencyResult(Struct, frozen=True, kw_only=True):
    """Where dependencies go.

    `bindings`: all of them, own ones included. `policies`: for each dependency without a policy of its own, the one
    that holds for it. `needs`: what each bound template refers to in the store, whether it brings it along or not.
    """

    bindings: Mapping[Identity, Binding]
    policies: Mapping[Identity, PropagationPolicy] = field(default_factory=dict)
    needs: Mapping[Identity, frozenset[Identity]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def dependencies(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]] | None = None,
    lookup: Lookup = interpreter_for,
    again: Again | None = None,
) -> DependencyResult:
    """The bindings with those of dependencies.

    `policies`: the policy that claims each template. `bindings`: what placement gave the claimed templates. `held`: the
    clusters where an owner's old copy still is, which its dependencies must not leave before it. `again`: what is known
    from the last call, and what has changed since.
    """
    if again is None:
        again = Again(memo=LinkMemo(), edited=fleet.templates.keys(), moved=bindings.keys())
    memo = again.memo
    by_labels = LabelledTemplates(fleet)
    owners = again.owners(fleet)
    # Dictionaries in place of sets keep what is sorted already in its order.
    affected = dict.fromkeys(identity for identity in again.moved if identity in memo.mentions)
    needs: dict[Identity, frozenset[Identity] | None] = {}
    for owner in owners:
        template = fleet.templates.get(owner) if owner in bindings else None
        refs = references_of(template, lookup) if template is not None else ()
        if template is not None and refs:
            brings = owner in policies and policies[owner].propagate_deps
            links = _links(template, brings, refs, by_labels, fleet.is_complete)
            needs[owner] = links.needs
            affected |= dict.fromkeys(memo.link(owner, links))
        elif owner in memo.needs:
            needs[owner] = None
            affected |= dict.fromkeys(memo.link(owner, None))
    memo.needs = patched(memo.needs, needs)
    memo.templates = fleet.templates
    _follow_all(fleet, policies, bindings, held or {}, again, affected)
    return DependencyResult(
        bindings=memo.bindings, policies=memo.inherited, needs=memo.needs, problems=tuple(sorted(memo.problems()))
    )


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
                problems.append(_missing(template, ref))
    needs = frozenset(found - {template.identity})
    return Links(refs=refs, needs=needs, brought=brought, problems=tuple(problems))


def _follow_all(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]],
    again: Again,
    affected: Collection[Identity],
) -> None:
    """Give the affected dependencies their bindings and policies anew."""
    memo = again.memo
    changes: dict[Identity, Binding | None] = {identity: bindings.get(identity) for identity in again.moved}
    inherited: dict[Identity, PropagationPolicy | None] = {}
    # Many dependencies share the policies of their owners.
    of_owners: dict[tuple[PolicyRef, ...], PropagationPolicy] = {}
    for identity in sorted(affected):
        mentions = memo.mentions_of(identity)
        policy: PropagationPolicy | None = None
        if mentions and identity not in policies:
            owners = [policies[mention.owner] for mention in mentions]
            names = tuple([owner.ref for owner in owners])
            policy = of_owners.get(names) or of_owners.setdefault(names, inherited_policy(owners))
        if policy is not None or identity in memo.inherited:
            inherited[identity] = policy
        own = bindings.get(identity)
        if mentions:
            own = own or Binding(
                identity=identity, policy=(policy or policies[identity]).ref, is_dependency=policy is not None
            )
            own = _follow(fleet, own, mentions, bindings, held)
        changes[identity] = own
    memo.changed = changes.keys()
    memo.bindings = patched(memo.bindings, changes)
    memo.inherited = patched(memo.inherited, inherited)


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
            reason = Reason(rule=DEPENDENCY, text=f"{owner} refers to it in {path}", source=source)
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
        """Identities of the templates that the reference means, sorted; empty when there is none."""
        if not ref.labels:
            return (ref.identity,) if ref.identity in self._fleet.templates else ()
        if self._by_place is None:
            self._by_place = defaultdict(list)
            for identity, template in sorted(self._fleet.templates.items()):
                self._by_place[identity[:3]].append(template)
        candidates = self._by_place.get(ref.identity[:3], ())
        return tuple(
            template.identity
            for template in candidates
            if all(template.labels.get(key) == value for key, value in ref.labels)
        )


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
