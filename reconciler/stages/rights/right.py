"""One right, as a rule of a ClusterRole has it, and the levels at which rights are given.

Source: Kubernetes, "Using RBAC Authorization", Referring to resources.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Level(StrEnum):
    """The intended use of the rights; each level has those of the one before."""

    READ = "read"
    """Compare and report: `diff`, `status`, `run` in mode observe."""
    APPLY = "apply"
    """Create, change, adopt and release, without deleting."""
    FULL = "full"
    """Everything, deletions and replacements too."""

    def has(self, other: Level) -> bool:
        """Return whether the rights of the other level are among those of this one."""
        order = list(Level)
        return order.index(other) <= order.index(self)


_ORDER: Final = ("get", "list", "watch", "create", "patch", "delete", "escalate", "bind")
"""Verbs as people write them."""


class Right(Struct, frozen=True, order=True):
    """Verbs on one resource type. `names`: of these objects alone; empty: of all of them."""

    group: str
    resource: str
    names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As kubectl names it: `get, list deployments.apps`, `get configmaps fleet-shop`."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return " ".join((", ".join(self.verbs), resource, *self.names))


def merged(rights: Iterable[Right]) -> tuple[Right, ...]:
    """The same rights, each resource once, sorted; those on some objects only as far as not all of them are meant."""
    found: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for right in rights:
        found.setdefault((right.group, right.resource, right.names), set()).update(right.verbs)
    kept = []
    for (group, resource, names), verbs in sorted(found.items()):
        of_all = found.get((group, resource, ()), set()) if names else set()
        if left := sorted(verbs - of_all, key=_ORDER.index):
            kept.append(Right(group, resource, names, tuple(left)))
    return tuple(kept)
