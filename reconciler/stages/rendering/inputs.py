"""The inputs of rendering, from a schedule."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.interpreters.jobs.job import is_single_run
from reconciler.model.refs import Identity
from reconciler.stages.decision import Decision, fixed_share
from reconciler.stages.fleet_snapshot import FleetSnapshot
from reconciler.stages.overrides import OverrideIndex
from reconciler.stages.ownership import read_owner
from reconciler.stages.rendering.subject import RenderInputs


def render_inputs(
    decision: Decision, fixed_completions: Mapping[Identity, Mapping[str, int]] | None = None
) -> RenderInputs:
    """Return the inputs of rendering, with override policies compiled.

    `fixed_completions`: by cluster the completions that live parts of divided Jobs were created with.
    """
    return RenderInputs(
        fleet=decision.fleet,
        bindings=decision.bindings,
        policies=decision.policies,
        overrides=OverrideIndex(decision.fleet.overrides, decision.fleet.clusters),
        interpreters=decision.interpreters,
        yielded=decision.yielded,
        fixed_completions=fixed_completions or {},
        definitions=decision.definitions,
        makers=decision.makers,
    )


def fixed_completions(decision: Decision, snapshot: FleetSnapshot) -> dict[Identity, dict[str, int]]:
    """Return by Job and cluster the completions that our live part was created with, which cannot be changed.

    Source: design#jobs.
    """
    bound = decision.bindings.keys()
    # The members hold far more objects than there are Jobs in the store.
    jobs = [
        identity
        for identity in (bound if snapshot.only is None else bound & snapshot.only)
        if identity[:2] == ("batch", "Job") and identity in decision.fleet.templates
    ]
    fixed: dict[Identity, dict[str, int]] = {}
    for name in snapshot.members if jobs else ():
        for identity in jobs:
            if name not in decision.bindings[identity].clusters:
                continue  # A part that leaves takes its completions along: they go to the one that comes in its place.
            live, row = snapshot.live(name, identity), snapshot.journal.row(name, identity)
            # Where it has ended and is gone, it counts as it was sent.
            part = row.recorded if live is None and row is not None and row.finished else None
            if live is not None and read_owner(live.body) is not None:
                part = live.body
            single = is_single_run(decision.fleet.templates[identity].body)
            share = fixed_share(part, is_single_run=single) if part is not None else None
            if share is not None:
                fixed.setdefault(identity, {})[name] = share
    return fixed
