"""Problem codes of rollouts."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

ROLLOUT_CODES: Mapping[str, Code] = {
    "rollout-amount-illegal": Code(
        "maxConcurrency and maxFailures are a number of clusters or a percentage of them.",
        "Write a whole number such as 2, or `25%`.",
    ),
    "rollout-approval-unknown-stage": Code(
        "An approval names a missing stage.", "Correct the name, or remove the approval."
    ),
    "rollout-check-incomplete": Code(
        "A gate's condition names one object by apiVersion, kind and name, or none for all copies.",
        "Name the object completely, or remove its fields.",
    ),
    "rollout-cluster-in-no-stage": Code(
        "The cluster is in no stage. Nothing is rolled out until it has one.",
        "Give a stage the cluster; one with `clusters: {}` takes the rest.",
    ),
    "rollout-cluster-in-two-stages": Code(
        "The cluster is in two stages. Nothing is rolled out until this is clear.", "Narrow one of them."
    ),
    "rollout-dependency-shared": Code(
        "A dependency belongs to workloads of different rollouts. It goes with the earlier one.",
        "Let one Rollout cover all of them, or give each a dependency of its own.",
    ),
    "rollout-needs-revisions": Code(
        "A directory has no revisions to stay at.", "Follow a Git repository, or remove the Rollout."
    ),
    "rollout-order-not-a-number": Code(
        "The cluster's label of orderByLabel is no whole number; it comes last.", "Correct the label of the cluster."
    ),
    "rollout-pin-ambiguous": Code(
        "A pin names both a stage and a cluster. Nothing is rolled out until this is clear.", "Rename the stage."
    ),
    "rollout-pin-unknown": Code("A pin names neither a stage nor a cluster.", "Correct the name, or remove the pin."),
    "rollout-pinned": Code(
        "A person pinned a stage or cluster to a revision, without gates.", "Remove the pin when done."
    ),
    "rollout-revision-illegal": Code(
        "An approval or pin needs a commit id or its beginning.", "Write at least 7 of its hexadecimal digits."
    ),
    "rollout-revision-missing": Code(
        "The active or pinned revision of a cluster is not in the object database (rewritten history, "
        "another clone). The cluster stays.",
        "Push the commit back, or pin the cluster to another.",
    ),
    "rollout-several-rests": Code("Several stages say `clusters: {}`.", "Keep one of them."),
    "rollout-stage-empty": Code(
        "The stage has no cluster and is skipped, with its gate and approval.",
        "Nothing, if meant; else check the labels of the clusters.",
    ),
    "rollout-stage-name": Code("A stage name is a label value, unique in the Rollout.", "Choose another name."),
    "rollout-stages-empty": Code("A Rollout has at least one stage.", "Add one."),
    "rollout-template-tied": Code(
        "Two equally specific Rollouts cover the template. It stays as it is.",
        "Narrow one of them; policies count before labels, and labels before namespaces.",
    ),
}
