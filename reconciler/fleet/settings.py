"""The one `Fleet` document: settings of the fleet, reviewed with it. Source: design#fleet-document."""

from __future__ import annotations

from reconciler.api.fleet import (
    DriftMode,
    Fleet,
    FleetSettings,
    Guards,
    HighAvailability,
    HistoryLimits,
    IgnoreRule,
    LooseningHold,
    PlainSecrets,
)
from reconciler.api.problem import Document, Problem, Severity
from reconciler.documents import (
    Fields,
    document_shape,
    exactly,
    flag_field,
    integer_field,
    is_dns_label,
    is_label_value,
    may_be_allowed,
    object_field,
    objects_field,
    own_document,
    read_moment,
    read_seconds,
    shape,
    text_field,
    texts_field,
)
from reconciler.policy import FLEET_WINDOW_SHAPE, read_fleet_windows

_DEFAULTS = FleetSettings()
_EVENTS_LEAST, _AGE_S_LEAST = 1000, 3600
"""Less would forget what rounds look up."""
LEASE_DURATION_S = 15
LEASE_DURATION_S_MIN = 5
"""A shorter one would be lost by one slow answer."""

SPEC_SHAPE = shape(
    texts_field("previousNames", "Names that this fleet had; without them a rename is refused."),
    text_field("mode", "apply, or observe: plan and report only.", values=exactly("apply", "observe"), default="apply"),
    object_field(
        "descheduling",
        "Moving replicas that cannot be scheduled.",
        text_field("interval", "How often to look.", default="2m"),
        text_field("unschedulableThreshold", "How long a pod must have been unschedulable.", default="30s"),
    ),
    object_field(
        "failover",
        "Failover of unhealthy applications.",
        text_field("mode", "act, or advise: report only.", values=exactly("act", "advise"), default="act"),
    ),
    object_field(
        "drift",
        "Changes that others make to our fields.",
        flag_field("selfHeal", "Whether they are put back.", default="true"),
        text_field(
            "mode",
            "watch: they are seen at once, by streams. poll: within one resync, by lists; for very many clusters.",
            values=exactly(*DriftMode),
            default="watch",
        ),
        text_field(
            "resync",
            "How often everything is looked at, whatever has been reported. In poll mode each cluster has a time "
            "of its own within it.",
            default="10m",
        ),
    ),
    object_field(
        "guards",
        "How much an edit of the store may delete or release at once.",
        integer_field("maxDeletes", "At most so many.", default="10"),
        integer_field("maxDeletePercent", "At most this share, but always up to 3.", default="10"),
        text_field("window", "What went within this time counts with what is due.", default="10m"),
        text_field("confirm", "The digest of the held changes that are let through, as `diff` prints it."),
        text_field("confirmUntil", "When the confirmation ends (RFC 3339)."),
    ),
    object_field(
        "review",
        "What a review (`diff --base`) holds beside deletions.",
        shape=shape(
            text_field(
                "loosening",
                "Settings that a change loosens: hold until a person confirms them, or allow. The stricter of both "
                "revisions counts.",
                values=exactly(*LooseningHold),
                default="hold",
            ),
            text_field("confirm", "The digest of the held settings, as `diff` prints it."),
        ),
    ),
    object_field(
        "history",
        "How much history is kept; beginnings of what still lasts and orders of persons apart.",
        integer_field("maxEvents", "At most so many events; at least 1000.", default="100000"),
        text_field("maxAge", "Nothing older, such as 2160h; at least 1h.", default="any age"),
    ),
    text_field("prometheus", "Name of the Prometheus that gates ask; `run --prometheus NAME=URL` has its address."),
    object_field(
        "ha",
        "Several processes for one fleet: the one that holds a Lease acts, the others stand by.",
        text_field("cluster", "The cluster of the store that has the Lease.", required=True),
        text_field("leaseDuration", "How long nobody else acts after the last renewal; at least 5s.", default="15s"),
        texts_field(
            "shards",
            "Names of shards, in an earlier version.",
            refused="shards were taken out; one process applies to all clusters while others with the same spec.ha "
            "stand by, and 'run --cluster NAME' applies to named clusters alone",
        ),
    ),
    object_field(
        "placement",
        "Placement of replicas.",
        flag_field("partial", "Whether to place what fits when not everything does.", default="false"),
    ),
    object_field(
        "namespaces",
        "System namespaces.",
        texts_field("allowed", "Names of namespaces `kube-*` to which policies may distribute."),
    ),
    objects_field("windows", "When changes may be made, with and without a Rollout.", shape=FLEET_WINDOW_SHAPE),
    object_field(
        "secrets",
        "Secrets in the store.",
        text_field(
            "plain",
            "What `validate` says of Secrets that nothing encrypts: nothing, a warning, or an error.",
            values=exactly(*PlainSecrets),
            default="warn",
        ),
    ),
    objects_field(
        "ignore",
        "Fields that are left to others.",
        texts_field("paths", "Field paths as diffs print them.", required=True),
        text_field("group", "The API group of the objects; empty text: the core group.", default="any"),
        text_field("kind", "Their kind.", default="any"),
        text_field("namespace", "Their namespace.", default="any"),
        text_field("name", "Their name.", default="any"),
        text_field("reason", "Why, for the reader of a diff."),
    ),
)

FLEET_SHAPE = document_shape(object_field("spec", "The settings.", shape=SPEC_SHAPE))


