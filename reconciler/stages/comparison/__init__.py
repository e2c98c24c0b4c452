"""The comparison of a live copy with its desired state: in sync, changed, not ours, available."""

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
