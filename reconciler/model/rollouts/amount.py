"""An amount of a stage's clusters: a number, or a share."""

from __future__ import annotations

from msgspec import Struct


class Count(Struct, frozen=True, tag="count"):
    """So many clusters."""

    number: int

    def __str__(self) -> str:
        """`3`."""
        return str(self.number)


class Percent(Struct, frozen=True, tag="percent"):
    """A share of the clusters, from 0 to 100."""

    share: int

    def __str__(self) -> str:
        """`25%`."""
        return f"{self.share}%"


Amount = Count | Percent


def number_of(amount: Amount, total: int, *, least: int) -> int:
    """Return the number of clusters out of `total`, at least `least`. Shares are rounded down.

    Source: KubeFleet: maxConcurrency, "rounded down, at least 1".

    >>> number_of(Percent(25), 3, least=1), number_of(Percent(25), 9, least=1), number_of(Count(5), 3, least=1)
    (1, 2, 5)
    """
    number = amount.number if isinstance(amount, Count) else total * amount.share // 100
    return max(number, least)
