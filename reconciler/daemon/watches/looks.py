"""When each copy that is not well is looked at again, where no watch tells how it goes on.

What changes from one look to the next is looked at every few seconds, and what stays as it is ever more rarely.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from reconciler.model.refs import Identity

Copy = tuple[str, Identity]
"""An object in a cluster."""

PAUSE_MIN_S: Final = 2.0
PAUSE_MAX_S: Final = 60.0


class _Look(Struct):
    due_s: float
    pause_s: float = PAUSE_MIN_S
    version: str = ""


class Looks:
    """The next look at each copy. All times are monotonic seconds."""

    def __init__(self) -> None:
        """Everything is well."""
        self._looks: dict[Copy, _Look] = {}

    def due(self, ailing: Iterable[Copy], now_s: float) -> list[Copy]:
        """Those of the copies that are not well whose time has come, each once; all others are forgotten."""
        known = self._looks
        self._looks = {copy: known.get(copy) or _Look(now_s + PAUSE_MIN_S) for copy in ailing}
        due = sorted(copy for copy, look in self._looks.items() if now_s >= look.due_s)
        for copy in due:
            look = self._looks[copy]
            look.pause_s = min(PAUSE_MAX_S, look.pause_s * 2)
            look.due_s = now_s + look.pause_s
        return due

    def saw(self, copy: Copy, version: str, now_s: float) -> None:
        """A look showed a copy in this version; in another one than before, it goes on, and is looked at soon again."""
        look = self._looks.get(copy)
        if look is not None and look.version != version:
            look.version, look.pause_s, look.due_s = version, PAUSE_MIN_S, now_s + PAUSE_MIN_S
