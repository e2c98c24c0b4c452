"""Namespaces and API groups that are never distributed. Source: design#system-namespaces."""

from __future__ import annotations

import re
from functools import lru_cache

from reconciler.model.refs import GVK, Identity
from reconciler.regex import regex

_SYSTEM = regex(r"kube-.*|karmada-system|karmada-cluster|karmada-es-.*|fleet-system", re.DOTALL)

CONTROL_GROUPS = frozenset({"policy.karmada.io", "cluster.karmada.io", "work.karmada.io"})
"""Karmada's own control API: its objects are never distributed."""


# Thousands of templates live in a namespace.
@lru_cache(maxsize=4096)
def is_system_namespace(namespace: str) -> bool:
    """Return whether nothing is distributed into a namespace.

    Source: "PropagationPolicy and OverridePolicy" (any namespace other than the system reserved ones); Karmada:
    `kube-*` and its own namespaces; `fleet-system` has our own marks in members.

    >>> is_system_namespace("kube-system"), is_system_namespace("kubernetes"), is_system_namespace("default")
    (True, False, False)
    """
    return _SYSTEM.fullmatch(namespace) is not None


def is_never_distributed(gvk: GVK, identity: Identity) -> bool:
    """Return whether no policy may claim it: it is in or is a system namespace, or belongs to the control API."""
    if gvk.group in CONTROL_GROUPS:
        return True
    if identity.namespace:
        return is_system_namespace(identity.namespace)
    return identity.group == "" and identity.kind == "Namespace" and is_system_namespace(identity.name)
