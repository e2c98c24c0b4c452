"""Rules that surely meet neither fault nor remark, told without applying them: nearly all that there are."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.registry import GENERIC
from reconciler.model.override import ImageOverrider
from reconciler.model.tree import JsonObject
from reconciler.stages.overrides.images import changes_quietly
from reconciler.stages.overrides.select import SelectedRule

_NEVER_FAIL = frozenset({"labels", "annotations"})


def may_add_fields(rules: tuple[SelectedRule, ...]) -> bool:
    """Whether the rules could write a field that was taken out of the body, as images and commands cannot."""
    return any(
        written.labels or written.annotations or written.field or written.plaintext
        for written in (rule.rule.overriders for rule in rules)
    )


def are_quiet(rules: tuple[SelectedRule, ...], body: JsonObject, interpreter: Interpreter) -> bool:
    """Whether the rules can be applied to the body without a word; False when it takes applying them to know.

    Labels and annotations can always be set. Images are looked at as they are, so only the first overrider of all may
    change them.
    """
    for number, rule in enumerate(rules):
        if rule.rule.overriders.plaintext:
            return False
        for place, (_, field, overrider) in enumerate(rule.steps):
            if field in _NEVER_FAIL:
                continue
            if number or place or not isinstance(overrider, ImageOverrider) or interpreter is GENERIC:
                return False
            if not changes_quietly(interpreter.images(body), overrider):
                return False
    return True
