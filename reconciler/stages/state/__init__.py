"""How each object in each cluster is: in sync, healthy, or why not. All that is told of a fleet is made of it."""

from reconciler.stages.state.holds import HeldBy, held_by, waits_for_person

__all__ = [
    "HeldBy",
    "held_by",
    "waits_for_person",
]
