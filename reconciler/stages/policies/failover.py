"""`failover`: when an application counts as failed in a cluster, and the treatment of its old copy."""

from __future__ import annotations

from reconciler.model.policy import ApplicationFailover, PurgeMode, StatePreservationRule
from reconciler.stages.documents import Fields, is_label_key

_TOLERATION_S = 300
_GRACE_PERIOD_S = 600


def read_application_failover(spec: Fields) -> ApplicationFailover | None:
    """`failover.application` with its defaults, None when it is not given.

    Source: "Failover configuration" (300 s, 600 s). Karmada: tolerationSeconds is 0 or more; gracePeriodSeconds is
    for Graciously only and more than 0.
    """
    failover = spec.child("failover")
    fields = failover.child("application") if failover else None
    if fields is None:
        return None
    mode = PurgeMode(fields.text("purgeMode", PurgeMode.GRACIOUSLY))
    return ApplicationFailover(
        toleration_s=_toleration_s(fields),
        purge_mode=mode,
        grace_period_s=_grace_period_s(fields, mode),
        state_preservation=_state_preservation(fields),
        source=fields.source(),
    )


def read_cluster_purge_mode(spec: Fields) -> PurgeMode | None:
    """`failover.cluster.purgeMode` (Graciously by default), None without `failover.cluster`."""
    failover = spec.child("failover")
    fields = failover.child("cluster") if failover else None
    if fields is None:
        return None
    _state_preservation(fields)  # without effect here, but what is written must be right
    return PurgeMode(fields.text("purgeMode", PurgeMode.GRACIOUSLY))


def _toleration_s(fields: Fields) -> int:
    conditions = fields.child("decisionConditions")
    seconds = conditions.integer("tolerationSeconds") if conditions else None
    if conditions is not None and seconds is not None and seconds < 0:
        message = f"tolerationSeconds is 0 or more, not {seconds}"
        fields.report.error("toleration-seconds-negative", message, *conditions.path("tolerationSeconds"))
    return _TOLERATION_S if seconds is None else seconds


def _grace_period_s(fields: Fields, mode: PurgeMode) -> int | None:
    seconds = fields.integer("gracePeriodSeconds")
    if mode is not PurgeMode.GRACIOUSLY:
        if seconds is not None:
            message = f"gracePeriodSeconds is for purgeMode Graciously; take it out under {mode}"
            fields.report.error("grace-period-not-graceful", message, *fields.path("gracePeriodSeconds"))
        return None
    if seconds is not None and seconds <= 0:
        message = f"gracePeriodSeconds is more than 0, not {seconds}; to wait not at all write purgeMode Immediately"
        fields.report.error("grace-period-not-positive", message, *fields.path("gracePeriodSeconds"))
    return _GRACE_PERIOD_S if seconds is None else seconds


def _state_preservation(fields: Fields) -> tuple[StatePreservationRule, ...]:
    preservation = fields.child("statePreservation")
    rules = []
    for rule in preservation.children("rules") if preservation else ():
        label = rule.text("aliasLabelName")
        if rule.has("aliasLabelName") and not is_label_key(label):
            message = f"{label!r} cannot be a label key"
            rule.report.error("label-key-illegal", message, *rule.path("aliasLabelName"))
        rules.append(StatePreservationRule(alias_label=label, json_path=rule.text("jsonPath")))
    return tuple(rules)
