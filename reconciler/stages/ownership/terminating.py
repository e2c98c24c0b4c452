"""Terminating objects: deleted, and still there until their finalizers are done.

Source: Kubernetes: metadata.deletionTimestamp and finalizers. A second deletion has no effect, and others cannot rely
on such a copy.
"""

from __future__ import annotations

from reconciler.model.observation import LiveObject
from reconciler.model.problem import Problem, Severity, Source
from reconciler.model.tree import dig


def is_terminating(live: LiveObject) -> bool:
    """Return whether the object was deleted and is not gone yet."""
    return dig(live.body, "metadata", "deletionTimestamp") is not None


_OWN_DOMAIN = "kubernetes.io/"
_OWN = frozenset(
    {
        *("kubernetes", "foregroundDeletion", "orphan"),
        *("batch.kubernetes.io/job-tracking", "customresourcecleanup.apiextensions.k8s.io"),
    }
)


def finalizers_of(live: LiveObject) -> tuple[str, ...]:
    """Return the finalizers that keep an object once it is deleted, for a Namespace those of its spec too."""
    places = [dig(live.body, "metadata", "finalizers")]
    if live.identity.kind == "Namespace":
        places.append(dig(live.body, "spec", "finalizers"))
    return tuple(name for names in places if isinstance(names, list) for name in names if isinstance(name, str))


def finalizers_of_others(live: LiveObject) -> tuple[str, ...]:
    """Return the finalizers that no part of Kubernetes takes off: an operator has to."""
    return tuple(name for name in finalizers_of(live) if name not in _OWN and not name.startswith(_OWN_DOMAIN))


def terminating(live: LiveObject, cluster: str, source: Source, *, is_wanted: bool) -> Problem:
    """Return the problem of a terminating object: its finalizers, and its successor."""
    keepers = finalizers_of(live)
    waits = f"; it waits for its finalizers {', '.join(keepers)}" if keepers else ""
    after = ", and is made anew when it is gone" if is_wanted else ""
    return Problem(
        source=source,
        code="being-deleted",
        message=f"{live.identity} is being deleted{after}{waits}",
        severity=Severity.WARNING,
        cluster=cluster,
    )
