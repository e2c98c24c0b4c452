"""Variants compiled: differences from the base as override policies, additional objects with policies of their own.

A template stands once in a store, so that a second copy for some clusters cannot be placed; a difference there is an
override, which reviews and `explain` show as one. Source: docs/adr/0019-variants-as-overrides.md.

The proof of an output: its files, read back and overridden by the engine's own code, equal the tool's output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.content import JsonObject, digest_of, is_same
from reconciler.api.fleet import Render, RenderVariant, Template
from reconciler.api.policies import ClusterAffinity, Operator, OverridePolicy
from reconciler.api.problem import NOWHERE, Problem, Severity
from reconciler.api.refs import Identity
from reconciler.documents import OVERRIDE_KINDS, is_policy
from reconciler.hydration.objects import Bodies, operations, plain
from reconciler.hydration.render_document import problem_of
from reconciler.incremental import by_key
from reconciler.kinds.registry import Registry
from reconciler.overrides import OverrideIndex, apply_rules
from reconciler.policy import matching_clusters, parse_override_policy
from reconciler.regex import regex
from reconciler.templates import read_template
from reconciler.yaml import read_yaml

BASE: Final = "base.yaml"
OVERRIDES: Final = "overrides.yaml"
PLACEMENT: Final = "placement.yaml"
_POLICY_API: Final = "policy.karmada.io/v1alpha1"
_MOST_OPERATIONS: Final = 1000
"""Of a rule; the rest is in rules after it, which are applied after it."""
_NAME_MAX: Final = 253
_UNFIT: Final = regex(r"[^a-z0-9.-]")


class Compiled(NamedTuple):
    """The documents of each output file by its name in the folder, and why there are none."""

    files: Mapping[str, tuple[JsonObject, ...]]
    problems: tuple[Problem, ...]


def compile_variants(render: Render, base: Bodies, variants: Mapping[str, Bodies]) -> Compiled:
    """Return the files of an output: base, overrides, and objects of only some variants. Sorted; a pure function."""
    problems = tuple(_refusals(render, base, variants))
    if problems:
        return Compiled({}, problems)
    holders = _holders(render, base, variants)
    files = {BASE: tuple(base.values())}
    if render.placement is not None and base:
        name = f"{render.name}-base"
        files[PLACEMENT] = tuple(_placements(render, name, list(base), list(base.values()), render.placement.written))
    policies = [policy for identity, body in base.items() if (policy := _overrides(render, identity, body, variants))]
    for group, identities in sorted(holders.items()):
        first, rest = group[0], {name: variants[name] for name in group[1:]}
        bodies = [variants[first][identity] for identity in identities]
        union = _union([variant for variant in render.variants if variant.name in group])
        assert union is not None, "what has no union was refused"
        name = "-".join((render.name, "only", *group))
        name = name if len(name) <= _NAME_MAX else f"{name[: _NAME_MAX - 9]}-{digest_of(list(group))[:8]}"
        files[f"only-{'+'.join(group)}.yaml"] = (*_placements(render, name, identities, bodies, union), *bodies)
        policies += [
            policy
            for identity, body in zip(identities, bodies, strict=True)
            if (policy := _overrides(render, identity, body, rest))
        ]
    if policies:
        files[OVERRIDES] = tuple(sorted(policies, key=lambda policy: str(policy["metadata"]["name"])))
    return Compiled(files, ())


def _holders(
    render: Render, base: Bodies, variants: Mapping[str, Bodies]
) -> dict[tuple[str, ...], list[Identity]]:  # fmt: skip
    return by_key(
        (tuple(variant.name for variant in render.variants if identity in variants[variant.name]), identity)
        for identity in sorted({identity for bodies in variants.values() for identity in bodies} - base.keys())
    )


def _refusals(render: Render, base: Bodies, variants: Mapping[str, Bodies]) -> Iterator[Problem]:
    """Yield differences that no override and no single placement can express."""
    for variant in render.variants:
        for identity in base.keys() - variants[variant.name].keys():
            message = (
                f"{identity} is in the base and not in this variant, and no override takes an object away; turn it off "
                "in the base, and on in the variants that are to have it"
            )
            yield problem_of(render, "render-object-missing", message, variant.source, variant=variant.name)
    for group, unique in _holders(render, base, variants).items():
        holders = [variant for variant in render.variants if variant.name in group]
        if _union(holders) is None:
            message = (
                f"{unique[0]} is in the variants {', '.join(group)} and not in the base, and no one selector matches "
                "just their clusters; select these by values of one label, or by name"
            )
            yield problem_of(render, "render-union", message, holders[0].source, variant=holders[0].name)
        first = variants[group[0]]
        yield from _unfit(render, {identity: first[identity] for identity in unique}, variants)
    yield from _unfit(render, base, variants)


def _unfit(render: Render, bodies: Bodies, variants: Mapping[str, Bodies]) -> Iterator[Problem]:
    for variant in render.variants:
        for identity, body in bodies.items():
            other = variants[variant.name].get(identity, body)
            if other.get("apiVersion") != body.get("apiVersion"):
                message = f"{identity} is of {other.get('apiVersion')} here and of {body.get('apiVersion')} elsewhere"
                yield problem_of(render, "render-identity", message, variant.source, variant=variant.name)
            is_encrypted = "sops" in other or "sops" in body
            if is_encrypted and not is_same(other, body):
                message = f"{identity} is encrypted, and differs from the base; an override cannot touch it"
                yield problem_of(render, "render-encrypted-differs", message, variant.source, variant=variant.name)


def _overrides(
    render: Render, identity: Identity, body: JsonObject, variants: Mapping[str, Bodies]
) -> dict[str, Any] | None:
    """The policy of one object; None when no variant differs in it."""
    rules = []
    for variant in render.variants:
        other = variants.get(variant.name, {}).get(identity)
        changes = operations(body, other) if other is not None else []
        rules += [
            {"targetCluster": variant.written, "overriders": {"plaintext": changes[start : start + _MOST_OPERATIONS]}}
            for start in range(0, len(changes), _MOST_OPERATIONS)
        ]
    if not rules:
        return None
    return {
        "apiVersion": _POLICY_API,
        "kind": "ClusterOverridePolicy",
        "metadata": {"name": _name(render, identity)},
        "spec": {"resourceSelectors": [_selector(identity, body)], "overrideRules": rules},
    }


def _selector(identity: Identity, body: JsonObject) -> dict[str, str]:
    selector = {"apiVersion": str(body["apiVersion"]), "kind": identity.kind, "name": identity.name}
    return {**selector, "namespace": identity.namespace} if identity.namespace else selector


def _name(render: Render, identity: Identity) -> str:
    parts = (render.name, identity.kind.lower(), identity.namespace, identity.name)
    readable = _UNFIT.sub("-", "-".join(part for part in parts if part))[: _NAME_MAX - 9].strip("-.")
    return f"{readable}-{digest_of([render.name, *identity])[:8]}"


def _placements(
    render: Render, name: str, identities: list[Identity], bodies: list[JsonObject], clusters: JsonObject
) -> Iterator[dict[str, Any]]:
    """Policies for some of the objects: one of each namespace, so that none of a namespace comes before it."""
    terms = render.placement.terms if render.placement is not None else {}
    for namespace in sorted({identity.namespace for identity in identities}):
        pairs = zip(identities, bodies, strict=True)
        selectors = [_selector(identity, body) for identity, body in pairs if identity.namespace == namespace]
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        yield {
            "apiVersion": _POLICY_API,
            "kind": "PropagationPolicy" if namespace else "ClusterPropagationPolicy",
            "metadata": metadata,
            "spec": {**terms, "resourceSelectors": selectors, "placement": {"clusterAffinity": clusters}},
        }


def _union(variants: list[RenderVariant]) -> JsonObject | None:
    """Return one selector for the clusters of all of these; None if none selects exactly these."""
    first = variants[0]
    if all(is_same(variant.written, first.written) for variant in variants):
        return first.written
    affinities = [variant.clusters for variant in variants]
    if all(each.cluster_names and not (each.exclude or each.labels or each.fields) for each in affinities):
        return {"clusterNames": sorted({name for affinity in affinities for name in affinity.cluster_names})}
    picked = [_label_in(affinity) for affinity in affinities]
    keys = {pair[0] for pair in picked if pair is not None}
    if len(keys) != 1 or None in picked:
        return None
    values = sorted({value for pair in picked if pair is not None for value in pair[1]})
    return {"labelSelector": {"matchExpressions": [{"key": keys.pop(), "operator": "In", "values": values}]}}


def _label_in(affinity: ClusterAffinity) -> tuple[str, frozenset[str]] | None:
    if affinity.cluster_names or affinity.exclude or affinity.fields or affinity.labels is None:
        return None
    if len(affinity.labels.requirements) != 1:
        return None
    requirement = affinity.labels.requirements[0]
    return (requirement.key, requirement.values) if requirement.operator is Operator.IN else None


def overlaps(renders: Iterable[Render], clusters: Mapping[str, Cluster]) -> Iterator[Problem]:
    """Clusters that several variants of a render match: each can have one."""
    ordered = [clusters[name] for name in sorted(clusters)]
    for render in renders:
        variant_of: dict[str, str] = {}
        for variant in render.variants:
            for name in matching_clusters(variant.clusters, ordered):
                other = variant_of.setdefault(name, variant.name)
                if other != variant.name:
                    message = f"the cluster {name} is matched by the variant {other} too; it can have one of them"
                    yield problem_of(render, "render-variants-overlap", message, variant.source, variant=variant.name)


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
                if clusters is not None
                and (target := rule.rule.target) is not None
                and replace(target, source=NOWHERE) == replace(clusters, source=NOWHERE)
            ]
            overridden = apply_rules(body, identity, chosen, interpreter)
            if overridden.body is None or not is_same(overridden.body, wanted):
                yield f"{identity} of {name or 'the base'}"


def encrypted_objects(files: Mapping[str, bytes]) -> dict[Identity, JsonObject]:
    """Return the encrypted objects of some files of an output."""
    return {identity: body for identity, (_, body) in _read(files)[0].items() if body is not None}


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
