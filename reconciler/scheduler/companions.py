"""Workloads that autoscalers of the store scale, and companions that are placed with a workload on request.

An edit of a template does not divide live replicas again. Source: design#autoscaled-replicas; Karmada: the label that
keeps a member's replicas. `fleet.reconciler/bring` on a policy, or on a workload (which counts instead): Services of
its pods, Ingresses and routes in front of these (with references under propagateDeps), autoscalers,
PodDisruptionBudgets; all in its namespace. Source: design#bring; Gateway API: routes by their backends, and by a
Service as their parent in a mesh, BackendTLSPolicy by its targets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from reconciler.api.binding import Binding, Reason
from reconciler.api.content import Json, dig
from reconciler.api.fleet import Template
from reconciler.api.policies import Companion, LabelRequirement, LabelSelector, Operator, PropagationPolicy
from reconciler.api.refs import Identity
from reconciler.containment import try_call
from reconciler.documents import BRING, parse_brings
from reconciler.incremental import Dependents, Table, by_key
from reconciler.kinds.body_fields import mapping, mappings, text
from reconciler.kinds.registry import Registry
from reconciler.scheduler.following import FollowerPlacement, Sources, following, inherited_policy, travel
from reconciler.templates import references_of, scale_target_of

RETAIN_REPLICAS: Final = "resourcetemplate.karmada.io/retain-replicas"
"""Template label: the members decide about its replicas, whatever does it there."""


class Autoscaling:
    """Scale targets. `scaled`: old and new ones of changed templates. `yielded`: clusters of a target's autoscalers."""

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
            retains = template is not None and template.labels.get(RETAIN_REPLICAS) == "true"
            if template is not None and (identity[:2] in kinds or retains):
                targets = (scale_target_of(template, interpreters), identity if retains else None)
                self._scalers.put(identity, [one for one in targets if one is not None])
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


def selected_by_labels(labels: Mapping[str, str], selector: Json) -> bool:
    """Return whether a Service selects pods with these labels. Without a selector it selects none."""
    wanted = mapping(selector)
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())


def selected_by_selector(labels: Mapping[str, str], selector: Json) -> bool:
    """Return whether a label selector selects pods with these labels: an empty one all, a missing one none."""
    if not isinstance(selector, Mapping):
        return False
    if not selected_by_labels(labels, selector.get("matchLabels")) and mapping(selector.get("matchLabels")):
        return False
    requirements = []
    for _, expression in mappings(selector.get("matchExpressions")):
        operator, values = text(expression.get("operator")), expression.get("values")
        if operator not in tuple(Operator):
            return False
        strings = frozenset(one for one in values if isinstance(one, str)) if isinstance(values, list) else frozenset()
        key = text(expression.get("key"))
        requirements.append(LabelRequirement(key=key, operator=Operator(operator), values=strings))
    return LabelSelector(requirements=tuple(requirements)).matches(labels)


_GATEWAYS: Final = "gateway.networking.k8s.io"
_INGRESS: Final = ("networking.k8s.io", "Ingress")
_BACKEND_TLS: Final = (_GATEWAYS, "BackendTLSPolicy")

