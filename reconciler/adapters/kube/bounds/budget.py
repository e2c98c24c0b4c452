"""How much one cluster may make us hold at once."""

from __future__ import annotations

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
