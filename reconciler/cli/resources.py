"""Resources of the store by the names that people use: `deploy/web`, `Deployment/web`, `deployments.apps/web`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from reconciler.model.fleet import Fleet
    from reconciler.model.refs import Identity

SHORT_NAMES = {
    "cm": "ConfigMap",
    "crd": "CustomResourceDefinition",
    "cj": "CronJob",
    "deploy": "Deployment",
    "ds": "DaemonSet",
    "hpa": "HorizontalPodAutoscaler",
    "ing": "Ingress",
    "limits": "LimitRange",
    "ns": "Namespace",
    "pdb": "PodDisruptionBudget",
    "po": "Pod",
    "pv": "PersistentVolume",
    "pvc": "PersistentVolumeClaim",
    "quota": "ResourceQuota",
    "rs": "ReplicaSet",
    "sa": "ServiceAccount",
    "sc": "StorageClass",
    "sts": "StatefulSet",
    "svc": "Service",
}
"""Kubernetes' own short names; no API server is asked for them."""


def find_templates(fleet: Fleet, resource: str, namespace: str | None) -> tuple[Identity, ...]:
    """Templates that `KIND/NAME` or `KIND NAME` means, in all namespaces unless one is given, sorted."""
    return tuple(
        identity
        for identity in sorted(fleet.templates)
        if is_called(identity.kind, identity.group, identity.name, resource) and namespace in (None, identity.namespace)
    )


def resource_and_store(words: Sequence[str]) -> tuple[str, str]:
    """`KIND/NAME [STORE]` or `KIND NAME [STORE]` as KIND/NAME and the store; empty: none was named.

    Raises:
        UsageError: no resource is named, or more than a resource and a store are.
    """
    found = resource_in(words)
    rest = words[1 if "/" in words[0] else 2 :]
    if len(rest) > 1:
        raise click.UsageError(f"one KIND/NAME and one STORE are taken; {' '.join(rest[1:])} is too much")
    return found, rest[0] if rest else ""


def resource_in(words: Sequence[str]) -> str:
    """KIND/NAME of what is written so, or as two words.

    Raises:
        UsageError: no resource is named, or only a kind.
    """
    if not words:
        raise click.UsageError("name a resource: KIND/NAME, for example deploy/web")
    if "/" in words[0]:
        return words[0]
    if len(words) == 1:
        raise click.UsageError(f"{words[0]} is a kind, or a name without one; write KIND/NAME, for example deploy/web")
    return f"{words[0]}/{words[1]}"


def close_templates(fleet: Fleet, resource: str) -> tuple[str, ...]:
    """Templates whose name is near to what was written, as KIND/NAME -n NAMESPACE; at most three."""
    import difflib

    name = resource.partition("/")[2]
    names = {identity.name for identity in fleet.templates}
    close = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.7)
    found = [identity for identity in sorted(fleet.templates) if identity.name in close]
    return tuple(f"{identity.kind}/{identity.name} -n {identity.namespace}" for identity in found[:3])


def is_called(kind: str, group: str, name: str, resource: str) -> bool:
    """Whether `KIND/NAME` means it; the kind may be a short name, a plural, and have its group after a dot."""
    called, _, wanted_name = resource.replace(" ", "/", 1).partition("/")
    called, _, wanted_group = called.partition(".")
    wanted = SHORT_NAMES.get(called.lower(), called).lower()
    return (
        name == wanted_name
        and wanted in (kind.lower(), f"{kind.lower()}s", _plural(kind.lower()))
        and group.startswith(wanted_group)
    )


def _plural(kind: str) -> str:
    if kind.endswith(("s", "x", "ch")):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
