"""Orders go to the leading process: a standby's are read by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.adapters.journal.journal import OrderBook


@contextmanager
def orders_of(path: Path) -> Iterator[OrderBook]:
    """Open the orders of a journal, to be added to.

    Raises:
        ConfigurationError: its process stands by; another one has to be told.
    """
    from reconciler.adapters.journal.journal import Journal
    from reconciler.adapters.journal.lock import holder

    with Journal.open_beside(path) as book:
        if book.led_by and holder(path):
            raise ConfigurationError(
                f"{path}: the process of this journal stands by, and {book.led_by} leads: give the order there; "
                "it goes from one leader to the next"
            )
        yield book
