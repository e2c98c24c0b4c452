"""Hooks: Jobs and Pods that run once per release of their package and cluster, before or after the rest.

The package of a hook is all that the files of its folder hold. Source: design#hooks; ADR 26.

Waves: the rest of a package in turns, each healthy before the next. Source: Argo CD: sync phases and waves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from reconciler.api.content import JsonObject, dig
from reconciler.api.fleet import Template
from reconciler.documents import Findings
from reconciler.regex import regex

RUNS_ONCE: Final = frozenset({("batch", "Job"), ("", "Pod")})
"""Kinds that run to an end, and must not begin a second time elsewhere."""

HOOK: Final = "fleet.reconciler/hook"
HOOK_WEIGHT: Final = "fleet.reconciler/hook-weight"
HOOK_FAILURE: Final = "fleet.reconciler/hook-failure"
HOOK_DELETE: Final = "fleet.reconciler/hook-delete"
WAVE: Final = "fleet.reconciler/wave"
_WAVES: Final = (WAVE, "argocd.argoproj.io/sync-wave")
"""Annotations with the wave of what is no hook; the first one counts."""
_CONTINUE: Final = "continue"
_WEIGHT: Final = regex(r"[+-]?\d{1,9}", re.ASCII)
_ENDING: Final = ("Never", "OnFailure")


class HookTime(StrEnum):
    """The time of a hook; those that end with `first` run with the first release in a cluster alone.

    AFTER waits until the rest is healthy, the other ones after the rest only until it is applied, as Helm's do.
    """

    BEFORE = "before"
    WITH = "with"
    AFTER = "after"
    AFTER_APPLIED = "after-applied"
    BEFORE_FIRST = "before-first"
    AFTER_FIRST = "after-first"


_PHASES: Final = {
    HookTime.BEFORE: 0,
    HookTime.BEFORE_FIRST: 0,
    HookTime.WITH: 1,
    HookTime.AFTER_APPLIED: 2,
    HookTime.AFTER_FIRST: 2,
    HookTime.AFTER: 3,
}


class HookEnd(StrEnum):
    """The end of a hook's run; `fleet.reconciler/hook-delete` names those after which it is deleted."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


Turn = tuple[int, int]
"""Phase and weight of an object in the release of its package: the lower one comes first."""

ONCE_HEALTHY: Final = _PHASES[HookTime.AFTER]
"""The first phase that waits until the rest is healthy."""
THE_REST: Final[Turn] = (1, 0)
"""The turn of what is no hook and names no wave."""


class Hook(Struct, frozen=True):
    """A hook. `goes_on`: its failure stops nothing. `leaves_after`: the ends after which it is deleted."""

    time: HookTime
    weight: int = 0
    goes_on: bool = False
    leaves_after: frozenset[HookEnd] = frozenset()

    @property
    def is_first_only(self) -> bool:
        """Return whether it runs with the first release alone."""
        return self.time in (HookTime.BEFORE_FIRST, HookTime.AFTER_FIRST)

    @property
    def order(self) -> Turn:
        """Return its turn; with the rest, the weight is its wave."""
        return _PHASES[self.time], self.weight


def hook_of(annotations: Mapping[str, str]) -> Hook | None:
    """Return the hook that an object is; None: it is none, or not a legal one."""
    time = annotations.get(HOOK)
    if time is None or time not in set(HookTime):
        return None
    weight = annotations.get(HOOK_WEIGHT, "0")
    return Hook(
        HookTime(time),
        int(weight) if _is_weight(weight) else 0,
        annotations.get(HOOK_FAILURE) == _CONTINUE,
        frozenset(HookEnd(end) for end in _ends(annotations.get(HOOK_DELETE, "")) if end in set(HookEnd)),
    )


def turn_of(annotations: Mapping[str, str]) -> Turn:
    """Return the turn of a hook, or of another object by its wave; a wave that is no whole number is 0, as in Argo CD.

    Source: gitops-engine, pkg/sync/syncwaves.
    """
    hook = hook_of(annotations)
    if hook is not None:
        return hook.order
    wave = next((annotations[key] for key in _WAVES if key in annotations), "0")
    return THE_REST[0], int(wave) if _is_weight(wave) else 0


def package_of(path: str) -> str:
    """Return the package that a file belongs to: its folder, empty for the root of the store."""
    return path.rpartition("/")[0]


def is_hook(template: Template) -> bool:
    """Return whether a template is a hook, or an object that hooks need."""
    return HOOK in template.annotations


def has_turn(template: Template) -> bool:
    """Return whether others of its package wait for a template, or it for them: it is a hook or names a wave."""
    annotations = template.annotations
    return HOOK in annotations or (any(key in annotations for key in _WAVES) and turn_of(annotations) != THE_REST)


def is_run_of_hook(template: Template | None) -> bool:
    """Return whether a template is a hook that runs: other kinds only come in its turn."""
    return template is not None and template.identity[:2] in RUNS_ONCE and is_hook(template)


def check_hook(kind: str, body: JsonObject, findings: Findings) -> None:
    """Report values of the annotations of hooks that are none. Others than texts are reported already."""
    annotations = dig(body, "metadata", "annotations")
    if not isinstance(annotations, dict):
        return
    time, weight, failure, ends = (annotations.get(key) for key in (HOOK, HOOK_WEIGHT, HOOK_FAILURE, HOOK_DELETE))
    place = ("metadata", "annotations")
    if isinstance(time, str) and time not in set(HookTime):
        findings.error("hook-illegal", f"{time[:80]!r} is none of {', '.join(HookTime)}", *place, HOOK)
    if isinstance(weight, str) and not _is_weight(weight):
        findings.error("hook-illegal", f"{weight[:80]!r} is no whole number", *place, HOOK_WEIGHT)
    if isinstance(failure, str) and failure not in (_CONTINUE, "stop"):
        findings.error("hook-illegal", f"{failure[:80]!r} is neither stop nor continue", *place, HOOK_FAILURE)
    if isinstance(ends, str) and not {*_ends(ends)} <= set(HookEnd):
        findings.error("hook-illegal", f"{ends[:80]!r} is no list of {', '.join(HookEnd)}", *place, HOOK_DELETE)
    if time is not None and kind == "Pod" and dig(body, "spec", "restartPolicy") not in _ENDING:
        message = f"a Pod that is always restarted never ends: write {' or '.join(_ENDING)}"
        findings.error("hook-illegal", message, "spec", "restartPolicy")
    wave, argo_wave = (annotations.get(key) for key in _WAVES)
    if isinstance(argo_wave, str) and argo_wave and not _is_weight(argo_wave):
        findings.warning(
            "directive-dropped", f"{argo_wave[:80]!r} is no whole number: 0, as in Argo CD", *place, _WAVES[1]
        )
    if isinstance(wave, str) and not _is_weight(wave):
        findings.error("hook-illegal", f"{wave[:80]!r} is no whole number", *place, WAVE)
    if wave is not None and time is not None:
        findings.error("hook-illegal", f"a hook has {HOOK_WEIGHT} instead", *place, WAVE)
    for key, value in ((HOOK_WEIGHT, weight), (HOOK_FAILURE, failure), (HOOK_DELETE, ends)):
        if value is not None and time is None:
            findings.error("hook-illegal", f"it counts beside {HOOK} only", *place, key)


def _ends(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _is_weight(text: str) -> bool:
    return _WEIGHT.fullmatch(text) is not None
