"""The output of `render` for a schedule."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.containment import contained
from reconciler.engine import Decision, render_decision
from reconciler.model.binding import Binding, Reason
from reconciler.report.render_json import Rendering
from reconciler.stages.rendering import fault_of


def rendering(decision: Decision, clusters: frozenset[str] = frozenset(), *, with_bodies: bool = False) -> Rendering:
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
        bindings=tuple(_binding(decision, decision.bindings[identity]) for identity in sorted(decision.bindings)),
        kinds={identity: template.gvk for identity, template in fleet.templates.items()},
        manifests=tuple(found for found in shown if id(found.content) not in faults),
        problems=tuple(sorted({*decision.problems, *rendered.problems, *not_made})),
        policies={policy.ref: policy.source for policy in fleet.propagation},
    )


def _binding(decision: Decision, binding: Binding) -> Binding:
    why = decision.holds.get(binding.identity)
    if why is None:
        return binding
    source = decision.policies[binding.identity].source
    return replace(
        binding, reasons=(*binding.reasons, Reason(rule="waits", text=f"not sent yet: it {why}", source=source))
    )
