"""Objects that are not compared field by field: those that are not ours, and hooks that ran.

Source: design#foreign-objects; ADR 26.
"""

from __future__ import annotations

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject, dig
from reconciler.api.plan import MISSING, FieldChange, Manifest
from reconciler.api.policies import ConflictResolution, PropagationPolicy
from reconciler.api.problem import Problem, Severity
from reconciler.observations import Run, has_succeeded, run_of
from reconciler.ownership import (
    RELEASE,
    TAKE_OVER,
    ObjectOwner,
    Ownership,
    conflict_resolution,
    foreign_mark,
    is_terminating,
    made_by,
    states,
    strip_marks,
)
from reconciler.templates import HookEnd, hook_of


def problem_about(manifest: Manifest, code: str, message: str, severity: Severity = Severity.ERROR) -> Problem:
    """A problem of the manifest in its cluster; the message begins with the object."""
    return Problem(
        source=manifest.source,
        code=code,
        message=f"{manifest.identity} {message}",
        severity=severity,
        cluster=manifest.cluster,
    )


def is_used_as_it_is(manifest: Manifest) -> bool:
    """Return whether it is a Namespace that only follows its objects: it must exist, but need not be ours."""
    return manifest.identity.kind == "Namespace" and not manifest.identity.group and manifest.policy is None


def namespace_remark(manifest: Manifest, live: LiveObject) -> Problem | None:
    """Return the remark about a foreign Namespace that lacks labels of its template; None if it lacks none."""
    wanted = strip_marks(manifest.body)
    lacking = sorted(
        key
        for field in ("labels", "annotations")
        for key, value in (dig(wanted, "metadata", field) or {}).items()
        if dig(live.body, "metadata", field, key) != value
    )
    if not lacking:
        return None
    message = (
        f"exists in the cluster and is not ours; it is used as it is, without what its template says of "
        f"{', '.join(lacking)}; adopt it by a policy with conflictResolution: Overwrite if that matters"
    )
    return problem_about(manifest, "namespace-not-ours", message, Severity.HINT)


def refusal(
    manifest: Manifest,
    live: LiveObject,
    ownership: Ownership,
    policy: PropagationPolicy | None,
    lost: tuple[str, ...],
) -> Problem | None:
    """Return why an object that is not ours is left alone; None: it is to be adopted.

    `lost`: our marks that somebody took off it.
    """
    if ownership.standing is not ObjectOwner.NOBODYS and _taken_over(manifest) != ownership.holder:
        return problem_about(manifest, "object-of-another-tool", _held_by(manifest, ownership))
    if conflict_resolution(manifest.body, policy) is not ConflictResolution.ABORT:
        return None
    if ownership.standing is ObjectOwner.NOBODYS and lost:
        message = (
            f"is left alone, since somebody took {' and '.join(lost)} off; put back what is missing, or set "
            "conflictResolution: Overwrite in its policy to adopt it"
        )
        return problem_about(manifest, "object-let-go", message, Severity.WARNING)
    maker = f" ({made_by(live.body)} made it)" if made_by(live.body) else ""
    message = f"exists and is not ours{maker}; set conflictResolution: Overwrite in its policy to adopt it"
    return problem_about(manifest, "object-not-ours", message)


def second_holder(manifest: Manifest, live: LiveObject) -> Problem | None:
    """Return the problem of an object of ours with the mark of another tool, too; None if there is none.

    A mark in the template is no news, and an object that was taken over may keep its marks.
    """
    mark = foreign_mark(live.body)
    if mark is None or states(manifest.body, mark) or _taken_over(manifest) == mark.tool:
        return None
    message = (
        f"is ours and carries the mark of {mark.tool}, too ({mark}): both may write it, and {mark.tool} may delete it; "
        f"have {mark.tool} let go of it, then take the mark off, or set the annotation {TAKE_OVER}: {mark.tool} on the "
        "template"
    )
    return problem_about(manifest, "marked-by-another-tool", message, Severity.WARNING)


def _held_by(manifest: Manifest, ownership: Ownership) -> str:
    """That another tool, fleet or object holds it, how that is known, and the way out."""
    mark = ownership.mark
    if ownership.standing is ObjectOwner.OTHER_OBJECT:
        known, way_out = ", which controls it", "have that object let go of it first"
    else:
        known, way_out = f" ({mark})" if mark is not None else "", "release it there first"
    if mark is not None and states(manifest.body, mark):
        way_out += f", take {mark} out of the template, too"
    return (
        f"exists and belongs to {ownership.holder}{known}; {way_out}, or set the annotation "
        f"{TAKE_OVER}: {ownership.holder} on the template together with conflictResolution: Overwrite"
    )


def _taken_over(manifest: Manifest) -> str:
    """Return the tool whose object the template may take over; empty if none."""
    return str(dig(manifest.body, "metadata", "annotations", TAKE_OVER) or "")


def is_done_hook(manifest: JsonObject, live: JsonObject) -> bool:
    """Return whether a hook succeeded for the release that it is for now; a command may not have seen its end."""
    release = dig(manifest, "metadata", "annotations", RELEASE)
    return release is not None and release == dig(live, "metadata", "annotations", RELEASE) and has_succeeded(live)


def end_to_leave_after(manifest: JsonObject, live: LiveObject) -> HookEnd | None:
    """Return the end of a hook's run for this release if it is to be deleted after it; None: it stays.

    A review has no ended runs: its objects stand for real ones, and have no uid.
    """
    annotations = dig(manifest, "metadata", "annotations") or {}
    if RELEASE not in annotations or not live.uid or is_terminating(live) or run_of(live.body) is not Run.FINISHED:
        return None
    hook, end = hook_of(annotations), HookEnd.SUCCEEDED if has_succeeded(live.body) else HookEnd.FAILED
    return end if hook is not None and end in hook.leaves_after else None


def other_release(manifest: JsonObject, other: JsonObject | None) -> FieldChange | None:
    """Return the difference between the releases that a hook is for and was for; None: none, or it is no hook."""
    after, before = (dig(body, "metadata", "annotations", RELEASE) for body in (manifest, other))
    if after is None or after == before:
        return None
    path = f"metadata.annotations.{RELEASE}"
    return FieldChange(path=path, before=MISSING if before is None else before, after=after)
