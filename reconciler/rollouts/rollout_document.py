"""Every field of kind Rollout and its problem codes; its documents to values; a new entry under `spec.approvals`.

Source: KubeFleet, ClusterStagedUpdateStrategy; Open Cluster Management, RolloutStrategy; Argo CD, RollingSync; Sveltos,
ClusterPromotion; Karmada, ClusterAffinity.
"""

from __future__ import annotations

from typing import Final

from reconciler.api.content import JsonObject, dig
from reconciler.api.problem import Document, Problem
from reconciler.api.refs import GVK, ResourceRef
from reconciler.api.rollouts import (
    After,
    Amount,
    Approval,
    ChangeTime,
    ConditionCheck,
    Gate,
    MetricCheck,
    OnFailure,
    OnNewCommit,
    Rollout,
    Stage,
    TemplateScope,
)
from reconciler.documents import (
    AFFINITY_SHAPE,
    LABEL_SELECTOR_SHAPE,
    Fields,
    check_own_api_version,
    document_fields,
    document_shape,
    exactly,
    flag_field,
    integer_or_text_field,
    is_label_key,
    is_label_value,
    map_field,
    object_field,
    objects_field,
    read_moment,
    read_name,
    read_seconds,
    refuse_namespace,
    shape,
    text_field,
    texts_field,
)
from reconciler.errors import ConfigurationError
from reconciler.policy import WINDOW_SHAPE, is_empty, read_affinity, read_label_selector, read_window
from reconciler.regex import regex
from reconciler.rollouts.record_book import ROLLOUT_NAME_CHARS_MAX
from reconciler.rollouts.stage_slots import approval_entry
from reconciler.yaml import NotEdited, Write, edited, read_yaml

_AMOUNT_TEXT = "a number of clusters, or a percentage of the stage (`25%`)"

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
    integer_or_text_field("maxFailures", f"How many may fail: {_AMOUNT_TEXT}.", default="0"),
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
    integer_or_text_field("maxConcurrency", f"How many change at once: {_AMOUNT_TEXT}, at least one.", default="1"),
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

_REVISION: Final = regex(r"(?:sha256:)?[0-9a-f]{7,64}")
_AMOUNT: Final = regex(r"([0-9]{1,6})(%?)")
_THRESHOLD: Final = regex(r"(<=?|>=?|==)\s*(-?[0-9]{1,18}(?:\.[0-9]{1,18})?)")
_QUERY_CHARS_MAX: Final = 2000
_METRICS_MAX: Final = 10
_FOR_MAX_S: Final = 86_400
_TIMEOUT_S: Final = Gate().timeout_s


def parse_rollout(document: Document) -> tuple[Rollout | None, tuple[Problem, ...]]:
    """Return the rollout of a document and every problem of it, in the order of the file; None when one is an error."""
    fields = document_fields(document, ROLLOUT_SHAPE)
    check_own_api_version(fields)
    metadata, spec = fields.child("metadata"), fields.child("spec")
    name = _name(metadata) if metadata else ""
    return fields.result(_rollout(fields, spec, name) if spec else None)


def _name(metadata: Fields) -> str:
    refuse_namespace(metadata, "a Rollout")
    name = read_name(metadata)
    if len(name) > ROLLOUT_NAME_CHARS_MAX:
        message = f"the name is a part of a key in each cluster: at most {ROLLOUT_NAME_CHARS_MAX} characters"
        metadata.error("name-illegal", message, "name")
        return ""
    return name


def _rollout(document: Fields, spec: Fields, name: str) -> Rollout:
    stages = tuple(_stage(fields) for fields in spec.children("stages"))
    _check_stages(spec, stages)
    pins = dict(sorted(spec.text_map("pin").items()))
    for subject, revision in pins.items():
        _check_revision(spec, revision, *spec.path("pin", subject))
    return Rollout(
        name=name,
        stages=stages,
        templates=_scope(spec.section("templates")),
        on_new_commit=OnNewCommit(spec.text("onNewCommit") or OnNewCommit.RESTART),
        deletions=ChangeTime(spec.text("deletions") or ChangeTime.LAST),
        placement=ChangeTime(spec.text("placement") or ChangeTime.NOW),
        rollback_window_s=read_seconds(spec, "rollbackWindow", 0, least=0),
        approvals=_approvals(spec, {stage.name for stage in stages}),
        pins=pins,
        source=document.source(),
    )


def _scope(fields: Fields) -> TemplateScope:
    labels = fields.child("labelSelector")
    return TemplateScope(
        policies=fields.texts("policies"),
        labels=read_label_selector(labels) if labels else None,
        namespaces=fields.texts("namespaces"),
    )


def _check_stages(spec: Fields, stages: tuple[Stage, ...]) -> None:
    if spec.has("stages") and not stages:
        spec.error("rollout-stages-empty", "stages is empty; write at least one", "stages")
    names: set[str] = set()
    rests = 0
    for index, stage in enumerate(stages):
        if stage.name in names:
            message = f"there is already a stage {stage.name}; choose another name"
            spec.error("rollout-stage-name", message, "stages", index, "name")
        names.add(stage.name)
        rests += stage.clusters is None
        if rests > 1 and stage.clusters is None:
            message = "an earlier stage has the rest of the clusters already; say which clusters are in this one"
            spec.error("rollout-several-rests", message, "stages", index, "clusters")


