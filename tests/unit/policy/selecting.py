"""Answers of one selector for one template, found without an index: the oracle of the index."""

from __future__ import annotations

from reconciler.api.fleet import Template
from reconciler.api.policies import ResourceSelector
from reconciler.policy import Score


def selects(selector: ResourceSelector, template: Template) -> Score:
    """Return how a selector selects a template; NONE when it does not.

    apiVersion and kind compare as exact strings; a name makes the label selector irrelevant.
    Source: "resourceSelector parameters"; Karmada: the score of a selector.
    """
    identity = template.identity
    if selector.kind != identity.kind or selector.api_version != template.gvk.api_version:
        return Score.NONE
    if selector.namespace and selector.namespace != identity.namespace:
        return Score.NONE
    if selector.name:
        return Score.NAME if selector.name == identity.name else Score.NONE
    if selector.labels is None:
        return Score.KIND
    return Score.LABEL if selector.labels.matches(template.labels) else Score.NONE
