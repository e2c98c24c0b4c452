"""Why a store names no fleet: nobody may write for one that it cannot name. Source: design#fleet-document."""

from __future__ import annotations

from reconciler.model.fleet import Fleet
from reconciler.model.problem import Severity


def why_nameless(fleet: Fleet) -> str:
    """Return why a fleet has no name, and what to do: the first error where its document may be, else that it has none.

    What concerns everything is the Fleet document, or a file of which nobody knows what is in it.
    """
    broken = {reach.source.path for reach in fleet.frozen if reach.everything}
    for problem in fleet.problems:
        if problem.severity is Severity.ERROR and problem.source.path in broken:
            return f"the store names no fleet, since its document cannot be read: {problem}"
    return "the store has no document of kind Fleet with a name; 'reconciler init' writes one"
