"""Names of things: kinds, objects, policies. Tuples, since hundreds of thousands of them are hashed a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple


class GVK(NamedTuple):
    """Group, version and kind. The core group is the empty string."""

    group: str
    version: str
    kind: str

    @classmethod
    def parse(cls, api_version: str, kind: str) -> GVK:
        """From `apps/v1` and `Deployment`; `v1` belongs to the core group."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def shown(self) -> str:
        """`Deployment (apps/v1)`."""
        return f"{self.kind} ({self.api_version})"

    @property
    def group_kind(self) -> tuple[str, str]:
        """Return the part that identity is made of: a change of version is an update of the same object."""
        return (self.group, self.kind)


class Identity(NamedTuple):
    """The key of an object in a cluster. The namespace of a cluster-scoped object is empty."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`Deployment demo/web`, `Namespace demo`: the way a subject is written everywhere."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


Copy = tuple[str, Identity]
"""An object in a cluster."""


class ResourceRef(NamedTuple):
    """An object as the machine formats name it: identity plus the version that was written."""

    gvk: GVK
    namespace: str
    name: str

    @property
    def identity(self) -> Identity:
        """The object without its version."""
        return Identity(self.gvk.group, self.gvk.kind, self.namespace, self.name)

    def __str__(self) -> str:
        """As the identity is written."""
        return str(self.identity)


DIGEST: Final = "sha256:"
"""Before the 64 hex digits of an artifact's digest, which is the revision of a store in a registry."""
_DIGEST_DIGITS: Final = 64


def short_revision(revision: str) -> str:
    """Return twelve characters of a commit id or a digest, as stores and people name it; other names as they are.

    >>> short_revision("dir:0123456789abcdef0123456789abcdef"), short_revision("main"), short_revision("ab" * 32)
    ('dir:0123456789ab', 'main', 'sha256:abababababab')
    """
    prefix, colon, name = revision.rpartition(":")
    is_hex = len(name) >= 32 and all(char in "0123456789abcdef" for char in name)
    return f"{DIGEST if is_digest(revision) else prefix + colon}{name[:12]}" if is_hex else revision


def is_digest(revision: str) -> bool:
    """Return whether a revision is the digest of an artifact, without `sha256:`."""
    return len(revision) == _DIGEST_DIGITS


def is_named_by(revision: str, text: str) -> bool:
    """Return whether a text is the beginning of a commit id or, with or without `sha256:`, of a digest.

    >>> is_named_by("ab" * 32, "sha256:abab"), is_named_by("ab" * 20, "sha256:abab"), is_named_by("ab" * 20, "abab")
    (True, False, True)
    """
    digits = text.removeprefix(DIGEST)
    return revision.startswith(digits) and (digits == text or is_digest(revision))


def listed(names: Sequence[object], at_most: int) -> str:
    """`a, b and 3 more`: the first names."""
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(map(str, names[:at_most])) + more


class CommitWords(NamedTuple):
    """Author, subject and time (RFC 3339 in UTC) of a commit; texts are free of control characters."""

    author: str
    subject: str
    time: str


class PolicyRef(NamedTuple):
    """One of the four policy kinds by name. The namespace of a cluster policy is empty."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`PropagationPolicy demo/web`, `ClusterPropagationPolicy base`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"
