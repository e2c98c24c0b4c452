"""The conditions of a stage and of its clusters in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.rollouts.progress import (
    Paused,
    Pinned,
    Skipped,
    StageDone,
    StageProgress,
    StageRunning,
    StageState,
    Unclear,
    WaitsForApproval,
    WaitsForStage,
    WaitsForTime,
    WaitsForWindow,
)
from reconciler.model.rollouts.rollout import ConditionCheck, Gate, Stage
from reconciler.model.rollouts.window import Window, WindowKind
from reconciler.report.text.cluster_list import cluster_list
from reconciler.report.text.safe import visible

_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_CLUSTERS_CHARS_MAX = 60


def span(seconds: int) -> str:
    """A length of time as it is written in a Rollout.

    >>> span(1800), span(5400), span(90000), span(0)
    ('30m', '1h30m', '1d1h', '0s')
    """
    parts = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def short(revision: str) -> str:
    """Twelve characters of a commit id; `nothing` for none."""
    return visible(revision[:12]) or "nothing"


def named(clusters: Sequence[str]) -> str:
    """The clusters, or how many there are where the names are too long for a line."""
    names = cluster_list(clusters)
    return names if len(names) <= _CLUSTERS_CHARS_MAX else f"{len(clusters):,} clusters"


def asked_of(gate: Gate) -> str:
    """Return the conditions of a gate: `30m healthy with SmokeTestsPassed`; empty without conditions."""
    conditions = [_condition(check) for check in gate.checks if isinstance(check, ConditionCheck)]
    time = span(gate.min_success_s) if gate.min_success_s else ""
    words = [time, "healthy" if gate.healthy else ""]
    said = " ".join(word for word in words if word)
    return " with ".join(part for part in (said, " and ".join(conditions)) if part)


def _condition(check: ConditionCheck) -> str:
    of = f" of {visible(str(check.of))}" if check.of is not None else ""
    status = "" if check.status == "True" else f"={visible(check.status)}"
    return f"{visible(check.condition)}{status}{of}"


def waits_of(stage: Stage, *, is_last: bool) -> str:
    """Return the conditions for leaving a stage: `30m healthy, 24h and an approval of canary`; empty: none."""
    parts = [asked_of(stage.gate)]
    if not is_last:
        parts += [span(stage.after.wait_s) if stage.after.wait_s else ""]
        parts += [f"an approval of {visible(stage.name)}" if stage.after.approval else ""]
    return joined_by_and(part for part in parts if part)


def joined_by_and(parts: Iterable[str]) -> str:
    """`a, b and c`."""
    *first, last = [*parts] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def window_words(window: Window) -> str:
    """`only "0 8 * * 1-5" for 8h (Asia/Shanghai)`."""
    kind = "only" if window.kind is WindowKind.ALLOW else "never"
    return f'{kind} "{visible(window.cron.text)}" for {span(window.duration_s)} ({visible(window.time_zone)})'


def state_word(state: StageState) -> str:
    """The state as one stable word, which machines and metrics read."""
    found = type(state).__struct_config__.tag
    assert isinstance(found, str), "every state has a tag"
    return found


def state_words(progress: StageProgress) -> str:
    """Return the state of a stage and the reason of its waiting."""
    match progress.state:
        case StageDone():
            return "done"
        case StageRunning(done=done, total=total):
            return f"in progress, {done} of {total}"
        case WaitsForStage(stage=stage):
            return f"waits for the stage {visible(stage)}"
        case WaitsForTime(until=until):
            return f"done; the next stage begins at {until}"
        case WaitsForApproval(not_before=not_before):
            return "done; the next stage needs an approval" + (f", and begins after {not_before}" if not_before else "")
        case WaitsForWindow(until=until):
            return f"waits for its window until {until}" if until else "waits for its window"
        case Paused(failed=failed):
            return f"PAUSED: {cluster_list(failed)} failed"
        case Pinned(revision=revision):
            return f"PINNED to {short(revision)}"
        case Skipped():
            return "skipped, no cluster"
        case Unclear():
            return "unclear, nothing begins"
