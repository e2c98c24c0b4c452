"""Frozen reaches: what a broken file might have said is left exactly as it is."""

from __future__ import annotations

from reconciler.model.fleet import Fleet, Reach, Template
from reconciler.stages.claims.match import Score, selects


def frozen_by(fleet: Fleet, template: Template) -> Reach | None:
    """The first broken document whose reach holds a template, None when nothing froze it.

    Source: design#broken-input: no write, no delete, no new claim for what a broken document might select.
    """
    return next((reach for reach in fleet.frozen if reaches(reach, template)), None)


def reaches(reach: Reach, template: Template) -> bool:
    """Whether a reach holds a template. Readable selectors say more than a namespace and replace it."""
    if reach.everything or template.identity in reach.identities:
        return True
    namespace = template.identity.namespace
    if reach.selectors:
        own = reach.policy.namespace if reach.policy else ""
        reached = not own or namespace == own
        return reached and any(selects(selector, template) is not Score.NONE for selector in reach.selectors)
    return bool(reach.namespace) and namespace == reach.namespace
