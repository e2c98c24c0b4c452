"""The interpreters of this program: one module a kind, or a family of kinds."""

from __future__ import annotations

from typing import Final

from reconciler.interpreters.autoscalers import horizontalpodautoscaler, scaledobject
from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.cluster import customresourcedefinition, namespace, serviceaccount
from reconciler.interpreters.config import configmap, secret
from reconciler.interpreters.gateway import (
    backendtlspolicy,
    gateway,
    gatewayclass,
    listenerset,
    referencegrant,
    route,
)
from reconciler.interpreters.jobs import cronjob, job, kubeflow, sparkapplication
from reconciler.interpreters.makers import (
    certificate,
    externalsecret,
    issuer,
    sealedsecret,
    secretproviderclass,
    secretstore,
    vaultauth,
    vaultsecret,
)
from reconciler.interpreters.policies import limitrange, poddisruptionbudget, resourcequota
from reconciler.interpreters.services import ingress, service, serviceimport
from reconciler.interpreters.storage import persistentvolume, persistentvolumeclaim, storageclass
from reconciler.interpreters.workloads import daemonset, deployment, pod, replicaset, statefulset

BUILT_IN: Final[tuple[tuple[str, Interpreter], ...]] = (
    ("backendtlspolicy", backendtlspolicy.INTERPRETER),
    ("certificate", certificate.INTERPRETER),
    ("configmap", configmap.INTERPRETER),
    ("cronjob", cronjob.INTERPRETER),
    ("customresourcedefinition", customresourcedefinition.INTERPRETER),
    ("daemonset", daemonset.INTERPRETER),
    ("deployment", deployment.INTERPRETER),
    ("externalsecret", externalsecret.INTERPRETER),
    ("gateway", gateway.INTERPRETER),
    ("gatewayclass", gatewayclass.INTERPRETER),
    ("horizontalpodautoscaler", horizontalpodautoscaler.INTERPRETER),
    ("ingress", ingress.INTERPRETER),
    ("issuer", issuer.INTERPRETER),
    ("job", job.INTERPRETER),
    ("kubeflow", kubeflow.INTERPRETER),
    ("limitrange", limitrange.INTERPRETER),
    ("listenerset", listenerset.INTERPRETER),
    ("namespace", namespace.INTERPRETER),
    ("persistentvolume", persistentvolume.INTERPRETER),
    ("persistentvolumeclaim", persistentvolumeclaim.INTERPRETER),
    ("pod", pod.INTERPRETER),
    ("poddisruptionbudget", poddisruptionbudget.INTERPRETER),
    ("referencegrant", referencegrant.INTERPRETER),
    ("replicaset", replicaset.INTERPRETER),
    ("resourcequota", resourcequota.INTERPRETER),
    ("route", route.INTERPRETER),
    ("scaledobject", scaledobject.INTERPRETER),
    ("sealedsecret", sealedsecret.INTERPRETER),
    ("secret", secret.INTERPRETER),
    ("secretproviderclass", secretproviderclass.INTERPRETER),
    ("secretstore", secretstore.INTERPRETER),
    ("service", service.INTERPRETER),
    ("serviceaccount", serviceaccount.INTERPRETER),
    ("serviceimport", serviceimport.INTERPRETER),
    ("sparkapplication", sparkapplication.INTERPRETER),
    ("statefulset", statefulset.INTERPRETER),
    ("storageclass", storageclass.INTERPRETER),
    ("vaultauth", vaultauth.INTERPRETER),
    ("vaultsecret", vaultsecret.INTERPRETER),
)
"""Name of the module and interpreter, in the order of names."""
