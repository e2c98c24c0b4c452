"""KIND/NAME on the command line, as one word or two, with the words beside it.

The person who runs a command.

Orders go to the leading process: a standby's are read by nobody.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.journal.recorded_orders import OrderBook


def resource_and_store(words: Sequence[str]) -> tuple[str, str]:
    """`KIND/NAME [STORE]` or `KIND NAME [STORE]` as KIND/NAME and the store; empty: none was named.

    Raises:
        UsageError: no resource is named, or more than a resource and a store are.
    """
    found = resource_in(words)
    rest = words[1 if "/" in words[0] else 2 :]
    if len(rest) > 1:
        raise click.UsageError(f"one KIND/NAME and one STORE are taken; {' '.join(rest[1:])} is too much")
    return found, rest[0] if rest else ""


def resource_in(words: Sequence[str]) -> str:
    """Return KIND/NAME from one word or two.

    Raises:
        UsageError: no resource is named, or only a kind.
    """
    if not words:
        raise click.UsageError("name a resource: KIND/NAME, for example deploy/web")
    if "/" in words[0]:
        return words[0]
    if len(words) == 1:
        raise click.UsageError(f"{words[0]} is a kind, or a name without one; write KIND/NAME, for example deploy/web")
    return f"{words[0]}/{words[1]}"


def person(environ: Mapping[str, str] = os.environ) -> str:
    """Return user and host of the person, and the user that sudo runs as: `li@host as root`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        user = "unknown"
    behind, host = environ.get("SUDO_USER", ""), socket.gethostname()
    # A colleague cannot ask root.
    return f"{behind}@{host} as {user}" if behind not in ("", user) else f"{user}@{host}"


@contextmanager
def orders_of(path: Path) -> Iterator[OrderBook]:
    """Open the orders of a journal, to be added to.

    Raises:
        ConfigurationError: its process stands by; another one has to be told.
    """
    from reconciler.journal.journal_lock import holder
    from reconciler.journal.sqlite_journal import Journal

    with Journal.open_beside(path) as book:
        if book.led_by and holder(path):
            raise ConfigurationError(
                f"{path}: the process of this journal stands by, and {book.led_by} leads: give the order there; "
                "it goes from one leader to the next"
            )
        yield book
