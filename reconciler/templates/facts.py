"""Demand and references of a template, computed once for each body and kept with it between runs.

Only results of this package's interpreters are kept: others may come and go, and differ tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.api.content import Content
from reconciler.api.demand import Demand, DependencyRef, Made, TemplateFacts
from reconciler.api.fleet import Template
from reconciler.api.problem import dotted
from reconciler.api.refs import Identity
from reconciler.containment import try_call
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.registry import BUILT_IN_KINDS, GENERIC, Registry
from reconciler.templates.hooks import is_run_of_hook
from reconciler.templates.image_reference import parse_image

_NOTHING: Final = TemplateFacts(demand=GENERIC.demand({}))
"""Facts without replicas and references, and of kinds without an interpreter."""


def facts_of(template: Template, interpreters: Registry) -> TemplateFacts:
    """Return the facts that the interpreter of its kind reads from a template."""
    interpreter = interpreters.of(*template.identity[:2])
    if interpreter.demand is GENERIC.demand and interpreter.dependencies is GENERIC.dependencies:
        return _NOTHING
    content = _keeper(template, interpreter)
    if content is None:
        return _read(template, interpreter)
    if content.facts is None:
        # All of it is read before any is kept: kept facts never raise.
        _ask_the_rest(template, interpreter)
        content.facts = _read(template, interpreter)
    return content.facts


def demand_of(template: Template, interpreters: Registry) -> Demand:
    """Return number and shape of its replicas."""
    return facts_of(template, interpreters).demand


def references_of(template: Template, interpreters: Registry) -> tuple[DependencyRef, ...]:
    """Return its references, which it needs to run."""
    return facts_of(template, interpreters).references


def images_of(template: Template, interpreters: Registry) -> tuple[str, ...] | None:
    """Return the images of its pods; None if one of them is outside of `spec`, and for a kind without interpreter.

    Exceptions of an installed interpreter pass through.
    """
    interpreter = interpreters.of(*template.identity[:2])
    if interpreter is GENERIC:
        return None
    content = _keeper(template, interpreter)
    if content is not None and content.facts is not None:
        return content.facts.images
    return _images(template, interpreter)


def is_built_in(kind: tuple[str, str], interpreters: Registry) -> bool:
    """Return whether this package's own interpreter describes a kind."""
    return interpreters.of(*kind) is BUILT_IN_KINDS.of(*kind)


def check_facts(template: Template, interpreters: Registry) -> None:
    """Read all facts that a schedule needs from a kind's interpreter, so that an exception is raised here."""
    interpreter = interpreters.of(*template.identity[:2])
    if interpreter is GENERIC:
        return
    content = _keeper(template, interpreter)
    if content is not None and content.facts is not None:
        return
    facts_of(template, interpreters)
    _ask_the_rest(template, interpreter)


def check_all_facts(templates: Iterable[Template], interpreters: Registry) -> None:
    """Check many templates, nearly all of which have been read before."""
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
    """Return the content that keeps a template's facts; None: a foreign interpreter's facts are not kept."""
    return template.content if BUILT_IN_KINDS.by_kind.get(template.identity[:2]) is interpreter else None


def _ask_the_rest(template: Template, interpreter: Interpreter) -> None:
    """Call the other functions of the interpreter: few kinds have them, and their users call them again."""
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
    return None if ask is GENERIC.scale_target else try_call(ask, template.body).value


def made_of(template: Template, interpreters: Registry) -> tuple[Made, ...]:
    """Return the objects that a controller makes of it; none if unreadable, which `check_facts` refuses."""
    ask = interpreters.of(*template.identity[:2]).makes
    return () if ask is GENERIC.makes else try_call(ask, template.body).value or ()


def _read(template: Template, interpreter: Interpreter) -> TemplateFacts:
    body = template.body
    is_ours = BUILT_IN_KINDS.by_kind.get(template.identity[:2]) is interpreter
    # An exception of a foreign interpreter about images concerns only their overrides.
    images = _images(template, interpreter) if is_ours else None
    # A hook runs once in each cluster of its placement: it is not divided.
    demand = GENERIC.demand({}) if is_run_of_hook(template) else interpreter.demand(body)
    return TemplateFacts(demand, interpreter.dependencies(body), images)


def malformed_images(template: Template) -> tuple[tuple[str, str], ...]:
    """Return the images of a template of a built-in kind that are no references, each with its field path."""
    interpreter = BUILT_IN_KINDS.by_kind.get(template.identity[:2])
    found = interpreter.images(template.body) if interpreter is not None else ()
    return tuple((dotted(steps), image) for steps, image in found if parse_image(image) is None)


def _images(template: Template, interpreter: Interpreter) -> tuple[str, ...] | None:
    if interpreter.images is GENERIC.images:
        return ()
    found = interpreter.images(template.body)
    return tuple([image for _, image in found]) if all(steps[0] == "spec" for steps, _ in found) else None
