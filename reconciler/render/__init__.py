"""Manifests: the body of each object for each cluster."""

from reconciler.render.declared_body import RenderTables, template_of
from reconciler.render.manifests import (
    Rendered,
    Rendering,
    managed_in,
    problems_in,
    render_all,
    render_copy,
    render_in_force,
)
from reconciler.render.outcome import fault_of
from reconciler.render.round_manifests import Manifests, decrypt, render
from reconciler.render.signatures import arrivals, changed_identities
