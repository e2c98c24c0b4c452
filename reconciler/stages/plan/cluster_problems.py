"""What is said of clusters where nothing can be done."""

from __future__ import annotations

from reconciler.model.observation import NotRead, Read
from reconciler.model.plan import Manifest
from reconciler.model.problem import NOWHERE, Problem, Severity


def not_read(member: NotRead) -> Problem:
    """A cluster that could not be read."""
    return Problem(
        source=NOWHERE,
        code="cluster-not-read",
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
