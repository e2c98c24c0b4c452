"""The treatment of an object that exists and is not ours. Source: Karmada: `work.karmada.io/conflict-resolution`."""

from __future__ import annotations

from typing import Final

from reconciler.model.policy import ConflictResolution, PropagationPolicy
from reconciler.model.tree import JsonObject, dig

CONFLICT_RESOLUTION: Final = "work.karmada.io/conflict-resolution"
"""Karmada's template annotation: `abort` or `overwrite`."""


def conflict_resolution(template: JsonObject, policy: PropagationPolicy | None) -> ConflictResolution:
    """The annotation of a template outranks its policy; an unknown value of it falls back to the policy."""
    written = dig(template, "metadata", "annotations", CONFLICT_RESOLUTION)
    if isinstance(written, str):
        for resolution in ConflictResolution:
            if written.lower() == resolution.value.lower():
                return resolution
    return policy.conflict_resolution if policy else ConflictResolution.ABORT
