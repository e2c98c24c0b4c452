"""All ClusterProfiles of one management cluster, or an error: half a list would look like removed clusters.

Source: KEP-4322; `multicluster.x-k8s.io` v1alpha1 and v1alpha2.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.adapters.kube.answers import Listing
from reconciler.adapters.kube.client import MemberCluster
from reconciler.adapters.kube.errors import clean
from reconciler.adapters.kube.kubeconfig import MemberConfig, load_members
from reconciler.adapters.kube.members import Members, UserAgent
from reconciler.errors import BadAnswer, ConfigurationError, KindNotServed, ObjectNotFound
from reconciler.model.cluster import Cluster
from reconciler.model.refs import GVK
from reconciler.model.tree import JsonObject

# The older one is asked for first, as it alone has `credentialProviders`, which some managers still write.
_VERSIONS: Final = ("v1alpha1", "v1alpha2")
_GROUP: Final = "multicluster.x-k8s.io"

ProfileKey = tuple[str, str]
"""(namespace, name)."""


class InventoryPlace(NamedTuple):
    """The API server and the namespace of an inventory; an empty namespace: all of them."""

    context: str
    namespace: str
    config: MemberConfig


def inventory_place(text: str, kubeconfig: Path | None, environ: Mapping[str, str] = os.environ) -> InventoryPlace:
    """Parse `CONTEXT[/NAMESPACE]`. Contexts of clouds have slashes, so the whole text is tried first.

    Raises:
        ConfigurationError: the kubeconfig has no such context, or its entry is unusable.
    """
    whole = _config(text, kubeconfig, environ)
    if isinstance(whole, MemberConfig):
        return InventoryPlace(text, "", whole)
    context, slash, namespace = text.rpartition("/")
    if not slash or not context or not namespace:
        raise whole
    found = _config(context, kubeconfig, environ)
    if isinstance(found, ConfigurationError):
        raise found
    return InventoryPlace(context, namespace, found)


def _config(context: str, kubeconfig: Path | None, environ: Mapping[str, str]) -> MemberConfig | ConfigurationError:
    return load_members(kubeconfig, [Cluster(name=context)], environ)[context]


async def read_profiles(
    place: InventoryPlace, fleet: str, expected: Collection[ProfileKey] = ()
) -> tuple[JsonObject, ...]:
    """Return the profiles, by namespace and name. `fleet`: the name for the audit log.

    `expected`: earlier profiles. Each one missing in the list is read by name.

    Raises:
        MemberClusterError: the list was not read as a whole, whatever the reason.
    """
    async with Members.open({place.context: place.config}, agent=UserAgent(fleet or "unnamed")) as members:
        return await list_profiles(members[place.context], place.namespace, expected)


async def list_profiles(
    member: MemberCluster, namespace: str, expected: Collection[ProfileKey] = ()
) -> tuple[JsonObject, ...]:
    """The profiles that an API server has, by namespace and name; empty `namespace`: all of them.

    Raises:
        KindNotServed: it has no ClusterProfiles, which is not the same as none.
        BadAnswer: the list lacks one of the `expected` that is there, so others may be missing, too.
        MemberClusterError: the list was not read as a whole.
    """
    gvk, listing = await _listed(member, namespace)
    for identity, why in listing.unread.items():
        raise BadAnswer(member.name, clean(f"{identity} in the list cannot be read: {why}"))
    if not listing.is_complete:
        raise BadAnswer(member.name, "the list of ClusterProfiles is longer than what is read")
    for live in listing.objects:
        if namespace and live.identity.namespace != namespace:
            raise BadAnswer(member.name, clean(f"{live.identity} was not asked for; it is in another namespace"))
    told = {(live.identity.namespace, live.identity.name) for live in listing.objects}
    for missing in sorted(set(expected) - told):
        await _prove_gone(member, gvk, missing)
    return tuple(live.body for live in sorted(listing.objects, key=lambda live: live.identity))


async def _listed(member: MemberCluster, namespace: str) -> tuple[GVK, Listing]:
    gvk = GVK(_GROUP, _VERSIONS[0], "ClusterProfile")
    try:
        return gvk, await member.list_objects(gvk, namespace=namespace)
    except KindNotServed:
        gvk = GVK(_GROUP, _VERSIONS[1], "ClusterProfile")
        return gvk, await member.list_objects(gvk, namespace=namespace)


async def _prove_gone(member: MemberCluster, gvk: GVK, key: ProfileKey) -> None:
    """Raise unless the API server confirms that there is no such profile: a list may end early without a sign."""
    try:
        await member.get(gvk, *key)
    except ObjectNotFound:
        return
    raise BadAnswer(
        member.name, f"the list of ClusterProfiles lacks {'/'.join(key)}, which is there; nothing of it counts"
    )
