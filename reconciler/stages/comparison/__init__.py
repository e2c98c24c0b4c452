"""What a copy in a cluster is beside what is wanted of it: in sync, to be changed, not ours, serving."""

from reconciler.stages.comparison.compare import Comparer, Comparison, overall_cause
from reconciler.stages.comparison.replacement import as_replacement
from reconciler.stages.comparison.serving import Copies
from reconciler.stages.comparison.standings import Seen, Standings

__all__ = [
    "Comparer",
    "Comparison",
    "Copies",
    "Seen",
    "Standings",
    "as_replacement",
    "overall_cause",
]
