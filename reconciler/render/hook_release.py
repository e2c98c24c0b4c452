"""The release of a package in a cluster: a digest of what its templates are there. Source: ADR 26.

Replicas do not count, nor does where ticks place them: only the store makes a release.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from reconciler.api.content import digest_of
from reconciler.api.fleet import Template
from reconciler.overrides import apply_rules
from reconciler.placement import groups_of, tier_of
from reconciler.policy import ClaimTables, claim
from reconciler.render.declared_body import RenderCache, RenderInputs, known_subject
from reconciler.templates import hook_of, is_run_of_hook, package_of

_FIRST: Final = "first"
"""The release of a hook that runs with the first one alone."""


def release_of(inputs: RenderInputs, cache: RenderCache, template: Template, cluster: str) -> str:
    """Return the release of a hook in a cluster; empty: the template is no hook."""
    hook = hook_of(template.annotations)
    if hook is None or not is_run_of_hook(template):
        return ""
    if hook.is_first_only:
        return _FIRST
    key = (package_of(template.source.path), cluster)
    known = cache.releases.get(key)
    if known is None:
        known = cache.releases[key] = _release(inputs, cache, *key)
    return known


def _release(inputs: RenderInputs, cache: RenderCache, package: str, cluster: str) -> str:
    members = cache.packages.get(package)
    if members is None:
        if not cache.by_package:
            for identity, template in inputs.fleet.templates.items():
                cache.by_package.setdefault(package_of(template.source.path), {})[identity] = template
        tables, mine = ClaimTables(), cache.by_package[package]
        claim(replace(inputs.fleet, templates=mine), tables)
        members = cache.packages[package] = tuple((mine[each], tables.policies.rows.get(each)) for each in mine)
    document = inputs.fleet.clusters[cluster]
    parts = {
        str(template.identity): _digest(inputs, cache, template, cluster)
        for template, policy in members
        if (
            policy is None
            or any(tier_of(document, group)[0] is not None for group in groups_of(policy, by_capacity=True))
        )
    }
    return digest_of(parts)


def _digest(inputs: RenderInputs, cache: RenderCache, template: Template, cluster: str) -> str:
    """Return the digest of a template's body in a cluster, with one replica."""
    subject = known_subject(inputs, template.identity, cache)
    rules = inputs.overrides.rules_on(subject.rules, cluster) if subject.rules else ()
    key = (template.identity, id(rules))
    known = cache.digests.get(key)
    if known is None:
        body = subject.declared.with_counts(1 if subject.interpreter.replicas_path else None, None)
        if rules:
            body = apply_rules(body, template.identity, rules, subject.interpreter).body or body
        known = cache.digests[key] = digest_of(body)
    return known
