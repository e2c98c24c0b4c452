"""A member cluster as one round sees it: read, or not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct, field

from reconciler.model.observation import Absent, Health, Live, LiveObject, Present, Unknown
from reconciler.model.refs import GVK, Identity


class Told(NamedTuple):
    """How an object is, as far as somebody looked. `available`: replicas; None: not counted."""

    health: Health
    available: int | None = None


class Read(Struct, frozen=True, kw_only=True):
    """A cluster that answered.

    `objects`: what carries our label, plus what was read by name. `absent`: proven absences. `kinds`: (group, kind)
    whose labelled list is complete; deletions need their kind to be here. `served`: the kinds that the API server
    offers with their scope (True: namespaced).
    """

    name: str
    objects: Mapping[Identity, LiveObject] = field(default_factory=dict)
    absent: frozenset[Identity] = frozenset()
    kinds: frozenset[tuple[str, str]] = frozenset()
    served: Mapping[GVK, bool] = field(default_factory=dict)
    unread: Mapping[Identity, str] = field(default_factory=dict)
    """Objects that could not be read, with why."""
    autoscaled: frozenset[Identity] = frozenset()
    """Those of `objects` whose replicas an autoscaler that is in the cluster decides, whoever made it."""
    told: Mapping[Identity, Told] = field(default_factory=dict)
    """Of objects that have no status; that of all others says how they are."""

    def live(self, identity: Identity) -> Live:
        """The object as far as it is known: Unknown unless it was seen or its absence was proven."""
        found = self.objects.get(identity)
        if found is not None:
            return Present(object=found)
        if identity in self.absent:
            return Absent()
        return Unknown(why=self.unread.get(identity, "not read"))

    def serves(self, group_kind: tuple[str, str]) -> bool:
        """Whether any version of the kind is offered."""
        return any(gvk.group_kind == group_kind for gvk in self.served)


class NotRead(Struct, frozen=True, kw_only=True):
    """A cluster that could not be read; nothing is concluded about it. `why` is fit for a user."""

    name: str
    why: str


Member = Read | NotRead
