"""A deadline for the silence of a cluster, not for our own work on its and others' answers.

Source: design#promise-7; ADR 15.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final, TypeVar

from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.tasks import start

T = TypeVar("T")

_BEATS: Final = 10
"""Silence is counted in so many steps, each of which counts at most its part, however late we check."""


async def unless_silent(member: MemberCluster, work: Coroutine[None, None, T], silence_s: float) -> T:
    """Return the result of the work, however long it takes while the cluster answers.

    Raises:
        TimeoutError: nothing of the cluster was heard for `silence_s`.
    """
    task, beats, heard = start(work, f"asking {member.name}"), 0, member.answers
    try:
        while not task.done() and beats < _BEATS:
            await asyncio.wait((task,), timeout=silence_s / _BEATS)
            beats, heard = (beats + 1 if member.answers == heard else 0), member.answers
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