def parse_fleet_settings(document: Document) -> tuple[FleetSettings | None, tuple[Problem, ...]]:
    """The settings of a `Fleet` document and every problem of it; None when one is an error.

    Source: design#fleet-document; design#fleet-name. Durations are as Kubernetes writes them (`2m`, `1h30m`) and become
    whole seconds.
    """
    rule = "a fleet: it must be the value of a label, at most 63 letters, digits, -, _ and ."
    fields, name = own_document(document, FLEET_SHAPE, "Fleet", lambda text: bool(text) and is_label_value(text), rule)
    spec = fields.child("spec")
    return fields.result(_settings(fields, spec, name) if spec else FleetSettings(name=name, source=fields.source()))


def _settings(document: Fields, spec: Fields, name: str) -> FleetSettings:
    descheduling, drift, review = spec.section("descheduling"), spec.section("drift"), spec.section("review")
    self_heal = drift.flag("selfHeal")
    spec.check("previousNames", lambda name: name and is_label_value(name), "name-illegal", "{} cannot name a fleet")
    namespaces, message = spec.section("namespaces"), "{} is no namespace kube-*: others are open to policies, or never"
    namespaces.check("allowed", lambda one: may_be_allowed(one) and is_dns_label(one), "system-namespace", message)
    return FleetSettings(
        name=name,
        previous_names=spec.texts("previousNames"),
        observe_only=spec.text("mode") == "observe",
        descheduling_interval_s=read_seconds(descheduling, "interval", _DEFAULTS.descheduling_interval_s, least=1),
        unschedulable_threshold_s=read_seconds(
            descheduling, "unschedulableThreshold", _DEFAULTS.unschedulable_threshold_s, least=0
        ),
        failover_act=spec.section("failover").text("mode", "act") == "act",
        self_heal=_DEFAULTS.self_heal if self_heal is None else self_heal,
        drift_mode=DriftMode(drift.text("mode", _DEFAULTS.drift_mode)),
        resync_s=read_seconds(drift, "resync", _DEFAULTS.resync_s, least=1),
        guards=_guards(spec.section("guards")),
        ha=_ha(spec.child("ha")),
        history=_history(spec.section("history")),
        prometheus=spec.text("prometheus"),
        partial=bool(spec.section("placement").flag("partial")),
        allowed_namespaces=frozenset(namespaces.texts("allowed")),
        windows=read_fleet_windows(spec),
        plain_secrets=PlainSecrets(spec.section("secrets").text("plain", _DEFAULTS.plain_secrets)),
        loosening=LooseningHold(review.text("loosening", _DEFAULTS.loosening)),
        review_confirm=review.text("confirm"),
        ignore=tuple(_ignore_rule(item) for item in spec.children("ignore")),
        source=document.source(),
    )


def _guards(fields: Fields) -> Guards:
    deletes, percent = fields.integer("maxDeletes"), fields.integer("maxDeletePercent")
    if deletes is not None and deletes < 0:
        fields.error("guard-out-of-range", f"maxDeletes is 0 or more, not {deletes}", "maxDeletes")
    if percent is not None and not 0 <= percent <= 100:
        fields.error("guard-out-of-range", f"maxDeletePercent is from 0 to 100, not {percent}", "maxDeletePercent")
    return Guards(
        max_deletes=Guards().max_deletes if deletes is None else deletes,
        max_delete_percent=Guards().max_delete_percent if percent is None else percent,
        window_s=read_seconds(fields, "window", Guards().window_s, least=0),
        confirm=fields.text("confirm"),
        confirm_until=read_moment(fields, "confirmUntil"),
    )


def _history(fields: Fields) -> HistoryLimits:
    events = fields.integer("maxEvents")
    if events is not None and events < _EVENTS_LEAST:
        fields.error("number-out-of-range", f"maxEvents is {_EVENTS_LEAST} or more, not {events}", "maxEvents")
    return HistoryLimits(
        events_max=HistoryLimits().events_max if events is None else events,
        age_s=read_seconds(fields, "maxAge", 0, least=_AGE_S_LEAST) or None,
    )


def _ha(fields: Fields | None) -> HighAvailability | None:
    if fields is None:
        return None
    return HighAvailability(
        cluster=fields.text("cluster"),
        lease_duration_s=read_seconds(fields, "leaseDuration", LEASE_DURATION_S, least=LEASE_DURATION_S_MIN),
        source=fields.source(),
    )


def _ignore_rule(fields: Fields) -> IgnoreRule:
    paths = fields.texts("paths")
    if fields.has("paths") and not all(paths):
        fields.error("ignore-paths-empty", "a path is a field such as spec.replicas", "paths")
    if fields.has("paths") and not paths:
        fields.error("ignore-paths-empty", "paths is empty; list fields such as spec.replicas", "paths")
    return IgnoreRule(
        paths=paths,
        kind=fields.text("kind"),
        group=fields.text("group") if fields.has("group") else None,
        namespace=fields.text("namespace"),
        name=fields.text("name"),
        reason=fields.text("reason"),
        source=fields.source(),
    )


def why_nameless(fleet: Fleet) -> str:
    """Return why a fleet has no name, with the remedy: the first error of its document, else that it has none.

    A reach of everything is that of the Fleet document, or of a file with unknown content.
    """
    broken = {reach.source.path for reach in fleet.frozen if reach.everything}
    for problem in fleet.problems:
        if problem.severity is Severity.ERROR and problem.source.path in broken:
            return f"the store names no fleet, since its document cannot be read: {problem}"
    return "the store has no document of kind Fleet with a name; 'reconciler init' writes one"
