"""Kubeconfigs, and the account of the pod: how each member cluster is reached. Nothing is connected here.

The files are read by ourselves, once for all members: the loaders of the kubernetes package parse the whole file again
for each context and put certificates and keys into temporary files. Where they agree is a test
(`tests/unit/kube/test_kubeconfig.py`). Source: Kubernetes, "Organizing Cluster Access Using kubeconfig Files",
"kubeconfig (v1)" and "Accessing the Kubernetes API from a Pod".
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml
from msgspec import Struct, field

from reconciler.api.clusters import Cluster
from reconciler.errors import ConfigurationError
from reconciler.kube.kube_requests import shown_without
from reconciler.secret_files import file_stamp, is_loopback, privacy_fault, read_secret_file

FILE_MAX_BYTES = 16 * 1024 * 1024
IN_CLUSTER: Final = "in-cluster"
"""The context of the cluster that we run in, where no kubeconfig has one of that name."""
SERVICE_ACCOUNT_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
SERVICE_ACCOUNT_VARIABLE: Final = "RECONCILER_SERVICE_ACCOUNT_FOLDER"
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
"""The extension of a cluster that its exec plugin receives as `spec.cluster.config` of the ExecCredential."""
SUFFIXES = (".kubeconfig", ".yaml", ".yml", ".json", ".conf", ".config")
_SECRET: Final = ("proxy_url", "token", "password", "exec_plugin", "exec_extension", "auth_provider")


class Pem(Struct, frozen=True, kw_only=True):
    """A certificate or key, inline or in a file that may be replaced while we run."""

    data: bytes = b""
    file: Path | None = None

    def __repr__(self) -> str:
        return shown_without(self, ("data",))

    def __bool__(self) -> bool:
        return bool(self.data or self.file)

    def read(self) -> bytes:
        """Return the bytes as they are now. Raises OSError."""
        return self.data if self.data or self.file is None else self.file.read_bytes()

    def read_or_empty(self) -> bytes:
        """Return the bytes as they are now; empty where they cannot be read."""
        try:
            return self.read()
        except OSError:
            return b""


class MemberConfig(Struct, frozen=True, kw_only=True):
    """Address and credentials of one API server. Its repr shows no secret."""

    name: str
    server: str
    ca: Pem = Pem()
    is_insecure: bool = False
    """insecure-skip-tls-verify."""
    tls_server_name: str = ""
    proxy_url: str = ""
    client_certificate: Pem = Pem()
    client_key: Pem = Pem()
    token: str = ""
    token_file: Path | None = None
    username: str = ""
    password: str = ""
    exec_plugin: Mapping[str, Any] | None = None
    exec_extension: Any = None
    """The cluster info of the kubeconfig for an exec plugin that asks for it; None: nothing."""
    auth_provider: Mapping[str, Any] | None = None
    impersonate: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Impersonation headers."""
    folder: Path = Path()
    """The folder of the user entry: commands of plugins that contain a slash are relative to it."""
    source: str = ""
    """The file, for messages."""
    is_in_cluster: bool = False
    """The account of the pod that we run in. No proxy of the environment is on the way to its API server."""

    def __repr__(self) -> str:
        return shown_without(self, _SECRET)

    @property
    def needs_private_files(self) -> bool:
        """Return whether files that others can read are refused: not the kubelet's, nor for loopback servers."""
        return not self.is_in_cluster and not is_loopback(urlsplit(self.server).hostname or "")

    @property
    def has_credentials(self) -> bool:
        """Return whether the kubeconfig itself holds a secret."""
        return bool(self.token or self.password or self.client_key.data or self.auth_provider)


def file_contents(config: MemberConfig) -> tuple[bytes, ...]:
    """Return digests of what an entry names, as it is now; of a file that cannot be read, as if it were empty."""
    token = Pem(file=config.token_file)
    pems = (config.ca, config.client_certificate, config.client_key, token)
    return tuple(hashlib.sha256(pem.read_or_empty()).digest() for pem in pems)


