"""The body that each cluster is to have of each object."""

from reconciler.stages.rendering.codes import RENDER_CODES
from reconciler.stages.rendering.faults import fault_of
from reconciler.stages.rendering.inputs import render_inputs
from reconciler.stages.rendering.render import Rendered, Rendering, managed_in, problems_in, render_all, render_copy
from reconciler.stages.rendering.round_manifests import Manifests, decrypt, render
from reconciler.stages.rendering.signatures import arrivals, changed_identities
from reconciler.stages.rendering.staged import Renderer
from reconciler.stages.rendering.subject import RenderCache, RenderInputs, template_of

__all__ = [
    "RENDER_CODES",
    "Manifests",
    "RenderCache",
    "RenderInputs",
    "Rendered",
    "Renderer",
    "Rendering",
    "arrivals",
    "changed_identities",
    "decrypt",
    "fault_of",
    "managed_in",
    "problems_in",
    "render",
    "render_all",
    "render_copy",
    "render_inputs",
    "template_of",
]
