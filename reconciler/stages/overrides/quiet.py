"""Rules that can neither fail nor cause remarks, known without applying them: nearly all rules."""

from __future__ import annotations

from reconciler.model.override import ImageOverrider, MapOverrider
from reconciler.stages.overrides.images import changed_quietly
from reconciler.stages.overrides.select import SelectedRule
from reconciler.stages.templates import may_be_refused


def may_add_fields(rules: tuple[SelectedRule, ...]) -> bool:
    """Return whether the rules could write a field that was pruned from the body, as images and commands cannot."""
    return any(
        written.labels or written.annotations or written.field or written.plaintext
        for written in (rule.rule.overriders for rule in rules)
    )


def are_quiet(rules: tuple[SelectedRule, ...], images: tuple[str, ...] | None) -> bool:
    """Return whether the rules apply to a body with these images without faults or remarks; False if unknown.

    Labels and annotations of the usual form can always be set. Images are checked as they are, so only the first
    overrider of all may change them. `images` None: unknown.
    """
    for number, rule in enumerate(rules):
        if rule.rule.overriders.plaintext:
            return False
        for place, (_, field, overrider) in enumerate(rule.steps):
            if isinstance(overrider, MapOverrider):
                if any(may_be_refused(field, key, value) for key, value in overrider.values):
                    return False
                continue
            if number or place or images is None or not isinstance(overrider, ImageOverrider):
                return False
            if changed_quietly(images, overrider) is None:
                return False
    return True


def changing_quietly(rules: tuple[SelectedRule, ...], images: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the names of quiet rules that change something; None if that takes applying them.

    Decided for one image overrider alone, as nearly all rules are: it is independent of a kind's pruning.
    """
    if len(rules) != 1 or images is None:
        return None
    rule = rules[0]
    if len(rule.steps) != 1 or rule.rule.overriders.plaintext:
        return None
    overrider = rule.steps[0].overrider
    changes = changed_quietly(images, overrider) if isinstance(overrider, ImageOverrider) else None
    return None if changes is None else (rule.label,) if changes else ()
