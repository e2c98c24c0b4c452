"""Each copy rendered from the active revision of its cluster.

Source: ADR 18: bodies and overrides are those of the revision; clusters, replicas and policy are those of HEAD.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler.model.fleet import Fleet
from reconciler.model.refs import Identity
from reconciler.model.rollouts.staging import Stays
from reconciler.stages.decision import Decision
from reconciler.stages.overrides import OverrideIndex
from reconciler.stages.rendering.inputs import render_inputs
from reconciler.stages.rendering.render import Rendered, render_copy
from reconciler.stages.rendering.subject import RenderCache, RenderInputs

_NOTHING = Rendered(None)


class Renderer:
    """Renders the copies of one schedule. The results of each revision are kept by itself."""

    __slots__ = ("_decision", "_head", "_older")

    def __init__(
        self, decision: Decision, fixed_completions: Mapping[Identity, Mapping[str, int]] | None = None
    ) -> None:
        """`fixed_completions`: by cluster the completions that live parts of divided Jobs were created with."""
        self._decision = decision
        self._head = (render_inputs(decision, fixed_completions), RenderCache())
        self._older: dict[int, tuple[Fleet, RenderInputs, RenderCache]] = {}
        """By the identity of the revision's fleet, which is kept here."""

    def __call__(self, identity: Identity, cluster: str, replicas: int | None) -> Rendered:
        """The manifest of a bound template in a cluster. None without a problem: it stays as it is there."""
        staging = self._decision.staging
        source = staging.of(identity, cluster) if staging is not None else None
        if isinstance(source, Stays):
            return _NOTHING
        inputs, cache = self._head if source is None else self._at(source)
        return render_copy(inputs, identity, cluster, replicas, cache)

    def _at(self, fleet: Fleet) -> tuple[RenderInputs, RenderCache]:
        known = self._older.get(id(fleet))
        if known is None:
            head = self._head[0]
            named = replace(fleet, settings=head.fleet.settings, clusters=head.fleet.clusters)
            inputs = replace(head, fleet=named, overrides=OverrideIndex(fleet.overrides, head.fleet.clusters))
            known = self._older[id(fleet)] = (fleet, inputs, RenderCache())
        return known[1:]
