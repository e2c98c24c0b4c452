"""The judge of moves: what serves of a workload is never less than it was, less what failed and what a person took.

It counts one number over all clusters. What is reached counts up to what a person asks for: more than that, which a
move has for a while, may go again. Source: docs/concepts/moves.md.
"""

from __future__ import annotations


class Floor:
    """The number of replicas that must serve now."""

    def __init__(self) -> None:
        self.replicas = 0
        self._asked = 0

    def ask_for(self, replicas: int) -> None:
        """A person asks for so many replicas in all; fewer than before are that person's own loss."""
        self.replicas = max(0, self.replicas - max(0, self._asked - replicas))
        self._asked = replicas
        self.replicas = min(self.replicas, replicas)

    def count(self, more: int) -> None:
        """So many more serve by themselves; fewer have failed."""
        self.replicas = max(0, min(self.replicas + more, self._asked))

    def check(self, available: int, what: str) -> None:
        """Judge what serves after somebody may have taken something away.

        Raises:
            AssertionError: it is too little.
        """
        assert available >= self.replicas, f"{available} serve of {self.replicas} that have to: {what}"
