"""Holds of case tables, made of their words."""

from __future__ import annotations

from typing import Final

from reconciler.api.plan import HeldBy, Hold

_KINDS: Final = {
    "guard: ": Hold(HeldBy.GUARD, ""),
    "spec.selector cannot be changed in place": Hold(HeldBy.REPLACEMENT, ""),
    "waits for ": Hold(HeldBy.MOVE, ""),
    "fleet is suspended": Hold(HeldBy.SUSPENDED, "", "fleet"),
    "dispatching is suspended": Hold(HeldBy.SUSPENDED, ""),
    "a window of the fleet": Hold(HeldBy.WINDOW, ""),
    "drift is left": Hold(HeldBy.SETTINGS, ""),
}


def hold(why: str | None) -> Hold | None:
    """Return the hold that the program makes with words that begin like these; None: none."""
    if why is None:
        return None
    kind = next((found for start, found in _KINDS.items() if why.startswith(start)), Hold(HeldBy.OTHERS, ""))
    return Hold(kind.by, why, kind.order)
