"""The health of a live object with its reason in words, from its own status, and of a Rollout's copies.

The rule of its kind decides. Source: Kubernetes, conditions of workloads and of pods; kstatus for kinds without a rule
of their own; ADR 18; `state.judge`: copies without a state of their own are Synced and Healthy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec.structs import replace

from reconciler.api.clusters import Health, LiveObject, RunOutcome
from reconciler.api.content import JsonObject, dig
from reconciler.api.refs import Identity
from reconciler.containment import try_call
from reconciler.kinds.body_fields import condition, count, has_report, is_observed, mapping, mappings, text
from reconciler.kinds.interpreter import Interpreter
from reconciler.regex import regex
from reconciler.rollouts import GatedCopy
from reconciler.state.state_tables import ClusterState
from reconciler.state.state_values import HEALTHY, Degraded, HealthState, HealthWord, Progressing, Sync, UnknownHealth

_WHY_MAX: Final = 300
"""Messages of an API server may be long; they are cut here."""

_WAITING: Final = {
    "ImagePullBackOff": "its image cannot be pulled",
    "ErrImagePull": "its image cannot be pulled",
    "ErrImageNeverPull": "its image is not on the node and may not be pulled",
    "InvalidImageName": "the name of its image is no image name",
    "CrashLoopBackOff": "it crashes again and again",
    "CreateContainerConfigError": "its configuration is missing or wrong",
    "CreateContainerError": "its container cannot be made",
    "RunContainerError": "its container cannot be started",
}
"""Reasons of waiting containers, in words. Source: Kubernetes, kubelet, waiting containers."""

_UNMADE: Final = "ReplicaFailure"
"""The condition of a workload that cannot make its pods, for example over quota."""

UNMADE_REASON: Final = "FailedCreate"
"""Of events about pods that cannot be made. Source: Kubernetes, controllers."""

NODE_LOST: Final = "NodeLost"
NO_CONTROLLER: Final = "NoController"
EVICTED: Final = "Evicted"
"""Of a pod that its kubelet ended since the node ran out of something. Source: Kubernetes, node-pressure eviction."""

_TELLING: Final = (
    ("PodScheduled", "False", "no node takes it"),
    (_UNMADE, "True", "its pods cannot be made"),
    ("Failed", "True", "it failed"),
    ("FailureTarget", "True", "it failed"),
    ("Stalled", "True", "its controller is stuck"),
    ("NamesAccepted", "False", "its names are taken"),
)
"""Conditions that name a definite fault, with words if they have no message."""

_VAGUE: Final = (
    ("Issuing", "False", "its certificate could not be issued"),
    ("Synced", "False", "its controller could not write what it is to make"),
    ("Ready", "False", "it is not ready"),
    ("Available", "False", "it is not available"),
    ("Reconciling", "True", "its controller works on it"),
)

_NUMBER: Final = regex(r"[0-9]+")
_COUNTED: Final = regex(r"# of # replicas|# older replicas")

TROUBLES: Final = frozenset(_WAITING)
"""Reasons of waiting containers that do not go away by waiting."""


def health_of(live: LiveObject, interpreter: Interpreter) -> HealthState:
    """Return health of a live object with its reason. What raises here is Unknown: nothing is concluded from it."""
    state, fault = try_call(lambda: _judged(live.body, interpreter))
    return state or UnknownHealth(f"its status could not be read: {type(fault).__name__}")


def _judged(live: JsonObject, interpreter: Interpreter) -> HealthState:
    health = interpreter.health(live)
    if health is Health.HEALTHY:
        return HEALTHY
    # Past its deadline it is stuck, though older pods still serve.
    # As many serve as its strategy requires: a scale-up lacks its new pods for some seconds.
    serves_enough = live.get("kind") == "Deployment" and condition(live, "Available").get("status") == "True"
    # A Pod that waits for its images says nothing but that; one without a node, and a broken container, say more.
    is_new = live.get("kind") == "Pod" and dig(live, "status", "phase") == "Pending" and not any(_definite_faults(live))
    is_stuck = health is Health.UNHEALTHY and not serves_enough and not is_new
    if health is Health.UNHEALTHY and interpreter.outcome(live) is RunOutcome.FAILED:
        return Degraded(_why(live, interpreter), is_over=True)
    refusal, why, lacks_pods_of = condition(live, _UNMADE), _why(live, interpreter), _lacks_pods_of(live, interpreter)
    unmade = _cut(_of(refusal, _UNMADE)) if refusal.get("status") == "True" and is_observed(live) else ""
    reason = next((text(waiting["reason"]) for waiting in _waiting(live)), UNMADE_REASON if unmade else "")
    if not (is_stuck or _is_past_deadline(live)):
        return Progressing(why, unmade, lacks_pods_of, reason, is_observed=not _unobserved(live))
    is_a_count = _COUNTED.match(_NUMBER.sub("#", why)) is not None
    return Degraded(why, unmade, lacks_pods_of, reason, is_a_count=is_a_count)


def beside_pods(
    own: Degraded | Progressing, trouble: Degraded | Progressing | None, refusal: str = ""
) -> Degraded | Progressing:
    """Join the reason of pods and why more cannot be made; Degraded if either is. `refusal`: as an event says."""
    if isinstance(own, Degraded) and own.is_over:
        return replace(own, why=trouble.why, reason=trouble.reason) if trouble is not None else own
    refused = _cut(refusal) if own.lacks_pods_of else ""
    unmade = own.unmade or refused
    if trouble is None:
        return replace(own, why=refused, unmade=refused, reason=UNMADE_REASON) if refused else own
    kind = Degraded if Degraded in (type(own), type(trouble)) else Progressing
    why = f"{trouble.why}; more of its pods cannot be made ({unmade})" if unmade else trouble.why
    return kind(why, unmade, own.lacks_pods_of, trouble.reason)


def _lacks_pods_of(live: JsonObject, interpreter: Interpreter) -> str:
    if not interpreter.lacking_pods(live) > 0 or dig(live, "metadata", "deletionTimestamp"):
        return ""
    # What a status says of an older spec is no lack of the newest one. That of a Job names no generation.
    return text(dig(live, "metadata", "uid")) if is_observed(live) or not has_report(live) else ""


def is_news(before: str, why: str) -> bool:
    """Return whether a reason differs from the one before, and not only by a count of replicas.

    >>> is_news("0 of 1 replicas are available", "its image cannot be pulled (ErrImagePull)")
    True
    >>> is_news("it crashes (back-off 10s)", "it crashes (back-off 20s)")
    False
    >>> is_news("it crashes (back-off 10s)", "1 of 2 replicas are available")
    False
    """
    gist = _NUMBER.sub("#", why)
    return gist != _NUMBER.sub("#", before) and not _COUNTED.match(gist)


def why_waiting(reason: str, message: str) -> str:
    """Return why a container waits, in words: `its image cannot be pulled (ErrImagePull: …)`."""
    detail = f"{reason}: {message}" if message else reason
    return _cut(f"{_WAITING[reason]} ({detail})" if reason in _WAITING else detail)


def with_message(words: str, message: str) -> str:
    """Return words with the message of whoever decided so."""
    return _cut(f"{words} ({message})" if message else words)


def _is_past_deadline(live: JsonObject) -> bool:
    rollout = condition(live, "Progressing")
    is_over = rollout.get("status") == "False" and rollout.get("reason") == "ProgressDeadlineExceeded"
    return is_over and is_observed(live)


def _why(live: JsonObject, interpreter: Interpreter) -> str:
    """Return the first reason in its status; definite faults come before temporary states."""
    if dig(live, "metadata", "deletionTimestamp"):
        return "it is being deleted"
    if has_report(live) and (unobserved := _unobserved(live)):
        return unobserved
    why = interpreter.why(live) or next(_reasons(live), "") or _unobserved(live)
    return _cut(why or "its status does not say that it is ready")


def _unobserved(live: JsonObject) -> str:
    """Return that no controller has seen its newest spec, in words; empty: one has, or it is being deleted."""
    if dig(live, "metadata", "deletionTimestamp"):
        return ""
    if has_report(live):
        return "" if is_observed(live) else "its controller has not seen the newest spec yet"
    return "" if mapping(live.get("status")) else "no controller has reported its status yet"


def _definite_faults(live: JsonObject) -> Iterator[str]:
    for waiting in _waiting(live):
        yield why_waiting(text(waiting["reason"]), text(waiting.get("message")))
    for kind, bad, default in _TELLING:
        report = condition(live, kind)
        if report.get("status") == bad:
            yield _of(report, default)


def _reasons(live: JsonObject) -> Iterator[str]:
    yield from _definite_faults(live)
    if _is_past_deadline(live):
        yield "its roll-out made no progress within its deadline" + _available(live, ", ")
    if available := _available(live):
        yield available
    for kind, bad, default in _VAGUE:
        report = condition(live, kind)
        if report.get("status") == bad:
            yield _of(report, default)
    if phase := text(dig(live, "status", "phase")):
        yield f"its phase is {phase}"


def _waiting(live: JsonObject) -> Iterator[JsonObject]:
    for name in ("containerStatuses", "initContainerStatuses"):
        for _, status in mappings(dig(live, "status", name)):
            waiting = mapping(dig(status, "state", "waiting"))
            if text(waiting.get("reason")) in TROUBLES:
                yield waiting


def _available(live: JsonObject, before: str = "") -> str:
    """Return `1 of 3 replicas are available`; empty if not counted, not reported, or complete."""
    status, kind = mapping(live.get("status")), live.get("kind")
    if kind == "DaemonSet" and has_report(live):
        wanted, there = count(status.get("desiredNumberScheduled"), 0), count(status.get("numberAvailable"), 0)
    elif kind in ("Deployment", "StatefulSet", "ReplicaSet") and has_report(live):
        wanted, there = count(dig(live, "spec", "replicas"), 1), count(status.get("availableReplicas"), 0)
    else:
        return ""
    if there < wanted:
        return f"{before}{there} of {wanted} replicas are available"
    updated = count(status.get("updatedNumberScheduled" if kind == "DaemonSet" else "updatedReplicas"), 0)
    if updated < wanted:
        return f"{before}{updated} of {wanted} replicas are of the newest template"
    old = count(status.get("replicas"), 0) - updated
    return f"{before}{old} older replicas are there still" if old > 0 else ""


def _of(report: JsonObject, default: str) -> str:
    return text(report.get("message")) or text(report.get("reason")) or default


def _cut(why: str) -> str:
    line = " ".join(why.split())
    return line if len(line) <= _WHY_MAX else f"{line[: _WHY_MAX - 1]}…"


def copies_of(state: ClusterState, identities: Collection[Identity]) -> list[GatedCopy]:
    """Return the copies of a cluster that are not both Synced and Healthy; of all others there is nothing to say."""
    copies = []
    nobody: JsonObject = {}
    for identity, copy in state.notable.items():
        if identity in identities:
            is_in_step = copy.sync.sync is Sync.SYNCED
            why = copy.health.why if is_in_step else copy.sync.why
            is_healthy = copy.health.word is HealthWord.HEALTHY
            has_failed = is_in_step and isinstance(copy.health, Degraded) and copy.health.is_over
            copies.append(GatedCopy(identity, is_in_step, is_healthy, why, nobody, has_failed=has_failed))
    return copies
