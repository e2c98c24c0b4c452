"""Problem codes of policies, clusters and fleet settings."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

POLICY_CODES: Mapping[str, Code] = {
    "unknown-field": Code(
        "Unknown field",
        "The kind has no such field, here or at all; it may be misspelled or wrongly indented.",
        "Correct the spelling or the indentation, or take the field out.",
    ),
    "wrong-type": Code(
        "Wrong type",
        "The field holds another type than it should: a number for a string, a string for a list.",
        "Write the type that the message names; quote numbers and booleans that are meant as text.",
    ),
    "field-required": Code("Missing field", "A field that has no default is missing.", "Add it."),
    "field-given-twice": Code(
        "Field under two spellings",
        "Two spellings of one field are given, such as clusterIds and clusterNames.",
        "Keep one of them.",
    ),
    "field-refused": Code(
        "Field not supported",
        "The field means something that a store of files cannot mean, and leaving it out silently would mislead.",
        "Take it out; the message names what to write instead.",
    ),
    "field-without-effect": Code(
        "Field without effect",
        "The field is known and harmless, but nothing depends on it here.",
        "Take it out, or leave it for the tool that needs it.",
    ),
    "value-refused": Code(
        "Value not supported",
        "The field is supported, this value of it is not.",
        "Choose another value or take the field out; the message says why.",
    ),
    "value-without-effect": Code(
        "Value without effect", "The value is known, but changes nothing here.", "Take it out, or leave it."
    ),
    "unknown-value": Code(
        "Unknown value", "The field takes one of a few values.", "Choose one that the message lists."
    ),
    "number-out-of-range": Code("Number too large", "The number does not fit 32 bits.", "Write a smaller one."),
    "api-version-unknown": Code(
        "Unknown API version",
        "The kind is known, its apiVersion is not: the version is gone, or the group is misspelled.",
        "Write the one that the message proposes.",
    ),
    "kind-unknown": Code(
        "Unknown kind",
        "A group that is known completely (that of a policy, a Cluster, or a built-in one) has no such kind, so that "
        "it cannot be a custom resource. What it might mean is left as it is.",
        "Write the kind that the message proposes.",
    ),
    "name-illegal": Code(
        "Illegal name", "Kubernetes does not accept the text as a name.", "Use small letters, digits and dashes."
    ),
    "namespace-on-cluster-policy": Code(
        "Namespace on a cluster policy",
        "ClusterPropagationPolicy and ClusterOverridePolicy have no namespace.",
        "Take metadata.namespace out, or write the namespaced kind.",
    ),
    "namespace-on-cluster-kind": Code(
        "Namespace on a cluster-scoped kind", "The kind has no namespace.", "Take metadata.namespace out."
    ),
    "system-namespace": Code(
        "System namespace",
        "A policy lives in or selects in kube-*, karmada-system, karmada-cluster, karmada-es-* or fleet-system; "
        "nothing is distributed there.",
        "Use another namespace.",
    ),
    "selectors-missing": Code(
        "No resourceSelectors",
        "A propagation policy without selectors selects nothing; in Karmada's group that is an error.",
        "List the resources that it distributes.",
    ),
    "selector-namespace-elsewhere": Code(
        "Selector for another namespace",
        "A namespaced policy reaches its own namespace only; in Karmada's group that is an error.",
        "Move the selector to a policy of that namespace, or write the cluster kind.",
    ),
    "placement-missing": Code(
        "No placement", "Everything that is selected goes to every cluster.", "Say which clusters are meant."
    ),
    "prune-contradicts-preserve": Code(
        "prune contradicts preserveResourcesOnDeletion",
        "The two fields are opposites of one another and are given with the same value.",
        "Keep one of them.",
    ),
    "preemption-needs-names": Code(
        "Preemption without names",
        "Karmada lets a policy take over only templates that it selects by name.",
        "Add names to the selectors, or take preemption out.",
    ),
    "suspension-contradictory": Code(
        "Suspension given twice",
        "Every cluster is suspended, and some are named as well.",
        "Keep dispatching or dispatchingOnClusters.",
    ),
    "affinity-mode-unknown": Code(
        "Unknown affinity mode", "The annotation is tiers or exclusive.", "Write one of the two, or take it out."
    ),
    "affinity-mode-needs-capacity": Code(
        "Tiers without capacity",
        "Tiers are filled by free capacity, and this division does not look at it.",
        "Use dynamicWeight or Aggregated, or take the annotation out.",
    ),
    "policy-annotation-unknown": Code(
        "Unknown annotation of ours on a policy",
        "The annotation begins with fleet.reconciler/ and means nothing on a policy; it may be misspelled.",
        "Correct the name, or take it out.",
    ),
    "fail-back-unknown": Code(
        "Unknown fail-back", "The annotation fleet.reconciler/fail-back is true or false.", "Write one of the two."
    ),
    "fail-back-without-groups": Code(
        "Fail-back without groups",
        "Going back concerns ordered groups of clusters, and the policy has one at most.",
        "Write several clusterAffinities, or take the annotation out.",
    ),
    "bring-unknown": Code(
        "Unknown companion",
        "The annotation fleet.reconciler/bring lists services, ingresses, routes, autoscalers and budgets.",
        "Name some of these, with commas between.",
    ),
    "affinity-and-affinities": Code(
        "Two kinds of affinity", "clusterAffinity and clusterAffinities exclude each other.", "Keep one of them."
    ),
    "affinity-name-illegal": Code(
        "Illegal group name", "A group is named by a label key of at most 32 characters.", "Choose another name."
    ),
    "affinity-name-repeated": Code(
        "Group name taken", "Two groups of a policy have one name.", "Choose another name for one of them."
    ),
    "overflow-name-repeated": Code(
        "Tier name taken", "Two tiers, or a tier and its group, have one name.", "Choose another name."
    ),
    "overflow-needs-primary": Code(
        "Overflow without a first tier",
        "A group with overflowAffinities must itself say which clusters come first.",
        "Add clusterNames or a selector to the group.",
    ),
    "overflow-needs-capacity-division": Code(
        "Overflow without capacity",
        "Tiers overflow when the free capacity of the earlier ones is used up; this division does not look at it.",
        "Use dynamicWeight or Aggregated, or take overflowAffinities out.",
    ),
    "target-given-twice": Code(
        "Clusters given twice",
        "The clusters of an entry are given in targetCluster and beside or below it.",
        "Keep those directly in targetCluster.",
    ),
    "field-selector-key": Code(
        "Unknown cluster field", "A fieldSelector looks at provider, region or zone.", "Write one of them."
    ),
    "field-selector-operator": Code(
        "Unknown operator of a cluster field", "A fieldSelector compares with In or NotIn.", "Write one of them."
    ),
    "field-selector-values": Code("No values", "In and NotIn compare with values.", "Add at least one."),
    "label-selector-invalid": Code(
        "Illegal label selector",
        "A key, a value or the number of values is not what Kubernetes accepts.",
        "In and NotIn need values, Exists and DoesNotExist take none.",
    ),
    "label-key-illegal": Code("Illegal label key", "Kubernetes does not accept the key.", "Use prefix/name or name."),
    "label-illegal": Code("Illegal label", "Kubernetes does not accept the key or the value.", "Correct it."),
    "mark-reserved": Code("Reserved mark", "Only the reconciler writes this label or annotation.", "Take it out."),
    "toleration-invalid": Code(
        "Illegal toleration",
        "Key, operator, value, effect and seconds do not fit together.",
        "An empty key needs Exists, Exists takes no value, tolerationSeconds is for NoExecute.",
    ),
    "spread-field-and-label": Code(
        "Spread by field and label", "One constraint counts by field or by label.", "Write two constraints."
    ),
    "spread-groups-negative": Code("Negative number of groups", "Groups are counted from 0.", "Write 0 or more."),
    "spread-max-below-min": Code(
        "maxGroups below minGroups", "No choice can meet both.", "Raise one or lower the other."
    ),
    "spread-field-repeated": Code("Two constraints on one field", "Each field is limited once.", "Merge them."),
    "spread-cluster-missing": Code(
        "No cluster constraint",
        "Next to a constraint on region, zone or provider one on cluster is required, as in Karmada.",
        "Add a constraint with spreadByField: cluster.",
    ),
    "weight-not-positive": Code("Weight below 1", "A weight is 1 or more.", "Exclude the cluster in clusterAffinity."),
    "toleration-seconds-negative": Code("Negative tolerationSeconds", "It is 0 or more.", "Write 0 or more."),
    "grace-period-not-graceful": Code(
        "Grace period without Graciously", "Only purgeMode Graciously waits.", "Take it out, or change purgeMode."
    ),
    "grace-period-not-positive": Code(
        "Grace period of nothing", "gracePeriodSeconds is more than 0.", "Use Immediately to wait not at all."
    ),
    "rules-and-legacy": Code(
        "Rules and the older form",
        "overrideRules excludes targetCluster and overriders directly under spec.",
        "Move them into a rule.",
    ),
    "pointer-illegal": Code(
        "Illegal JSON pointer", "A pointer begins with a slash and writes ~ as ~0.", "Write it as in /spec/replicas."
    ),
    "override-of-identity": Code(
        "Override of the identity",
        "apiVersion, kind, name and namespace say which object it is; an override would leave the old one behind.",
        "Write another template.",
    ),
    "value-missing": Code(
        "No value", "add and replace need a value; Karmada's group writes an empty one instead.", "Add the value."
    ),
    "value-ignored": Code("Value of a removal", "remove ignores the value.", "Take it out."),
    "value-forbidden": Code("Value of a removal", "remove takes no value in a fieldOverrider.", "Take it out."),
    "field-overrider-syntax": Code(
        "json or yaml", "A fieldOverrider reads the text as exactly one of json and yaml.", "Keep one of them."
    ),
    "too-many-overriders": Code(
        "Too many overriders",
        "A rule makes more than 1,000 changes to every object that it selects.",
        "Write the values into a template of their own, or into several rules that select less.",
    ),
    "taint-repeated": Code("Taint given twice", "Two taints have one key and one effect.", "Keep one of them."),
    "duration-illegal": Code(
        "Illegal duration", "A duration is whole seconds as Kubernetes writes them.", "Write 30s, 2m or 1h30m."
    ),
    "guard-out-of-range": Code("Guard out of range", "A guard is a number or a share.", "Write one in the range."),
    "time-illegal": Code("Illegal time", "Times are RFC 3339.", "Write one as 2026-11-21T10:00:00Z."),
    "ignore-paths-empty": Code(
        "No path to ignore", "An ignore rule names fields.", "List paths such as spec.replicas."
    ),
}
