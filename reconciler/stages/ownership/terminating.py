"""Objects on their way out: deleted by somebody, and still there until their finalizers are done.

Source: Kubernetes: metadata.deletionTimestamp and finalizers. A second deletion says nothing new, and a copy that is
about to go is none that others could rely on.
"""

from __future__ import annotations

from reconciler.model.observation import LiveObject
from reconciler.model.problem import Problem, Severity, Source
from reconciler.model.tree import dig


def is_terminating(live: LiveObject) -> bool:
    """Whether the object was deleted and is not gone yet."""
    return dig(live.body, "metadata", "deletionTimestamp") is not None


def terminating(live: LiveObject, cluster: str, source: Source, *, is_wanted: bool) -> Problem:
    """What keeps it, and what comes after it."""
    places = [dig(live.body, "metadata", "finalizers")]
    if live.identity.kind == "Namespace":
        places.append(dig(live.body, "spec", "finalizers"))
    keepers = [name for names in places if isinstance(names, list) for name in names if isinstance(name, str)]
    waits = f"; it waits for its finalizers {', '.join(keepers)}" if keepers else ""
    after = ", and is made anew when it is gone" if is_wanted else ""
    return Problem(
        source=source,
        code="being-deleted",
        message=f"{live.identity} is being deleted{after}{waits}",
        severity=Severity.WARNING,
        cluster=cluster,
    )
