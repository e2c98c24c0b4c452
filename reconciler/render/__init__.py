"""Manifests: the body of each object for each cluster."""

from reconciler.render.declared_body import RenderCache, RenderInputs, template_of
from reconciler.render.manifests import Rendered, Renderer, Rendering, managed_in, problems_in, render_all, render_copy
from reconciler.render.outcome import fault_of
from reconciler.render.round_manifests import Manifests, decrypt, render
from reconciler.render.signatures import arrivals, changed_identities, render_inputs
