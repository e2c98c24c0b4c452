"""Secrets that the store has and that an operator makes, too."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.fleet import Fleet
from reconciler.model.problem import Problem, Severity
from reconciler.stages.dependencies import Makers


def lint_makers(fleet: Fleet, makers: Makers) -> Iterator[Problem]:
    """A warning at each template whose operator writes a whole object that the store has as well."""
    for made, found in makers.of.items():
        if made not in fleet.templates:
            continue
        for maker in found:
            if maker.is_whole:
                message = (
                    f"{maker.identity} makes {made}, which is in the store as well, and the two undo each other's "
                    "changes; take one of them out"
                )
                source = fleet.templates[maker.identity].source
                yield Problem(source=source, code="secret-made-twice", message=message, severity=Severity.WARNING)
