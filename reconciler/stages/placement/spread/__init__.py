"""Which clusters satisfy the spread constraints of a placement."""

from reconciler.stages.placement.spread.constraints import Selection, keeps_to_maximum, ranked_by_room, spread_applies
from reconciler.stages.placement.spread.selection import select

__all__ = [
    "Selection",
    "keeps_to_maximum",
    "ranked_by_room",
    "select",
    "spread_applies",
]
