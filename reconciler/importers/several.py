"""Copies in several clusters as one template: replicas as weights, other differences as overrides.

Source: design#division: static weights equal to the live replicas reproduce the live replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from reconciler.api.clusters import LiveObject
from reconciler.api.content import Json, JsonObject, digest_of
from reconciler.api.refs import GVK, Identity
from reconciler.documents import pointer_text
from reconciler.importers.template import POLICY_API, adopting_policy, template_of
from reconciler.kinds.registry import Registry

_NAME_MAX = 63
OBVIOUS_GROUPS = frozenset({"", "apps", "batch"})
"""Groups whose kinds are known by their kind alone; names of policies and files leave them out."""


class Imported(Struct, frozen=True, kw_only=True):
    """One object for the store: its template, its clusters, and the differences there.

    `weights`: replicas by cluster if they are divided; empty: each cluster has the template's number. `patches`:
    differences of clusters, as operations of an override.
    """

    gvk: GVK
    identity: Identity
    template: JsonObject
    clusters: tuple[str, ...]
    weights: Mapping[str, int]
    patches: Mapping[str, tuple[JsonObject, ...]]


def imported(copies: Mapping[str, LiveObject], interpreters: Registry) -> Imported:
    """Return the copies of one object, by cluster, as one template; it has the most common content."""
    clusters = tuple(sorted(copies))
    first = copies[clusters[0]]
    kind = interpreters.of(*first.identity[:2])
    bodies: dict[str, Any] = {}
    for name in clusters:
        body = template_of(copies[name], interpreters)
        # Clusters of different versions may serve different versions of a kind; a store has one.
        bodies[name] = {**body, "apiVersion": first.gvk.api_version, "kind": first.gvk.kind}
    weights = _weights(first, bodies, interpreters)
    if weights:
        total = sum(weights.values())
        bodies = {name: kind.with_replicas(body, total) for name, body in bodies.items()}
    template = _commonest(bodies)
    patches = {name: tuple(_operations(template, body)) for name, body in bodies.items()}
    return Imported(
        gvk=first.gvk,
        identity=first.identity,
        template=template,
        clusters=clusters,
        weights=weights,
        patches={name: found for name, found in patches.items() if found},
    )


def policies_of(objects: Iterable[Imported]) -> Iterator[dict[str, Any]]:
    """The policies under which the objects are adopted where they run, as they run there.

    One policy for all objects of a namespace that are in the same clusters, one more for each that is divided, and an
    override policy for each that differs.
    """
    alike: dict[tuple[str, tuple[str, ...]], list[Imported]] = {}
    for found in sorted(objects, key=lambda found: found.identity):
        if found.weights:
            name = _safe_name(*_words(found.identity))
            yield adopting_policy(found.identity.namespace, [_selector(found)], _divided(found), name)
        else:
            alike.setdefault((found.identity.namespace, found.clusters), []).append(found)
        if found.patches:
            yield _override_policy(found)
    for (namespace, clusters), group in sorted(alike.items(), key=lambda item: item[0]):
        placement = {"clusterAffinity": {"clusterNames": list(clusters)}}
        yield adopting_policy(namespace, [_selector(found) for found in group], placement, _safe_name(*clusters))


def _weights(first: LiveObject, bodies: Mapping[str, JsonObject], interpreters: Registry) -> dict[str, int]:
    """Replicas by cluster where they differ and can be divided; empty where all have the same, or one has none.

    A Job divides its completions when it is made, and those of one that runs are fixed.
    """
    kind = interpreters.of(*first.identity[:2])
    demands = {name: kind.demand(body) for name, body in bodies.items()}
    replicas = {name: demand.replicas or 0 for name, demand in demands.items()}
    can_divide = all(demand.is_divisible and not demand.components for demand in demands.values())
    if not can_divide or first.identity[:2] == ("batch", "Job") or not all(replicas.values()):
        return {}
    return replicas if len(set(replicas.values())) > 1 else {}


def _commonest(bodies: Mapping[str, JsonObject]) -> JsonObject:
    """Return the most common body; of equals, that of the first cluster by name."""
    digests = {name: digest_of(body) for name, body in sorted(bodies.items())}
    (digest, _), *_ = Counter(digests.values()).most_common(1)
    return next(bodies[name] for name, found in digests.items() if found == digest)


def _operations(before: Json, after: Json, at: tuple[str, ...] = ()) -> Iterator[JsonObject]:
    """Yield the operations of a `plaintext` override that turn one body into the other."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            path = (*at, key)
            if key not in after:
                yield {"path": pointer_text(path), "operator": "remove"}
            elif key not in before:
                yield {"path": pointer_text(path), "operator": "add", "value": after[key]}
            else:
                yield from _operations(before[key], after[key], path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _operations(one, other, (*at, str(index)))
    else:
        yield {"path": pointer_text(at), "operator": "replace", "value": after}


def _selector(found: Imported) -> dict[str, str]:
    return {"apiVersion": found.gvk.api_version, "kind": found.gvk.kind, "name": found.identity.name}


def _divided(found: Imported) -> dict[str, Any]:
    weights = [
        {"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in sorted(found.weights.items())
    ]
    return {
        "clusterAffinity": {"clusterNames": list(found.clusters)},
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": weights},
        },
    }


def _override_policy(found: Imported) -> dict[str, Any]:
    """One rule for clusters that differ in the same way."""
    alike: dict[str, list[str]] = {}
    for name, operations in sorted(found.patches.items()):
        alike.setdefault(digest_of(list(operations)), []).append(name)
    rules = [
        {"targetCluster": {"clusterNames": names}, "overriders": {"plaintext": list(found.patches[names[0]])}}
        for names in alike.values()
    ]
    namespace = found.identity.namespace
    return {
        "apiVersion": POLICY_API,
        "kind": "OverridePolicy" if namespace else "ClusterOverridePolicy",
        "metadata": {
            "name": _safe_name(*_words(found.identity)),
            **({"namespace": namespace} if namespace else {}),
        },
        "spec": {"resourceSelectors": [_selector(found)], "overrideRules": rules},
    }


def _words(identity: Identity) -> tuple[str, ...]:
    """Kind and name, with the group where that is not obvious."""
    group = () if identity.group in OBVIOUS_GROUPS else (identity.group,)
    return (identity.kind, *group, identity.name)


def _safe_name(*parts: str) -> str:
    """Return a legal name for a policy: of its subject, or of a digest if that is too long or illegal."""
    name = "-".join(("imported", *parts)).lower()
    is_legal = len(name) <= _NAME_MAX and all(
        (letter.isalnum() and letter.isascii()) or letter in "-." for letter in name
    )
    return name if is_legal else f"imported-{digest_of(list(parts))[:16]}"
