"""What is said of clusters where nothing can be done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.model.observation import ClusterObservation, Member, NotRead, Read
from reconciler.model.plan import Manifest
from reconciler.model.problem import NOWHERE, Problem, Severity

RIGHT_MISSING = "right-missing"
CLUSTER_NOT_READ = "cluster-not-read"


def of_clusters(members: Iterable[Member], observed: Mapping[str, ClusterObservation]) -> Iterator[Problem]:
    """What is said of clusters as a whole: that they could not be read, or what of them for want of a right."""
    for member in members:
        if isinstance(member, NotRead):
            yield not_read(member)
        seen = observed.get(member.name)
        refused = [denied.why for denied in member.denied] if isinstance(member, Read) else []
        yield from (right_missing(member.name, why) for why in (*(seen.denied if seen else ()), *refused))


def right_missing(cluster: str, why: str) -> Problem:
    """What is not known of a cluster since our credentials lack a right. Source: design#missing-right."""
    return Problem(source=NOWHERE, code=RIGHT_MISSING, message=why, severity=Severity.WARNING, cluster=cluster)


def not_read(member: NotRead) -> Problem:
    """A cluster that could not be read."""
    return Problem(
        source=NOWHERE,
        code=CLUSTER_NOT_READ,
        message=f"{member.why}; nothing is changed there",
        severity=Severity.WARNING,
        cluster=member.name,
    )


def not_served(manifest: Manifest, member: Read) -> Problem:
    """A kind that a cluster does not serve, and what may help."""
    other = sorted(gvk.version for gvk in member.served if gvk.group_kind == manifest.gvk.group_kind)
    hint = f"it serves version {', '.join(other)}" if other else "add its CustomResourceDefinition to the store"
    return Problem(
        source=manifest.source,
        code="kind-not-served",
        message=f"{manifest.identity}: {manifest.gvk.api_version} {manifest.gvk.kind} is not served there; {hint}",
        cluster=member.name,
    )
