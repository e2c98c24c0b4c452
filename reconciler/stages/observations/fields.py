"""Fields of an observations file. Source: design#observations."""

from __future__ import annotations

from reconciler.model.observation import Health
from reconciler.model.problem import Severity
from reconciler.stages.documents import Field, FieldType, exactly, shape

_PRINTED = "a binding that `render` printed may stand here as it is; only resource and placement are read"

_UNREAD = "an earlier version read it in other processes; placement does not rest on it"

_AMOUNTS = "Resource name to quantity, as Kubernetes writes them."

RESOURCE_SHAPE = shape(
    Field("apiVersion", FieldType.TEXT, "API group and version; the version does not matter.", required=True),
    Field("kind", FieldType.TEXT, "The kind.", required=True),
    Field("namespace", FieldType.TEXT, "The namespace; empty for what belongs to the cluster."),
    Field("name", FieldType.TEXT, "The name.", required=True),
)

TAINT_SHAPE = shape(
    Field("key", FieldType.TEXT, "The key.", required=True),
    Field("value", FieldType.TEXT, "The value."),
    Field(
        "effect",
        FieldType.TEXT,
        "What the taint does.",
        values=exactly("NoSchedule", "PreferNoSchedule", "NoExecute"),
        default="NoSchedule",
    ),
    Field("timeAdded", FieldType.TEXT, "When it was put there.", no_effect="room does not depend on it"),
)

NODE_SHAPE = shape(
    Field("name", FieldType.TEXT, "The name of the node.", required=True),
    Field("ready", FieldType.FLAG, "Whether its Ready condition is true.", default="true"),
    Field("unschedulable", FieldType.FLAG, "Whether it is cordoned.", default="false"),
    Field("labels", FieldType.MAP, "Labels."),
    Field("taints", FieldType.OBJECTS, "Taints.", shape=TAINT_SHAPE),
    Field("allocatable", FieldType.ANY, _AMOUNTS),
    Field("requested", FieldType.ANY, "What the pods on it request; `pods` is their number."),
)

QUOTA_SHAPE = shape(
    Field("namespace", FieldType.TEXT, "The namespace that it limits.", required=True),
    Field("hard", FieldType.ANY, _AMOUNTS),
    Field("used", FieldType.ANY, _AMOUNTS),
)

PENDING_SHAPE = shape(
    Field("namespace", FieldType.TEXT, "Their namespace.", required=True),
    Field("pods", FieldType.INTEGER, "How many there are.", required=True),
    Field("names", FieldType.TEXTS, "The first of them."),
    Field("refusal", FieldType.TEXT, "Why no node ever takes them, so that they take no room; absent: one may."),
)

WORKLOAD_SHAPE = shape(
    *RESOURCE_SHAPE.fields,
    Field("replicas", FieldType.INTEGER, "Replicas that it has in this cluster.", default="0"),
    Field("ready", FieldType.INTEGER, "How many of them are ready.", default="0"),
    Field("missing", FieldType.INTEGER, "Pods that it wants and that are not there yet.", default="0"),
    Field("withoutNode", FieldType.INTEGER, "Pods of it that have no node; absent: not known."),
    Field("established", FieldType.INTEGER, "With how many replicas it has served, as the journal says."),
    Field("unschedulable", FieldType.INTEGER, "Pods of its newest revision that find no node.", default="0"),
    Field("unschedulableSince", FieldType.TEXT, "Since when, as RFC 3339."),
    Field("health", FieldType.TEXT, "Health.", values=exactly(*(str(health) for health in Health)), default="Unknown"),
    Field("unhealthySince", FieldType.TEXT, "Since when, as RFC 3339."),
    Field(
        "endedByItself",
        FieldType.FLAG,
        "Whether it failed for good by its own fault, so that no other cluster takes it over.",
        default="false",
    ),
    Field("manifest", FieldType.TEXT, "Digest of what was applied there.", no_effect=_UNREAD, severity=Severity.HINT),
)

CLUSTER_SHAPE = shape(
    Field("name", FieldType.TEXT, "The name of the Cluster document.", required=True),
    Field("reachable", FieldType.FLAG, "Whether its API server answered.", default="true"),
    Field("observedAt", FieldType.TEXT, "When this was seen, as RFC 3339."),
    Field(
        "apis", FieldType.TEXTS, "Kinds that are served, like apps/v1/Deployment. Absent: built-in kinds are assumed."
    ),
    Field("pendingRequests", FieldType.ANY, "What pods request that wait for a node; `pods` is their number."),
    Field("pendingPods", FieldType.OBJECTS, "Pods that wait for a node.", shape=PENDING_SHAPE),
    Field("quotas", FieldType.OBJECTS, "ResourceQuotas.", shape=QUOTA_SHAPE),
    Field("nodes", FieldType.OBJECTS, "Nodes. Absent: the free capacity is not known.", shape=NODE_SHAPE),
    Field("workloads", FieldType.OBJECTS, "Workloads as they run there.", shape=WORKLOAD_SHAPE),
)

CONSTRAINT_SHAPE = shape(
    Field("resource", FieldType.OBJECT, "The resource that it concerns.", shape=RESOURCE_SHAPE, required=True),
    Field("cluster", FieldType.TEXT, "The cluster that it concerns.", required=True),
    Field("replicasMax", FieldType.INTEGER, "The most replicas there; 0 for none.", default="0"),
    Field("until", FieldType.TEXT, "When it ends, as RFC 3339; absent: it does not end."),
    Field("reason", FieldType.TEXT, "Why."),
    Field("excludes", FieldType.FLAG, "Whether the cluster is no candidate at all.", default="false"),
)

BINDING_SHAPE = shape(
    Field("resource", FieldType.OBJECT, "The resource that is placed.", shape=RESOURCE_SHAPE, required=True),
    Field(
        "placement",
        FieldType.OBJECTS,
        "Where it is.",
        shape=shape(
            Field("cluster", FieldType.TEXT, "The cluster.", required=True),
            Field("replicas", FieldType.INTEGER, "Replicas assigned there; absent or null for what has none."),
        ),
    ),
    Field("affinityName", FieldType.TEXT, "The group of clusterAffinities that is in use."),
    Field("policy", FieldType.ANY, "As `render` prints it.", no_effect=_PRINTED, severity=Severity.HINT),
    Field("unplaced", FieldType.INTEGER, "As `render` prints it.", no_effect=_PRINTED, severity=Severity.HINT),
    Field("reasons", FieldType.ANY, "As `render` prints it.", no_effect=_PRINTED, severity=Severity.HINT),
)

OBSERVATIONS_SHAPE = shape(
    Field("version", FieldType.INTEGER, "Version of this format: 1.", required=True),
    Field("clusters", FieldType.OBJECTS, "What is known of each cluster.", shape=CLUSTER_SHAPE),
    Field("constraints", FieldType.OBJECTS, "What descheduling and failover have decided.", shape=CONSTRAINT_SHAPE),
    Field("bindings", FieldType.OBJECTS, "The previous placement.", shape=BINDING_SHAPE),
)
