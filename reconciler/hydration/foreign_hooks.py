"""Hooks of Helm and Argo CD as hooks of a store. Source: ADR 26; Helm: chart hooks; Argo CD: resource hooks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from reconciler.api.content import JsonObject, dig, with_value
from reconciler.ownership import DIRECTIVES, DirectiveEffect, FoundDirective
from reconciler.templates import HOOK, HOOK_DELETE, HOOK_WEIGHT, HookEnd, HookTime

_TIMES: Final = {
    frozenset({"presync"}): HookTime.BEFORE,
    frozenset({"sync"}): HookTime.WITH,
    frozenset({"postsync"}): HookTime.AFTER,
    frozenset({"pre-install"}): HookTime.BEFORE_FIRST,
    frozenset({"pre-upgrade"}): HookTime.BEFORE,
    frozenset({"pre-install", "pre-upgrade"}): HookTime.BEFORE,
    frozenset({"post-install"}): HookTime.AFTER_FIRST,
    frozenset({"post-upgrade"}): HookTime.AFTER_APPLIED,
    frozenset({"post-install", "post-upgrade"}): HookTime.AFTER_APPLIED,
}
_PHASES: Final = tuple(
    frozenset(names.split())
    for names in ("presync", "sync", "postsync", "pre-install pre-upgrade", "post-install post-upgrade")
)
RUNS: Final = ("Job", "Pod")
_ENDS: Final = {
    "hook-succeeded": HookEnd.SUCCEEDED,
    "hooksucceeded": HookEnd.SUCCEEDED,
    "hook-failed": HookEnd.FAILED,
    "hookfailed": HookEnd.FAILED,
}
"""Delete policies; the others are what happens to every hook."""
_WEIGHTS: Final = ("helm.sh/hook-weight", "argocd.argoproj.io/sync-wave")
_OF_HOOKS: Final = frozenset({row.key for row in DIRECTIVES if "/hook" in row.key}.union(_WEIGHTS))


def hook_times(found: Collection[FoundDirective]) -> frozenset[str]:
    """Return the values by which an object is a hook that has a counterpart; of Argo CD's and Helm's, Argo CD's.

    Source: gitops-engine, pkg/sync/hook: Helm's count where Argo CD's are missing.
    """
    hooks = [one for one in found if one.effect is DirectiveEffect.HOOK]
    first = min((one.key for one in hooks), default="")
    return frozenset(one.value.lower() for one in hooks if one.key == first)


def hook_ends(found: Collection[FoundDirective]) -> frozenset[HookEnd]:
    """Return the ends after which either tool's policy deletes a hook. Source: gitops-engine, pkg/sync/hook."""
    return frozenset(_ENDS[one.value.lower()] for one in found if one.value.lower() in _ENDS)


def with_hooks(body: JsonObject, times: frozenset[str], ends: frozenset[HookEnd]) -> tuple[JsonObject, ...]:
    """Return an object of `hook_times` as hooks of a store, with names: one for each phase, the first as it is named.

    `ends`: those after which it is deleted, if it runs.

    One that does not run comes at the first of its times: hooks of the others need it, too.
    """
    found = [_TIMES[times & phase] for phase in _PHASES if times & phase]
    first, *later = (_with_hook(body, time, ends) for time in found)
    if body.get("kind") not in RUNS:
        return (first,)
    names = [f"{dig(each, 'metadata', 'name')}-{dig(each, 'metadata', 'annotations', HOOK)}" for each in later]
    named = (with_value(each, ("metadata", "name"), name) for each, name in zip(later, names, strict=True))
    return (first, *named)


def _with_hook(body: JsonObject, time: HookTime, ends: frozenset[HookEnd]) -> JsonObject:
    annotations = dict(dig(body, "metadata", "annotations") or {})
    weight = next((annotations[key] for key in _WEIGHTS if key in annotations), "0")
    kept = {key: value for key, value in annotations.items() if key not in _OF_HOOKS}
    kept[HOOK] = time.value
    if weight not in ("0", ""):
        kept[HOOK_WEIGHT] = str(weight)
    if ends and body.get("kind") in RUNS:
        kept[HOOK_DELETE] = ",".join(sorted(ends, reverse=True))
    body = with_value(body, ("metadata", "annotations"), kept)
    prefix = dig(body, "metadata", "generateName")
    if isinstance(prefix, str) and not dig(body, "metadata", "name"):
        metadata = {key: value for key, value in body["metadata"].items() if key != "generateName"}
        return {**body, "metadata": {**metadata, "name": prefix.rstrip("-.")}}
    return body
