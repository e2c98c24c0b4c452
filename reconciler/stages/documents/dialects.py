"""Which documents are policies, in which dialect, and which kinds of Karmada's control API a store cannot mean."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.policy import Flavor

FLAVORS: Mapping[str, Flavor] = {
    "policy.one.alibabacloud.com/v1alpha1": Flavor.ACK,
    "one.alibabacloud.com/v1alpha1": Flavor.ACK_LEGACY,
    "policy.karmada.io/v1alpha1": Flavor.KARMADA,
}
"""The API versions of policies."""

PROPAGATION_KINDS = frozenset({"PropagationPolicy", "ClusterPropagationPolicy"})
OVERRIDE_KINDS = frozenset({"OverridePolicy", "ClusterOverridePolicy"})
POLICY_GROUPS = frozenset(api_version.partition("/")[0] for api_version in FLAVORS)

_NO_CONTROL_PLANE = "it configures Karmada's own control plane, which a fleet store does not have"
_REFUSED: Mapping[tuple[str, str], str] = {
    ("policy.karmada.io", "FederatedResourceQuota"): "put a ResourceQuota and a policy for it into the store instead",
    ("policy.karmada.io", "ClusterTaintPolicy"): "write the taints into the Cluster documents of the store instead",
    ("remedy.karmada.io", "Remedy"): _NO_CONTROL_PLANE,
    ("work.karmada.io", "Work"): "it is what Karmada computes; write the resource and a policy instead",
    ("work.karmada.io", "ResourceBinding"): "it is what Karmada computes; write the resource and a policy instead",
    (
        "work.karmada.io",
        "ClusterResourceBinding",
    ): "it is what Karmada computes; write the resource and a policy instead",
    ("apps.karmada.io", "WorkloadRebalancer"): "placements are computed afresh when observations change",
    (
        "autoscaling.karmada.io",
        "FederatedHPA",
    ): "put a HorizontalPodAutoscaler and a policy for it into the store instead",
    ("autoscaling.karmada.io", "CronFederatedHPA"): "commit the change of spec.replicas instead",
    ("networking.karmada.io", "MultiClusterService"): "it needs Karmada's control plane in the members",
    ("networking.karmada.io", "MultiClusterIngress"): "it needs Karmada's control plane in the members",
    (
        "config.karmada.io",
        "ResourceInterpreterCustomization",
    ): "kinds are known to the reconciler by its own interpreters",
    ("config.karmada.io", "ResourceInterpreterWebhookConfiguration"): "no webhook takes part in a plan",
    ("search.karmada.io", "ResourceRegistry"): _NO_CONTROL_PLANE,
}


def is_policy(api_version: str, kind: str) -> bool:
    """Return whether a document is one of the four policy kinds, in any version of the three groups."""
    return api_version.partition("/")[0] in POLICY_GROUPS and kind in PROPAGATION_KINDS | OVERRIDE_KINDS


def refused_kind(api_version: str, kind: str) -> str:
    """Return why a store may not have a kind of Karmada's control API, with the remedy; empty for every other kind."""
    return _REFUSED.get((api_version.rpartition("/")[0], kind), "")
