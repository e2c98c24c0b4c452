"""The memory limits of one cluster, and of all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconciler.errors import AnswerTooLarge


class Budget:
    """Bytes of lists that are under way: a list whose pages never end is no answer that we could use."""

    def __init__(self, cluster: str, max_bytes: int) -> None:
        """Nothing is taken."""
        self._cluster = cluster
        self._max_bytes = max_bytes
        self._taken = 0

    @contextmanager
    def share(self) -> Iterator[Callable[[int], None]]:
        """A function that takes so many bytes more; they are given back at the end of the block.

        Raises:
            AnswerTooLarge: no so many are left.
        """
        mine = 0

        def take(count: int) -> None:
            nonlocal mine
            mine += count
            self._taken += count
            if self._taken > self._max_bytes:
                raise AnswerTooLarge(
                    self._cluster, f"the lists that are read at once are larger than {self._max_bytes:,} bytes"
                )

        try:
            yield take
        finally:
            self._taken -= mine


class SumBudget:
    """Bytes that all clusters together may make us hold. One that takes much does not take it from the others."""

    def __init__(self, max_bytes: int) -> None:
        """Nothing is taken."""
        self.taken = 0
        self._max_bytes = max_bytes
        self._by_cluster: Counter[str] = Counter()

    @contextmanager
    def share(self, cluster: str) -> Iterator[Callable[[int], None]]:
        """A function that takes so many bytes more for a cluster; they are given back at the end of the block.

        Raises:
            AnswerTooLarge: no so many are left, or half of all are taken and the cluster has more than its part of it.
        """
        mine = 0

        def take(count: int) -> None:
            nonlocal mine
            mine += count
            self.taken += count
            self._by_cluster[cluster] += count
            self._refuse(cluster)

        try:
            yield take
        finally:
            self.taken -= mine
            self._by_cluster[cluster] -= mine
            if not self._by_cluster[cluster]:
                del self._by_cluster[cluster]

    def _refuse(self, cluster: str) -> None:
        half = self._max_bytes // 2
        is_more_than_its_part = self._by_cluster[cluster] * len(self._by_cluster) > half
        if self.taken > self._max_bytes or (self.taken > half and is_more_than_its_part):
            text = f"the answers of all clusters that are received at once take more than {half:,} bytes"
            raise AnswerTooLarge(cluster, text)
