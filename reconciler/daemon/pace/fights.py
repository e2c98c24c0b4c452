"""Another actor that keeps undoing what we do: after a few rounds of it we back off and say so once.

Source: design#fights: a fight backs off.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from reconciler.model.refs import Identity
from reconciler.stages.observations import later
from reconciler.stages.state import Fought

HEALS_MAX = 5
"""So many heals of one copy within `WINDOW_S` are a fight."""
WINDOW_S = 600.0
_PAUSE_MIN_S = 60.0
_PAUSE_MAX_S = 3600.0


class _Bout(Struct):
    heals: deque[float] = field(default_factory=deque)
    pause_s: float = 0.0
    until_s: float = 0.0
    fought: Fought | None = None
    """Who, and until when, in the words of the last fight."""


class Fights:
    """Heals by copy. All times are monotonic seconds."""

    def __init__(self) -> None:
        """No fight is going on."""
        self._bouts: dict[tuple[str, Identity], _Bout] = {}

    def healed(
        self, cluster: str, identity: Identity, now_s: float, managers: tuple[str, ...] = (), now: str = ""
    ) -> bool:
        """Count a heal; True when it makes this a fight, from which we now step back.

        `managers`: who wrote what was healed. `now`: the time of day (RFC 3339), by which it is told how long.
        """
        bout = self._bouts.setdefault((cluster, identity), _Bout())
        bout.heals.append(now_s)
        while bout.heals and bout.heals[0] < now_s - WINDOW_S:
            bout.heals.popleft()
        if len(bout.heals) < HEALS_MAX:
            if len(bout.heals) == 1 and bout.until_s < now_s - WINDOW_S:
                bout.pause_s = 0.0
            return False
        bout.heals.clear()
        bout.pause_s = min(_PAUSE_MAX_S, max(_PAUSE_MIN_S, bout.pause_s * 2))
        bout.until_s = now_s + bout.pause_s
        bout.fought = Fought(managers, later(now, bout.pause_s))
        return True

    def current(self, now_s: float) -> dict[tuple[str, Identity], Fought]:
        """The copies that are left alone now."""
        return {
            copy: bout.fought for copy, bout in self._bouts.items() if bout.fought is not None and bout.until_s > now_s
        }

    def pause_left_s(self, cluster: str, identity: Identity, now_s: float) -> float:
        """How long the copy is left alone still; 0 when there is no fight about it."""
        bout = self._bouts.get((cluster, identity))
        return max(0.0, bout.until_s - now_s) if bout else 0.0

    def going_on(self, now_s: float) -> frozenset[tuple[str, Identity]]:
        """The copies whose fight is not over: nobody has been quiet for as long as a fight is counted."""
        return frozenset(
            copy
            for copy, bout in self._bouts.items()
            if bout.until_s and max(bout.until_s, *bout.heals, 0.0) > now_s - WINDOW_S
        )
