"""The proxy on the way to a cluster: that of its kubeconfig, else that of the environment, as for kubectl."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from reconciler.adapters.kube.kubeconfig import MemberConfig

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def proxy_of(config: MemberConfig) -> str:
    """The proxy on the way to the cluster, empty: none. The address of the pod's own cluster is known inside alone."""
    return "" if config.is_in_cluster else config.proxy_url or proxy_of_environment(config.server)


def proxy_of_environment(server: str) -> str:
    """The proxy that HTTPS_PROXY and NO_PROXY name for the server, as for kubectl; loopback never has one."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host in _LOOPBACK or host.startswith("127.") or not _may_be_named():
        return ""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 10 ms that few need

    if proxy_bypass(host) or _is_in_bypassed_network(host, getproxies().get("no", "")):
        return ""
    return getproxies().get(parts.scheme, "")


def _may_be_named() -> bool:
    """Return whether there may be a proxy at all. Other systems than Linux have system settings as well."""
    return sys.platform != "linux" or any(name.lower().endswith("_proxy") for name in os.environ)


def _is_in_bypassed_network(host: str, bypassed: str) -> bool:
    """Return whether NO_PROXY has a network (10.0.0.0/8) of the address. The standard library knows only names."""
    with suppress(ValueError):
        address = ip_address(host)
        for entry in bypassed.split(","):
            with suppress(ValueError):
                if "/" in entry and address in ip_network(entry.strip(), strict=False):
                    return True
    return False
