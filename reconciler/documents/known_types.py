"""Impossible types: a kind or an API version that a completely known group does not have.

Completely known are the groups of our own documents and those of Kubernetes. Taken for a custom resource, a misspelt
`PropogationPolicy` or `apps/v1 Deploymnet` would look like a document that was deleted, so it is an error with a
proposal, and the objects it might mean are frozen. A type of any other group may be a custom resource and is no error.

Source: Kubernetes 1.36 (`scopes.BUILT_IN`); CustomResourceDefinitions: their groups have a dot, and the API server
serves no custom resource under an API version of its own.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from reconciler.api.refs import GVK
from reconciler.documents.document_kinds import (
    BUILT_IN,
    FLAVORS,
    OVERRIDE_KINDS,
    OWN_API_VERSION,
    POLICY_GROUPS,
    PROPAGATION_KINDS,
    refused_kind,
)
from reconciler.documents.names import is_api_version, is_kind
from reconciler.regex import regex

_POLICY_KINDS: Final = PROPAGATION_KINDS | OVERRIDE_KINDS
_OURS: Final[Mapping[tuple[str, str], str]] = {
    **{(api.partition("/")[0], kind): api for api in FLAVORS for kind in sorted(_POLICY_KINDS)},
    ("cluster.karmada.io", "Cluster"): "cluster.karmada.io/v1alpha1",
    ("cluster.open-cluster-management.io", "ManagedCluster"): "cluster.open-cluster-management.io/v1",
    ("multicluster.x-k8s.io", "ClusterProfile"): "multicluster.x-k8s.io/v1alpha1",
    ("fleet.reconciler", "Fleet"): OWN_API_VERSION,
    ("fleet.reconciler", "Rollout"): OWN_API_VERSION,
    ("fleet.reconciler", "Render"): OWN_API_VERSION,
    ("fleet.reconciler", "Promotion"): OWN_API_VERSION,
}
"""(group, kind) of the documents that are read here, with their API version."""

_OUR_GROUPS: Final = POLICY_GROUPS | {"cluster.karmada.io", "fleet.reconciler"}
"""Groups without kinds for distribution."""

_STABLE: Final[Mapping[str, tuple[str, ...]]] = {"autoscaling": ("v2", "v1")}
"""Stable versions of a built-in group, the newest first; of all others it is v1 alone."""

_PRELIMINARY: Final = frozenset({
    "CSIStorageCapacity", "ClusterTrustBundle", "DeviceClass", "DeviceTaintRule", "FlowSchema", "IPAddress",
    "LeaseCandidate", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "PodCertificateRequest",
    "PodGroup", "PriorityLevelConfiguration", "ResourceClaim", "ResourceClaimTemplate", "ResourcePoolStatusRequest",
    "ResourceSlice", "ServiceCIDR", "StorageVersion", "StorageVersionMigration", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "VolumeAttributesClass", "Workload",
})  # fmt: skip
"""Built-in kinds that members may serve in alpha and beta versions; those of every other kind were removed long ago."""

_BUILT_IN_GROUPS: Final = frozenset(group for group, _ in BUILT_IN)
_GONE_GROUPS: Final = frozenset({"extensions"})
_EXPERIMENTAL: Final = (".x-k8s.io", ".sigs.k8s.io")
"""Groups of Kubernetes' own custom resources, some of which were built in later."""
_UNSTABLE_VERSION: Final = regex(r"v\d+(alpha|beta)\d+")
_NEAR: Final = 2
"""So many letters may differ in a word that is taken for another."""


class TypeFault(NamedTuple):
    """The reason why a type is impossible. `field`: apiVersion or kind; `likely`: the probable type, None: unclear.

    `is_ours`: its group, or the probable one, has documents that configure the distribution of others.
    """

    code: str
    message: str
    field: str
    likely: GVK | None
    is_ours: bool


