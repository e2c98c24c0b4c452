"""Resources by the names that people use: `deploy/web`, `Deployment/web`, `deployments.apps/web`.

Similar names for an unknown name. A module of its own: completing a word need not load it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from reconciler.api.refs import Identity

SHORT_NAMES = {
    "btlspolicy": "BackendTLSPolicy",
    "cm": "ConfigMap",
    "crd": "CustomResourceDefinition",
    "cj": "CronJob",
    "deploy": "Deployment",
    "ds": "DaemonSet",
    "gc": "GatewayClass",
    "gtw": "Gateway",
    "hpa": "HorizontalPodAutoscaler",
    "ing": "Ingress",
    "limits": "LimitRange",
    "lset": "ListenerSet",
    "ns": "Namespace",
    "pdb": "PodDisruptionBudget",
    "po": "Pod",
    "pv": "PersistentVolume",
    "pvc": "PersistentVolumeClaim",
    "quota": "ResourceQuota",
    "refgrant": "ReferenceGrant",
    "rs": "ReplicaSet",
    "sa": "ServiceAccount",
    "sc": "StorageClass",
    "sts": "StatefulSet",
    "svc": "Service",
}
"""The short names of Kubernetes and of the Gateway API; no API server is asked for them."""


def called(identities: Iterable[Identity], resource: str, namespace: str | None) -> tuple[Identity, ...]:
    """Those that `KIND/NAME` or `KIND NAME` means, in all namespaces unless one is given, sorted."""
    return tuple(
        sorted(
            identity
            for identity in identities
            if is_called(identity.kind, identity.group, identity.name, resource)
            and namespace in (None, identity.namespace)
        )
    )


def is_called(kind: str, group: str, name: str, resource: str) -> bool:
    """Return whether `KIND/NAME` names it; the kind may be a short name, a plural, and have its group after a dot."""
    named, _, wanted_name = resource.replace(" ", "/", 1).partition("/")
    return name == wanted_name and is_kind(kind, group, named)


def is_kind(kind: str, group: str, named: str) -> bool:
    """Return whether a word names a kind: a short name, a plural, with its group after a dot.

    >>> is_kind("Deployment", "apps", "deploy"), is_kind("Ingress", "networking.k8s.io", "ingresses.networking")
    (True, True)
    """
    named, _, wanted_group = named.partition(".")
    wanted = SHORT_NAMES.get(named.lower(), named).lower()
    return wanted in (kind.lower(), f"{kind.lower()}s", _plural(kind.lower())) and group.startswith(wanted_group)


def _plural(kind: str) -> str:
    if kind.endswith(("s", "x", "ch")):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


_COMPARED_MAX = 1_000
"""Comparing two names takes up to 0.1 ms."""


def close_to(identities: Iterable[Identity], resource: str) -> tuple[str, ...]:
    """Return those with a name similar to the given one, as KIND/NAME -n NAMESPACE; at most three.

    Of very many names only those that begin alike are compared.
    """
    known = sorted(identities)
    kind, _, name = resource.partition("/")
    if swapped := called(known, f"{name}/{kind}", None):
        return tuple(map(_shown, swapped[:3]))
    names = sorted({identity.name for identity in known})
    if len(names) > _COMPARED_MAX:
        names = [each for each in names if each[:2] == name[:2]][:_COMPARED_MAX]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    found = [identity for identity in known if identity.name in close]
    return tuple(map(_shown, found[:3]))


def _shown(identity: Identity) -> str:
    namespace = f" -n {identity.namespace}" if identity.namespace else ""
    return f"{identity.kind}/{identity.name}{namespace}"
