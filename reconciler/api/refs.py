"""Names of things: kinds, objects, policies, also as people write them: `deploy/web`, `deployments.apps/web`.

Tuples, since hundreds of thousands of them are hashed a round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    def text(self) -> str:
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

    @property
    def is_cluster_scoped(self) -> bool:
        """Return whether it is a cluster policy."""
        return not self.namespace


SHORT_NAMES = {
    "btlspolicy": "BackendTLSPolicy",
    "cm": "ConfigMap",
    "crd": "CustomResourceDefinition",
    "cj": "CronJob",
    "deploy": "Deployment",
    "ds": "DaemonSet",
    "gc": "GatewayClass",
    "gtw": "Gateway",
    "hpa": "HorizontalPodAutoscaler",
    "ing": "Ingress",
    "limits": "LimitRange",
    "lset": "ListenerSet",
    "ns": "Namespace",
    "pdb": "PodDisruptionBudget",
    "po": "Pod",
    "pv": "PersistentVolume",
    "pvc": "PersistentVolumeClaim",
    "quota": "ResourceQuota",
    "refgrant": "ReferenceGrant",
    "rs": "ReplicaSet",
    "sa": "ServiceAccount",
    "sc": "StorageClass",
    "sts": "StatefulSet",
    "svc": "Service",
}
"""The short names of Kubernetes and of the Gateway API; no API server is asked for them."""


def called(identities: Iterable[Identity], resource: str, namespace: str | None) -> tuple[Identity, ...]:
    """Those that `KIND/NAME` or `KIND NAME` means, in all namespaces unless one is given, sorted."""
    return tuple(
        sorted(
            identity
            for identity in identities
            if is_called(identity.kind, identity.group, identity.name, resource)
            and namespace in (None, identity.namespace)
        )
    )


def is_called(kind: str, group: str, name: str, resource: str) -> bool:
    """Return whether `KIND/NAME` names it; the kind may be a short name, a plural, and have its group after a dot."""
    named, _, wanted_name = resource.replace(" ", "/", 1).partition("/")
    return name == wanted_name and is_kind(kind, group, named)


def is_kind(kind: str, group: str, named: str) -> bool:
    """Return whether a word names a kind: a short name, a plural, with its group after a dot.

    >>> is_kind("Deployment", "apps", "deploy"), is_kind("Ingress", "networking.k8s.io", "ingresses.networking")
    (True, True)
    """
    named, _, wanted_group = named.partition(".")
    wanted, kind = SHORT_NAMES.get(named.lower(), named).lower(), kind.lower()
    plural = f"{kind}es" if kind.endswith(("s", "x", "ch")) else f"{kind[:-1]}ies" if kind.endswith("y") else kind
    return wanted in (kind, f"{kind}s", plural) and group.startswith(wanted_group)


_COMPARED_MAX = 1_000
"""Comparing two names takes up to 0.1 ms."""


def close_to(identities: Iterable[Identity], resource: str) -> tuple[str, ...]:
    """Return those with a name similar to the given one, as KIND/NAME -n NAMESPACE; at most three.

    Of very many names only those that begin alike are compared.
    """
    known = sorted(identities)
    kind, _, name = resource.partition("/")
    if swapped := called(known, f"{name}/{kind}", None):
        return tuple(map(_kind_and_name, swapped[:3]))
    import difflib  # noqa: PLC0415 - completing a word need not load it

    names = sorted({identity.name for identity in known})
    if len(names) > _COMPARED_MAX:
        names = [each for each in names if each[:2] == name[:2]][:_COMPARED_MAX]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    return tuple(map(_kind_and_name, [identity for identity in known if identity.name in close][:3]))


def _kind_and_name(identity: Identity) -> str:
    namespace = f" -n {identity.namespace}" if identity.namespace else ""
    return f"{identity.kind}/{identity.name}{namespace}"
