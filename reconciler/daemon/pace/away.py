"""Clusters that could not be read: each is asked now and then whether it answers, so that no other one is read for it.

Source: design#promise-3: unknown is not absent; design#promise-7: a bad cluster fails by itself.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.observing.members import PROMPT_S, told_fault
from reconciler.errors import MemberClusterError

_PAUSE_MIN_S = 1.0
_PAUSE_MAX_S = 60.0


class Away:
    """Name to when it is asked next. All times are monotonic seconds."""

    def __init__(self, jitter: random.Random | None = None) -> None:
        """Everybody is there."""
        self._due: dict[str, tuple[float, float]] = {}
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, guards nothing

    def was_not_read(self, name: str, now_s: float) -> None:
        """A round went without the cluster; each time in a row doubles the pause."""
        due_s, pause_s = self._due.get(name, (0.0, _PAUSE_MIN_S / 2))
        if now_s >= due_s:
            self._put_off(name, now_s, pause_s)

    def was_read(self, name: str) -> None:
        """The cluster is there."""
        self._due.pop(name, None)

    def keep(self, names: frozenset[str]) -> None:
        """Forget clusters that have left the fleet."""
        self._due = {name: found for name, found in self._due.items() if name in names}

    def _put_off(self, name: str, now_s: float, pause_s: float) -> None:
        pause_s = min(_PAUSE_MAX_S, pause_s * 2)
        self._due[name] = (now_s + pause_s * self._jitter.uniform(0.5, 1.0), pause_s)

    async def came_back(self, members: Mapping[str, MemberCluster], uids: Mapping[str, str], now_s: float) -> list[str]:
        """Those that are due and answer as who they were (`uids`: of kube-system, by cluster)."""
        due = [name for name, (due_s, _) in sorted(self._due.items()) if now_s >= due_s and name in members]

        async def answers(name: str) -> bool:
            try:
                async with asyncio.timeout(PROMPT_S):
                    uid = await members[name].identity()
            except (MemberClusterError, TimeoutError):
                return False
            except Exception as error:
                told_fault(name, error)
                return False
            others = {uids.get(other) for other in members if other != name}
            return uids.get(name, uid) == uid and uid not in others

        found = await asyncio.gather(*(answers(name) for name in due))
        for name, is_back in zip(due, found, strict=True):
            # One that is back is asked again only if the round that follows cannot read it either.
            if not is_back and name in self._due:
                self._put_off(name, now_s, self._due[name][1])
        return [name for name, is_back in zip(due, found, strict=True) if is_back]
