"""All ClusterProfiles of one management cluster, or an error: half a list would look like removed clusters.

Source: KEP-4322; `multicluster.x-k8s.io` v1alpha1 and v1alpha2.

The operator's file of credential providers for the access providers of profiles.

The same file that Go programs read with `--clusterprofile-provider-file`: it alone names commands, never a profile.
Source: KEP-5339 and its `pkg/access`: the first provider of the file that a profile lists wins; a profile's additions
to the arguments and the environment count only under the policies of the file, which by default ignore them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from reconciler.api.clusters import Cluster
from reconciler.api.content import JsonObject
from reconciler.api.refs import GVK
from reconciler.errors import BadAnswer, ConfigurationError, KindNotServed, ObjectNotFound
from reconciler.kube.answers import Listing
from reconciler.kube.client import MemberCluster
from reconciler.kube.connection.kubeconfig import MemberConfig, load_members
from reconciler.kube.member_clusters import MemberClusters, UserAgent
from reconciler.kube.refusal_errors import clean

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


def inventory_place(text: str, kubeconfig: Path | None) -> InventoryPlace:
    """Parse `CONTEXT[/NAMESPACE]`, the whole text as a context first. Raises ConfigurationError: no such context."""
    whole = _config(text, kubeconfig)
    if isinstance(whole, MemberConfig):
        return InventoryPlace(text, "", whole)
    context, slash, namespace = text.rpartition("/")
    if not slash or not context or not namespace:
        raise whole
    config = _config(context, kubeconfig)
    if isinstance(config, ConfigurationError):
        raise config
    return InventoryPlace(context, namespace, config)


def _config(context: str, kubeconfig: Path | None) -> MemberConfig | ConfigurationError:
    return load_members(kubeconfig, [Cluster(name=context)])[context]


async def read_profiles(
    place: InventoryPlace, fleet: str, expected: Collection[ProfileKey] = ()
) -> tuple[JsonObject, ...]:
    """Return the profiles by namespace and name; each `expected` one that the list lacks is read by name.

    Raises: KindNotServed: there is no such kind. BadAnswer: the list lacks an `expected` one that is there.
    MemberClusterError: the list was not read as a whole.
    """
    async with MemberClusters.open({place.context: place.config}, agent=UserAgent(fleet or "unnamed")) as members:
        member = members[place.context]
        gvk, listing = await _listed(member, place.namespace)
        for identity, why in listing.unread.items():
            raise BadAnswer(member.name, clean(f"{identity} in the list cannot be read: {why}"))
        for live in listing.objects:
            if place.namespace and live.identity.namespace != place.namespace:
                raise BadAnswer(member.name, clean(f"{live.identity} was not asked for; it is in another namespace"))
        listed = {(live.identity.namespace, live.identity.name) for live in listing.objects}
        for missing in sorted(set(expected) - listed):
            # A list may end early without a sign.
            with suppress(ObjectNotFound):
                await member.get(gvk, *missing)
                where = "/".join(missing)
                lacks = f"the list of ClusterProfiles lacks {where}, which is there; nothing of it counts"
                raise BadAnswer(member.name, lacks)
        return tuple(live.body for live in sorted(listing.objects, key=lambda live: live.identity))


async def _listed(member: MemberCluster, namespace: str) -> tuple[GVK, Listing]:
    older, newer = (GVK(_GROUP, version, "ClusterProfile") for version in _VERSIONS)
    try:
        return older, await member.list_objects(older, namespace=namespace)
    except KindNotServed:
        return newer, await member.list_objects(newer, namespace=namespace)


FILE_MAX_BYTES: Final = 1024 * 1024
_ARGS_POLICIES: Final = ("Ignore", "Append")
_ENVS_POLICIES: Final = ("Ignore", "AppendIfNotExists", "Replace")
_EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class Provider(Struct, frozen=True, kw_only=True):
    """One entry. `plugin` is as the `exec` of a kubeconfig; its commands with a slash are relative to `folder`."""

    name: str
    folder: Path
    plugin: Mapping[str, Any]
    args_policy: str = "Ignore"
    envs_policy: str = "Ignore"


def read_providers(file: Path) -> tuple[Provider, ...]:
    """Return the entries of a provider file, in its order. Raises ConfigurationError if unreadable or malformed."""
    try:
        if file.stat().st_size > FILE_MAX_BYTES:
            raise ConfigurationError(f"{file} is larger than {FILE_MAX_BYTES:,} bytes")
        body = json.loads(file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        # A JSON error quotes the text, which may hold a secret of the environment.
        raise ConfigurationError(f"{file} is no JSON") from None
    listed = body.get("providers") if isinstance(body, Mapping) else None
    if not isinstance(listed, list):
        raise ConfigurationError(f"{file}: it has no list 'providers'")
    entries = tuple(_provider(file, number, one) for number, one in enumerate(listed))
    names = [one.name for one in entries]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{file}: a provider stands there twice")
    return entries


def _provider(file: Path, number: int, entry: Any) -> Provider:
    where = f"{file}: providers[{number}]"
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise ConfigurationError(f"{where} has no name")
    args = entry.get("profileSourcedCLIArgsPolicy") or "Ignore"
    envs = entry.get("profileSourcedEnvVarsPolicy") or "Ignore"
    if args not in _ARGS_POLICIES:
        raise ConfigurationError(f"{where}: profileSourcedCLIArgsPolicy is one of {', '.join(_ARGS_POLICIES)}")
    if envs not in _ENVS_POLICIES:
        raise ConfigurationError(f"{where}: profileSourcedEnvVarsPolicy is one of {', '.join(_ENVS_POLICIES)}")
    plugin, folder = _plugin(where, entry.get("execConfig")), file.parent.absolute()
    return Provider(name=entry["name"], folder=folder, plugin=plugin, args_policy=args, envs_policy=envs)


def _plugin(where: str, plugin: Any) -> Mapping[str, Any]:
    if not isinstance(plugin, Mapping) or not isinstance(plugin.get("command"), str) or not plugin["command"]:
        raise ConfigurationError(f"{where} has no execConfig with a command")
    if plugin.get("apiVersion") not in _EXEC_VERSIONS:
        raise ConfigurationError(f"{where}: execConfig.apiVersion is one of {', '.join(_EXEC_VERSIONS)}")
    args, env = plugin.get("args") or [], plugin.get("env") or []
    if not isinstance(args, list) or not all(isinstance(one, str) for one in args):
        raise ConfigurationError(f"{where}: execConfig.args is no list of strings")
    variables = [one for one in env if isinstance(one, Mapping)] if isinstance(env, list) else []
    texts = [one.get(field) for one in variables for field in ("name", "value")]
    if not isinstance(env, list) or len(variables) < len(env) or not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"{where}: execConfig.env is no list of names with values")
    return {
        "apiVersion": plugin["apiVersion"],
        "command": plugin["command"],
        "args": list(args),
        "env": [{"name": one["name"], "value": one["value"]} for one in env],
        "provideClusterInfo": plugin.get("provideClusterInfo") is True,
        "installHint": str(plugin.get("installHint") or ""),
        "interactiveMode": "Never",
    }
