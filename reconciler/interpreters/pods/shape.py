"""Requests of one pod.

Source: Karmada: request of one replica (containers' requests, else limits; the largest init container; overhead;
nodeSelector, required node affinity and tolerations). Sidecars and pod-level resources count as in Kubernetes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from reconciler.interpreters.reading import mapping, mappings, text
from reconciler.model.demand import NodeTerm, PodShape, resources
from reconciler.model.tree import Json, dig

_NOWHERE = NodeTerm(labels=(("kubernetes.io/hostname", "In", ()),))
"""In without values holds on no node: the meaning of an affinity with only empty terms."""

_POD_LEVEL = ("cpu", "memory", "hugepages-")


def pod_shape(spec: Json) -> PodShape:
    """The shape of a pod spec. Malformed amounts are left out: the API server would refuse them."""
    spec = mapping(spec)
    requests = pod_requests(spec)
    return PodShape(
        requests=tuple(sorted((name, amount) for name, amount in requests.items() if amount > 0 and name != "pods")),
        node_selector=tuple(sorted((key, text(value)) for key, value in mapping(spec.get("nodeSelector")).items())),
        node_terms=_node_terms(spec),
        tolerations=tuple(
            (text(entry.get("key")), text(entry.get("operator")) or "Equal", text(entry.get("value")),
             text(entry.get("effect")))
            for _, entry in mappings(spec.get("tolerations"))
        ),
    )  # fmt: skip


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Amounts that the scheduler reserves for a pod, as `quantity.units` gives them.

    Containers run together with the sidecars; each init container runs beside the sidecars that started before it.
    """
    running, peak = _init_containers(spec)
    for _, container in mappings(spec.get("containers")):
        for name, amount in _amounts(container).items():
            running[name] = max(0, running.get(name, 0) + amount)
    total = {name: amount for name, amount in running.items() if amount}
    for name, amount in peak.items():
        total[name] = max(amount, total.get(name, 0))
    _set_pod_level(total, spec)
    for name, amount in resources(mapping(spec.get("overhead"))).items():
        total[name] = total.get(name, 0) + amount
    return total


def _init_containers(spec: Mapping[str, Any]) -> tuple[dict[str, int], Mapping[str, int]]:
    """Return the sum of the sidecars, and the peak before the containers started."""
    if not spec.get("initContainers"):
        return {}, {}
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for _, container in mappings(spec.get("initContainers")):
        amounts = Counter(_amounts(container))
        if container.get("restartPolicy") == "Always":
            sidecars += amounts
            peak |= sidecars
        else:
            peak |= sidecars + amounts
    return dict(sidecars), peak


def _amounts(container: Mapping[str, Any]) -> dict[str, int]:
    """Requests of a container; a resource that has only a limit counts with its limit."""
    given = mapping(container.get("resources"))
    return resources(mapping(given.get("limits"))) | resources(mapping(given.get("requests")))


def _set_pod_level(total: dict[str, int], spec: Mapping[str, Any]) -> None:
    """Replace the sum by the requests of spec.resources; its limits count for resources that no container requests."""
    given = mapping(spec.get("resources"))
    if not given:
        return
    limits, requests = resources(mapping(given.get("limits"))), resources(mapping(given.get("requests")))
    defaults = {name: amount for name, amount in limits.items() if name not in total}
    total.update((name, amount) for name, amount in (defaults | requests).items() if name.startswith(_POD_LEVEL))


def _node_terms(spec: Mapping[str, Any]) -> tuple[NodeTerm, ...]:
    required = dig(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if not isinstance(required, Mapping):
        return ()
    terms = tuple(
        NodeTerm(labels=_requirements(term.get("matchExpressions")), fields=_requirements(term.get("matchFields")))
        for _, term in mappings(required.get("nodeSelectorTerms"))
    )
    # Kubernetes: an empty term selects no node, while the others are alternatives.
    return tuple(term for term in terms if term.labels or term.fields) or (_NOWHERE,)


def _requirements(entries: Json) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    return tuple(
        (text(entry.get("key")), text(entry.get("operator")), _texts(entry.get("values")))
        for _, entry in mappings(entries)
    )


def _texts(values: Json) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
