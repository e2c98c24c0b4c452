"""Member clusters as the store declares them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.model.problem import NOWHERE, Source


class Taint(Struct, frozen=True, kw_only=True):
    """A taint of a cluster or a node."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Cluster(Struct, frozen=True, kw_only=True):
    """A member: `Cluster` of Karmada's group, `ManagedCluster` or `ClusterProfile`. Credentials never live here."""

    name: str
    namespace: str = ""
    """Of its ClusterProfile, which has one; no part of the cluster's name."""
    alias: str = ""
    """From the alias annotation, else of a ClusterProfile its displayName; shown as CLUSTER_ALIAS."""
    labels: Mapping[str, str] = field(default_factory=dict)
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    context: str = ""
    """Annotation `fleet.reconciler/context`; empty: the context has the cluster's name."""
    pulls: bool = False
    """`spec.syncMode: Pull`: a process of its own applies there; others leave the cluster alone unless they name it."""
    source: Source = NOWHERE

    @property
    def context_name(self) -> str:
        """The kubeconfig context that reaches this cluster."""
        return self.context or self.name
