"""Every interpreter, by group and kind.

Those of this program are in `BUILT_IN`. Further ones come from installed packages: the shell loads them once and hands
the registry down. A world and a schedule carry the one they were made with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from reconciler.errors import ConfigurationError
from reconciler.kinds import gangs, gateway, jobs, secret_makers, small_kinds, workloads
from reconciler.kinds.interpreter import GENERIC, Interpreter
from reconciler.kinds.references import CERT_MANAGER, SECRETS_STORE_GROUP

__all__ = ["BUILT_IN_KINDS", "GENERIC", "Registry", "registry_of"]

BUILT_IN: Final[tuple[tuple[str, Interpreter], ...]] = (
    ("backendtlspolicy", gateway.BackendTLSPolicy((gateway.GROUP, "BackendTLSPolicy"))),
    ("certificate", secret_makers.Certificate((CERT_MANAGER, "Certificate"))),
    ("configmap", small_kinds.ConfigMap(("", "ConfigMap"))),
    ("cronjob", jobs.CronJob(("batch", "CronJob"), path=("spec", "jobTemplate", "spec", "template"))),
    (
        "customresourcedefinition",
        small_kinds.CustomResourceDefinition(("apiextensions.k8s.io", "CustomResourceDefinition"), namespaced=False),
    ),
    ("daemonset", workloads.DaemonSet(("apps", "DaemonSet"))),
    ("deployment", workloads.Deployment(("apps", "Deployment"))),
    ("externalsecret", secret_makers.ExternalSecret((secret_makers.EXTERNAL_SECRETS, "ExternalSecret"))),
    ("gateway", gateway.Gateway((gateway.GROUP, "Gateway"))),
    ("gatewayclass", gateway.GatewayClass((gateway.GROUP, "GatewayClass"), namespaced=False)),
    ("horizontalpodautoscaler", small_kinds.Autoscaler(("autoscaling", "HorizontalPodAutoscaler"))),
    ("ingress", small_kinds.Ingress(("networking.k8s.io", "Ingress"))),
    ("issuer", secret_makers.Issuer((CERT_MANAGER, "Issuer"))),
    ("job", jobs.Job(("batch", "Job"))),
    ("kubeflow", gangs.TrainingJob(*(("kubeflow.org", kind) for kind in sorted(gangs.REPLICA_SPECS)))),
    ("limitrange", Interpreter(("", "LimitRange"))),
    (
        "listenerset",
        gateway.ListenerSet((gateway.GROUP, "ListenerSet"), ("gateway.networking.x-k8s.io", "XListenerSet")),
    ),
    ("namespace", small_kinds.Namespace(("", "Namespace"), namespaced=False)),
    ("persistentvolume", Interpreter(("", "PersistentVolume"), namespaced=False)),
    ("persistentvolumeclaim", small_kinds.PersistentVolumeClaim(("", "PersistentVolumeClaim"))),
    ("pod", workloads.BarePod(("", "Pod"), path=())),
    ("poddisruptionbudget", small_kinds.PodDisruptionBudget(("policy", "PodDisruptionBudget"))),
    ("referencegrant", Interpreter((gateway.GROUP, "ReferenceGrant"))),
    ("replicaset", workloads.ReplicaSet(("apps", "ReplicaSet"))),
    ("resourcequota", Interpreter(("", "ResourceQuota"))),
    ("route", gateway.GatewayRoute(*((gateway.GROUP, kind) for kind in gateway.ROUTES))),
    ("scaledobject", small_kinds.Autoscaler(("keda.sh", "ScaledObject"))),
    ("sealedsecret", secret_makers.SealedSecret(("bitnami.com", "SealedSecret"))),
    ("secret", small_kinds.Secret(("", "Secret"))),
    ("secretproviderclass", secret_makers.SecretProviderClass((SECRETS_STORE_GROUP, "SecretProviderClass"))),
    ("secretstore", secret_makers.SecretStore((secret_makers.EXTERNAL_SECRETS, "SecretStore"))),
    ("service", small_kinds.ServiceKind(("", "Service"))),
    ("serviceaccount", small_kinds.ServiceAccount(("", "ServiceAccount"))),
    ("serviceimport", small_kinds.ServiceImport(("multicluster.x-k8s.io", "ServiceImport"))),
    ("sparkapplication", gangs.SparkApplication(("sparkoperator.k8s.io", "SparkApplication"))),
    ("statefulset", workloads.StatefulSet(("apps", "StatefulSet"))),
    ("storageclass", Interpreter(("storage.k8s.io", "StorageClass"), namespaced=False)),
    (
        "vaultauth",
        secret_makers.VaultAuth((secret_makers.VAULT, "VaultAuth"), (secret_makers.VAULT, "VaultConnection")),
    ),
    ("vaultsecret", secret_makers.VaultSecret(*((secret_makers.VAULT, kind) for kind in secret_makers.VAULT_SECRETS))),
)
"""Name and interpreter, in the order of names."""


class Registry(Struct, frozen=True):
    """Interpreters by (group, kind)."""

    by_kind: Mapping[tuple[str, str], Interpreter]

    def of(self, group: str, kind: str) -> Interpreter:
        """Return the interpreter of a kind; `GENERIC` for an unknown one."""
        return self.by_kind.get((group, kind), GENERIC)

    def kinds_with(self, name: str) -> frozenset[tuple[str, str]]:
        """Return the kinds with a rule of their own in this method of `Interpreter`."""
        return frozenset(kind for kind, known in self.by_kind.items() if name in known.rules)


def registry_of(named: Iterable[tuple[str, Interpreter]]) -> Registry:
    """A registry of interpreters with the name of where each is from; a kind that two describe is an error.

    Raises ConfigurationError: two interpreters describe one kind; the message names both.
    """
    by_kind: dict[tuple[str, str], Interpreter] = {}
    origins: dict[tuple[str, str], str] = {}
    for origin, interpreter in named:
        for kind in interpreter.kinds:
            if kind in origins:
                group, name = kind
                where = f"{name} of {group}" if group else name
                raise ConfigurationError(f"{where} is described by both {origins[kind]} and {origin}; remove one")
            by_kind[kind] = interpreter
            origins[kind] = origin
    return Registry(MappingProxyType(by_kind))


BUILT_IN_KINDS: Final = registry_of(BUILT_IN)
"""The kinds of this program's own interpreters. No plan falls back to them: the caller passes its registry."""
