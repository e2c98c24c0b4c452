"""Changes by the folder of the store that they come from, which is how most stores are divided between teams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.report.plan.alike import Alike, common_folder

_ENTRIES_MIN = 12
"""Fewer are read faster in one list."""
_FOLDERS_MAX = 25
SEVERAL = "several folders"


def by_folder(found: Sequence[Alike]) -> dict[str, list[Alike]]:
    """Return the entries by folder, `SEVERAL` first; all under an empty name if dividing would not help."""
    paths = {source.path for one in found for source in one.sources}
    divided: dict[str, list[Alike]] = {}
    if len(found) >= _ENTRIES_MIN:
        top = common_folder(source for one in found for source in one.sources)
        for one in found:
            folders = {_below(source.path, top) for source in one.sources}
            divided.setdefault(folders.pop() if len(folders) == 1 else SEVERAL, []).append(one)
    if not 1 < len(divided) <= _FOLDERS_MAX or len(divided) == len(paths):
        return {"": list(found)} if found else {}
    return {name: divided[name] for name in _ordered(divided)}


def _ordered(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name != SEVERAL, name))


def _below(path: str, top: str) -> str:
    """Return the folder of a path one step below the common one; the common one for a file directly in it."""
    step, slash, _ = path[len(top) :].partition("/")
    return f"{top}{step}/" if slash else top or "./"
