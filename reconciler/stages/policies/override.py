"""OverridePolicy and ClusterOverridePolicy documents become the normalised policy."""

from __future__ import annotations

from typing import Final

from reconciler.model.override import OverridePolicy, Overriders, OverrideRule
from reconciler.model.policy import Flavor
from reconciler.model.problem import Document, Problem
from reconciler.model.refs import PolicyRef
from reconciler.model.tree import digest_of
from reconciler.stages.documents import Fields, document_fields, read_flavor, read_ref
from reconciler.stages.policies.affinity import read_target
from reconciler.stages.policies.override_fields import OVERRIDE_SHAPE
from reconciler.stages.policies.overriders import read_overriders
from reconciler.stages.policies.selectors import read_selectors


def parse_override_policy(document: Document) -> tuple[OverridePolicy | None, tuple[Problem, ...]]:
    """The policy of a document and every problem of it, in the order of the file; None when one is an error.

    Source: "PropagationPolicy and OverridePolicy", Override policies (both generations); Karmada: webhook checks.
    """
    fields = document_fields(document, OVERRIDE_SHAPE)
    flavor, ref, spec = read_flavor(fields), read_ref(fields), fields.child("spec")
    policy = None
    if spec is not None:
        shown = ref or PolicyRef(fields.text("kind"), "", "")
        policy = _policy(fields, spec, shown, flavor or Flavor.ACK)
    problems = fields.report.sorted()
    return (None if fields.report.has_errors else policy), problems


def _policy(document: Fields, spec: Fields, ref: PolicyRef, flavor: Flavor) -> OverridePolicy:
    rules = tuple(_rule(item, flavor) for item in spec.children("overrideRules"))
    if spec.has("targetCluster") or spec.has("overriders"):
        rules = (*rules, _rule(spec, flavor))
        if spec.has("overrideRules"):
            message = "overrideRules excludes the old targetCluster and overriders beside it; keep the rules"
            spec.report.error("rules-and-legacy", message, *spec.path("overrideRules"))
    return OverridePolicy(
        ref=ref,
        flavor=flavor,
        source=document.source(),
        selectors=read_selectors(spec, ref, flavor),
        rules=rules,
        digest=digest_of(document.report.document.body),
    )


MAX_OVERRIDERS: Final = 1_000
"""Of a rule: each may copy the whole object, on every cluster and for every template that the policy selects."""


def _rule(fields: Fields, flavor: Flavor) -> OverrideRule:
    overriders = fields.child("overriders")
    read = read_overriders(overriders, strict_values=flavor.is_ack) if overriders else Overriders()
    if overriders is not None and (count := _count(read)) > MAX_OVERRIDERS:
        message = f"{count:,} changes in one rule, the limit is {MAX_OVERRIDERS:,}; write the values into a template"
        overriders.report.error("too-many-overriders", message, *overriders.steps)
    return OverrideRule(target=read_target(fields), overriders=read, source=fields.source())


def _count(read: Overriders) -> int:
    embedded = sum(len(overrider.operations) for overrider in read.field)
    lists = (read.image, read.command, read.args, read.labels, read.annotations, read.plaintext)
    return embedded + sum(map(len, lists))
