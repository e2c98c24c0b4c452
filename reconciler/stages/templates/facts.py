"""What a template asks of clusters and refers to, worked out once for each body and kept with it between runs.

Only what the interpreters of this package say is kept: others may come and go, and say something else tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.containment import contained
from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.registry import BUILT_IN_KINDS, GENERIC, Registry
from reconciler.model.content import Content
from reconciler.model.demand import Demand, DependencyRef, Facts, Made
from reconciler.model.fleet import Template
from reconciler.model.refs import Identity

_NOTHING: Final = Facts(demand=GENERIC.demand({}))
"""Of what has neither replicas nor references, and of kinds that nobody described."""


def facts_of(template: Template, interpreters: Registry) -> Facts:
    """What the interpreter of its kind reads out of a template."""
    interpreter = interpreters.of(*template.identity[:2])
    if interpreter.demand is GENERIC.demand and interpreter.dependencies is GENERIC.dependencies:
        return _NOTHING
    content = _keeper(template, interpreter)
    if content is None:
        return _read(template, interpreter)
    if content.facts is None:
        # All of it is asked before any is kept: whoever finds facts may rely on it that nothing raises.
        _ask_the_rest(template, interpreter)
        content.facts = _read(template, interpreter)
    return content.facts


def demand_of(template: Template, interpreters: Registry) -> Demand:
    """How many replicas of which shape it asks for."""
    return facts_of(template, interpreters).demand


def references_of(template: Template, interpreters: Registry) -> tuple[DependencyRef, ...]:
    """What it refers to, and needs to run."""
    return facts_of(template, interpreters).references


def images_of(template: Template, interpreters: Registry) -> tuple[str, ...] | None:
    """The images of its pods; None where one of them stands outside of `spec`, and of a kind that nobody described.

    What an installed interpreter raises is raised.
    """
    interpreter = interpreters.of(*template.identity[:2])
    if interpreter is GENERIC:
        return None
    content = _keeper(template, interpreter)
    if content is not None and content.facts is not None:
        return content.facts.images
    return _images(template, interpreter)


def is_built_in(kind: tuple[str, str], interpreters: Registry) -> bool:
    """Whether this package's own interpreter says what a kind is."""
    return interpreters.of(*kind) is BUILT_IN_KINDS.of(*kind)


def check_facts(template: Template, interpreters: Registry) -> None:
    """Read all that a decision asks the interpreter of a kind, so that one that raises does so here."""
    interpreter = interpreters.of(*template.identity[:2])
    if interpreter is GENERIC:
        return
    content = _keeper(template, interpreter)
    if content is not None and content.facts is not None:
        return
    facts_of(template, interpreters)
    _ask_the_rest(template, interpreter)


def check_all_facts(templates: Iterable[Template], interpreters: Registry) -> None:
    """The same of many, of which nearly all have been read before."""
    described: dict[tuple[str, str], bool | None] = {}
    for template in templates:
        kind = template.identity[:2]
        keeps = described.get(kind, False)
        if keeps is False and kind not in described:
            interpreter = interpreters.of(*kind)
            keeps = None if interpreter is GENERIC else is_built_in(kind, interpreters)
            described[kind] = keeps
        if keeps is None or (keeps and (content := template.content) is not None and content.facts is not None):
            continue
        check_facts(template, interpreters)


def _keeper(template: Template, interpreter: Interpreter) -> Content | None:
    """What keeps the facts of a template; None: nothing may, since somebody else's interpreter says them."""
    return template.content if BUILT_IN_KINDS.by_kind.get(template.identity[:2]) is interpreter else None


def _ask_the_rest(template: Template, interpreter: Interpreter) -> None:
    """Ask what is no fact: few kinds have it, and it is read again by those who need it."""
    if interpreter.scale_target is not GENERIC.scale_target:
        interpreter.scale_target(template.body)
    if interpreter.makes is not GENERIC.makes:
        interpreter.makes(template.body)
    if interpreter.pod_template is not GENERIC.pod_template:
        interpreter.pod_template(template.body)


def scale_target_of(template: Template, interpreters: Registry) -> Identity | None:
    """The object that it scales; None of one that cannot be read, which `check_facts` refuses."""
    ask = interpreters.of(*template.identity[:2]).scale_target
    # Few kinds scale others, and only their bodies need be looked at.
    return None if ask is GENERIC.scale_target else contained(ask, template.body).value


def made_of(template: Template, interpreters: Registry) -> tuple[Made, ...]:
    """What a controller makes of it; nothing of one that cannot be read, which `check_facts` refuses."""
    ask = interpreters.of(*template.identity[:2]).makes
    return () if ask is GENERIC.makes else contained(ask, template.body).value or ()


def _read(template: Template, interpreter: Interpreter) -> Facts:
    body = template.body
    is_ours = BUILT_IN_KINDS.by_kind.get(template.identity[:2]) is interpreter
    # What somebody else's interpreter raises about images concerns those alone who override them.
    images = _images(template, interpreter) if is_ours else None
    return Facts(interpreter.demand(body), interpreter.dependencies(body), images)


def _images(template: Template, interpreter: Interpreter) -> tuple[str, ...] | None:
    if interpreter.images is GENERIC.images:
        return ()
    found = interpreter.images(template.body)
    return tuple([image for _, image in found]) if all(steps[0] == "spec" for steps, _ in found) else None
