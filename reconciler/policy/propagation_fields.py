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
    any_field,
    document_shape,
    either_case,
    exactly,
    flag_field,
    integer_field,
    object_field,
    objects_field,
    shape,
    text_field,
    texts_field,
)

_PURGE_MODES = either_case("Immediately", "Graciously", "Never", Directly="Immediately", Gracefully="Graciously")
_AT_ONCE = (
    "an edit of a policy takes effect with its commit and is shown in the plan; take the field out, "
    "and use suspension to hold writes back"
)
_NO_STATE = "a new copy starts without labels made of the old one's status, as in Karmada by default"
_NO_EVICTION = "a NoExecute taint keeps new workloads away and takes nothing away, as in Karmada by default"

STATE_PRESERVATION_SHAPE = shape(
    objects_field(
        "rules",
        "Which status fields travel.",
        text_field("aliasLabelName", "The label that carries the value.", required=True),
        text_field("jsonPath", "Where the value stands in the status.", required=True),
    )
)

FAILOVER_SHAPE = shape(
    object_field(
        "application",
        "What happens when an application is unhealthy in a cluster.",
        object_field(
            "decisionConditions",
            "When it counts as failed.",
            integer_field("tolerationSeconds", "How long it may be unhealthy.", default="300"),
        ),
        text_field("purgeMode", "What becomes of the old copy.", values=_PURGE_MODES, default="Graciously"),
        integer_field("gracePeriodSeconds", "How long Graciously waits at most.", default="600 under Graciously"),
        object_field(
            "statePreservation",
            "Status fields that reach the new copy as labels.",
            shape=STATE_PRESERVATION_SHAPE,
            no_effect=_NO_STATE,
        ),
    ),
    object_field(
        "cluster",
        "What happens when a cluster has a NoExecute taint.",
        text_field("purgeMode", "What becomes of the old copy.", values=_PURGE_MODES, default="Graciously"),
        object_field(
            "statePreservation",
            "Status fields that reach the new copy as labels.",
            shape=STATE_PRESERVATION_SHAPE,
            no_effect=_NO_STATE,
        ),
        no_effect=_NO_EVICTION,
    ),
)

REPLICA_SCHEDULING_SHAPE = shape(
    text_field(
        "replicaSchedulingType",
        "Every cluster gets all replicas, or they are divided.",
        values=either_case("Duplicated", "Divided"),
        default="Divided; Duplicated when replicaScheduling is absent",
    ),
    text_field(
        "replicaDivisionPreference",
        "How replicas are divided.",
        values=either_case("Weighted", "Aggregated"),
        default="Weighted",
    ),
    text_field("customSchedulingType", "Gang: the whole set on one cluster, or nowhere.", values=either_case("Gang")),
    object_field(
        "weightPreference",
        "Static or dynamic weights.",
        objects_field(
            "staticWeightList",
            "Fixed weights; a cluster counts with its largest.",
            TARGET_CLUSTER,
            integer_field("weight", "The weight, 1 or more.", required=True),
            CLUSTER_NAMES,
        ),
        text_field(
            "dynamicWeight",
            "Weights by free capacity; fixed weights are then ignored.",
            values=either_case("AvailableReplicas"),
        ),
        default="weight 1 for every cluster",
    ),
)

