"""The rendered store for machines: `render -o json`. Version 1. Source: design#machine-formats.

The output of `render` for a schedule.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Binding, Reason
from reconciler.api.plan import Manifest
from reconciler.api.problem import NOWHERE, Problem, Source
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.api.tree import Json
from reconciler.containment import contained
from reconciler.planner import render_decision
from reconciler.render import fault_of
from reconciler.report.json_parts import json_text, placement_part, problems_part, reasons_part, resource_part
from reconciler.report.mask import Masker
from reconciler.scheduler import Schedule


class Rendering(Struct, frozen=True, kw_only=True):
    """The content of `render`.

    `kinds`: the version that each resource was written in; `policies`: the place of each policy.
    """

    revision: str
    bindings: tuple[Binding, ...] = ()
    kinds: Mapping[Identity, GVK] = field(default_factory=dict)
    manifests: tuple[Manifest, ...] = ()
    problems: tuple[Problem, ...] = ()
    policies: Mapping[PolicyRef, Source] = field(default_factory=dict)


def render_json(rendering: Rendering, *, show_secrets: bool = False) -> str:
    """The rendering as a JSON text, valid whatever the problems are."""
    return json_text(render_document(rendering, show_secrets=show_secrets))


def render_document(rendering: Rendering, *, show_secrets: bool = False) -> dict[str, Json]:
    """The rendering as a JSON document: bindings by resource, objects by cluster and resource."""
    masker = Masker(show_secrets=show_secrets)
    manifests = sorted_manifests(rendering.manifests)
    kinds = {**{manifest.identity: manifest.gvk for manifest in manifests}, **rendering.kinds}
    objects = [_object(manifest, masker) for manifest in manifests]
    return {
        "version": 1,
        "revision": rendering.revision,
        "bindings": [
            _binding(binding, kinds, rendering.policies, masker)
            for binding in sorted(rendering.bindings, key=lambda binding: binding.identity)
        ],
        "objects": objects,
        "problems": problems_part(map(masker.problem, rendering.problems)),
    }


def sorted_manifests(manifests: tuple[Manifest, ...]) -> list[Manifest]:
    """Manifests by cluster, then by identity."""
    return sorted(manifests, key=lambda manifest: (manifest.cluster, manifest.identity))


def _binding(
    binding: Binding, kinds: Mapping[Identity, GVK], policies: Mapping[PolicyRef, Source], masker: Masker
) -> dict[str, Json]:
    identity = binding.identity
    gvk = kinds.get(identity, GVK(identity.group, "", identity.kind))
    return {
        "resource": resource_part(gvk, identity),
        "policy": _policy(binding.policy, policies),
        "placement": placement_part(binding.targets),
        "unplaced": binding.unplaced,
        "reasons": reasons_part(map(masker.reason, binding.reasons)),
    }


def _policy(policy: PolicyRef | None, policies: Mapping[PolicyRef, Source]) -> Json:
    if policy is None:
        return None
    source = str(policies.get(policy, NOWHERE))
    return {"kind": policy.kind, "namespace": policy.namespace, "name": policy.name, "source": source}


def _object(manifest: Manifest, masker: Masker) -> dict[str, Json]:
    return {
        "cluster": manifest.cluster,
        "source": str(manifest.source),
        "overrides": list(manifest.overrides),
        "manifest": masker.manifest(manifest.body),
    }


def rendering(decision: Schedule, clusters: frozenset[str] = frozenset(), *, with_bodies: bool = False) -> Rendering:
    """Return bindings, manifests and problems; with `clusters`, only their manifests. `with_bodies`: bodies are needed.

    An object that waits for an override policy has a placement and no manifest yet.
    """
    rendered = render_decision(decision)
    fleet = decision.fleet
    shown = [
        found
        for found in rendered.manifests
        if (not clusters or found.cluster in clusters) and found.identity not in decision.holds
    ]
    faults: dict[int, Exception] = {}
    if with_bodies:
        contents = {id(found.content): found.content for found in shown}
        made = {key: contained(content.body).fault for key, content in contents.items()}
        faults = {key: fault for key, fault in made.items() if fault is not None}
    failed = (found for found in shown if id(found.content) in faults)
    not_made = [fault_of(fleet, found.identity, faults[id(found.content)], found.cluster) for found in failed]
    return Rendering(
        revision=fleet.revision,
        bindings=tuple(
            _rendering_binding(decision, decision.bindings[identity]) for identity in sorted(decision.bindings)
        ),
        kinds={identity: template.gvk for identity, template in fleet.templates.items()},
        manifests=tuple(found for found in shown if id(found.content) not in faults),
        problems=tuple(sorted({*decision.problems, *rendered.problems, *not_made})),
        policies={policy.ref: policy.source for policy in fleet.propagation},
    )


def _rendering_binding(decision: Schedule, binding: Binding) -> Binding:
    why = decision.holds.get(binding.identity)
    if why is None:
        return binding
    source = decision.policies[binding.identity].source
    return replace(
        binding, reasons=(*binding.reasons, Reason(rule="waits", text=f"not sent yet: it {why}", source=source))
    )
