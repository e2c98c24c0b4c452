"""The demo's view of the clusters, read from their API servers, and waiting for a wanted state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject, dig
from reconciler.api.refs import GVK
from reconciler.cli.demo.world import DemoWorld
from reconciler.kube.client import MemberCluster
from reconciler.ownership import read_owner

DEPLOYMENT: Final = GVK("apps", "v1", "Deployment")
CONFIG_MAP: Final = GVK("", "v1", "ConfigMap")
POD: Final = GVK("", "v1", "Pod")
_KINDS: Final = (DEPLOYMENT, CONFIG_MAP, POD)
_BURST_S: Final = 0.05

Key = tuple[str, str]
"""(namespace, name)."""


class Sight(Struct, frozen=True):
    """Objects by cluster, kind and key. A cluster that does not answer has none and is in `silent`."""

    objects: Mapping[str, Mapping[GVK, Mapping[Key, JsonObject]]]
    silent: frozenset[str] = frozenset()

    def find(self, cluster: str, gvk: GVK, key: Key) -> JsonObject:
        """An object, empty when it is not there."""
        return self.objects.get(cluster, {}).get(gvk, {}).get(key, {})

    def clusters_with(self, gvk: GVK, key: Key) -> list[str]:
        """Clusters that have the object, sorted."""
        return sorted(name for name in self.objects if self.find(name, gvk, key))

    def replicas(self, key: Key) -> dict[str, int]:
        """Replicas that a Deployment wants in each cluster that has it."""
        return {name: spec_replicas(self.find(name, DEPLOYMENT, key)) for name in self.clusters_with(DEPLOYMENT, key)}

    def images(self, key: Key) -> dict[str, str]:
        """Image of a Deployment in each cluster that has it."""
        return {name: image(self.find(name, DEPLOYMENT, key)) for name in self.clusters_with(DEPLOYMENT, key)}

    def is_settled(self, key: Key) -> bool:
        """Return whether every copy of a Deployment is rolled out and ready; unreachable clusters do not count."""
        names = self.clusters_with(DEPLOYMENT, key)
        return bool(names) and all(is_settled(self.find(name, DEPLOYMENT, key)) for name in names)

    def pods(self, key: Key, *clusters: str) -> set[str]:
        """Uids of the pods of a Deployment, in these clusters or in all. Pods bear its name as their label `app`."""
        return {
            pod["metadata"]["uid"]
            for cluster, kinds in self.objects.items()
            if not clusters or cluster in clusters
            for (namespace, _), pod in kinds[POD].items()
            if (namespace, dig(pod, "metadata", "labels", "app")) == key
        }

    def deployments(self) -> Iterator[tuple[Key, str, JsonObject]]:
        """(key, cluster, Deployment), sorted."""
        found = {
            (key, cluster): body for cluster, kinds in self.objects.items() for key, body in kinds[DEPLOYMENT].items()
        }
        for (key, cluster), body in sorted(found.items(), key=lambda item: item[0]):
            yield key, cluster, body


def spec_replicas(deployment: JsonObject) -> int:
    """Replicas wanted."""
    return int(dig(deployment, "spec", "replicas") or 0)


def ready_replicas(deployment: JsonObject) -> int:
    """Replicas ready."""
    return int(dig(deployment, "status", "readyReplicas") or 0)


def image(deployment: JsonObject) -> str:
    """Image of the first container."""
    containers = dig(deployment, "spec", "template", "spec", "containers") or [{}]
    return str(containers[0].get("image", ""))


def is_settled(deployment: JsonObject) -> bool:
    """Rolled out and ready, nothing left of an older revision."""
    status, wanted = dig(deployment, "status") or {}, spec_replicas(deployment)
    counts = [int(status.get(name) or 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
    return status.get("observedGeneration") == deployment["metadata"]["generation"] and counts == [wanted] * 3


def is_ours(body: JsonObject) -> bool:
    """Return whether an object bears the reconciler's mark: ADOPTION Y."""
    return bool(body) and read_owner(body) is not None


async def look(world: DemoWorld) -> Sight:
    """Ask every cluster now."""
    answers = await world.members.each(_read)
    silent = {name for name, found in answers.items() if isinstance(found, Exception)}
    return Sight(
        {name: found for name, found in answers.items() if not isinstance(found, Exception)}, frozenset(silent)
    )


async def _read(member: MemberCluster) -> Mapping[GVK, Mapping[Key, JsonObject]]:
    return {gvk: _by_key((await member.list_objects(gvk)).objects) for gvk in _KINDS}


def _by_key(objects: tuple[LiveObject, ...]) -> dict[Key, JsonObject]:
    return {(live.identity.namespace, live.identity.name): live.body for live in objects}


async def watch(
    world: DemoWorld, is_enough: Callable[[Sight], bool], looks: int, show: Callable[[Sight], None]
) -> Sight:
    """Look whenever something changes in a cluster until it is enough; the last sight.

    Give up after so many `looks` with a second between them in which nothing changed: they take longer on a busy
    machine, as all does that runs beside them, and last as long as there is progress.
    """
    changed = asyncio.Event()
    for name in world.box.names:
        world.box[name].on_change.append(changed.set)
    quiet = 0
    try:
        while True:
            changed.clear()
            sight = await look(world)
            show(sight)
            if is_enough(sight) or quiet >= looks:
                return sight
            try:
                async with asyncio.timeout(1.0):
                    await changed.wait()
            except TimeoutError:
                quiet += 1
                continue
            quiet = 0
            await asyncio.sleep(_BURST_S)
    finally:
        for name in world.box.names:
            world.box[name].on_change.remove(changed.set)
