"""Sets of cluster names, as people write them: `hz-prod-{a,b}, idc-1`, `edge-{000..029}`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from reconciler.report.text.safe import visible

_PREFIX_MIN = 3
"""`m-{1,2}` is no shorter than `m-1, m-2`, and harder to read."""


def cluster_list(names: Sequence[str]) -> str:
    """All the names, sorted; those that share everything up to their last dash are written once.

    >>> cluster_list(["hz-prod-b", "idc-1", "hz-prod-a"])
    'hz-prod-{a,b}, idc-1'
    """
    ordered = sorted({visible(name) for name in names})
    parts = []
    for prefix, members in groupby(ordered, key=_prefix):
        endings = [name[len(prefix) :] for name in members]
        if len(endings) > 1 and len(prefix) >= _PREFIX_MIN:
            parts.append(f"{prefix}{{{','.join(_ranges(endings))}}}")
        else:
            parts.extend(prefix + ending for ending in endings)
    return ", ".join(parts)


def _prefix(name: str) -> str:
    return name[: name.rfind("-") + 1]


def _ranges(endings: list[str]) -> list[str]:
    """Runs of at least three numbers of one width as `000..029`, the way a shell writes them."""
    runs: list[list[str]] = []
    for ending in endings:
        if runs and _follows(runs[-1][-1], ending):
            runs[-1].append(ending)
        else:
            runs.append([ending])
    return [part for run in runs for part in ([f"{run[0]}..{run[-1]}"] if len(run) > 2 else run)]


def _follows(first: str, second: str) -> bool:
    is_number = first.isascii() and first.isdigit() and second.isascii() and second.isdigit()
    return is_number and len(first) == len(second) <= 9 and int(second) == int(first) + 1
