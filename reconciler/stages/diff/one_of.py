"""Mutually exclusive fields: a desired one displaces a live one.

Server-side apply takes away only our fields. Next to our `httpGet` it would leave the `tcpSocket` that somebody put in
its place, or the `rollingUpdate` that the API server filled in before we asked for `Recreate`, and the API server
refuses the two together. Source: Kubernetes: validation of probes, environment variables, volumes, update strategies,
profiles and disruption budgets; client-side apply has `retainKeys` for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from reconciler.model.tree import JsonObject
from reconciler.stages.ownership import FieldPath, value_at
from reconciler.stages.schemas import Node

_ALTERNATIVES: Final = tuple(
    map(
        frozenset,
        (
            ("exec", "grpc", "httpGet", "tcpSocket"),
            ("exec", "httpGet", "sleep", "tcpSocket"),
            ("value", "valueFrom"),
            ("configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"),
            ("maxUnavailable", "minAvailable"),
        ),
    )
)
"""Fields of one struct that exclude each other."""

_OF_A_VOLUME: Final = frozenset(("configMap", "emptyDir", "hostPath", "persistentVolumeClaim", "secret"))
"""A struct with these is a volume, all of whose fields but the name exclude each other."""

_ONLY_WITH_TYPE: Final = {"rollingUpdate": "RollingUpdate", "localhostProfile": "Localhost"}
"""Fields that a struct may have only while its `type` is this one."""


def displaced(
    wanted: JsonObject, live: JsonObject, root: Node, changed: Iterable[FieldPath]
) -> dict[FieldPath, FieldPath]:
    """Return paths of live fields that desired ones exclude, each with the changed path that displaces it."""
    found: dict[FieldPath, FieldPath] = {}
    for path in changed:
        name = path[-1] if path else None
        node = _node_at(root, path[:-1])
        if not isinstance(name, str) or node is None or name not in node.fields:
            continue
        want, there = value_at(wanted, path[:-1]), value_at(live, path[:-1])
        if isinstance(want, Mapping) and isinstance(there, Mapping):
            for rival in _rivals(name, want, node):
                if rival not in want and there.get(rival) is not None:
                    found.setdefault((*path[:-1], rival), path)
    return found


def _rivals(name: str, want: Mapping[str, Any], node: Node) -> Iterator[str]:
    """Fields that the wanted value of a field excludes."""
    if name == "type":
        yield from (rival for rival, kind in _ONLY_WITH_TYPE.items() if rival in node.fields and want[name] != kind)
    elif node.fields.keys() >= _OF_A_VOLUME:
        yield from sorted(node.fields.keys() - {name, "name"} if name != "name" else ())
    else:
        for group in _ALTERNATIVES:
            if name in group and node.fields.keys() >= group:
                yield from sorted(group - {name})


def _node_at(root: Node, path: FieldPath) -> Node | None:
    node: Node | None = root
    for step in path:
        if node is None:
            return None
        node = node.child(step) if isinstance(step, str) else node.item
    return node
