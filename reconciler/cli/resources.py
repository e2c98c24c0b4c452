"""KIND/NAME on the command line, as one word or two, with the words beside it."""

from __future__ import annotations

from collections.abc import Sequence

import click


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