def _stage(fields: Fields) -> Stage:
    fields.check("name", lambda name: name and is_label_value(name), "rollout-stage-name", "{} cannot name a stage")
    fields.check("orderByLabel", is_label_key, "label-selector-invalid", "{} cannot be the key of a label")
    clusters, after = fields.child("clusters"), fields.section("after")
    affinity = read_affinity(clusters) if clusters else None
    windows = (read_window(item) for item in fields.children("windows"))
    return Stage(
        name=fields.text("name"),
        clusters=None if affinity is None or is_empty(affinity) else affinity,
        max_concurrency=_amount(fields, "maxConcurrency", Amount(1)),
        order_by_label=fields.text("orderByLabel"),
        gate=_gate(fields.section("gate")),
        after=After(wait_s=read_seconds(after, "wait", 0, least=0), approval=bool(after.flag("approval"))),
        windows=tuple(window for window in windows if window is not None),
        source=fields.source(),
    )


def _gate(fields: Fields) -> Gate:
    healthy = fields.flag("healthy")
    return Gate(
        healthy=True if healthy is None else healthy,
        checks=tuple(_check(item) for item in fields.children("conditions")),
        metrics=_metrics(fields),
        min_success_s=read_seconds(fields, "minSuccessTime", 0, least=0),
        timeout_s=read_seconds(fields, "timeout", _TIMEOUT_S, least=1),
        max_failures=_amount(fields, "maxFailures", Amount(0)),
        on_failure=OnFailure(fields.text("onFailure") or OnFailure.PAUSE),
    )


def _check(fields: Fields) -> ConditionCheck:
    api_version, kind, name = (fields.text(part) for part in ("apiVersion", "kind", "name"))
    parts = [part for part in ("apiVersion", "kind", "namespace", "name") if fields.has(part)]
    of = None
    if api_version and kind and name:
        of = ResourceRef(gvk=GVK.parse(api_version, kind), namespace=fields.text("namespace"), name=name)
    elif parts:
        message = "an object is named by apiVersion, kind and name, and its namespace where it has one"
        fields.error("rollout-check-incomplete", message)
    return ConditionCheck(
        condition=fields.text("type"), status=fields.text("status", "True"), of=of, source=fields.source()
    )


def _metrics(gate: Fields) -> tuple[MetricCheck, ...]:
    metrics = []
    for fields in gate.children("metrics"):
        query, threshold = fields.text("query"), fields.text("threshold")
        match, for_s = _THRESHOLD.fullmatch(threshold), read_seconds(fields, "for", 0, least=0)
        if fields.has("query") and not (0 < len(query) <= _QUERY_CHARS_MAX and query.isprintable()):
            fields.error("rollout-metric-illegal", f"a query has 1 to {_QUERY_CHARS_MAX:,} characters", "query")
        if fields.has("threshold") and match is None:
            message = f"{threshold!r} is no comparison with a number; write one as < 0.01"
            fields.error("rollout-metric-illegal", message, "threshold")
        if for_s > _FOR_MAX_S:
            fields.error("rollout-metric-illegal", "for is at most 24h", "for")
        if match is not None:
            metrics.append(MetricCheck(query=query, comparison=match[1], threshold=float(match[2]), for_s=for_s))
    if len(metrics) > _METRICS_MAX:
        gate.error("rollout-metric-illegal", f"a gate has at most {_METRICS_MAX} metrics", "metrics")
    return tuple(metrics)


def _amount(fields: Fields, name: str, default: Amount) -> Amount:
    if not fields.has(name):
        return default
    text = str(fields.any(name))
    match = _AMOUNT.fullmatch(text)
    if match is None or (match[2] and int(match[1]) > 100):
        message = f"{text!r} is neither a number of clusters nor a percentage up to 100%"
        fields.error("rollout-amount-illegal", message, name)
        return default
    return Amount(int(match[1]), is_percent=bool(match[2]))


def _approvals(spec: Fields, stages: set[str]) -> tuple[Approval, ...]:
    approvals = []
    for fields in spec.children("approvals"):
        stage, revision = fields.text("stage"), fields.text("revision")
        if stage and stage not in stages:
            message = f"there is no stage {stage}; there is {', '.join(sorted(stages)) or 'none'}"
            fields.warning("rollout-approval-unknown-stage", message, "stage")
        if fields.has("revision"):
            _check_revision(fields, revision, *fields.path("revision"))
        until = read_moment(fields, "until")
        approvals.append(Approval(stage=stage, revision=revision, until=until, source=fields.source()))
    return tuple(approvals)


def _check_revision(fields: Fields, revision: str, *steps: str | int) -> None:
    if not _REVISION.fullmatch(revision):
        message = f"{revision!r} is no commit id and no sha256: digest; write at least 7 of its hexadecimal digits"
        fields.report.error("rollout-revision-illegal", message, *steps)


class NotClear(ConfigurationError):
    """The file cannot be edited so that nothing else changes. The message has the entry to write."""


def approved(path: str, data: bytes, rollout: str, approval: Approval, write: Write) -> bytes:
    """Return the file with one more approval, the last of that Rollout. Raises NotClear: no such Rollout or layout."""
    try:
        bodies: list[JsonObject] = [one.body for one in read_yaml(path, data).documents]
        named = [(dig(body, "kind"), dig(body, "metadata", "name")) for body in bodies]
        places = [place for place, name in enumerate(named) if name == ("Rollout", rollout)]
        if len(places) != 1:
            raise NotEdited(path, f"it has {len(places) or 'no'} documents of the Rollout {rollout}")
        body = bodies[places[0]]
        entry = {"stage": approval.stage, "revision": approval.revision}
        entry |= {"until": approval.until} if approval.until else {}
        approvals = [*(dig(body, "spec", "approvals") or ()), entry]
        bodies[places[0]] = {**body, "spec": {**(dig(body, "spec") or {}), "approvals": approvals}}
        return edited(path, data, bodies, write)
    except NotEdited as error:
        line = approval_entry(approval.stage, approval.revision, approval.until)
        raise NotClear(f"{error.place}: {error.reason}; add it by hand under spec.approvals: - {line}") from error
