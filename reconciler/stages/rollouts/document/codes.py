"""Problem codes of rollouts."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

ROLLOUT_CODES: Mapping[str, Code] = {
    "rollout-amount-illegal": Code(
        "No number and no percentage",
        "maxConcurrency and maxFailures are a number of clusters or a percentage of them.",
        "Write a whole number such as 2, or `25%`.",
    ),
    "rollout-approval-unknown-stage": Code(
        "Approval of a stage that is not there",
        "An approval names a stage that the Rollout does not have, so it lets nothing through.",
        "Correct the name, or take the approval out.",
    ),
    "rollout-check-incomplete": Code(
        "Object not named completely",
        "A condition of a gate is looked for at one object, which takes apiVersion, kind and name, or at all copies.",
        "Name the object completely, or take its fields out.",
    ),
    "rollout-cluster-in-no-stage": Code(
        "Cluster in no stage",
        "No stage of the Rollout has the cluster, so that no change would ever reach it. Nothing is rolled out until "
        "it has one.",
        "Give a stage the cluster; one with `clusters: {}` takes the rest.",
    ),
    "rollout-cluster-in-two-stages": Code(
        "Cluster in two stages",
        "Two stages of the Rollout have the cluster, so that its turn is not clear. Nothing is rolled out until it is.",
        "Narrow one of them.",
    ),
    "rollout-dependency-shared": Code(
        "Dependency of two rollouts",
        "An object is a dependency of workloads that do not go over the clusters together. "
        "It goes with the earlier one.",
        "Let one Rollout speak for all of them, or give each a dependency of its own.",
    ),
    "rollout-needs-revisions": Code(
        "Rollout in a plain directory",
        "A directory has no revisions, so that no cluster could stay at an earlier one.",
        "Follow a Git repository, or take the Rollout out.",
    ),
    "rollout-order-not-a-number": Code(
        "Order that is no number",
        "The label of orderByLabel is not a whole number at a cluster, which comes after those that have one.",
        "Correct the label of the cluster.",
    ),
    "rollout-pin-ambiguous": Code(
        "Pin of a stage and a cluster",
        "A pin has the name of a stage and of a cluster. Nothing is rolled out until it is clear which is meant.",
        "Rename the stage.",
    ),
    "rollout-pin-unknown": Code(
        "Pin of nothing",
        "A pin names neither a stage of the Rollout nor a cluster, so it holds nothing.",
        "Correct the name, or take the pin out.",
    ),
    "rollout-pinned": Code(
        "Pinned revision",
        "A person pinned a stage or a cluster to a revision. No gate is asked for it.",
        "Take the pin out once it is not needed any more.",
    ),
    "rollout-revision-illegal": Code(
        "No commit id",
        "An approval or a pin names a revision by something else than a commit id or its beginning.",
        "Write at least 7 of its hexadecimal digits.",
    ),
    "rollout-revision-missing": Code(
        "Revision is gone",
        "The revision in force in a cluster, or one that a pin names, is not in the object database: the history was "
        "written anew, or the clone is another one. The cluster stays as it is.",
        "Bring the commit back, or pin the cluster to one that is there.",
    ),
    "rollout-several-rests": Code(
        "Several stages for the rest",
        "More than one stage says `clusters: {}`, so that it is not clear which of them has the rest.",
        "Keep one of them.",
    ),
    "rollout-stage-empty": Code(
        "Empty stage",
        "No cluster is in the stage. It is skipped, and its gate and its approval are asked of nobody.",
        "Nothing, if it is meant; else check the labels of the clusters.",
    ),
    "rollout-stage-name": Code(
        "Name of a stage",
        "A name is a label value and not empty, and no other stage of the Rollout has it.",
        "Choose another name.",
    ),
    "rollout-stages-empty": Code("Rollout without stages", "A Rollout has at least one stage.", "Add one."),
    "rollout-template-tied": Code(
        "Template of two rollouts",
        "Two Rollouts speak for the template and neither is more specific. It stays as it is everywhere.",
        "Narrow one of them; policies count before labels, and labels before namespaces.",
    ),
}
