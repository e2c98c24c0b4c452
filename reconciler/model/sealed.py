"""Documents that sops encrypted: what is known of them without a key, and what a key makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from reconciler.model.content import Content
from reconciler.model.tree import Json, Step

Leaf = tuple[tuple[str, ...], str]
"""An encrypted value: the names that lead to it, without places in lists, and its ciphertext.

sops binds a value to these names, so that it says nothing anywhere else.
"""


class Sealed(Struct, frozen=True, kw_only=True):
    """What sops wrote about a file. Everything in it stands in the store for all to read.

    `data`: the whole file, whose values are authenticated together. `age`: recipients with the data key encrypted for
    """

    blob: str
    data: bytes
    is_json: bool
    age: tuple[tuple[str, str], ...]
    others: tuple[str, ...]
    mac: str
    last_modified: str
    mac_only_encrypted: bool = False


class Opened(Struct, frozen=True, kw_only=True):
    """The values of a file, decrypted. They are in memory only, and in no text that is made of this."""

    values: Mapping[Leaf, Json]

    def __repr__(self) -> str:
        """Nothing of the values: a traceback may show this."""
        return f"Opened({len(self.values)} values)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The same for tracebacks that are drawn."""
        return [("values", len(self.values))]


class Revealed(Content, eq=False, array_like=True):
    """The body of an encrypted object with its values in it; `digest` is that of its ciphertext.

    `leaves`: where the decrypted values stand.
    """

    leaves: tuple[tuple[Step, ...], ...] = ()

    def __repr__(self) -> str:
        """Nothing of the values."""
        return f"Revealed({self.known_digest})"