class _KubeconfigEntry(Struct, frozen=True, kw_only=True):
    """A cluster, user or context with the file that it came from."""

    body: Mapping[str, Any]
    file: Path


class Kubeconfig(Struct, frozen=True, kw_only=True):
    """One or several files, merged as kubectl does: the first file that names an entry wins."""

    clusters: Mapping[str, _KubeconfigEntry]
    users: Mapping[str, _KubeconfigEntry]
    contexts: Mapping[str, _KubeconfigEntry]
    current_context: str = ""
    description: str = ""


def load_members(
    kubeconfig: Path | None, clusters: Iterable[Cluster], environ: Mapping[str, str] = os.environ
) -> Mapping[str, MemberConfig | ConfigurationError]:
    """Return the access of each cluster, by name, or its error: one bad entry harms no other.

    `kubeconfig`: a file, or a folder with one a cluster. None: `$KUBECONFIG`, `$CREDENTIALS_DIRECTORY` (systemd) or
    `~/.kube/config`. The context `in-cluster` is the account of our pod, unless a kubeconfig has it. Raises
    ConfigurationError for a named file that cannot be read.
    """
    location = kubeconfig if kubeconfig is not None else _default_location(environ)
    if isinstance(location, Path) and location.is_dir():
        config_of = partial(_from_folder, location, environ=environ)
    else:
        files = [location] if isinstance(location, Path) else location
        config_of = partial(_from_files, read_files(files, may_be_missing=kubeconfig is None), environ=environ)
    configs: dict[str, MemberConfig | ConfigurationError] = {}
    for cluster in clusters:
        try:
            configs[cluster.name] = config_of(cluster)
        except ConfigurationError as error:
            configs[cluster.name] = error
    return configs


def stamp_of(kubeconfig: Path | None) -> Hashable:
    """Return a stamp of the files that `load_members` reads; it changes with them, also when one is missing."""
    return tuple(map(file_stamp, _files(kubeconfig)))


def _files(kubeconfig: Path | None) -> Sequence[Path]:
    """Return the files that were named, or the ordinary ones of a folder."""
    location = kubeconfig if kubeconfig is not None else _default_location(os.environ)
    if isinstance(location, Path):
        return sorted(filter(os.path.isfile, location.iterdir())) if location.is_dir() else [location]
    return location


def _default_location(environ: Mapping[str, str]) -> Path | Sequence[Path]:
    if environ.get("KUBECONFIG"):
        return [Path(part).expanduser() for part in environ["KUBECONFIG"].split(os.pathsep) if part]
    if environ.get("CREDENTIALS_DIRECTORY"):
        return Path(environ["CREDENTIALS_DIRECTORY"])
    return [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]


def _from_folder(folder: Path, cluster: Cluster, environ: Mapping[str, str]) -> MemberConfig:
    """Return the cluster's own file, else a file `kubeconfig` with a context for it."""
    candidates = [folder / f"{cluster.name}{suffix}" for suffix in ("", *SUFFIXES)]
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is None:
        shared = folder / "kubeconfig"
        if not shared.is_file() and cluster.context_name == IN_CLUSTER:
            return in_cluster_config(cluster.name, environ)
        if not shared.is_file():
            raise ConfigurationError(
                f"{folder} has no kubeconfig for cluster {cluster.name}; name it {cluster.name}.yaml"
            )
        return _from_files(read_files([shared]), cluster, environ)
    own, context = read_files([file]), cluster.context_name
    if context not in own.contexts:
        # In a file of its own it need not have the cluster's name when there is no doubt which one is meant.
        context = next(iter(own.contexts)) if len(own.contexts) == 1 else own.current_context or context
    return member_config(own, cluster.name, context)


def _from_files(merged: Kubeconfig, cluster: Cluster, environ: Mapping[str, str]) -> MemberConfig:
    if cluster.context_name == IN_CLUSTER and IN_CLUSTER not in merged.contexts:
        return in_cluster_config(cluster.name, environ)
    return member_config(merged, cluster.name, cluster.context_name)


