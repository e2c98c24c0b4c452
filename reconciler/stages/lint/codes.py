"""Problem codes of claims and of the lint."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

LINT_CODES: Mapping[str, Code] = {
    "never-distributed": Code(
        "Never distributed",
        "The template is in a system namespace or belongs to Karmada's control API.",
        "Move it, or take it out of the store.",
    ),
    "no-clusters": Code(
        "No clusters", "The store declares no member, so nothing is placed.", "Add a Cluster document for each member."
    ),
    "policy-group-unknown": Code(
        "Policy of an unknown group",
        "A document has the kind of a policy and an apiVersion that has none, so it is an object that nothing claims.",
        "Write one of the three apiVersions of policies.",
    ),
    "cluster-unknown": Code(
        "Unknown cluster", "A policy names a cluster that no document declares.", "Correct the name, or declare it."
    ),
    "lease-cluster-unknown": Code(
        "Unknown cluster of the Lease",
        "spec.ha names a cluster that no document declares. No process can lead, and nothing is written.",
        "Correct the name, or declare the cluster.",
    ),
    "cluster-repeated": Code("Cluster named twice", "A name stands twice in one list.", "Keep one of them."),
    "cluster-included-and-excluded": Code(
        "Cluster included and excluded", "Exclusion counts first.", "Keep the name in one of the two lists."
    ),
    "selector-matches-nothing": Code(
        "Selector without a template",
        "A selector of a propagation policy selects no template of the store.",
        "Check apiVersion, kind, name, namespace and labels, which compare exactly.",
    ),
    "template-unclaimed": Code(
        "Template without a policy", "No policy claims the template, so it goes nowhere.", "Add it to a policy."
    ),
    "policies-overlap": Code(
        "Overlapping policies",
        "Several policies select a template; the message says which one governs it and why.",
        "Nothing, if it is meant; else narrow the selectors or set priority.",
    ),
    "weights-ignored": Code(
        "Weights are ignored", "The division does not use fixed weights.", "Take the list out, or change the division."
    ),
    "weight-outside-affinity": Code(
        "Weight outside the affinity", "The clusters of the weight are no candidates.", "Add them to the affinity."
    ),
    "weights-all-outside": Code(
        "No weight applies", "No candidate has a weight, so every candidate weighs 1.", "Write weights for candidates."
    ),
    "cluster-without-weight": Code(
        "Candidate without a weight",
        "Where some candidates have a weight, the others get nothing.",
        "Add a weight, or exclude the cluster.",
    ),
    "affinity-matches-nothing": Code(
        "Affinity without a cluster", "No declared cluster matches.", "Check names, labels, fields and exclusions."
    ),
    "spread-ignored": Code(
        "Spread constraints are ignored", "Static weights take every candidate.", "Use dynamicWeight, or take them out."
    ),
    "spread-by-label": Code(
        "Spread by label",
        "Clusters are chosen by spreadByField cluster and region; a constraint by label selects nothing, and one that "
        "stands alone makes placement fail. Karmada does the same.",
        "Use spreadByField.",
    ),
    "spread-not-counted": Code(
        "Groups that are not counted",
        "A constraint on zone or provider only demands that a cluster has one. Karmada does the same.",
        "Use cluster or region.",
    ),
    "failover-without-dependencies": Code(
        "Failover without dependencies",
        "What the workload refers to does not travel with it to the new cluster. Karmada refuses this.",
        "Set propagateDeps: true, or distribute the dependencies everywhere.",
    ),
    "volumes-stay": Code(
        "Volumes stay",
        "A StatefulSet with volume claims is under a policy that moves replicas; its data would stay behind.",
        "Nothing, if that is known; a confirmed digest, or evict, moves it.",
    ),
    "override-of-everything": Code(
        "Override of everything", "Without selectors an override policy selects every template.", "List resources."
    ),
    "override-without-rules": Code("Override without rules", "Nothing is overridden.", "Add overrideRules."),
    "rule-without-overriders": Code("Rule without overriders", "The rule changes nothing.", "Add overriders."),
    "override-selects-nothing": Code(
        "Override without a template",
        "A selector of an override policy selects no template of the store.",
        "Check apiVersion, kind, name, namespace and labels, which compare exactly.",
    ),
    "override-targets-nothing": Code(
        "Override that never applies",
        "No cluster of the rule is one to which the selected templates may go.",
        "Check the clusters of the rule and the affinity of the propagation policy.",
    ),
    "secret-made-twice": Code(
        "Secret that is in the store and made as well",
        "An operator makes a Secret of a template, and the store has that Secret itself. Each undoes what the other "
        "writes.",
        "Take one of them out, or let the operator only add to the Secret where it can.",
    ),
}
