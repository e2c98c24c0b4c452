"""What `render` shows of a decision."""

from __future__ import annotations

from reconciler.engine import Decision, render_decision
from reconciler.report.render_json import Rendering


def rendering(decision: Decision, clusters: frozenset[str] = frozenset()) -> Rendering:
    """Bindings, manifests and problems; with `clusters`, only their manifests."""
    rendered = render_decision(decision)
    fleet = decision.fleet
    return Rendering(
        revision=fleet.revision,
        bindings=tuple(decision.bindings[identity] for identity in sorted(decision.bindings)),
        kinds={identity: template.gvk for identity, template in fleet.templates.items()},
        manifests=tuple(found for found in rendered.manifests if not clusters or found.cluster in clusters),
        problems=tuple(sorted({*decision.problems, *rendered.problems})),
        policies={policy.ref: policy.source for policy in fleet.propagation},
    )
