"""Facts about each kind: replicas, pod template, dependencies, health, fields that only servers write."""

from reconciler.kinds.cluster_fields import fields_of_the_cluster
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import SPEC_TEMPLATE, pod_requests
from reconciler.kinds.registry import BUILT_IN_KINDS, GENERIC, Registry, registry_of
