"""What a template asks of clusters and refers to, worked out once for each body and kept with it between runs.

Only what the interpreters of this package say is kept: others may come and go, and say something else tomorrow.
"""

from __future__ import annotations

from typing import Final

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.registry import BUILT_IN_KINDS, GENERIC, Registry
from reconciler.model.demand import Demand, DependencyRef, Facts
from reconciler.model.fleet import Template

_NOTHING: Final = Facts(demand=GENERIC.demand({}))
"""Of what has neither replicas nor references, and of kinds that nobody described."""


def facts_of(template: Template, interpreters: Registry) -> Facts:
    """What the interpreter of its kind reads out of a template."""
    kind = template.identity[:2]
    interpreter = interpreters.of(*kind)
    if interpreter.demand is GENERIC.demand and interpreter.dependencies is GENERIC.dependencies:
        return _NOTHING
    content = template.content if BUILT_IN_KINDS.by_kind.get(kind) is interpreter else None
    if content is None:
        return _read(template, interpreter)
    if content.facts is None:
        content.facts = _read(template, interpreter)
    return content.facts


def demand_of(template: Template, interpreters: Registry) -> Demand:
    """How many replicas of which shape it asks for."""
    return facts_of(template, interpreters).demand


def references_of(template: Template, interpreters: Registry) -> tuple[DependencyRef, ...]:
    """What it refers to, and needs to run."""
    return facts_of(template, interpreters).references


def _read(template: Template, interpreter: Interpreter) -> Facts:
    body = template.body
    return Facts(interpreter.demand(body), interpreter.dependencies(body))
