"""Access to clusters by live ClusterProfiles, with the credentials that the operator's file names.

A profile is untrusted: its server must be HTTPS and is always verified, it names no file on our disk, and its additions
to a command are bounded. If it vanishes, or the management cluster is silent, the last known access stays in use.
Source: KEP-5339; Kubernetes, "kubeconfig (v1), Cluster"; `client.authentication.k8s.io` ExecCredential.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from reconciler.api.clusters import Cluster
from reconciler.api.content import JsonObject, dig
from reconciler.errors import ConfigurationError, MemberClusterError
from reconciler.kube.connection.kubeconfig import EXEC_EXTENSION, MemberConfig, Pem, check_url, load_members
from reconciler.kube.profiles import ProfileKey, Provider, inventory_place, read_profiles, read_providers
from reconciler.kube.refusal_errors import clean
from reconciler.regex import regex

_ARGS: Final = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
_ENVS: Final = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
_URL_MAX_CHARS: Final = 2048
_EXTENSION_MAX_CHARS: Final = 64 * 1024
_ADDED_MAX: Final = 64
_ADDED_MAX_CHARS: Final = 4096
_VARIABLE: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_STEERS_PROGRAMS: Final = regex(
    r"(LD|DYLD|PYTHON|PERL|RUBY|NODE|JAVA|BASH|GIT)_?.*|PATH|HOME|ENV|IFS|SHELL|KUBECONFIG|KUBERNETES_EXEC_INFO"
)
"""Variables that choose the code a program loads, or its search paths."""


def config_of(name: str, profile: JsonObject, providers: tuple[Provider, ...], source: str) -> MemberConfig:
    """Return the access to one cluster by its profile. Raises ConfigurationError: no provider, or refused content."""
    listed = _listed(profile)
    provider = next((one for one in providers if one.name in listed), None)
    if provider is None:
        known = ", ".join(one.name for one in providers) or "none"
        offered = clean(", ".join(sorted(listed)) or "none")
        raise ConfigurationError(
            f"cluster {name}: {source} lists the access providers {offered}, and the provider file has {known}"
        )
    try:
        return _config(name, listed[provider.name], provider, source)
    except _Refused as error:
        raise ConfigurationError(f"cluster {name}: {source}, access provider {provider.name}: {error}") from error


class _Refused(ConfigurationError):
    """The content of a profile is not accepted."""


def _listed(profile: JsonObject) -> dict[str, Mapping[str, Any]]:
    """Return access providers by name. Those under the older name of the field count where the newer has none."""
    clusters: dict[str, Mapping[str, Any]] = {}
    for field in ("credentialProviders", "accessProviders"):
        entries = dig(profile, "status", field)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                cluster = entry.get("cluster")
                clusters[entry["name"]] = cluster if isinstance(cluster, Mapping) else {}
    return clusters


def _config(name: str, cluster: Mapping[str, Any], provider: Provider, source: str) -> MemberConfig:
    if cluster.get("insecure-skip-tls-verify"):
        raise _Refused("it asks not to verify the server's certificate, which is not done at the word of a profile")
    if cluster.get("certificate-authority"):
        raise _Refused("it names a file of this machine as certificate authority; it has to hold the certificates")
    entries = cluster.get("extensions") or []
    extensions = {
        one["name"]: one.get("extension")
        for one in (entries if isinstance(entries, list) else ())
        if isinstance(one, Mapping) and isinstance(one.get("name"), str)
    }
    if len(json.dumps(extensions)) > _EXTENSION_MAX_CHARS:
        raise _Refused(f"its extensions are longer than {_EXTENSION_MAX_CHARS:,} characters")
    return MemberConfig(
        name=name,
        server=_url(cluster, "server", ("https",)).rstrip("/"),
        ca=_ca(cluster.get("certificate-authority-data")),
        tls_server_name=_text(cluster, "tls-server-name"),
        proxy_url=_url(cluster, "proxy-url", ("http", "https")) if cluster.get("proxy-url") else "",
        exec_plugin=_plugin(provider, extensions),
        exec_extension=extensions.get(EXEC_EXTENSION),
        folder=provider.folder,
        source=source,
    )


def _url(cluster: Mapping[str, Any], key: str, schemes: tuple[str, ...]) -> str:
    text = _text(cluster, key)
    if len(text) > _URL_MAX_CHARS or not text.isprintable() or " " in text:
        raise _Refused(f"its {key} is no URL")
    try:
        check_url("of the profile", key, text, schemes)
    except ConfigurationError:
        raise _Refused(f"its {key} must be a URL with scheme {' or '.join(schemes)}") from None
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise _Refused(f"its {key} has a user name, and nobody signs in as a profile says")
    return text


def _text(cluster: Mapping[str, Any], key: str) -> str:
    text = cluster.get(key) or ""
    if not isinstance(text, str):
        raise _Refused(f"its {key} is no text")
    return text


def _ca(data: Any) -> Pem:
    if not data:
        return Pem()
    try:
        return Pem(data=b64decode(data, validate=True))
    except (ValueError, TypeError):
        raise _Refused("its certificate-authority-data is no base64") from None


def _plugin(provider: Provider, extensions: Mapping[str, Any]) -> Mapping[str, Any]:
    plugin = dict(provider.plugin)
    if provider.args_policy == "Append" and _ARGS in extensions:
        args = extensions[_ARGS]
        if not isinstance(args, list) or len(args) > _ADDED_MAX or not all(_is_word(one) for one in args):
            raise _Refused(f"its {_ARGS} is no list of at most {_ADDED_MAX} printable texts")
        plugin["args"] = [*plugin["args"], *args]
    if provider.envs_policy != "Ignore" and _ENVS in extensions:
        own = {one["name"]: one["value"] for one in plugin["env"]}
        added = extensions[_ENVS]
        is_map = isinstance(added, Mapping) and len(added) <= _ADDED_MAX
        if not is_map or not all(_VARIABLE.fullmatch(str(name)) and _is_word(value) for name, value in added.items()):
            raise _Refused(f"its {_ENVS} is no map of at most {_ADDED_MAX} variables to printable texts")
        steering = sorted(name for name in added if _STEERS_PROGRAMS.fullmatch(name.upper()))
        if steering:
            names = ", ".join(steering)
            raise _Refused(f"it sets {names}, which steers what a program loads; set it in the provider file")
        merged = {**added, **own} if provider.envs_policy == "AppendIfNotExists" else {**own, **added}
        plugin["env"] = [{"name": name, "value": value} for name, value in sorted(merged.items())]
    return plugin


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _ADDED_MAX_CHARS and value.isprintable()


INTERVAL_S = 60.0
"""The interval at which a service reads the profiles."""


class LiveAccess:
    """The last known profiles."""

    def __init__(self, place: str, provider_file: Path, kubeconfig: Path | None) -> None:
        """Ask nothing yet. Raises ConfigurationError for a bad provider file or a missing context."""
        self._text, self._file, self._kubeconfig = place, provider_file, kubeconfig
        self._providers = read_providers(provider_file)
        inventory_place(place, kubeconfig)
        self._known: dict[ProfileKey, JsonObject] = {}
        self._present: frozenset[ProfileKey] = frozenset()
        self.fault: str = "they were not read yet"
        """The reason why the profiles could not be read the last time; empty: they were."""

    async def refresh(self, fleet: str) -> bool:
        """Read provider file and profiles again; return whether anything changed. Raises nothing."""
        before = (self._providers, self._known, self._present)
        try:
            self._providers = read_providers(self._file)
            bodies = await read_profiles(inventory_place(self._text, self._kubeconfig), fleet)
        except MemberClusterError as error:
            self.fault = clean(error.message)
        except ConfigurationError as error:
            self.fault = str(error)
        else:
            self.fault = ""
            keys = [(str(dig(body, "metadata", "namespace")), str(dig(body, "metadata", "name"))) for body in bodies]
            profiles = dict(zip(keys, map(_of_access, bodies), strict=True))
            self._present = frozenset(profiles)
            self._known = {**self._known, **profiles}
        return (self._providers, self._known, self._present) != before

    @property
    def gone(self) -> tuple[ProfileKey, ...]:
        """Return the profiles that are not there any more, whose access is kept."""
        return tuple(sorted(self._known.keys() - self._present))

    def configs(self, clusters: Iterable[Cluster]) -> Mapping[str, MemberConfig | ConfigurationError]:
        """Return each cluster's access or error, by live profile, else the kubeconfig (raises ConfigurationError)."""
        members = list(clusters)
        by_profile = [cluster for cluster in members if cluster.namespace and not cluster.context]
        others = [cluster for cluster in members if not cluster.namespace or cluster.context]
        access = dict(load_members(self._kubeconfig, others)) if others else {}
        for cluster in by_profile:
            try:
                access[cluster.name] = self._config(cluster)
            except ConfigurationError as error:
                access[cluster.name] = error
        return access

    def _config(self, cluster: Cluster) -> MemberConfig:
        key = (cluster.namespace, cluster.name)
        source = f"the ClusterProfile {'/'.join(key)} of {self._text}"
        profile = self._known.get(key)
        if profile is None:
            why = (
                f"the profiles of {self._text} cannot be read: {self.fault}" if self.fault else f"{source} is not there"
            )
            raise ConfigurationError(f"cluster {cluster.name}: {why}")
        return config_of(cluster.name, profile, self._providers, source)

    def remarks(self, cluster: Cluster) -> tuple[str, ...]:
        """Return remarks about a cluster. None of them says that it is gone: only the store does."""
        key = (cluster.namespace, cluster.name)
        if not cluster.namespace or key not in self._known:
            return ()
        remarks = [f"the profiles of {self._text} cannot be read now ({self.fault}); the last access known is used"]
        if not self.fault:
            gone = f"its ClusterProfile is gone from {self._text}; the last access known is used"
            remarks = [] if key in self._present else [gone]
        conditions = dig(self._known[key], "status", "conditions")
        for one in conditions if isinstance(conditions, list) else ():
            if isinstance(one, Mapping) and (one.get("type"), one.get("status")) == ("ControlPlaneHealthy", "False"):
                remarks.append(
                    clean(f"its profile says that the control plane is not healthy: {one.get('message') or ''}")
                )
        return tuple(remarks)


def _of_access(body: JsonObject) -> JsonObject:
    """Return the relevant part of a profile, without times that change each minute."""
    conditions = dig(body, "status", "conditions")
    return {
        "status": {
            "accessProviders": dig(body, "status", "accessProviders"),
            "credentialProviders": dig(body, "status", "credentialProviders"),
            "conditions": [
                {key: one.get(key) for key in ("type", "status", "message")}
                for one in (conditions if isinstance(conditions, list) else ())
                if isinstance(one, Mapping)
            ],
        }
    }
