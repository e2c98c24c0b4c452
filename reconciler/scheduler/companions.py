"""Workloads that autoscalers of the store scale, and companions that are placed with a workload on request.

The template's number counts at creation; afterwards the live numbers are the autoscalers', so an edit of a template
does not divide them again. Source: design#autoscaled-replicas; Karmada: the label that keeps a member's replicas.

`fleet.reconciler/bring` on a policy, or on a workload (which then counts instead): Services that select its pods,
Ingresses and routes in front of those Services (with their references under propagateDeps), autoscalers that scale it,
PodDisruptionBudgets of its pods. All of them are searched in the namespace of the workload: objects of another
namespace are not its to move. Source: design#bring; Karmada carries none of these along, and its users ask for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Final

from reconciler.api.binding import Binding, Reason
from reconciler.api.content import dig
from reconciler.api.fleet import Fleet, Template
from reconciler.api.policies import Companion, PropagationPolicy
from reconciler.api.refs import Identity
from reconciler.containment import try_call
from reconciler.documents import BRING, parse_brings
from reconciler.incremental import Dependents, Table
from reconciler.kinds.registry import Registry
from reconciler.scheduler.following import Brought, Sources, following, inherited_policy, travel
from reconciler.scheduler.grants import FRONTS, selected_by_labels, selected_by_selector, services_behind, why_in_front
from reconciler.templates import references_of, scale_target_of

_RETAIN_REPLICAS: Final = "resourcetemplate.karmada.io/retain-replicas"
"""Template label: the members decide about its replicas, whatever does it there."""


class Autoscaling:
    """The scale targets of the store's templates.

    `scaled`: old and new targets of templates that changed, or whose policy did. `yielded`: for each target of a bound
    autoscaler, the clusters of that autoscaler.
    """

    __slots__ = ("_scalers", "scaled", "yielded")

    def __init__(self) -> None:
        self._scalers = Dependents[Identity, Identity]()
        self.scaled: set[Identity] = set()
        self.yielded = Table[Identity, frozenset[str]]()

    def follow(
        self, templates: Mapping[Identity, Template], touched: Collection[Identity], interpreters: Registry
    ) -> None:
        """Take the templates. `touched`: those that came, went or changed, or have another policy."""
        before, kinds = self._scalers.on(touched), interpreters.kinds_with("scale_target")
        for identity in touched:
            template = templates.get(identity)
            # Few kinds scale others, and few templates carry the label.
            retains = template is not None and template.labels.get(_RETAIN_REPLICAS) == "true"
            if template is not None and (identity[:2] in kinds or retains):
                target = scale_target_of(template, interpreters)
                found = (target, identity if retains else None)
                self._scalers.put(identity, [one for one in found if one is not None])
            else:
                self._scalers.drop(identity)
        self.scaled = before | self._scalers.on(touched)

    def has(self, policies: Mapping[Identity, PropagationPolicy], identity: Identity) -> bool:
        """Return whether an autoscaler is placed with a workload, or its members control its replicas."""
        scalers = self._scalers.of((identity,))
        if not scalers:
            return False
        return Companion.AUTOSCALERS in policies[identity].brings or any(scaler in policies for scaler in scalers)

    def yield_to(self, bindings: Table[Identity, Binding]) -> Table[Identity, frozenset[str]]:
        """Return `yielded` for these bindings."""
        rows = bindings.rows

        def clusters_of(target: Identity) -> frozenset[str] | None:
            bound = [rows[scaler].clusters for scaler in self._scalers.of((target,)) if scaler in rows]
            return frozenset().union(*bound) if bound else None

        return self.yielded.derive(clusters_of, self.scaled, self._scalers.on(bindings.changed))


COMPANION = "companion"
"""The rule of reasons that come from a workload with companions."""

_SERVICE: Final = ("", "Service")
_BUDGET: Final = ("policy", "PodDisruptionBudget")
_LOOKED_FOR: Final = frozenset({_SERVICE, _BUDGET, *chain.from_iterable(FRONTS.values())})


class CompanionTables:
    """Workloads with companions, and the resulting bindings.

    `bindings` of companions, to be joined over the others. `policies` of companions without one of their own.
    """

    __slots__ = ("bindings", "policies", "wanted")

    def __init__(self) -> None:
        self.wanted = Table[Identity, Collection[Companion]]()
        self.bindings = Table[Identity, Binding]()
        self.policies = Table[Identity, PropagationPolicy]()


def companions(
    fleet: Fleet,
    templates: Table[Identity, Template],
    policies: Table[Identity, PropagationPolicy],
    bindings: Table[Identity, Binding],
    held: Table[Identity, frozenset[str]],
    tables: CompanionTables,
    interpreters: Registry,
) -> CompanionTables:
    """Place companions with their workloads, besides the clusters of their own policy; return the tables.

    `templates`: those of the fleet. `policies`: the policy that claims each. `bindings`: of everything so far,
    dependencies included. `held`: the clusters where a workload's old copy still is. If any companions are wanted, all
    are computed again.
    """

    def brings(identity: Identity) -> Collection[Companion] | None:
        if identity not in policies.rows:
            return None
        written = fleet.templates[identity].annotations.get(BRING)
        return (policies.rows[identity].brings if written is None else parse_brings(written)[0]) or None

    wanted = tables.wanted.derive(brings, templates, policies, within=[policies.rows]).rows
    # By companion the workloads that bring it along, each with why, as the end of the sentence "it …".
    brought: defaultdict[Identity, list[tuple[Identity, str]]] = defaultdict(list)
    if wanted:
        index = CompanionIndex(fleet, interpreters)
        for owner, kinds in wanted.items():
            for identity, why in index.of(fleet.templates[owner], kinds, policies.rows[owner].propagate_deps):
                brought[identity].append((owner, why))
    concerned = sorted(brought.keys() | tables.bindings.rows.keys())

    def policy_of(identity: Identity) -> PropagationPolicy | None:
        if identity not in brought or identity in bindings.rows:
            return None
        return inherited_policy([policies.rows[owner] for owner, _ in brought[identity]])

    def binding_of(identity: Identity) -> Binding | None:
        if identity not in brought:
            return None
        own = bindings.rows.get(identity) or Binding(
            identity=identity, policy=tables.policies.rows[identity].ref, is_dependency=True
        )
        found = []
        for owner, why in brought[identity]:
            text = f"travels with {owner}"
            clusters = (*bindings.rows[owner].clusters, *sorted(held.rows.get(owner, ())))
            reason = Reason(rule=COMPANION, text=f"{text}: {why}", source=fleet.templates[owner].source)
            found.append(Brought(owner, reason, [(text, clusters)]))
        return following(own, found)

    tables.policies.update(concerned, policy_of)
    tables.bindings.update(concerned, binding_of)
    return tables


class CompanionIndex:
    """Services, their fronts, and budgets by namespace; autoscalers by their targets."""

    def __init__(self, fleet: Fleet, interpreters: Registry) -> None:
        """Look at every template of the fleet once."""
        self._fleet, self._interpreters = fleet, interpreters
        self._by_kind: dict[tuple[str, str, str], list[Template]] = defaultdict(list)
        self._scalers: dict[Identity, list[Identity]] = defaultdict(list)
        self._behind: dict[Identity, frozenset[str]] = {}
        for identity, template in sorted(fleet.templates.items()):
            if identity[:2] in _LOOKED_FOR:
                self._by_kind[identity[:3]].append(template)
            target = scale_target_of(template, interpreters)
            if target is not None:
                self._scalers[target].append(identity)

    def of(
        self, workload: Template, brings: Collection[Companion], with_dependencies: bool
    ) -> Iterator[tuple[Identity, str]]:
        """Companions of a workload, each with why it is one."""
        services = self._services(workload)
        if Companion.SERVICES in brings:
            yield from services.items()
        for front in FRONTS:
            if front in brings:
                yield from self._in_front_of(services, FRONTS[front], with_dependencies)
        if Companion.AUTOSCALERS in brings:
            yield from ((identity, "it scales it") for identity in self._scalers.get(workload.identity, ()))
        if Companion.BUDGETS in brings:
            labels = self._pod_labels(workload)
            for budget in self._by_kind.get((*_BUDGET, workload.identity.namespace), ()):
                if labels and selected_by_selector(labels, dig(budget.body, "spec", "selector")):
                    yield budget.identity, "it limits the disruption of its pods"

    def _services(self, workload: Template) -> dict[Identity, str]:
        """Services that select the pods, and the one that governs a StatefulSet."""
        labels = self._pod_labels(workload)
        governing = dig(workload.body, "spec", "serviceName") if workload.identity.kind == "StatefulSet" else None
        found = {}
        for service in self._by_kind.get((*_SERVICE, workload.identity.namespace), ()):
            if selected_by_labels(labels, dig(service.body, "spec", "selector")):
                found[service.identity] = "it selects its pods"
            elif service.identity.name == governing:
                found[service.identity] = "it governs it by spec.serviceName"
        return found

    def _in_front_of(
        self, services: Collection[Identity], kinds: Iterable[tuple[str, str]], with_dependencies: bool
    ) -> Iterator[tuple[Identity, str]]:
        names = {service.name for service in services}
        for place in ((*kind, namespace) for kind in kinds for namespace in {found.namespace for found in services}):
            for front in self._by_kind.get(place, ()):
                # Asked for each workload of its namespace.
                known = self._behind.get(front.identity)
                if known is None:
                    known = self._behind[front.identity] = services_behind(front, self._interpreters)
                if behind := sorted(names & known):
                    yield front.identity, why_in_front(front.identity, behind[0])
                    # An unreadable one is frozen by itself, and its workloads go on.
                    refs = try_call(references_of, front, self._interpreters).value if with_dependencies else None
                    going = travel(front, refs, self._sources, self._interpreters).found if refs else {}
                    for identity, ways in going.items():
                        yield from ((identity, way.told(front.identity, identity)) for way in ways)

    @cached_property
    def _sources(self) -> Sources:
        return Sources.among(self._fleet, self._interpreters)

    def _pod_labels(self, workload: Template) -> Mapping[str, str]:
        interpreter = self._interpreters.of(*workload.identity[:2])
        labels = dig(interpreter.pod_template(workload.body), "metadata", "labels")
        return labels if isinstance(labels, Mapping) else {}