PLACEMENT_SHAPE = shape(
    object_field("clusterAffinity", "The target clusters.", shape=AFFINITY_SHAPE, default="every cluster"),
    objects_field(
        "clusterAffinities",
        "Ordered groups of target clusters.",
        text_field("affinityName", "The name of the group.", required=True),
        *AFFINITY_FIELDS,
        objects_field(
            "overflowAffinities",
            "Tiers that take what the group cannot hold, in order.",
            text_field("affinityName", "The name of the tier.", required=True),
            *AFFINITY_FIELDS,
        ),
    ),
    objects_field(
        "clusterTolerations",
        "Cluster taints that are tolerated.",
        text_field("key", "The taint key; empty with Exists: every taint."),
        text_field(
            "operator",
            "How the value compares.",
            values=exactly("Equal", "Exists"),
            default="Equal",
            note="Lt and Gt exist for nodes only",
        ),
        text_field("value", "The taint value."),
        text_field(
            "effect",
            "The effect; empty: every effect.",
            values=exactly("NoSchedule", "PreferNoSchedule", "NoExecute") | {"": ""},
        ),
        integer_field(
            "tolerationSeconds", "How long a NoExecute taint is tolerated.", default="for ever", no_effect=_NO_EVICTION
        ),
    ),
    objects_field(
        "spreadConstraints",
        "Over how many clusters or regions to spread.",
        text_field(
            "spreadByField",
            "What is counted.",
            values=either_case("cluster", "region", "zone", "provider"),
            default="cluster",
        ),
        text_field("spreadByLabel", "A cluster label whose values are counted."),
        integer_field("minGroups", "At least so many.", default="1"),
        integer_field("maxGroups", "At most so many.", default="no limit"),
    ),
    object_field("replicaScheduling", "How replicas are spread.", default="Duplicated", shape=REPLICA_SCHEDULING_SHAPE),
    any_field(
        "workloadAffinity",
        "Keeps workloads with a label together or apart.",
        no_effect="placement looks at one workload at a time, as in Karmada unless a feature gate is on",
    ),
)

SPEC_SHAPE = shape(
    RESOURCE_SELECTORS,
    object_field("placement", "Where the templates go.", shape=PLACEMENT_SHAPE, default="every cluster, Duplicated"),
    flag_field(
        "propagateDeps",
        "Whether what a workload refers to goes along.",
        spellings=("association",),
        default="false; true when a ServiceImport is selected",
    ),
    integer_field("priority", "The larger one wins among policies of one scope.", default="0"),
    text_field(
        "preemption",
        "Whether the policy takes over templates of others.",
        values=exactly("Always", "Never"),
        default="Never",
        inert_values={"Always": "the winner is computed in every round, nothing is held by a weaker policy"},
    ),
    texts_field(
        "dependentOverrides",
        "Names of OverridePolicies (of ClusterOverridePolicies for a cluster policy) that must exist first.",
    ),
    text_field(
        "schedulerName",
        "The scheduler.",
        values=exactly("default-scheduler"),
        default="default-scheduler",
        note="No other scheduler works on a store: take the field out",
    ),
    object_field("failover", "What happens on failures.", shape=FAILOVER_SHAPE),
    text_field(
        "conflictResolution",
        "What to do about objects that exist and are not ours.",
        values=either_case("Abort", "Overwrite"),
        default="Abort",
    ),
    text_field(
        "activationPreference",
        "When an edit of the policy takes effect.",
        values={"": "", "Lazy": "Lazy"},
        inert_values={"Lazy": _AT_ONCE},
    ),
    object_field(
        "suspension",
        "Stops writing.",
        flag_field("dispatching", "Stops writing to every cluster.", default="false"),
        object_field("dispatchingOnClusters", "Stops writing to these clusters.", CLUSTER_NAMES),
    ),
    flag_field(
        "preserveResourcesOnDeletion",
        "Whether copies in members are kept when their cause is gone.",
        default="true in the ACK groups, false in Karmada's",
    ),
    flag_field("prune", "The older API's opposite of preserveResourcesOnDeletion.", default="false"),
    object_field(
        "schedulePriority",
        "Which workloads are placed first when free capacity is short.",
        text_field("priorityClassSource", "KubePriorityClass.", values=exactly("KubePriorityClass")),
        text_field("priorityClassName", "The name of the PriorityClass."),
    ),
    object_field(
        "autoScaling",
        "Elastic nodes.",
        flag_field("ecsProvision", "The last group takes the remainder and grows nodes for it.", default="false"),
    ),
)

PROPAGATION_SHAPE = document_shape(object_field("spec", "What goes where.", shape=SPEC_SHAPE, required=True))