FRONTS: Final[Mapping[Companion, tuple[tuple[str, str], ...]]] = {
    Companion.INGRESSES: (_INGRESS,),
    Companion.ROUTES: (
        *((_GATEWAYS, kind) for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")),
        _BACKEND_TLS,
    ),
}
"""Group and kind of each word of `fleet.reconciler/bring`."""


def services_behind(front: Template, interpreters: Registry) -> frozenset[str]:
    """Return names of the Services of its own namespace that it leads to, or is about."""
    kind = front.identity[:2]
    if kind == _INGRESS:
        backends = [dig(front.body, "spec", "defaultBackend")]
        for _, rule in mappings(dig(front.body, "spec", "rules")):
            backends += [path.get("backend") for _, path in mappings(dig(rule, "http", "paths"))]
        return frozenset(name for backend in backends if (name := text(dig(backend, "service", "name"))))
    if kind == _BACKEND_TLS:
        services = (
            target
            for _, target in mappings(dig(front.body, "spec", "targetRefs"))
            if target.get("kind") == "Service" and not target.get("group")
        )
        return frozenset(text(service.get("name")) for service in services)
    refs = try_call(references_of, front, interpreters).value or ()
    place = ("", "Service", front.identity.namespace)
    return frozenset(ref.identity.name for ref in refs if ref.identity[:3] == place)


COMPANION = "companion"
"""The rule of reasons that come from a workload with companions."""

_SERVICE: Final = ("", "Service")
_BUDGET: Final = ("policy", "PodDisruptionBudget")


class CompanionTables:
    """Workloads with companions, bindings of these to lay over others, and policies of those without one."""

    def __init__(self) -> None:
        self.wanted = Table[Identity, Collection[Companion]]()
        self.bindings = Table[Identity, Binding]()
        self.policies = Table[Identity, PropagationPolicy]()


def companions(
    sources: Sources,
    templates: Table[Identity, Template],
    policies: Table[Identity, PropagationPolicy],
    bindings: Table[Identity, Binding],
    held: Table[Identity, frozenset[str]],
    tables: CompanionTables,
    interpreters: Registry,
) -> CompanionTables:
    """Place companions with their workloads, besides the clusters of their own policy; return the tables.

    `bindings`: of everything so far. `held`: clusters of a workload's old copies. If any are wanted, all are computed.
    """
    fleet = sources.fleet

    def brings(identity: Identity) -> Collection[Companion] | None:
        if identity not in policies.rows:
            return None
        written = fleet.templates[identity].annotations.get(BRING)
        return (policies.rows[identity].brings if written is None else parse_brings(written)[0]) or None

    wanted = tables.wanted.derive(brings, templates, policies, within=[policies.rows]).rows
    # By companion the workloads that bring it along, each with why, as the end of the sentence "it …".
    brought: defaultdict[Identity, list[tuple[Identity, str]]] = defaultdict(list)
    if wanted:
        index = CompanionIndex(sources, interpreters)
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
        placements = []
        for owner, why in brought[identity]:
            text = f"travels with {owner}"
            clusters = (*bindings.rows[owner].clusters, *sorted(held.rows.get(owner, ())))
            reason = Reason(rule=COMPANION, text=f"{text}: {why}", source=fleet.templates[owner].source)
            placements.append(FollowerPlacement(owner, reason, [(text, clusters)]))
        return following(own, placements)

    tables.policies.update(concerned, policy_of)
    tables.bindings.update(concerned, binding_of)
    return tables


class CompanionIndex:
    """Services, their fronts and budgets, by the sources of a fleet; autoscalers by their targets."""

    def __init__(self, sources: Sources, interpreters: Registry) -> None:
        self._sources, self._interpreters = sources, interpreters
        self._behind: dict[Identity, frozenset[str]] = {}
        scaled = ((scale_target_of(one, interpreters), one.identity) for one in sources.fleet.templates.values())
        self._scalers = by_key(sorted((target, scaler) for target, scaler in scaled if target is not None))

    def of(
        self, workload: Template, brings: Collection[Companion], with_dependencies: bool
    ) -> Iterator[tuple[Identity, str]]:
        """Yield the companions of a workload, each with why it is one."""
        labels = dig(self._interpreters.of(*workload.identity[:2]).pod_template(workload.body), "metadata", "labels")
        pods: Mapping[str, str] = labels if isinstance(labels, Mapping) else {}
        governing = dig(workload.body, "spec", "serviceName") if workload.identity.kind == "StatefulSet" else None
        services: dict[Identity, str] = {}
        for service in self._sources.at((*_SERVICE, workload.identity.namespace)):
            if selected_by_labels(pods, dig(service.body, "spec", "selector")):
                services[service.identity] = "it selects its pods"
            elif service.identity.name == governing:
                services[service.identity] = "it governs it by spec.serviceName"
        if Companion.SERVICES in brings:
            yield from services.items()
        for front in FRONTS:
            if front in brings:
                yield from self._in_front_of(services, FRONTS[front], with_dependencies)
        if Companion.AUTOSCALERS in brings:
            yield from ((identity, "it scales it") for identity in self._scalers.get(workload.identity, ()))
        if Companion.BUDGETS in brings:
            for budget in self._sources.at((*_BUDGET, workload.identity.namespace)):
                if pods and selected_by_selector(pods, dig(budget.body, "spec", "selector")):
                    yield budget.identity, "it limits the disruption of its pods"

    def _in_front_of(
        self, services: Collection[Identity], kinds: Iterable[tuple[str, str]], with_dependencies: bool
    ) -> Iterator[tuple[Identity, str]]:
        names = {service.name for service in services}
        for place in ((*kind, namespace) for kind in kinds for namespace in {one.namespace for one in services}):
            for front in self._sources.at(place):
                # Asked for each workload of its namespace.
                known = self._behind.get(front.identity)
                if known is None:
                    known = self._behind[front.identity] = services_behind(front, self._interpreters)
                if behind := sorted(names & known):
                    is_about = front.identity[:2] == _BACKEND_TLS
                    yield front.identity, f"it {'is about' if is_about else 'leads to'} Service {behind[0]}"
                    # An unreadable one is frozen by itself, and its workloads go on.
                    refs = try_call(references_of, front, self._interpreters).value if with_dependencies else None
                    going = travel(front, refs, self._sources, self._interpreters).paths if refs else {}
                    for identity, ways in going.items():
                        yield from ((identity, way.sentence(front.identity, identity)) for way in ways)
