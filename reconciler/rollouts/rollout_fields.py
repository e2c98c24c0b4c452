"""Every field of kind Rollout, and its problem codes.

Source: KubeFleet, ClusterStagedUpdateStrategy; Open Cluster Management, RolloutStrategy; Argo CD, RollingSync; Sveltos,
ClusterPromotion; Karmada, ClusterAffinity.
"""

from __future__ import annotations

from reconciler.documents import (
    AFFINITY_SHAPE,
    LABEL_SELECTOR_SHAPE,
    document_shape,
    exactly,
    flag_field,
    integer_or_text_field,
    map_field,
    object_field,
    objects_field,
    shape,
    text_field,
    texts_field,
)
from reconciler.policy import WINDOW_SHAPE

_AMOUNT = "a number of clusters, or a percentage of the stage (`25%`)"

_TEMPLATES = shape(
    texts_field("policies", "Templates that these policies govern: NAMESPACE/NAME, or a cluster policy."),
    object_field("labelSelector", "Templates with these labels.", shape=LABEL_SELECTOR_SHAPE),
    texts_field("namespaces", "Templates in these namespaces."),
)

_CHECK = shape(
    text_field("type", "The type of the condition.", required=True),
    text_field("status", "What its status must be.", default="True"),
    text_field("apiVersion", "The apiVersion of the one object that must have it.", default="any copy"),
    text_field("kind", "The kind of that object."),
    text_field("namespace", "Its namespace; none for cluster-scoped kinds."),
    text_field("name", "Its name."),
    text_field(
        "cel",
        "An expression over the status of the object.",
        refused="no expression is evaluated yet; let a controller set a condition, and name its type",
    ),
)

_METRIC = shape(
    text_field("query", "A query of PromQL; `$cluster` in it is the name of the cluster.", required=True),
    text_field("threshold", "What each value must be, such as `< 0.01`.", required=True),
    text_field("for", "For how long; at most 24h.", default="0s"),
)

_GATE = shape(
    flag_field("healthy", "Whether every copy must be healthy.", default="true"),
    objects_field("conditions", "Conditions that must hold as well.", shape=_CHECK),
    objects_field("metrics", "Queries to the Prometheus of the Fleet document; at most 10.", shape=_METRIC),
    text_field("minSuccessTime", "How long all of it must hold; a break starts it again.", default="0s"),
    text_field("timeout", "How long after its first write a cluster that does not show it has failed.", default="30m"),
    integer_or_text_field("maxFailures", f"How many may fail: {_AMOUNT}.", default="0"),
    text_field(
        "onFailure",
        "What more failures do: nothing further begins, or it goes on.",
        values=exactly("Pause", "Continue"),
        default="Pause",
    ),
)

_AFTER = shape(
    text_field("wait", "How long after its last cluster the next stage begins.", default="0s"),
    flag_field("approval", "Whether the next stage needs an entry of approvals.", default="false"),
)

_STAGE = shape(
    text_field("name", "The name of the stage.", required=True),
    object_field(
        "clusters",
        "Its clusters; an empty object takes those that no other stage has.",
        required=True,
        shape=AFFINITY_SHAPE,
    ),
    integer_or_text_field("maxConcurrency", f"How many change at once: {_AMOUNT}, at least one.", default="1"),
    text_field("orderByLabel", "A label of clusters with a number: the smaller one first.", default="name"),
    object_field("gate", "What a cluster has to show.", shape=_GATE),
    object_field("after", "What comes between this stage and the next one.", shape=_AFTER),
    objects_field("windows", "When its clusters may begin.", default="always", shape=WINDOW_SHAPE),
)

ROLLOUT_SHAPE = document_shape(
    object_field(
        "spec",
        "How changes go over the clusters.",
        object_field(
            "templates",
            "Which templates; the most specific Rollout speaks for one.",
            default="every template",
            shape=_TEMPLATES,
        ),
        objects_field("stages", "The stages in their order.", required=True, shape=_STAGE),
        text_field(
            "onNewCommit",
            "What a new commit does to the one under way: takes its place, or waits for it.",
            values=exactly("restart", "queue"),
            default="restart",
        ),
        text_field(
            "deletions",
            "When copies go whose template is gone: after the last stage, or in each cluster with its turn.",
            values=exactly("last", "withStage"),
            default="last",
        ),
        text_field(
            "placement",
            "When a change of placement is made: at once, or when the last stage begins.",
            values=exactly("now", "last"),
            default="now",
        ),
        text_field(
            "rollbackWindow",
            "How long a cluster may go back at once to a revision that it had completed, past stages and approvals.",
            default="0s",
        ),
        objects_field(
            "approvals",
            "Revisions that may leave a stage.",
            text_field("stage", "The stage that it may leave.", required=True),
            text_field(
                "revision", "The commit id or an artifact's digest (`sha256:…`), or its beginning.", required=True
            ),
            text_field("until", "When the approval ends (RFC 3339).", default="7 days after it was first seen"),
        ),
        map_field("pin", "A stage or a cluster to the revision that is in force there, without a gate."),
        required=True,
    )
)
