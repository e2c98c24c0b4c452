"""Problems of clusters, and of kinds in them, that block changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.model.observation import ClusterObservation, Member, NotRead, Read, Unlisted, UnlistedCause
from reconciler.model.plan import Manifest
from reconciler.model.problem import NOWHERE, Problem, Severity

RIGHT_MISSING = "right-missing"
KIND_NOT_READ = "kind-not-read"
CLUSTER_NOT_READ = "cluster-not-read"


def of_clusters(members: Iterable[Member], observed: Mapping[str, ClusterObservation]) -> Iterator[Problem]:
    """Yield the problems of clusters as a whole: unreachable, or with kinds that could not be read."""
    for member in members:
        if isinstance(member, NotRead):
            yield not_read(member)
        seen = observed.get(member.name)
        listed = member.unlisted if isinstance(member, Read) else ()
        yield from (not_listed(member.name, found) for found in (*(seen.unlisted if seen else ()), *listed))


def not_listed(cluster: str, found: Unlisted) -> Problem:
    """Return the problem of a kind that cannot be listed.

    Source: design#missing-right; design#kind-not-read.
    """
    code = RIGHT_MISSING if found.cause is UnlistedCause.RIGHT_MISSING else KIND_NOT_READ
    return Problem(source=NOWHERE, code=code, message=found.why, severity=Severity.WARNING, cluster=cluster)


def not_read(member: NotRead) -> Problem:
    """A cluster that could not be read."""
    return Problem(
        source=NOWHERE,
        code=CLUSTER_NOT_READ,
        message=f"{member.why}; nothing is changed there",
        severity=Severity.WARNING,
        cluster=member.name,
    )


def of_other_scope(manifest: Manifest, member: Read) -> Problem:
    """A kind that a cluster serves in namespaces, and the store has in none; or the other way round."""
    is_namespaced = member.served[manifest.gvk]
    served, wanted = ("in namespaces", "in none") if is_namespaced else ("without namespaces", "in one")
    return Problem(
        source=manifest.source,
        code="scope-differs",
        message=f"{manifest.identity}: {manifest.gvk.shown} is served {served} there, and the store has it {wanted}",
        cluster=member.name,
    )


def not_served(manifest: Manifest, member: Read) -> Problem:
    """Return the problem of a kind that a cluster does not serve, with a hint."""
    other = sorted(gvk.version for gvk in member.served if gvk.group_kind == manifest.gvk.group_kind)
    hint = f"it serves version {', '.join(other)}" if other else "add its CustomResourceDefinition to the store"
    return Problem(
        source=manifest.source,
        code="kind-not-served",
        message=f"{manifest.identity}: {manifest.gvk.api_version} {manifest.gvk.kind} is not served there; {hint}",
        cluster=member.name,
    )
