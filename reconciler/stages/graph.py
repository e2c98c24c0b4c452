"""Dependencies: what a template refers to goes where the template goes, under `propagateDeps`.

Source: "PropagationPolicy and OverridePolicy", propagateDeps; Karmada: dependencies distributor. They are not followed
further, so a dependency brings nothing along; a ConfigMap that several owners need is on the clusters of all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.interpreters.registry import Lookup, interpreter_for
from reconciler.model.binding import Binding, Reason, TargetCluster
from reconciler.model.demand import DependencyRef
from reconciler.model.fleet import Fleet, Template
from reconciler.model.policy import ConflictResolution, PropagationPolicy, Suspension
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity, PolicyRef

DEPENDENCY = "dependency"
"""The rule of reasons that rest on an owner."""

_MADE_BY_CLUSTERS = frozenset({("ConfigMap", "kube-root-ca.crt")})
"""What every namespace of every cluster has by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyResult:
    """Where dependencies go.

    `bindings`: all of them, own ones included. `policies`: for each dependency without a policy of its own, the one
    that holds for it. `needs`: what each bound template refers to in the store, whether it brings it along or not.
    """

    bindings: Mapping[Identity, Binding]
    policies: Mapping[Identity, PropagationPolicy] = field(default_factory=dict)
    needs: Mapping[Identity, frozenset[Identity]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Mention:
    """One owner that brings a dependency along, and the field that refers to it."""

    owner: Identity
    path: str


def dependencies(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]] | None = None,
    lookup: Lookup = interpreter_for,
) -> DependencyResult:
    """The bindings with those of dependencies.

    `policies`: the policy that claims each template. `bindings`: what placement gave the claimed templates. `held`: the
    clusters where an owner's old copy still is, which its dependencies must not leave before it.
    """
    by_labels = _LabelledTemplates(fleet)
    mentions: dict[Identity, list[_Mention]] = defaultdict(list)
    needs: dict[Identity, frozenset[Identity]] = {}
    problems: list[Problem] = []
    for owner in sorted(bindings):
        template = fleet.templates.get(owner)
        refs = lookup(*owner[:2]).dependencies(template.body) if template else ()
        if not refs or template is None:
            continue
        brings = owner in policies and policies[owner].propagate_deps
        found: set[Identity] = set()
        for ref in refs:
            targets = by_labels.find(ref)
            found.update(targets)
            if not brings:
                continue
            for target in targets:
                mentions[target].append(_Mention(owner, ref.path))
            if not targets and fleet.is_complete and not _may_be_missing(ref):
                problems.append(_missing(template, ref))
        needs[owner] = frozenset(found - {owner})
    result = dict(bindings)
    inherited: dict[Identity, PropagationPolicy] = {}
    # Many dependencies share the policies of their owners.
    of_owners: dict[tuple[PolicyRef, ...], PropagationPolicy] = {}
    for identity in sorted(mentions):
        followed = [mention for mention in mentions[identity] if mention.owner != identity]
        if not followed:
            continue
        if identity not in policies:
            owners = [policies[mention.owner] for mention in followed]
            names = tuple(policy.ref for policy in owners)
            inherited[identity] = of_owners.get(names) or of_owners.setdefault(names, _inherited(owners))
        own = bindings.get(identity) or Binding(
            identity=identity,
            policy=(inherited.get(identity) or policies[identity]).ref,
            is_dependency=identity in inherited,
        )
        result[identity] = _follow(fleet, own, followed, bindings, held or {})
    return DependencyResult(
        bindings=result, policies=inherited, needs=needs, problems=tuple(sorted(problems))
    )  # fmt: skip


def _follow(
    fleet: Fleet,
    own: Binding,
    mentions: list[_Mention],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]],
) -> Binding:
    """The binding of a dependency: its own clusters and those of its owners; the first mention gives the reason."""
    targets = {target.cluster: target for target in own.targets}
    cluster_reasons = dict(own.cluster_reasons)
    reasons = list(own.reasons)
    for mention in mentions:
        owner, source = mention.owner, fleet.templates[mention.owner].source
        reasons.append(Reason(rule=DEPENDENCY, text=f"{owner} refers to it in {mention.path}", source=source))
        for text, clusters in _clusters_of(owner, bindings, held):
            for cluster in clusters:
                if cluster not in targets:
                    targets[cluster] = TargetCluster(cluster)
                    cluster_reasons[cluster] = Reason(rule=DEPENDENCY, text=text, source=source, cluster=cluster)
    return replace(
        own,
        targets=tuple(targets[cluster] for cluster in sorted(targets)),
        owners=tuple(sorted({mention.owner for mention in mentions})),
        reasons=tuple(reasons),
        cluster_reasons=cluster_reasons,
    )


def _clusters_of(
    owner: Identity, bindings: Mapping[Identity, Binding], held: Mapping[Identity, Collection[str]]
) -> Iterator[tuple[str, Iterable[str]]]:
    """Why, and where to: with an owner, and with its old copies."""
    yield f"follows {owner}", bindings[owner].clusters
    if owner in held:
        yield f"follows {owner}, whose old copy is still there", sorted(held[owner])


def _inherited(owners: Sequence[PropagationPolicy]) -> PropagationPolicy:
    """The policy of the first owner, with what all owners together ask of a dependency.

    Source: design, row "dependency settings"; Karmada: any Overwrite, any preserve. It is suspended where every owner
    is. It neither fails over by itself nor brings anything along.
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
    )


class _LabelledTemplates:
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


def _may_be_missing(ref: DependencyRef) -> bool:
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
