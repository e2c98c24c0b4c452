"""Every field of PropagationPolicy and ClusterPropagationPolicy.

Source: "PropagationPolicy and OverridePolicy" (both generations), "Elastic scheduling with multi-cluster priorities",
and Karmada's `policy.karmada.io/v1alpha1`.
"""

from __future__ import annotations

from reconciler.documents import (
    AFFINITY_FIELDS,
    AFFINITY_SHAPE,
    CLUSTER_NAMES,
    RESOURCE_SELECTORS,
    TARGET_CLUSTER,
    Field,
    FieldType,
    document_shape,
    either_case,
    exactly,
    shape,
)

_PURGE_MODES = either_case("Immediately", "Graciously", "Never", Directly="Immediately", Gracefully="Graciously")
_AT_ONCE = (
    "an edit of a policy takes effect with its commit and is shown in the plan; take the field out, "
    "and use suspension to hold writes back"
)
_NO_STATE = "a new copy starts without labels made of the old one's status, as in Karmada by default"
_NO_EVICTION = "a NoExecute taint keeps new replicas away and takes nothing away, as in Karmada by default"

STATE_PRESERVATION_SHAPE = shape(
    Field(
        "rules",
        FieldType.OBJECTS,
        "Which status fields travel.",
        shape=shape(
            Field("aliasLabelName", FieldType.TEXT, "The label that carries the value.", required=True),
            Field("jsonPath", FieldType.TEXT, "Where the value stands in the status.", required=True),
        ),
    )
)

FAILOVER_SHAPE = shape(
    Field(
        "application",
        FieldType.OBJECT,
        "What happens when an application is unhealthy in a cluster.",
        shape=shape(
            Field(
                "decisionConditions",
                FieldType.OBJECT,
                "When it counts as failed.",
                shape=shape(
                    Field("tolerationSeconds", FieldType.INTEGER, "How long it may be unhealthy.", default="300")
                ),
            ),
            Field(
                "purgeMode", FieldType.TEXT, "What becomes of the old copy.", values=_PURGE_MODES, default="Graciously"
            ),
            Field(
                "gracePeriodSeconds",
                FieldType.INTEGER,
                "How long Graciously waits at most.",
                default="600 under Graciously",
            ),
            Field(
                "statePreservation",
                FieldType.OBJECT,
                "Status fields that reach the new copy as labels.",
                shape=STATE_PRESERVATION_SHAPE,
                no_effect=_NO_STATE,
            ),
        ),
    ),
    Field(
        "cluster",
        FieldType.OBJECT,
        "What happens when a cluster has a NoExecute taint.",
        no_effect=_NO_EVICTION,
        shape=shape(
            Field(
                "purgeMode", FieldType.TEXT, "What becomes of the old copy.", values=_PURGE_MODES, default="Graciously"
            ),
            Field(
                "statePreservation",
                FieldType.OBJECT,
                "Status fields that reach the new copy as labels.",
                shape=STATE_PRESERVATION_SHAPE,
                no_effect=_NO_STATE,
            ),
        ),
    ),
)

REPLICA_SCHEDULING_SHAPE = shape(
    Field(
        "replicaSchedulingType",
        FieldType.TEXT,
        "Every cluster gets all replicas, or they are divided.",
        values=either_case("Duplicated", "Divided"),
        default="Divided; Duplicated when replicaScheduling is absent",
    ),
    Field(
        "replicaDivisionPreference",
        FieldType.TEXT,
        "How replicas are divided.",
        values=either_case("Weighted", "Aggregated"),
        default="Weighted",
    ),
    Field(
        "customSchedulingType",
        FieldType.TEXT,
        "Gang: the whole set on one cluster, or nowhere.",
        values=either_case("Gang"),
    ),
    Field(
        "weightPreference",
        FieldType.OBJECT,
        "Static or dynamic weights.",
        default="weight 1 for every cluster",
        shape=shape(
            Field(
                "staticWeightList",
                FieldType.OBJECTS,
                "Fixed weights; a cluster counts with its largest.",
                shape=shape(
                    TARGET_CLUSTER,
                    Field("weight", FieldType.INTEGER, "The weight, 1 or more.", required=True),
                    CLUSTER_NAMES,
                ),
            ),
            Field(
                "dynamicWeight",
                FieldType.TEXT,
                "Weights by free capacity; fixed weights are then ignored.",
                values=either_case("AvailableReplicas"),
            ),
        ),
    ),
)