# Thousands of documents are of the same few types.
@lru_cache(maxsize=1024)
def type_fault(api_version: str, kind: str) -> TypeFault | None:
    """Return the fault of a type; None if it is known, or may be a custom resource."""
    group, _, version = api_version.rpartition("/")
    if refused_kind(api_version, kind) or not is_api_version(api_version) or not is_kind(kind):
        return None  # Has an error of its own.
    if (group, kind) in _OURS:
        return None  # Their parsers say what is wrong with them.
    if group in _OUR_GROUPS:
        return _no_such_kind(group, kind, api_version)
    if (group, kind) in BUILT_IN:
        if version in stable_versions(group) or (kind in _PRELIMINARY and _UNSTABLE_VERSION.fullmatch(version)):
            return None
        likely = _type_of(group, kind)
        written = f"{group}/{version}" if group else version
        message = f"{written} is no version of {kind}; did you mean {likely.api_version}?"
        return TypeFault("api-version-unknown", message, "apiVersion", likely, is_ours=False)
    if group in _BUILT_IN_GROUPS:
        is_theirs = version in stable_versions(group) or "." not in group
        near = _nearest(kind, _kinds_of(group))
        return _no_such_kind(group, kind, api_version) if is_theirs or near else None
    # A misspelt ManagedCluster or ClusterProfile. Their groups have other kinds as well, which may be distributed.
    near = _nearest(kind, sorted(known for of, known in _OURS if of == group))
    if near is not None:
        message = f"{group} has no kind {kind}; did you mean {near}?"
        return TypeFault("kind-unknown", message, "kind", _type_of(group, near), is_ours=True)
    if group.endswith(_EXPERIMENTAL):
        return None
    known = [_type_of(of, name) for of, name in (*_OURS, *BUILT_IN) if _is_near(kind, name)]
    alike = tuple(home for home in known if _is_near(group, home.group) or group == f"{home.group}.k8s.io")
    # A CustomResourceDefinition's group is a domain, so one without a dot cannot be one's.
    if not alike and ("." not in group or group in _GONE_GROUPS):
        alike = _homes(kind)
    if not alike:
        return None
    message = f"there is no {kind} in {api_version}; did you mean {_listed(alike)}?"
    return TypeFault("api-version-unknown", message, "apiVersion", alike[0], alike[0].group_kind in _OURS)


def possible_types(api_version: object, kind: object) -> frozenset[tuple[str, str]]:
    """Return the types (apiVersion, kind) that a writer may mean; an empty text stands for any.

    The written type is among them. A part that is no text, or cannot be one, is unknown.
    """
    told_version = api_version if isinstance(api_version, str) and is_api_version(api_version) else ""
    told_kind = kind if isinstance(kind, str) and is_kind(kind) else ""
    written = (told_version, told_kind)
    fault = type_fault(*written) if told_version and told_kind else None
    if fault is None:
        return frozenset({written})
    group = told_version.rpartition("/")[0]
    homes = {*((fault.likely,) if fault.likely is not None else ()), *_homes(told_kind)}
    types = {_written_as(home.group, version, home.kind) for home in homes for version in stable_versions(home.group)}
    # A kind that its group does not have, and that is near to none, may be any of the group.
    return frozenset({written, *(types or {(_written_as(group, v, "")[0], "") for v in stable_versions(group)})})


def _written_as(group: str, version: str, kind: str) -> tuple[str, str]:
    return (f"{group}/{version}" if group else version, kind)


def is_built_in_group(group: str) -> bool:
    """Return whether a group is one of Kubernetes itself."""
    return group in _BUILT_IN_GROUPS


def stable_versions(group: str) -> tuple[str, ...]:
    """The stable versions of a built-in group, the newest first."""
    return _STABLE.get(group, ("v1",))


def _kinds_of(group: str) -> list[str]:
    return sorted(kind for of, kind in _OURS if of == group) or sorted(kind for of, kind in BUILT_IN if of == group)


def _no_such_kind(group: str, kind: str, api_version: str) -> TypeFault:
    """A kind that its group, which is known completely, does not have."""
    is_ours, kinds = any(of == group for of, _ in _OURS), _kinds_of(group)
    home = None
    by_lower = {known.lower(): known for known in kinds}
    for close in difflib.get_close_matches(kind.lower(), by_lower, n=1, cutoff=0.7):
        home = _type_of(group, by_lower[close])
    elsewhere = () if is_ours or home else _homes(kind)
    if elsewhere:
        home = elsewhere[0]
        message = f"{api_version} has no kind {kind}; did you mean {_listed(elsewhere)}?"
        return TypeFault("api-version-unknown", message, "apiVersion", home, is_ours=False)
    has = ", ".join(kinds) if is_ours else f"a kind that Kubernetes has in {group or 'the core group'}"
    hint = f"did you mean {home.kind}?" if home else f"write {has}"
    return TypeFault("kind-unknown", f"{api_version} has no kind {kind}; {hint}", "kind", home, is_ours)


def _homes(kind: str) -> tuple[GVK, ...]:
    """The built-in types of a kind, those in the groups of workloads first."""
    groups = sorted((group for group, known in BUILT_IN if known == kind), key=lambda group: ("." in group, group))
    return tuple(_type_of(group, kind) for group in groups)


def _type_of(group: str, kind: str) -> GVK:
    ours = _OURS.get((group, kind))
    return GVK.parse(ours, kind) if ours else GVK(group, stable_versions(group)[0], kind)


def _listed(types: Iterable[GVK]) -> str:
    return " or ".join(f"{known.api_version} {known.kind}" for known in types)


def _nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the one that differs from the word by few letters, None if there is none."""
    return next((other for other in known if _is_near(word, other)), None)


def _is_near(word: str, other: str) -> bool:
    return _distance(word.lower(), other.lower()) <= _NEAR


def _distance(one: str, other: str) -> int:
    """Return the edit distance, with swaps of neighbours (optimal string alignment)."""
    if abs(len(one) - len(other)) > _NEAR:
        return _NEAR + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, there in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != there))
            if earlier and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
