"""The problem of an object that cannot be rendered or compared for a fault of the program."""

from __future__ import annotations

from reconciler.containment import internal_error
from reconciler.model.fleet import Fleet
from reconciler.model.problem import NOWHERE, Problem
from reconciler.model.refs import Identity


def fault_of(fleet: Fleet, identity: Identity, fault: Exception | None, cluster: str = "") -> Problem:
    """The problem, at the template if there is one. `cluster` is empty when it concerns all of them."""
    assert fault is not None, "without a fault there is nothing to tell"
    template = fleet.templates.get(identity)
    source = template.source if template is not None else NOWHERE
    consequence = "it is left as it is there" if cluster else "it is left as it is in the clusters"
    return internal_error(fault, source, str(identity), consequence, cluster)
