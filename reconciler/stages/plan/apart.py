"""The boundary of one object: whatever goes wrong while it is settled concerns it alone, where possible in one cluster.

Source: design#boundaries. A fault of our own, or of an interpreter that somebody installed, is met first by the object
that brings it out; the objects beside it, and its copies in other clusters, must not wait for the mend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from reconciler.containment import INTERNAL_ERROR, contained
from reconciler.model.observation import LiveObject, Read
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity
from reconciler.stages.comparison import Scene
from reconciler.stages.rendering import fault_of

_T = TypeVar("_T")


def settle_apart(
    scene: Scene, identity: Identity, fault: Exception | None, settle: Callable[[Scene], _T], nothing: _T
) -> tuple[_T, tuple[Problem, ...]]:
    """What `settle` makes of an object whose first try ended with a fault, and what is said of what is left out.

    Copies that cannot be settled even when they are the only ones seen count as unread. `nothing`: it does not help.
    """
    fleet = scene.decision.fleet
    clusters = [
        name for name, member in scene.members.items() if isinstance(member, Read) and identity in member.objects
    ]
    faults = {}
    for cluster in clusters:
        _, found = contained(settle, _unread(scene, identity, [name for name in clusters if name != cluster]))
        if found is not None:
            faults[cluster] = found
    if faults:
        part, again = contained(settle, _unread(scene, identity, list(faults)))
        if part is not None:
            return part, tuple(fault_of(fleet, identity, found, cluster) for cluster, found in faults.items())
        fault = again
    return nothing, (fault_of(fleet, identity, fault),)


def _unread(scene: Scene, identity: Identity, clusters: list[str]) -> Scene:
    members = dict(scene.members)
    for name in clusters:
        member = members[name]
        assert isinstance(member, Read), "an object was seen in it"
        unread = {**member.unread, identity: f"{INTERNAL_ERROR}: it could not be settled"}
        members[name] = replace(member, objects=_Without(member.objects, identity), unread=unread)
    return replace(scene, members=members)


class _Without(Mapping[Identity, LiveObject]):
    """A mapping without one key; a copy of thousands of objects for each that fails would be dear."""

    def __init__(self, objects: Mapping[Identity, LiveObject], hidden: Identity) -> None:
        self._objects, self._hidden = objects, hidden

    def __getitem__(self, identity: Identity) -> LiveObject:
        if identity == self._hidden:
            raise KeyError(identity)
        return self._objects[identity]

    def __iter__(self) -> Iterator[Identity]:
        return (identity for identity in self._objects if identity != self._hidden)

    def __len__(self) -> int:
        return len(self._objects) - (self._hidden in self._objects)