def in_cluster_config(name: str, environ: Mapping[str, str]) -> MemberConfig:
    """Return the access to our own cluster by the pod's account, read later. Raises ConfigurationError elsewhere."""
    host, port = (environ.get(f"KUBERNETES_SERVICE_{part}", "").strip() for part in ("HOST", "PORT"))
    if not host or not port:
        raise ConfigurationError(
            f"cluster {name}: context {IN_CLUSTER!r} is the account of the pod, and this process runs in none "
            f"(KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set); give a kubeconfig with a context "
            f"{IN_CLUSTER!r} here"
        )
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    check_url(name, "what KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT make", server, ("https",))
    folder = Path(environ.get(SERVICE_ACCOUNT_VARIABLE) or SERVICE_ACCOUNT_FOLDER)
    return MemberConfig(
        name=name,
        server=server,
        ca=Pem(file=folder / "ca.crt"),
        token_file=folder / "token",
        source=str(folder),
        is_in_cluster=True,
    )


def read_files(files: Sequence[Path], *, may_be_missing: bool = False) -> Kubeconfig:
    """Return the merged files. Raises ConfigurationError for an invalid or, unless allowed, a missing one."""
    sections: dict[str, dict[str, _KubeconfigEntry]] = {"clusters": {}, "users": {}, "contexts": {}}
    current = ""
    for file in files:
        if may_be_missing and not file.exists():
            continue
        body = _read_yaml(file)
        for section, entries in sections.items():
            singular = section.removesuffix("s")
            items = body.get(section) or []
            if not isinstance(items, list) or not all(
                isinstance(i, Mapping) and isinstance(i.get("name"), str) for i in items
            ):
                raise ConfigurationError(f"kubeconfig {file}: {section} is no list of entries with a name")
            for item in items:
                if not isinstance(item.get(singular) or {}, Mapping):
                    raise ConfigurationError(f"kubeconfig {file}: {section} {item['name']!r} is no mapping")
                entries.setdefault(item["name"], _KubeconfigEntry(body=item.get(singular) or {}, file=file))
        current = current or str(body.get("current-context") or "")
    names = os.pathsep.join(str(file) if file.exists() else f"{file} (which is not there)" for file in files)
    return Kubeconfig(**sections, current_context=current, description=names)


