"""JSON trees: the bodies of Kubernetes objects. Immutable by convention after parsing; changes copy along the path.

The annotation `JsonObject` is a read-only mapping so that the type checker finds a write into a shared tree. Forms of a
content are made on first use: half of the templates of a store match no policy, and nobody reads their bodies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import orjson
from msgspec import Raw, Struct, field

from reconciler.api.demand import TemplateFacts

Json: TypeAlias = Any
"""None, bool, int, float, str, list or dict with string keys, all the way down."""

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object, never written into."""

Step: TypeAlias = str | int
"""One step into a tree: a key of a mapping or an index of a list."""


def dig(tree: Json, *steps: Step) -> Json:
    """The subtree at the steps, or None where a step is missing or meets another type.

    >>> dig({"spec": {"replicas": 2}}, "spec", "replicas")
    2
    """
    for step in steps:
        # By class first: instance checks, those against abstract classes above all, cost more than the rest.
        if tree.__class__ is dict:
            tree = tree.get(step)
        elif isinstance(step, str):
            if not isinstance(tree, Mapping):
                return None
            tree = tree.get(step)
        else:
            if not isinstance(tree, (list, Sequence)) or isinstance(tree, str) or not -len(tree) <= step < len(tree):
                return None
            tree = tree[step]
    return tree


def with_value(tree: JsonObject, steps: tuple[str, ...], value: Json) -> dict[str, Any]:
    """A tree with `value` at the mapping steps; every other subtree is shared with the original.

    A missing or non-mapping parent becomes a mapping.
    """
    assert steps, "with_value needs at least one step"
    top = here = {**tree}
    for step in steps[:-1]:
        below = here.get(step)
        below = here[step] = {**below} if isinstance(below, (dict, Mapping)) else {}
        here = below
    here[steps[-1]] = value
    return top


def without(tree: JsonObject, steps: tuple[str, ...]) -> JsonObject:
    """A tree without the key at the mapping steps; the tree itself when there is no such key."""
    assert steps, "without needs at least one step"
    head, rest = steps[0], steps[1:]
    if head not in tree:
        return tree
    if not rest:
        return {key: value for key, value in tree.items() if key != head}
    below = tree[head]
    if not isinstance(below, (dict, Mapping)):
        return tree
    pruned = without(below, rest)
    return tree if pruned is below else {**tree, head: pruned}


def with_leaf(tree: Json, steps: tuple[Step, ...], change: Callable[[Json], Json]) -> Json:
    """The tree with one value changed; the tree itself where no such value is."""
    if not steps:
        return tree if isinstance(tree, (Mapping, list)) else change(tree)
    head, rest = steps[0], steps[1:]
    if isinstance(tree, Mapping) and head in tree:
        return {**tree, head: with_leaf(tree[head], rest, change)}
    if isinstance(tree, list) and isinstance(head, int) and head < len(tree):
        return [with_leaf(below, rest, change) if index == head else below for index, below in enumerate(tree)]
    return tree


def canonical_bytes(tree: Json) -> bytes:
    """The tree as JSON with sorted keys: equal trees give equal bytes."""
    try:
        return orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # An integer beyond 64 bits or half a surrogate pair; the standard library writes both.
        return json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()


def is_same(one: Json, other: Json) -> bool:
    """Return whether two trees are equal, types included; the order of keys is ignored."""
    return canonical_bytes(one) == canonical_bytes(other)


def digest_of(tree: Json) -> str:
    """A 128-bit digest of the tree as 32 hex characters, independent of key order."""
    return digest_of_bytes(canonical_bytes(tree))


def digest_of_bytes(data: bytes) -> str:
    """A 128-bit digest of bytes as 32 hex characters."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


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


class SopsMetadata(Struct, frozen=True, kw_only=True):
    """The metadata of sops in a file. Everything in it is public in the store.

    `data`: the whole file, whose values are authenticated together. `groups`: if there are several, each gives a share
    of the data key, and `threshold` of them give all of it. `rule`: the field that says which values are encrypted, and
    its value; empty: the default of sops.
    """

    blob: str
    data: bytes
    is_json: bool
    groups: tuple[KeyGroup, ...]
    threshold: int = 1
    mac: str
    last_modified: str
    mac_only_encrypted: bool = False
    rule: str = ""

    @property
    def recipients(self) -> tuple[str, ...]:
        """Every key that the file is encrypted for, in words."""
        return tuple([name for group in self.groups for name in (*[one for one, _ in group.age], *group.others)])

    @property
    def has_others(self) -> bool:
        """Return whether a key of another kind than age is among them."""
        return any(group.others for group in self.groups)


class DecryptedValues(Struct, frozen=True, kw_only=True):
    """The values of a file, decrypted. They are in memory only, and in no text made of this."""

    values: Mapping[Leaf, Json]

    def __repr__(self) -> str:
        """Nothing of the values: a traceback may show this."""
        return f"DecryptedValues({len(self.values)} values)"

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


class ContentWithSecrets(Content, eq=False, array_like=True):
    """The body of an encrypted object with its values in it; `digest` is that of its ciphertext.

    `leaves`: the paths of decrypted values.
    """

    leaves: tuple[tuple[Step, ...], ...] = ()

    def __repr__(self) -> str:
        """Nothing of the values."""
        return f"ContentWithSecrets({self.known_digest})"


def mapping_in_metadata(body: JsonObject, name: str) -> Mapping[str, str]:
    """Return a mapping such as metadata.labels, empty if missing."""
    # By hand: every template is asked several times a round.
    metadata = body.get("metadata")
    value = metadata.get(name) if isinstance(metadata, (dict, Mapping)) else None
    return value if isinstance(value, (dict, Mapping)) else {}
