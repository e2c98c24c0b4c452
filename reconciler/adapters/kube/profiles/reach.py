"""Access to a cluster by its live ClusterProfile, with the credentials that the operator's file names.

A profile is untrusted: it chooses the server that our credentials go to. So the server must be HTTPS and is always
verified, it names no file on our disk, and its additions to a command are bounded.

Source: KEP-5339; Kubernetes, "kubeconfig (v1), Cluster"; `client.authentication.k8s.io` ExecCredential.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from reconciler.adapters.kube.errors import clean
from reconciler.adapters.kube.kubeconfig import EXEC_EXTENSION, MemberConfig, Pem, check_url
from reconciler.adapters.kube.profiles.providers import Provider, Providers
from reconciler.errors import ConfigurationError
from reconciler.model.tree import JsonObject, dig
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


def config_of(name: str, profile: JsonObject, providers: Providers, source: str) -> MemberConfig:
    """Return the settings for one cluster. `name`: of the cluster, `source`: of the profile, both for messages.

    Raises:
        ConfigurationError: no provider of the file is listed by the profile, or what it says is not taken.
    """
    listed = _listed(profile)
    provider = next((one for one in providers.entries if one.name in listed), None)
    if provider is None:
        known = ", ".join(one.name for one in providers.entries) or "none"
        offered = clean(", ".join(sorted(listed)) or "none")
        raise ConfigurationError(
            f"cluster {name}: {source} lists the access providers {offered}, and the provider file has {known}"
        )
    try:
        return _config(name, listed[provider.name], provider, providers, source)
    except _Refused as error:
        raise ConfigurationError(f"cluster {name}: {source}, access provider {provider.name}: {error}") from error


class _Refused(ConfigurationError):
    """The content of a profile is not accepted."""


def _listed(profile: JsonObject) -> dict[str, Mapping[str, Any]]:
    """Access providers by name. Those under the older name of the field count where the newer has none."""
    found: dict[str, Mapping[str, Any]] = {}
    for field in ("credentialProviders", "accessProviders"):
        entries = dig(profile, "status", field)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                cluster = entry.get("cluster")
                found[entry["name"]] = cluster if isinstance(cluster, Mapping) else {}
    return found


def _config(
    name: str, cluster: Mapping[str, Any], provider: Provider, providers: Providers, source: str
) -> MemberConfig:
    if cluster.get("insecure-skip-tls-verify"):
        raise _Refused("it asks not to verify the server's certificate, which is not done at the word of a profile")
    if cluster.get("certificate-authority"):
        raise _Refused("it names a file of this machine as certificate authority; it has to hold the certificates")
    extensions = _extensions(cluster)
    return MemberConfig(
        name=name,
        server=_url(cluster, "server", ("https",)).rstrip("/"),
        ca=_ca(cluster.get("certificate-authority-data")),
        tls_server_name=_text(cluster, "tls-server-name"),
        proxy_url=_url(cluster, "proxy-url", ("http", "https")) if cluster.get("proxy-url") else "",
        exec_plugin=_plugin(provider, extensions),
        exec_extension=extensions.get(EXEC_EXTENSION),
        folder=providers.folder,
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
    found = cluster.get(key) or ""
    if not isinstance(found, str):
        raise _Refused(f"its {key} is no text")
    return found


def _ca(found: Any) -> Pem:
    if not found:
        return Pem()
    try:
        return Pem(data=b64decode(found, validate=True))
    except (ValueError, TypeError):
        raise _Refused("its certificate-authority-data is no base64") from None


def _extensions(cluster: Mapping[str, Any]) -> dict[str, Any]:
    found = cluster.get("extensions") or []
    named = {
        one["name"]: one.get("extension")
        for one in (found if isinstance(found, list) else ())
        if isinstance(one, Mapping) and isinstance(one.get("name"), str)
    }
    if len(json.dumps(named)) > _EXTENSION_MAX_CHARS:
        raise _Refused(f"its extensions are longer than {_EXTENSION_MAX_CHARS:,} characters")
    return named


def _plugin(provider: Provider, extensions: Mapping[str, Any]) -> Mapping[str, Any]:
    plugin = dict(provider.plugin)
    if provider.args_policy == "Append" and _ARGS in extensions:
        plugin["args"] = [*plugin["args"], *_added_args(extensions[_ARGS])]
    if provider.envs_policy != "Ignore" and _ENVS in extensions:
        own = {one["name"]: one["value"] for one in plugin["env"]}
        added = _added_envs(extensions[_ENVS])
        merged = {**added, **own} if provider.envs_policy == "AppendIfNotExists" else {**own, **added}
        plugin["env"] = [{"name": name, "value": value} for name, value in sorted(merged.items())]
    return plugin


def _added_args(found: Any) -> list[str]:
    if not isinstance(found, list) or len(found) > _ADDED_MAX or not all(_is_word(one) for one in found):
        raise _Refused(f"its {_ARGS} is no list of at most {_ADDED_MAX} printable texts")
    return list(found)


def _added_envs(found: Any) -> dict[str, str]:
    is_map = isinstance(found, Mapping) and len(found) <= _ADDED_MAX
    if not is_map or not all(_VARIABLE.fullmatch(str(name)) and _is_word(value) for name, value in found.items()):
        raise _Refused(f"its {_ENVS} is no map of at most {_ADDED_MAX} variables to printable texts")
    steering = sorted(name for name in found if _STEERS_PROGRAMS.fullmatch(name.upper()))
    if steering:
        raise _Refused(f"it sets {', '.join(steering)}, which steers what a program loads; set it in the provider file")
    return dict(found)


def _is_word(found: Any) -> bool:
    return isinstance(found, str) and len(found) <= _ADDED_MAX_CHARS and found.isprintable()
