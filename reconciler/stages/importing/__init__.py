"""Live objects to templates, with policies that adopt them."""

from reconciler.stages.importing.several import OBVIOUS_GROUPS, Imported, imported, policies_of
from reconciler.stages.importing.template import reason_to_skip

__all__ = [
    "OBVIOUS_GROUPS",
    "Imported",
    "imported",
    "policies_of",
    "reason_to_skip",
]