PLACEMENT_SHAPE = shape(
    Field("clusterAffinity", FieldType.OBJECT, "The target clusters.", shape=AFFINITY_SHAPE, default="every cluster"),
    Field(
        "clusterAffinities",
        FieldType.OBJECTS,
        "Ordered groups of target clusters.",
        shape=shape(
            Field("affinityName", FieldType.TEXT, "The name of the group.", required=True),
            *AFFINITY_FIELDS,
            Field(
                "overflowAffinities",
                FieldType.OBJECTS,
                "Tiers that take what the group cannot hold, in order.",
                shape=shape(
                    Field("affinityName", FieldType.TEXT, "The name of the tier.", required=True), *AFFINITY_FIELDS
                ),
            ),
        ),
    ),
    Field(
        "clusterTolerations",
        FieldType.OBJECTS,
        "Cluster taints that are tolerated.",
        shape=shape(
            Field("key", FieldType.TEXT, "The taint key; empty with Exists: every taint."),
            Field(
                "operator",
                FieldType.TEXT,
                "How the value compares.",
                values=exactly("Equal", "Exists"),
                default="Equal",
                note="Lt and Gt exist for nodes only",
            ),
            Field("value", FieldType.TEXT, "The taint value."),
            Field(
                "effect",
                FieldType.TEXT,
                "The effect; empty: every effect.",
                values=exactly("NoSchedule", "PreferNoSchedule", "NoExecute") | {"": ""},
            ),
            Field(
                "tolerationSeconds",
                FieldType.INTEGER,
                "How long a NoExecute taint is tolerated.",
                default="for ever",
                no_effect=_NO_EVICTION,
            ),
        ),
    ),
    Field(
        "spreadConstraints",
        FieldType.OBJECTS,
        "Over how many clusters or regions to spread.",
        shape=shape(
            Field(
                "spreadByField",
                FieldType.TEXT,
                "What is counted.",
                values=either_case("cluster", "region", "zone", "provider"),
                default="cluster",
            ),
            Field("spreadByLabel", FieldType.TEXT, "A cluster label whose values are counted."),
            Field("minGroups", FieldType.INTEGER, "At least so many.", default="1"),
            Field("maxGroups", FieldType.INTEGER, "At most so many.", default="no limit"),
        ),
    ),
    Field(
        "replicaScheduling",
        FieldType.OBJECT,
        "How replicas are spread.",
        default="Duplicated",
        shape=REPLICA_SCHEDULING_SHAPE,
    ),
    Field(
        "workloadAffinity",
        FieldType.ANY,
        "Keeps workloads with a label together or apart.",
        no_effect="placement looks at one workload at a time, as in Karmada unless a feature gate is on",
    ),
)

SPEC_SHAPE = shape(
    RESOURCE_SELECTORS,
    Field(
        "placement",
        FieldType.OBJECT,
        "Where the templates go.",
        shape=PLACEMENT_SHAPE,
        default="every cluster, Duplicated",
    ),
    Field(
        "propagateDeps",
        FieldType.FLAG,
        "Whether what a workload refers to goes along.",
        spellings=("association",),
        default="false; true when a ServiceImport is selected",
    ),
    Field("priority", FieldType.INTEGER, "The larger one wins among policies of one scope.", default="0"),
    Field(
        "preemption",
        FieldType.TEXT,
        "Whether the policy takes over templates of others.",
        values=exactly("Always", "Never"),
        default="Never",
        inert_values={"Always": "the winner is computed in every round, nothing is held by a weaker policy"},
    ),
    Field(
        "dependentOverrides",
        FieldType.TEXTS,
        "Names of OverridePolicies (of ClusterOverridePolicies for a cluster policy) that must exist first.",
    ),
    Field(
        "schedulerName",
        FieldType.TEXT,
        "The scheduler.",
        values=exactly("default-scheduler"),
        default="default-scheduler",
        note="No other scheduler works on a store: take the field out",
    ),
    Field("failover", FieldType.OBJECT, "What happens on failures.", shape=FAILOVER_SHAPE),
    Field(
        "conflictResolution",
        FieldType.TEXT,
        "What to do about objects that exist and are not ours.",
        values=either_case("Abort", "Overwrite"),
        default="Abort",
    ),
    Field(
        "activationPreference",
        FieldType.TEXT,
        "When an edit of the policy takes effect.",
        values={"": "", "Lazy": "Lazy"},
        inert_values={"Lazy": _AT_ONCE},
    ),
    Field(
        "suspension",
        FieldType.OBJECT,
        "Stops writing.",
        shape=shape(
            Field("dispatching", FieldType.FLAG, "Stops writing to every cluster.", default="false"),
            Field(
                "dispatchingOnClusters",
                FieldType.OBJECT,
                "Stops writing to these clusters.",
                shape=shape(CLUSTER_NAMES),
            ),
        ),
    ),
    Field(
        "preserveResourcesOnDeletion",
        FieldType.FLAG,
        "Whether copies in members are kept when their cause is gone.",
        default="true in the ACK groups, false in Karmada's",
    ),
    Field("prune", FieldType.FLAG, "The older API's opposite of preserveResourcesOnDeletion.", default="false"),
    Field(
        "schedulePriority",
        FieldType.OBJECT,
        "Which workloads are placed first when free capacity is short.",
        shape=shape(
            Field("priorityClassSource", FieldType.TEXT, "KubePriorityClass.", values=exactly("KubePriorityClass")),
            Field("priorityClassName", FieldType.TEXT, "The name of the PriorityClass."),
        ),
    ),
    Field(
        "autoScaling",
        FieldType.OBJECT,
        "Elastic nodes.",
        shape=shape(
            Field(
                "ecsProvision",
                FieldType.FLAG,
                "The last group takes the remainder and grows nodes for it.",
                default="false",
            )
        ),
    ),
)

PROPAGATION_SHAPE = document_shape(Field("spec", FieldType.OBJECT, "What goes where.", shape=SPEC_SHAPE, required=True))
