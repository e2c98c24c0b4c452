"""The proof of an output: its files, read back and overridden by the engine's own code, equal the tool's output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from reconciler.interpreters.registry import Registry
from reconciler.model.fleet import Render, Template
from reconciler.model.override import OverridePolicy
from reconciler.model.policy import ClusterAffinity
from reconciler.model.problem import NOWHERE, Severity
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject
from reconciler.stages.documents import OVERRIDE_KINDS, is_policy
from reconciler.stages.hydration.difference import is_same
from reconciler.stages.hydration.objects import Bodies, plain
from reconciler.stages.overrides import OverrideIndex, apply_rules
from reconciler.stages.policies import parse_override_policy
from reconciler.stages.templates import read_template
from reconciler.stages.yaml import read_yaml


def disproofs(
    render: Render, base: Bodies, variants: Mapping[str, Bodies], files: Mapping[str, bytes], interpreters: Registry
) -> Iterator[str]:
    """Yield differences between the files as the engine reads them and the output of the tool.

    The rules of a variant are those for its clusters: overrides of several variants never meet in one.
    """
    templates, policies = _read(files)
    if templates.keys() != {*base, *(identity for bodies in variants.values() for identity in bodies)}:
        yield "the objects of the files are others than those that were rendered"
        return
    index = OverrideIndex(policies, {})
    for name, bodies in (("", base), *variants.items()):
        clusters = next((variant.clusters for variant in render.variants if variant.name == name), None)
        for identity, wanted in bodies.items():
            template, encrypted = templates[identity]
            interpreter = interpreters.of(*identity[:2])
            body = template.body if encrypted is None else encrypted
            chosen = [
                rule
                for rule in index.rules_of(template)
                if clusters is not None and rule.rule.target is not None and _is_for(rule.rule.target, clusters)
            ]
            found = apply_rules(body, identity, chosen, interpreter)
            if found.body is None or not is_same(found.body, wanted):
                yield f"{identity} of {name or 'the base'}"


def _is_for(target: ClusterAffinity, clusters: ClusterAffinity) -> bool:
    """Return whether a rule is for the clusters of a variant, whatever its source."""
    return replace(target, source=NOWHERE) == replace(clusters, source=NOWHERE)


def _read(
    files: Mapping[str, bytes],
) -> tuple[dict[Identity, tuple[Template, JsonObject | None]], list[OverridePolicy]]:
    templates: dict[Identity, tuple[Template, JsonObject | None]] = {}
    policies: list[OverridePolicy] = []
    for path, data in files.items():
        for document in read_yaml(path, data).documents:
            body = document.body
            if not is_policy(str(body.get("apiVersion")), str(body.get("kind"))):
                encrypted = body if "sops" in body else None
                template, _ = read_template(replace(document, body=plain(body)))
                assert template is not None, "an object that was taken is taken again"
                templates[template.identity] = (template, encrypted)
            elif body.get("kind") in OVERRIDE_KINDS:
                policy, problems = parse_override_policy(document)
                errors = [str(problem) for problem in problems if problem.severity is Severity.ERROR]
                assert policy is not None, f"a policy that was written is read: {errors}"
                policies.append(policy)
    return templates, policies
