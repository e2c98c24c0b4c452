"""The reason why a store names no fleet: then nobody may write for it. Source: design#fleet-document."""

from __future__ import annotations

from reconciler.model.fleet import Fleet
from reconciler.model.problem import Severity


def why_nameless(fleet: Fleet) -> str:
    """Return why a fleet has no name, with the remedy: the first error of its document, else that it has none.

    A reach of everything is that of the Fleet document, or of a file with unknown content.
    """
    broken = {reach.source.path for reach in fleet.frozen if reach.everything}
    for problem in fleet.problems:
        if problem.severity is Severity.ERROR and problem.source.path in broken:
            return f"the store names no fleet, since its document cannot be read: {problem}"
    return "the store has no document of kind Fleet with a name; 'reconciler init' writes one"
