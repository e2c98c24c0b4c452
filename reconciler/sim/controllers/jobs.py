"""Jobs: completions, parallelism, back-off limit, suspension, time to live. CronJobs never fire."""

from __future__ import annotations

from reconciler.sim.controllers.creations import make_pod
from reconciler.sim.controllers.deployments import has_passed
from reconciler.sim.controllers.owned import (
    condition,
    delete,
    is_active,
    is_ready,
    new_pod,
    with_condition,
    write_status,
)
from reconciler.sim.objects.status import Body
from reconciler.sim.state.state import State


def reconcile_job(state: State, job: Body) -> None:
    """Run pods until enough have succeeded or too many failed, and report."""
    if "deletionTimestamp" in job["metadata"]:
        return
    if any(condition(job, type_).get("status") == "True" for type_ in ("Complete", "Failed")):
        _expire(state, job)
        return
    spec = job["spec"]
    pods = state.dependents(job, "Pod")
    succeeded = sum(pod["status"].get("phase") == "Succeeded" for pod in pods)
    failed = sum(pod["status"].get("phase") == "Failed" for pod in pods)
    active = [pod for pod in pods if is_active(pod)]
    wanted = spec.get("completions")
    is_over = ""
    if failed > spec["backoffLimit"]:
        is_over = "Failed"
    elif succeeded >= (wanted if wanted is not None else 1) and (wanted is not None or not active):
        is_over = "Complete"
    if is_over or spec["suspend"]:
        for pod in active:
            delete(state, pod)
        active = []
    else:
        room = spec["parallelism"] if wanted is None else min(spec["parallelism"], wanted - succeeded)
        fresh = room - len(active) if wanted is not None or not succeeded else 0
        for _ in range(fresh):
            name = f"{job['metadata']['name']}-{state.suffix()}"
            outcome = make_pod(state, job, new_pod(job, spec["template"], name))
            if isinstance(outcome, str):
                break
            active.append(outcome)
    _report(state, job, active, succeeded, failed, is_over)


def _report(state: State, job: Body, active: list[Body], succeeded: int, failed: int, is_over: str) -> None:
    before = job.get("status") or {}
    conditions = list(before.get("conditions") or ())
    status: Body = {"ready": sum(map(is_ready, active)), "terminating": 0, "uncountedTerminatedPods": {}}
    status |= {name: n for name, n in (("active", len(active)), ("succeeded", succeeded), ("failed", failed)) if n}
    if job["spec"]["suspend"]:
        conditions = _with(state, conditions, "Suspended", "JobSuspended", "Job suspended")
    else:
        status["startTime"] = before.get("startTime") or state.time
    if is_over == "Complete":
        why = ("CompletionsReached", "Reached expected number of succeeded pods")
        for type_ in ("SuccessCriteriaMet", "Complete"):
            conditions = _with(state, conditions, type_, *why)
        status["completionTime"] = state.time
    elif is_over == "Failed":
        for type_ in ("FailureTarget", "Failed"):
            conditions = _with(
                state, conditions, type_, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
            )
    if conditions:
        status["conditions"] = conditions
    write_status(state, job, {**job, "status": status})


def _with(state: State, conditions: list[Body], type_: str, reason: str, message: str) -> list[Body]:
    new = {"type": type_, "status": "True", "reason": reason, "message": message, "lastProbeTime": state.time}
    return with_condition(conditions, new, state.time)


def _expire(state: State, job: Body) -> None:
    ttl_s = job["spec"].get("ttlSecondsAfterFinished")
    if ttl_s is None:
        return
    finished = condition(job, "Complete") or condition(job, "Failed")
    if has_passed(state, job, finished["lastTransitionTime"], ttl_s):
        delete(state, job)
