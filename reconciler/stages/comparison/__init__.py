"""What a copy in a cluster is beside what is wanted of it: in sync, to be changed, not ours, serving."""

from reconciler.stages.comparison.acknowledged import altered_fields
from reconciler.stages.comparison.compare import Comparison, Stance, compare, overall_cause
from reconciler.stages.comparison.replacement import as_replacement
from reconciler.stages.comparison.scene import Scene
from reconciler.stages.comparison.serving import Copies
from reconciler.stages.comparison.standings import Seen, Standings
from reconciler.stages.comparison.writable import why_not_written

__all__ = [
    "Comparison",
    "Copies",
    "Scene",
    "Seen",
    "Stance",
    "Standings",
    "altered_fields",
    "as_replacement",
    "compare",
    "overall_cause",
    "why_not_written",
]
