"""The state of rollouts for a terminal: a line for each stage, actions for a person, and exceptional clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reconciler.model.rollouts.progress import Phase
from reconciler.report.rollouts.words import named, short
from reconciler.report.text.safe import visible
from reconciler.report.text.style import Style
from reconciler.report.text.table import Fit, aligned

_LOUD: Final = frozenset({"paused", "pinned", "unclear"})
_TOLD: Final = frozenset({Phase.FAILED, Phase.FROZEN, Phase.PINNED, Phase.RUNNING})
"""Phases that are shown with their reason; clusters in other phases are as their stage is."""

Document = Mapping[str, Any]


def status_lines(rollouts: Sequence[Document], style: Style, limit: int | None) -> list[str]:
    """The block of a status document's `rollouts`; empty where there are none. `limit`: of clusters, None: all."""
    lines: list[str] = []
    for found in rollouts:
        lines += ([""] if lines else []) + _rollout(found, style, limit)
    return lines


def _rollout(found: Document, style: Style, limit: int | None) -> list[str]:
    doing = "is done everywhere" if found["done"] else "goes over the clusters"
    waiting = f"; {short(found['waiting'])} waits until it is" if found["waiting"] else ""
    clusters = {entry["name"]: entry for entry in found["clusters"]}
    rows = [["STAGE", "CLUSTERS", "AT IT", "STATE"]]
    for stage in found["stages"]:
        members = [clusters[name] for name in stage["clusters"] if name in clusters]
        there = sum(entry["revision"] == found["release"] for entry in members)
        names = named(stage["clusters"]) or "none"
        rows.append([visible(stage["name"]), names, f"{there} of {len(members)}", visible(stage["why"])])
    head, *body = aligned(rows, fit=Fit(width=style.width, drop=(1,), cuts_last=True))
    lines = [
        style.bold(f"Rollout {visible(found['name'])}") + f"  {short(found['release'])} {doing}{waiting}",
        f"  {head}",
    ]
    for stage, line in zip(found["stages"], body, strict=True):
        lines.append("  " + (style.red(line) if stage["state"] in _LOUD else line))
        if stage["approval"]:
            lines.append(style.yellow(f"    to approve, add under spec.approvals: {visible(stage['approval'])}"))
            lines.append(style.dim(f"    or run: reconciler approve {visible(stage['name'])}"))
    return lines + _clusters(found, style, limit)


def _clusters(found: Document, style: Style, limit: int | None) -> list[str]:
    """Those that are not as their stage is, equal ones once."""
    groups = Counter[tuple[str, str, str]]()
    names: dict[tuple[str, str, str], list[str]] = {}
    for entry in found["clusters"]:
        if entry["phase"] in _TOLD:
            key = (entry["phase"], entry["revision"] or "", entry["why"])
            groups[key] += 1
            names.setdefault(key, []).append(entry["name"])
    lines = []
    for key in list(groups)[:limit]:
        phase, revision, why = key
        paint = style.dim if phase == Phase.RUNNING else style.red
        lines.append(f"  {paint(phase)} {named(names[key])} at {short(revision)}: {visible(why)}")
    rest = len(groups) - len(lines)
    return [*lines, style.dim(f"  and {rest} more; -o wide shows all")] if rest else lines
