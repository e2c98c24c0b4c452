"""Runs of hooks, by the live object: the release that they were for, and what becomes of them. Source: ADR 26."""

from __future__ import annotations

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject, dig
from reconciler.api.plan import MISSING, FieldChange
from reconciler.observations import Run, has_succeeded, run_of
from reconciler.ownership import RELEASE, is_terminating
from reconciler.templates import HookEnd, hook_of


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
