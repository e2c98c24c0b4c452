"""One cluster at one moment: objects, served types, simulated time, and its source of chance."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from heapq import heappush
from time import gmtime, strftime

from reconciler.sim.objects.kinds import BY_KIND, Served
from reconciler.sim.objects.status import Body
from reconciler.sim.state.store import Backup, Event, GroupPlural, Store, name_of

Key = tuple[str, str, str, str]
"""(group, plural, namespace, name)."""

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def timestamp(epoch_s: float) -> str:
    """RFC 3339 in whole seconds, as Kubernetes writes it."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(epoch_s))


def as_it_is(body: Body) -> Body:
    """The default admission."""
    return body


class State:
    """The world of one cluster that requests and controllers share."""

    def __init__(self, *, seed: int, now_s: float) -> None:
        """Begin empty at a time; everything random comes from the seed."""
        self.store = Store()
        self.served = Served()
        self.rng = random.Random(seed)  # noqa: S311  names and uids must repeat with the seed; nothing secret
        self.now_s = now_s
        self.alarms: list[tuple[float, Key]] = []
        """A heap of (due, object): what a controller wants to look at again at that time."""
        self.admit: Callable[[Body], Body] = as_it_is
        """Returns an object after admission, before it is stored for a client; it may raise Refused."""
        self._dependents: dict[str, set[Key]] = {}
        self.store.listeners.append(self._index)

    def _index(self, event: Event) -> None:
        key = (*event.kept_as, *name_of(event.body))
        for body, is_there in ((event.previous, False), (event.body, event.type != "DELETED")):
            for reference in (body or event.body)["metadata"].get("ownerReferences") or ():
                dependents = self._dependents.setdefault(reference["uid"], set())
                (dependents.add if is_there else dependents.discard)(key)

    def put_back(self, backup: Backup) -> None:
        """Be as at an earlier moment, with the kinds that were served then."""
        self.store.put_back(backup)
        self.served = Served()
        self._dependents.clear()
        for kept_as, body in self.store.everything():
            self._index(Event(self.store.version, "ADDED", kept_as, body, None))

    def wake(self, due_s: float, body: Body) -> None:
        """Have an object of a built-in kind looked at again."""
        heappush(self.alarms, (due_s, (*BY_KIND[body["kind"]].group_plural, *name_of(body))))

    def dependents_of(self, uid: str) -> list[Key]:
        """Everything that names an owner, sorted."""
        return sorted(self._dependents.get(uid, ()))

    def dependents(self, owner: Body, kind: str) -> list[Body]:
        """Objects of a kind under a controller, by name."""
        group, plural = BY_KIND[kind].group_plural
        bodies: list[Body] = []
        for key in self.dependents_of(owner["metadata"]["uid"]):
            body = self.store.get((group, plural), key[2], key[3]) if key[:2] == (group, plural) else None
            if body is not None and _is_controlled(body, owner):
                bodies.append(body)
        return bodies

    @property
    def time(self) -> str:
        """Now, as a timestamp."""
        return timestamp(self.now_s)

    def new_uid(self) -> str:
        """A uid."""
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """The random end of a generated name."""
        return "".join(self.rng.choice(_SUFFIX_LETTERS) for _ in range(length))

    def get(self, kind: str, namespace: str, name: str) -> Body | None:
        """An object of a built-in kind."""
        return self.store.get(BY_KIND[kind].group_plural, namespace, name)

    def each(self, kind: str) -> Iterator[Body]:
        """Objects of a built-in kind, in no order."""
        return self.store.each(BY_KIND[kind].group_plural)

    def sorted(self, kind: str, namespace: str = "") -> list[Body]:
        """Objects of a built-in kind by namespace and name."""
        return self.store.sorted(BY_KIND[kind].group_plural, namespace)

    def put(self, body: Body) -> Body:
        """Store an object of a built-in kind as it is; a first one gets uid and creationTimestamp."""
        metadata = body["metadata"]
        if "uid" not in metadata:
            metadata = {**metadata, "uid": self.new_uid(), "creationTimestamp": self.time}
            body = {**body, "metadata": metadata}
        return self.store.put(BY_KIND[body["kind"]].group_plural, body)

    def remove(self, kept_as: GroupPlural, body: Body) -> None:
        """Take an object away at once."""
        metadata = body["metadata"]
        self.store.remove(kept_as, metadata.get("namespace", ""), metadata["name"])

    def delete(self, kept_as: GroupPlural, body: Body, propagation: str, grace_s: int | None) -> Body | None:
        """Begin to delete: return the object as it waits for finalizers, content or containers; None once gone."""
        metadata = dict(body["metadata"])
        finalizers = list(metadata.get("finalizers") or ())
        for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
            if propagation == policy and finalizer not in finalizers:
                finalizers.append(finalizer)
        kind = body["kind"]
        if grace_s is None:
            grace_s = body["spec"].get("terminationGracePeriodSeconds", 30) if kind == "Pod" else 0
        waits = bool(finalizers) or kind == "Namespace" or (kind == "Pod" and grace_s > 0 and _is_placed(body))
        if not waits:
            self.remove(kept_as, body)
            return None
        if "deletionTimestamp" in metadata:
            return body
        # The deletion time of a pod is when its grace period ends.
        metadata |= {"deletionTimestamp": timestamp(self.now_s + grace_s), "deletionGracePeriodSeconds": grace_s}
        if "generation" in metadata:
            metadata["generation"] += 1
        if finalizers:
            metadata["finalizers"] = finalizers
        left = {**body, "metadata": metadata}
        if kind == "Namespace":
            metadata.pop("deletionGracePeriodSeconds")
            left["status"] = {**(body.get("status") or {}), "phase": "Terminating"}
        return self.store.put(kept_as, left)


def _is_controlled(body: Body, owner: Body) -> bool:
    uid = owner["metadata"]["uid"]
    return any(r.get("controller") and r["uid"] == uid for r in body["metadata"].get("ownerReferences") or ())


def _is_placed(pod: Body) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in ("Succeeded", "Failed")
