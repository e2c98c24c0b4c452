"""Clusters that could not be read: each is asked now and then whether it answers, so that no other one is read for it.

However long a cluster has been away, it is asked every few seconds, over a new connection: one from before may be open
on our side alone. Each is asked by itself, and waits for no other. Source: design#promise-3: unknown is not absent;
design#promise-6; design#promise-7: a bad cluster fails by itself.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Final

from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.observing.members import PROMPT_S, told_fault
from reconciler.daemon.pace.back_off import BackOff
from reconciler.errors import MemberClusterError
from reconciler.model.observation import Member, Read

PAUSES = BackOff(least_s=1.0, most_s=8.0)
_STEP_S: Final = 1.0
"""So long the first answer is waited for."""
_PER_SECOND: Final = 20
"""So many clusters are asked in a second at most: where more than that are away, each is asked less often."""


class Away:
    """Name to when it is asked next. All times are monotonic seconds."""

    def __init__(self, jitter: random.Random | None = None) -> None:
        """Everybody is there."""
        self._due: dict[str, tuple[float, float]] = {}
        self._asked: dict[str, asyncio.Task[bool]] = {}
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, guards nothing

    def was_not_read(self, name: str, now_s: float) -> None:
        """A round went without the cluster; each time in a row doubles the pause."""
        due_s, pause_s = self._due.get(name, (0.0, 0.0))
        if now_s >= due_s and name not in self._asked:
            self._put_off(name, now_s, pause_s)

    def was_read(self, name: str) -> None:
        """The cluster is there."""
        self._due.pop(name, None)

    def back_among(self, members: Mapping[str, Member]) -> list[str]:
        """The clusters that were away and have just been read."""
        return [name for name in self._due if isinstance(members.get(name), Read)]

    def keep(self, names: frozenset[str]) -> None:
        """Forget clusters that have left the fleet."""
        self._due = {name: found for name, found in self._due.items() if name in names}

    def _put_off(self, name: str, now_s: float, pause_s: float) -> None:
        pause_s = PAUSES.after(pause_s)
        wait_s = max(pause_s * self._jitter.uniform(0.5, 1.0), len(self._due) / _PER_SECOND)
        self._due[name] = (now_s + wait_s, pause_s)

    async def came_back(self, members: Mapping[str, MemberCluster], uids: Mapping[str, str], now_s: float) -> list[str]:
        """Those that have answered since as who they were (`uids`: of kube-system, by cluster); who is due is asked.

        It waits for the first answer alone, and not for long: the others are told of the next time.
        """
        for name, (due_s, pause_s) in sorted(self._due.items()):
            if now_s >= due_s and name in members and name not in self._asked:
                # Counted from when it is asked: how long it is silent then is no pause.
                self._put_off(name, now_s, pause_s)
                self._asked[name] = asyncio.create_task(_is_back(name, members, uids), name=f"asking {name}")
        if self._asked:
            await asyncio.wait(self._asked.values(), timeout=_STEP_S, return_when=asyncio.FIRST_COMPLETED)
        ended = {name: task for name, task in self._asked.items() if task.done()}
        self._asked = {name: task for name, task in self._asked.items() if name not in ended}
        return [name for name, task in ended.items() if name in self._due and not task.cancelled() and task.result()]

    async def close(self) -> None:
        """Ask nobody any more."""
        asked, self._asked = self._asked, {}
        for task in asked.values():
            task.cancel()
        await asyncio.gather(*asked.values(), return_exceptions=True)


async def _is_back(name: str, members: Mapping[str, MemberCluster], uids: Mapping[str, str]) -> bool:
    """Whether a cluster answers as who it was."""
    try:
        async with asyncio.timeout(PROMPT_S):
            uid = await members[name].identity(is_anew=True)
    except (MemberClusterError, TimeoutError):
        return False
    except Exception as error:
        told_fault(name, error)
        return False
    others = {uids.get(other) for other in members if other != name}
    return uids.get(name, uid) == uid and uid not in others
