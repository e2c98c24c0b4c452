"""The content of a template or manifest; each form is made on first use.

Half of the templates of a store match no policy: nobody reads their bodies, and nobody asks for a digest unless it
compares with an earlier round. The plain text of an encrypted template is such a form too: it exists once a key
decrypted it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

from reconciler.api.demand import TemplateFacts
from reconciler.api.tree import Json, JsonObject, Step, digest_of

_NOTHING: Final = Raw()
_unpacked = msgspec.msgpack.Decoder(dict).decode


CIPHERTEXT_MARK: Final = "ENC[AES256_GCM,"
"""Prefix of every value that sops encrypted."""

Leaf = tuple[tuple[str, ...], str]
"""An encrypted value: its path of names, without places in lists, and its ciphertext.

sops binds a value to these names, so that it is invalid anywhere else."""


class KeyGroup(Struct, frozen=True, kw_only=True):
    """Keys each of which alone yields the data key of a file, or a share of it.

    `age`: recipients, each with its encrypted data key. `others`: keys of other kinds, in words.
    """

    age: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()


class Sealed(Struct, frozen=True, kw_only=True):
    """The metadata of sops in a file. Everything in it is public in the store.

    `data`: the whole file, whose values are authenticated together. `groups`: if there are several, each gives a share
    of the data key, and `threshold` of them give all of it.
    """

    blob: str
    data: bytes
    is_json: bool
    groups: tuple[KeyGroup, ...]
    threshold: int = 1
    mac: str
    last_modified: str
    mac_only_encrypted: bool = False

    @property
    def recipients(self) -> tuple[str, ...]:
        """Every key that the file is encrypted for, in words."""
        return tuple([name for group in self.groups for name in (*[one for one, _ in group.age], *group.others)])

    @property
    def has_others(self) -> bool:
        """Return whether a key of another kind than age is among them."""
        return any(group.others for group in self.groups)


class Opened(Struct, frozen=True, kw_only=True):
    """The values of a file, decrypted. They are in memory only, and in no text made of this."""

    values: Mapping[Leaf, Json]

    def __repr__(self) -> str:
        """Nothing of the values: a traceback may show this."""
        return f"Opened({len(self.values)} values)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The same for tracebacks that are drawn."""
        return [("values", len(self.values))]


class Content(Struct, eq=False, array_like=True):
    """The body of an object: a tree, or MessagePack of a tree that is known to be valid.

    It never changes, so that two threads that make a form at the same time do no harm.
    """

    packed: Raw = field(default_factory=Raw)
    known_labels: Mapping[str, str] | None = None
    """metadata.labels, where they are known without the tree."""
    known_annotations: Mapping[str, str] | None = None
    """metadata.annotations, likewise."""
    known_digest: str = ""
    tree: JsonObject | None = None
    facts: TemplateFacts | None = None
    """Facts that the interpreter of a built-in or gang kind has read from it, once asked."""

    def __eq__(self, other: object) -> bool:
        """Return whether the bodies are equal; a body alone may stand for its content."""
        return self.body() == (other.body() if isinstance(other, Content) else other)

    __hash__ = None  # type: ignore[assignment]  # A tree has none either.

    def body(self) -> JsonObject:
        """The tree."""
        if self.tree is None:
            packed = self.packed
            # Nothing is left of it when another thread was quicker, and has put the tree in its place before.
            self.tree = self.tree if packed == _NOTHING else _unpacked(packed)
            self.packed = _NOTHING
        assert self.tree is not None, "content has a tree, or is packed"
        return self.tree

    def digest(self) -> str:
        """The digest of the tree."""
        if not self.known_digest:
            self.known_digest = digest_of(self.body())
        return self.known_digest

    def labels(self) -> Mapping[str, str]:
        """metadata.labels, empty when there are none."""
        if self.known_labels is None:
            self.known_labels = mapping_in_metadata(self.body(), "labels")
        return self.known_labels

    def annotations(self) -> Mapping[str, str]:
        """metadata.annotations, empty when there are none."""
        if self.known_annotations is None:
            self.known_annotations = mapping_in_metadata(self.body(), "annotations")
        return self.known_annotations


class Unmade(Content, eq=False, array_like=True):
    """Lazy content, made when the body is first read: equal each time.

    Most of a fleet is scheduled and neither printed nor compared, for example if one cluster is shown or two revisions.
    """

    make: Callable[[], JsonObject] | None = None

    def body(self) -> JsonObject:
        """The tree, made now if need be."""
        if self.tree is None:
            make = self.make
            # Nothing makes it any more when another thread was quicker, and has put the tree in its place before.
            self.tree = self.tree if make is None else make()
            self.make = None
        assert self.tree is not None, "content is made of something"
        return self.tree


class Revealed(Content, eq=False, array_like=True):
    """The body of an encrypted object with its values in it; `digest` is that of its ciphertext.

    `leaves`: the paths of decrypted values.
    """

    leaves: tuple[tuple[Step, ...], ...] = ()

    def __repr__(self) -> str:
        """Nothing of the values."""
        return f"Revealed({self.known_digest})"


def mapping_in_metadata(body: JsonObject, name: str) -> Mapping[str, str]:
    """Return a mapping such as metadata.labels, empty if missing."""
    # By hand: every template is asked several times a round.
    metadata = body.get("metadata")
    found = metadata.get(name) if isinstance(metadata, (dict, Mapping)) else None
    return found if isinstance(found, (dict, Mapping)) else {}
