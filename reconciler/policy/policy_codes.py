"""Problem codes of policies, clusters, fleet settings and windows."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents import ProblemCode as Code

POLICY_CODES: Mapping[str, Code] = {
    "unknown-field": Code("The kind has no such field here.", "Correct spelling or indentation, or remove the field."),
    "wrong-type": Code(
        "The field has the wrong type: a number for a string, a string for a list.",
        "Write the named type; quote numbers and booleans that are texts.",
    ),
    "field-required": Code("A required field is missing.", "Add it."),
    "field-given-twice": Code("Two spellings of one field, such as clusterIds and clusterNames.", "Keep one of them."),
    "field-refused": Code(
        "The field has no meaning for a store of files.", "Remove it; the message names what to write instead."
    ),
    "field-without-effect": Code(
        "The field is known and harmless, but has no effect here.", "Remove it, or leave it for the tool that needs it."
    ),
    "value-refused": Code(
        "The field is supported, this value of it is not.",
        "Choose another value or take the field out; the message says why.",
    ),
    "value-without-effect": Code("The value is known, but changes nothing here.", "Remove it, or leave it."),
    "unknown-value": Code("The field takes one of a few values.", "Choose one that the message lists."),
    "number-out-of-range": Code("The number is outside of its range.", "Write one inside of it."),
    "api-version-unknown": Code(
        "The kind is known, its apiVersion is not (removed or misspelled).", "Write the one that the message proposes."
    ),
    "kind-unknown": Code(
        "A group that is known completely has no such kind. Objects that it might mean stay.",
        "Write the kind that the message proposes.",
    ),
    "name-illegal": Code("Kubernetes does not accept the text as a name.", "Use small letters, digits and dashes."),
    "namespace-on-cluster-policy": Code(
        "ClusterPropagationPolicy and ClusterOverridePolicy have no namespace.",
        "Take metadata.namespace out, or write the namespaced kind.",
    ),
    "namespace-on-cluster-kind": Code(
        "The kind has no namespace: in objects it is ignored, as by kubectl (a hint); in policies it is an error.",
        "Take metadata.namespace out.",
    ),
    "system-namespace": Code(
        "A policy is in or selects kube-*, karmada-system, karmada-cluster, karmada-es-* or fleet-system.",
        "Use another namespace, or allow one kube-* in spec.namespaces.allowed of the Fleet document.",
    ),
    "selectors-missing": Code(
        "A propagation policy without selectors selects nothing; an error in Karmada's group.",
        "List the resources that it distributes.",
    ),
    "selector-namespace-elsewhere": Code(
        "A namespaced policy reaches its own namespace only; an error in Karmada's group.",
        "Move the selector to a policy of that namespace, or write the cluster kind.",
    ),
    "placement-missing": Code("Everything that is selected goes to every cluster.", "Say which clusters are meant."),
    "prune-contradicts-preserve": Code("The two opposite fields have the same value.", "Keep one of them."),
    "preemption-needs-names": Code(
        "Karmada lets a policy take over only templates selected by name.",
        "Add names to the selectors, or remove preemption.",
    ),
    "suspension-contradictory": Code(
        "Every cluster is suspended, and some are named as well.", "Keep dispatching or dispatchingOnClusters."
    ),
    "affinity-mode-unknown": Code("The annotation is tiers or exclusive.", "Write one of the two, or remove it."),
    "affinity-mode-needs-capacity": Code(
        "Tiers are filled by free capacity, which this division ignores.",
        "Use dynamicWeight or Aggregated, or remove the annotation.",
    ),
    "policy-annotation-unknown": Code(
        "An annotation with fleet.reconciler/ means nothing on a policy.", "Correct the name, or remove it."
    ),
    "fail-back-unknown": Code("The annotation fleet.reconciler/fail-back is true or false.", "Write one of the two."),
    "fail-back-without-groups": Code(
        "Fail-back concerns ordered groups, and the policy has at most one.",
        "Write several clusterAffinities, or remove the annotation.",
    ),
    "bring-unknown": Code(
        "fleet.reconciler/bring lists services, ingresses, routes, autoscalers and budgets.",
        "Name some of these, with commas between.",
    ),
    "affinity-and-affinities": Code("clusterAffinity and clusterAffinities exclude each other.", "Keep one of them."),
    "affinity-name-illegal": Code("A group name is a label key of at most 32 characters.", "Choose another name."),
    "affinity-name-repeated": Code("Two groups of a policy have one name.", "Choose another name for one of them."),
    "overflow-name-repeated": Code("Two tiers, or a tier and its group, have one name.", "Choose another name."),
    "overflow-needs-primary": Code(
        "A group with overflowAffinities must itself say which clusters come first.",
        "Add clusterNames or a selector to the group.",
    ),
    "overflow-needs-capacity-division": Code(
        "Tiers overflow by free capacity, which this division ignores.",
        "Use dynamicWeight or Aggregated, or remove overflowAffinities.",
    ),
    "target-given-twice": Code(
        "Clusters are given in targetCluster and beside or below it.", "Keep those directly in targetCluster."
    ),
    "field-selector-key": Code("A fieldSelector looks at provider, region or zone.", "Write one of them."),
    "field-selector-operator": Code("A fieldSelector compares with In or NotIn.", "Write one of them."),
    "field-selector-values": Code("In and NotIn compare with values.", "Add at least one."),
    "label-selector-invalid": Code(
        "Kubernetes does not accept a key, a value or the number of values.",
        "In and NotIn need values, Exists and DoesNotExist take none.",
    ),
    "label-key-illegal": Code("Kubernetes does not accept the key.", "Use prefix/name or name."),
    "label-illegal": Code("Kubernetes does not accept the key or the value.", "Correct it."),
    "mark-reserved": Code("Only the reconciler writes this label or annotation.", "Remove it."),
    "toleration-invalid": Code(
        "Key, operator, value, effect and seconds do not fit together.",
        "An empty key needs Exists, Exists takes no value, tolerationSeconds is for NoExecute.",
    ),
    "spread-field-and-label": Code("One constraint counts by field or by label.", "Write two constraints."),
    "spread-groups-negative": Code("Groups are counted from 0.", "Write 0 or more."),
    "spread-max-below-min": Code("No choice can meet both.", "Raise one or lower the other."),
    "spread-field-repeated": Code("Each field is limited once.", "Merge them."),
    "spread-cluster-missing": Code(
        "A constraint on region, zone or provider needs one on cluster, as in Karmada.",
        "Add a constraint with spreadByField: cluster.",
    ),
    "weight-not-positive": Code("A weight is 1 or more.", "Exclude the cluster in clusterAffinity."),
    "toleration-seconds-negative": Code("It is 0 or more.", "Write 0 or more."),
    "grace-period-not-graceful": Code("Only purgeMode Graciously waits.", "Remove it, or change purgeMode."),
    "grace-period-not-positive": Code("gracePeriodSeconds is more than 0.", "Use Immediately to wait not at all."),
    "rules-and-legacy": Code(
        "overrideRules excludes targetCluster and overriders directly under spec.", "Move them into a rule."
    ),
    "pointer-illegal": Code("A pointer begins with a slash and writes ~ as ~0.", "Write it as in /spec/replicas."),
    "override-of-identity": Code(
        "An override cannot change apiVersion, kind, name or namespace.", "Write another template."
    ),
    "value-missing": Code(
        "add and replace need a value; Karmada's group writes an empty one instead.", "Add the value."
    ),
    "value-ignored": Code("remove ignores the value.", "Remove it."),
    "value-forbidden": Code("remove takes no value in a fieldOverrider.", "Remove it."),
    "field-overrider-syntax": Code(
        "A fieldOverrider reads the text as exactly one of json and yaml.", "Keep one of them."
    ),
    "too-many-overriders": Code(
        "A rule makes more than 1,000 changes to each object.",
        "Use a template of its own, or several rules that select less.",
    ),
    "taint-repeated": Code("Two taints have one key and one effect.", "Keep one of them."),
    "duration-illegal": Code("A duration is whole seconds as Kubernetes writes them.", "Write 30s, 2m or 1h30m."),
    "guard-out-of-range": Code("A guard is a number or a share.", "Write one in the range."),
    "time-illegal": Code("Times are RFC 3339.", "Write one as 2026-11-21T10:00:00Z."),
    "ignore-paths-empty": Code("An ignore rule names fields.", "List paths such as spec.replicas."),
}


WINDOW_CODES: Mapping[str, Code] = {
    "cron-illegal": Code(
        "A cron expression has five fields: minute, hour, day of the month, month, weekday. One is "
        "wrong, or no day fits all.",
        "Correct the named field; `0 8 * * 1-5` is eight o'clock on workdays.",
    ),
    "time-zone-unknown": Code(
        "The time zone is not in the IANA data base of this machine.",
        "Write a name such as `Europe/Berlin` or `UTC`, no abbreviation such as `CEST`.",
    ),
    "window-too-long": Code("A window lasts at most 31 days.", "Shorten it, or suspend what should not change."),
}
