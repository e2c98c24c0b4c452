"""Problem codes of rollouts.

Every field of kind Rollout.

Source: KubeFleet, ClusterStagedUpdateStrategy; Open Cluster Management, RolloutStrategy; Argo CD, RollingSync; Sveltos,
ClusterPromotion; Karmada, ClusterAffinity.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents import AFFINITY_SHAPE, LABEL_SELECTOR_SHAPE, Field, FieldType, document_shape, exactly, shape
from reconciler.documents import ProblemCode as Code
from reconciler.policy import WINDOW_SHAPE

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


_AMOUNT = "a number of clusters, or a percentage of the stage (`25%`)"

_TEMPLATES = shape(
    Field("policies", FieldType.TEXTS, "Templates that these policies govern: NAMESPACE/NAME, or a cluster policy."),
    Field("labelSelector", FieldType.OBJECT, "Templates with these labels.", shape=LABEL_SELECTOR_SHAPE),
    Field("namespaces", FieldType.TEXTS, "Templates in these namespaces."),
)

_CHECK = shape(
    Field("type", FieldType.TEXT, "The type of the condition.", required=True),
    Field("status", FieldType.TEXT, "What its status must be.", default="True"),
    Field("apiVersion", FieldType.TEXT, "The apiVersion of the one object that must have it.", default="any copy"),
    Field("kind", FieldType.TEXT, "The kind of that object."),
    Field("namespace", FieldType.TEXT, "Its namespace; none for cluster-scoped kinds."),
    Field("name", FieldType.TEXT, "Its name."),
    Field(
        "cel",
        FieldType.TEXT,
        "An expression over the status of the object.",
        refused="no expression is evaluated yet; let a controller set a condition, and name its type",
    ),
)

_GATE = shape(
    Field("healthy", FieldType.FLAG, "Whether every copy must be healthy.", default="true"),
    Field("conditions", FieldType.OBJECTS, "Conditions that must hold as well.", shape=_CHECK),
    Field("minSuccessTime", FieldType.TEXT, "How long all of it must hold; a break starts it again.", default="0s"),
    Field(
        "timeout",
        FieldType.TEXT,
        "How long after its first write a cluster that does not show it has failed.",
        default="30m",
    ),
    Field("maxFailures", FieldType.INTEGER_OR_TEXT, f"How many may fail: {_AMOUNT}.", default="0"),
    Field(
        "onFailure",
        FieldType.TEXT,
        "What more failures do: nothing further begins, or it goes on.",
        values=exactly("Pause", "Continue"),
        default="Pause",
    ),
)

_AFTER = shape(
    Field("wait", FieldType.TEXT, "How long after its last cluster the next stage begins.", default="0s"),
    Field("approval", FieldType.FLAG, "Whether the next stage needs an entry of approvals.", default="false"),
)

_STAGE = shape(
    Field("name", FieldType.TEXT, "The name of the stage.", required=True),
    Field(
        "clusters",
        FieldType.OBJECT,
        "Its clusters; an empty object takes those that no other stage has.",
        required=True,
        shape=AFFINITY_SHAPE,
    ),
    Field(
        "maxConcurrency", FieldType.INTEGER_OR_TEXT, f"How many change at once: {_AMOUNT}, at least one.", default="1"
    ),
    Field("orderByLabel", FieldType.TEXT, "A label of clusters with a number: the smaller one first.", default="name"),
    Field("gate", FieldType.OBJECT, "What a cluster has to show.", shape=_GATE),
    Field("after", FieldType.OBJECT, "What comes between this stage and the next one.", shape=_AFTER),
    Field("windows", FieldType.OBJECTS, "When its clusters may begin.", default="always", shape=WINDOW_SHAPE),
)

ROLLOUT_SHAPE = document_shape(
    Field(
        "spec",
        FieldType.OBJECT,
        "How changes go over the clusters.",
        required=True,
        shape=shape(
            Field(
                "templates",
                FieldType.OBJECT,
                "Which templates; the most specific Rollout speaks for one.",
                default="every template",
                shape=_TEMPLATES,
            ),
            Field("stages", FieldType.OBJECTS, "The stages in their order.", required=True, shape=_STAGE),
            Field(
                "onNewCommit",
                FieldType.TEXT,
                "What a new commit does to the one under way: takes its place, or waits for it.",
                values=exactly("restart", "queue"),
                default="restart",
            ),
            Field(
                "deletions",
                FieldType.TEXT,
                "When copies go whose template is gone: after the last stage, or in each cluster with its turn.",
                values=exactly("last", "withStage"),
                default="last",
            ),
            Field(
                "placement",
                FieldType.TEXT,
                "When a change of placement is made: at once, or when the last stage begins.",
                values=exactly("now", "last"),
                default="now",
            ),
            Field(
                "approvals",
                FieldType.OBJECTS,
                "Revisions that may leave a stage.",
                shape=shape(
                    Field("stage", FieldType.TEXT, "The stage that it may leave.", required=True),
                    Field("revision", FieldType.TEXT, "The commit id, or its beginning.", required=True),
                    Field("until", FieldType.TEXT, "When the approval ends (RFC 3339).", default="never"),
                ),
            ),
            Field("pin", FieldType.MAP, "A stage or a cluster to the revision that is in force there, without a gate."),
        ),
    )
)