def _read_yaml(file: Path) -> Mapping[str, Any]:
    try:
        # Without credentials in it everybody may read it: see `_config`.
        data = read_secret_file(file, "kubeconfig", bytes_max=FILE_MAX_BYTES, is_private=False)
        body = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    except ConfigurationError as error:
        advice = " with --kubeconfig, or a folder with a file for each cluster"
        if os.pathsep in str(file):
            advice = "; of several files make one ('kubectl config view --flatten'), or name them in KUBECONFIG"
        is_missing = isinstance(error.__cause__, FileNotFoundError)
        raise ConfigurationError(f"{error}{advice if is_missing else ''}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        # A YAML error quotes the line, which may hold a token.
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise ConfigurationError(f"kubeconfig {file} is no YAML{line}; 'kubectl config view' reads it, too") from None
    if body is not None and not isinstance(body, Mapping):
        raise ConfigurationError(f"kubeconfig {file} is no mapping")
    return body or {}


def member_config(merged: Kubeconfig, name: str, context: str) -> MemberConfig:
    """Return the settings behind one context. Raises ConfigurationError that names the fault."""
    if context not in merged.contexts:
        known = ", ".join(sorted(merged.contexts)) or "none"
        what = "add one" if merged.contexts else "name the right file with --kubeconfig, or add one"
        raise ConfigurationError(
            f"cluster {name}: no context {context!r} in {merged.description} (contexts: {known}); {what}, or write the "
            "name of its context into the annotation fleet.reconciler/context of the Cluster document"
        )
    pair, lacks = merged.contexts[context].body, f"{merged.description} lacks; add it there"
    cluster = merged.clusters.get(str(pair.get("cluster")))
    if cluster is None:
        raise ConfigurationError(f"cluster {name}: context {context!r} names a cluster that {lacks}")
    user = merged.users.get(str(pair.get("user")))
    if user is None and pair.get("user"):
        raise ConfigurationError(f"cluster {name}: context {context!r} names a user that {lacks}")
    user = user or _KubeconfigEntry(body={}, file=cluster.file)
    check_url(name, f"server in {cluster.file}", str(cluster.body.get("server") or ""), ("https", "http"))
    proxy_url = str(cluster.body.get("proxy-url") or "")
    if proxy_url:
        check_url(name, "proxy-url", proxy_url, ("http", "https"))
    return _config(name, cluster, user, proxy_url)


def _config(name: str, cluster: _KubeconfigEntry, user: _KubeconfigEntry, proxy_url: str) -> MemberConfig:
    token_file = user.body.get("tokenFile")
    extensions = cluster.body.get("extensions")
    named = [one for one in (extensions if isinstance(extensions, list) else ()) if isinstance(one, Mapping)]
    headers = {
        "Impersonate-User": (str(user.body.get("as") or ""),),
        "Impersonate-Uid": (str(user.body.get("as-uid") or ""),),
        "Impersonate-Group": tuple(str(group) for group in user.body.get("as-groups") or ()),
    }
    for key, values in (user.body.get("as-user-extra") or {}).items():
        headers[f"Impersonate-Extra-{key}"] = tuple(str(value) for value in values)
    config = MemberConfig(
        name=name,
        server=str(cluster.body["server"]).rstrip("/"),
        ca=_pem(name, cluster, "certificate-authority"),
        is_insecure=cluster.body.get("insecure-skip-tls-verify") is True,
        tls_server_name=str(cluster.body.get("tls-server-name") or ""),
        proxy_url=proxy_url,
        client_certificate=_pem(name, user, "client-certificate"),
        client_key=_pem(name, user, "client-key"),
        token=str(user.body.get("token") or ""),
        token_file=user.file.parent / token_file if token_file else None,
        username=str(user.body.get("username") or ""),
        password=str(user.body.get("password") or ""),
        exec_plugin=user.body.get("exec"),
        exec_extension=next((one.get("extension") for one in named if one.get("name") == EXEC_EXTENSION), None),
        auth_provider=user.body.get("auth-provider"),
        impersonate={header: values for header, values in headers.items() if any(values)},
        folder=user.file.parent.absolute(),
        source=str(user.file),
    )
    fault = privacy_fault(user.file) if config.has_credentials and config.needs_private_files else ""
    if fault:
        raise ConfigurationError(f"cluster {name}: kubeconfig {user.file} holds credentials: {fault}")
    return config


def _pem(name: str, entry: _KubeconfigEntry, key: str) -> Pem:
    """Return a certificate or key: data before a file, as in kubectl; a file is relative to the kubeconfig."""
    data, file = entry.body.get(f"{key}-data"), entry.body.get(key)
    try:
        if data:
            return Pem(data=b64decode("".join(str(data).split()), validate=True))
    except ValueError as error:
        raise ConfigurationError(
            f"cluster {name}: {key}-data in {entry.file} is no base64; name the PEM file with {key}: PATH instead, "
            "or encode it with `base64 -w0`"
        ) from error
    return Pem(file=entry.file.parent / file) if file else Pem()


def check_url(name: str, what: str, url: str, schemes: tuple[str, ...]) -> None:
    """Refuse a URL without one of the schemes or a host by a ConfigurationError that does not show it."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigurationError(
            f"cluster {name}: {what} must be a URL with scheme {' or '.join(schemes)} ({schemes[0]}://HOST:PORT)"
        )


def context_names(kubeconfig: Path | None) -> tuple[str, ...]:
    """Return the contexts of a kubeconfig file or folder, sorted. Raises ConfigurationError if unreadable."""
    return tuple(sorted(read_files(_files(kubeconfig), may_be_missing=kubeconfig is None).contexts))
