"""Our annotations on propagation policies: settings without a field in the product's API.

Source: design#policy-annotations.
"""

from __future__ import annotations

from typing import Final

from reconciler.api.policies import AffinityMode, Companion, Flavor, Placement
from reconciler.documents.field_reader import Fields

PREFIX: Final = "fleet.reconciler/"

AFFINITY_MODE: Final = "fleet.reconciler/affinity-mode"
"""The meaning of ordered clusterAffinities, whatever the API group: `tiers` or `exclusive`."""

FAIL_BACK: Final = "fleet.reconciler/fail-back"
"""`true`: replicas that had to leave an earlier group of clusters go back as soon as that group takes them again."""

BRING: Final = "fleet.reconciler/bring"
"""Companions that are placed with a workload: some of `services,ingresses,routes,autoscalers,budgets`."""

POLICY_ANNOTATIONS: Final = (AFFINITY_MODE, BRING, FAIL_BACK)


def check_annotations(document: Fields) -> None:
    """Report unknown annotations of ours: a misspelled one would be without effect and without notice."""
    metadata = document.child("metadata")
    for name in metadata.text_map("annotations") if metadata else ():
        if metadata is not None and name.startswith(PREFIX) and name not in POLICY_ANNOTATIONS:
            known = ", ".join(POLICY_ANNOTATIONS)
            message = f"{name} is not known on a policy; known here: {known}"
            document.report.error("policy-annotation-unknown", message, *metadata.path("annotations", name))


def read_affinity_mode(document: Fields, flavor: Flavor, placement: Placement) -> AffinityMode:
    """Return the meaning of ordered groups.

    Source: "Elastic scheduling with multi-cluster priorities" (they spill over); Karmada: one group is in use.
    """
    needs_capacity = placement.scheduling.division.needs_capacity
    default = AffinityMode.TIERS if flavor.is_ack and needs_capacity else AffinityMode.EXCLUSIVE
    written = _written(document, AFFINITY_MODE)
    if written is None:
        return default
    if written not in tuple(AffinityMode):
        _error(document, AFFINITY_MODE, "affinity-mode-unknown", f"{written!r} is not known; it is tiers or exclusive")
        return default
    if written == AffinityMode.TIERS and not needs_capacity:
        message = "tiers are filled by free capacity, so they need dynamicWeight or Aggregated; take the annotation out"
        _error(document, AFFINITY_MODE, "affinity-mode-needs-capacity", message)
        return default
    return AffinityMode(written)


def read_fail_back(document: Fields, placement: Placement) -> bool:
    """Return whether to go back to earlier groups. Source: design#fail-back: an opt-in."""
    written = _written(document, FAIL_BACK)
    if written is None:
        return False
    if written not in ("true", "false"):
        _error(document, FAIL_BACK, "fail-back-unknown", f'{written!r} is not known; it is "true" or "false"')
        return False
    if written == "true" and len(placement.terms) + sum(len(term.overflow) for term in placement.terms) < 2:
        message = "there is no group to go back to; write several clusterAffinities, or take the annotation out"
        _error(document, FAIL_BACK, "fail-back-without-groups", message)
    return written == "true"


def read_brings(document: Fields) -> frozenset[Companion]:
    """Return the companions of the workloads that the policy claims."""
    brings, unknown = parse_brings(_written(document, BRING) or "")
    if unknown:
        _error(document, BRING, "bring-unknown", unknown)
    return brings


def parse_brings(text: str) -> tuple[frozenset[Companion], str]:
    """Return the companions that an annotation lists, and its fault; empty: none."""
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    unknown = ", ".join(repr(word[:80]) for word in words if word not in tuple(Companion))
    problem = f"{unknown} is not known; name some of {', '.join(Companion)}, with commas between" if unknown else ""
    return frozenset(Companion(word) for word in words if word in tuple(Companion)), problem


def _written(document: Fields, name: str) -> str | None:
    metadata = document.child("metadata")
    return metadata.text_map("annotations").get(name) if metadata else None


def _error(document: Fields, name: str, code: str, message: str) -> None:
    metadata = document.child("metadata")
    steps = metadata.path("annotations", name) if metadata else ()
    document.report.error(code, f"{name}: {message}", *steps)
