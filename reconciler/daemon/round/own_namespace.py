"""The namespace of what is ours in a cluster: the mark of who holds the fleet, and the Lease of who leads it."""

from __future__ import annotations

import contextlib
from typing import Final

from reconciler.adapters.kube.client import MemberCluster
from reconciler.errors import AlreadyExists
from reconciler.model.refs import GVK

NAMESPACE: Final = "fleet-system"
_KIND: Final = GVK("", "v1", "Namespace")


async def ensure_namespace(member: MemberCluster, manager: str) -> None:
    """Make the namespace where there is none.

    Raises:
        MemberClusterError: it cannot be made.
    """
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    with contextlib.suppress(AlreadyExists):
        await member.create(_KIND, "", NAMESPACE, body, manager=manager)
