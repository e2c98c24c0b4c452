"""The interpreters of this program, by name."""

from __future__ import annotations

from typing import Final

from reconciler.kinds.gangs import KUBEFLOW_JOB, SPARK_APPLICATION
from reconciler.kinds.gateway import (
    BACKEND_TLS_POLICY,
    GATEWAY_CLASS,
    GATEWAY_INTERPRETER,
    GATEWAY_ROUTE,
    LISTENER_SET,
    REFERENCE_GRANT,
)
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.jobs import CRON_JOB, JOB
from reconciler.kinds.secret_makers import (
    CERTIFICATE,
    EXTERNAL_SECRET,
    ISSUER,
    SEALED_SECRET,
    SECRET_PROVIDER_CLASS,
    SECRET_STORE,
    VAULT_AUTH,
    VAULT_SECRET,
)
from reconciler.kinds.small_kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    HORIZONTAL_POD_AUTOSCALER,
    INGRESS,
    LIMIT_RANGE,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD_DISRUPTION_BUDGET,
    RESOURCE_QUOTA,
    SCALED_OBJECT,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    SERVICE_IMPORT,
    STORAGE_CLASS,
)
from reconciler.kinds.workloads import DAEMON_SET, DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET

BUILT_IN: Final[tuple[tuple[str, Interpreter], ...]] = (
    ("backendtlspolicy", BACKEND_TLS_POLICY),
    ("certificate", CERTIFICATE),
    ("configmap", CONFIG_MAP),
    ("cronjob", CRON_JOB),
    ("customresourcedefinition", CUSTOM_RESOURCE_DEFINITION),
    ("daemonset", DAEMON_SET),
    ("deployment", DEPLOYMENT),
    ("externalsecret", EXTERNAL_SECRET),
    ("gateway", GATEWAY_INTERPRETER),
    ("gatewayclass", GATEWAY_CLASS),
    ("horizontalpodautoscaler", HORIZONTAL_POD_AUTOSCALER),
    ("ingress", INGRESS),
    ("issuer", ISSUER),
    ("job", JOB),
    ("kubeflow", KUBEFLOW_JOB),
    ("limitrange", LIMIT_RANGE),
    ("listenerset", LISTENER_SET),
    ("namespace", NAMESPACE),
    ("persistentvolume", PERSISTENT_VOLUME),
    ("persistentvolumeclaim", PERSISTENT_VOLUME_CLAIM),
    ("pod", POD),
    ("poddisruptionbudget", POD_DISRUPTION_BUDGET),
    ("referencegrant", REFERENCE_GRANT),
    ("replicaset", REPLICA_SET),
    ("resourcequota", RESOURCE_QUOTA),
    ("route", GATEWAY_ROUTE),
    ("scaledobject", SCALED_OBJECT),
    ("sealedsecret", SEALED_SECRET),
    ("secret", SECRET),
    ("secretproviderclass", SECRET_PROVIDER_CLASS),
    ("secretstore", SECRET_STORE),
    ("service", SERVICE),
    ("serviceaccount", SERVICE_ACCOUNT),
    ("serviceimport", SERVICE_IMPORT),
    ("sparkapplication", SPARK_APPLICATION),
    ("statefulset", STATEFUL_SET),
    ("storageclass", STORAGE_CLASS),
    ("vaultauth", VAULT_AUTH),
    ("vaultsecret", VAULT_SECRET),
)
"""Name and interpreter, in the order of names."""
