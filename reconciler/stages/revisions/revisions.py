"""The schedules of two revisions, and the objects that may differ between them.

Source: design#offline-diff: the previous placement of head is the result of base; design#one-plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from reconciler.interpreters.registry import Registry
from reconciler.model.binding import Binding, PreviousPlacement
from reconciler.model.fleet import Fleet
from reconciler.model.observation import Observations
from reconciler.model.plan import Action, Cause, Change, Engine, FieldChange
from reconciler.model.refs import Identity
from reconciler.stages.comparison import overall_cause
from reconciler.stages.decision import Decision, DecisionTables, decide, without_definition
from reconciler.stages.rendering import changed_identities, render_all, render_inputs
from reconciler.stages.revisions.written import held_back, is_written

_NAMELESS = "unnamed"


class Passage(Struct, frozen=True, kw_only=True):
    """The schedules of two revisions.

    `observations`: inputs of head's schedule, with the placements of base (`placed`) as the previous ones. `only`:
    objects that may have to change; None: anything.
    """

    before: Decision
    after: Decision
    observations: Observations
    placed: Mapping[Identity, PreviousPlacement]
    only: frozenset[Identity] | None

    def told(self, change: Change) -> Change:
        """Return a change as an offline comparison shows it: with an equal template, its cause is an override."""
        change = replace(change, engine=Engine.OFFLINE)
        before, after = self.before.fleet.templates, self.after.fleet.templates
        was, is_now = before.get(change.identity), after.get(change.identity)
        if change.action not in (Action.UPDATE, Action.REPLACE) or was is None or is_now is None:
            return change
        if was.digest != is_now.digest or self.before.fleet.settings != self.after.fleet.settings:
            return change
        fields = tuple(map(_by_override, change.fields))
        return replace(change, fields=fields, cause=overall_cause(fields) if not change.held else change.cause)


def _by_override(field: FieldChange) -> FieldChange:
    return replace(field, cause=Cause.OVERRIDE) if field.cause in (Cause.DECLARED, Cause.REMOVED) else field


def previous_of(bindings: Mapping[Identity, Binding]) -> dict[Identity, PreviousPlacement]:
    """Return bindings as the previous placement of another schedule."""
    return {
        identity: PreviousPlacement(identity=identity, targets=binding.targets, affinity_name=binding.affinity_name)
        for identity, binding in bindings.items()
        if binding.targets
    }


def named_alike(base: Fleet, head: Fleet) -> tuple[Fleet, Fleet]:
    """The revisions with a name each: a store without one takes that of the other, so that both speak of one fleet."""
    return _named(base, head.settings.name), _named(head, base.settings.name)


def _named(fleet: Fleet, other: str) -> Fleet:
    if fleet.settings.name:
        return fleet
    return replace(fleet, settings=replace(fleet.settings, name=other or _NAMELESS))


def passage_between(base: Fleet, head: Fleet, observations: Observations, now: str, interpreters: Registry) -> Passage:
    """Schedule both revisions, the second from the state that the first leaves behind.

    Objects of the first count as placed, so that its new unreadable files hold nothing back.
    """
    tables = DecisionTables()
    base = replace(base, frozen=tuple(reach for reach in base.frozen if not reach.is_new))
    before = decide(base, observations, now, interpreters=interpreters, tables=tables)
    placed = previous_of(before.bindings)
    seen = replace(observations, previous={**observations.previous, **placed})
    after = decide(head, seen, now, interpreters=interpreters, tables=tables)
    changed = tables.changed
    # The remaining copies of an owner keep its dependencies; without any, copies do not matter.
    copies = _left_behind(before, after, changed)
    if copies:
        after = decide(head, seen, now, interpreters=interpreters, copies=copies, tables=tables)
        changed = {*changed, *tables.changed} if changed is not None and tables.changed is not None else None
    only: frozenset[Identity] | None = None
    if _speak_alike(base, head):
        # Equal objects are in sync already, unless they wait for something or their kind is not served.
        only = frozenset(changed_identities(before, after, changed) | held_back(after) | without_definition(after))
    return Passage(before=before, after=after, observations=seen, placed=placed, only=only)


def _speak_alike(base: Fleet, head: Fleet) -> bool:
    """Return whether equal schedules of the two give equal objects, with equal claims."""
    old, new = base.settings, head.settings
    return (old.name, old.previous_names) == (new.name, new.previous_names)


def _left_behind(
    before: Decision, after: Decision, changed: Collection[Identity] | None
) -> dict[Identity, frozenset[str]]:
    """Return all clusters of templates that leave copies behind in clusters of their old placement."""
    gone: dict[Identity, set[str]] = {}
    for identity in before.bindings if changed is None else changed:
        was, is_now = before.bindings.get(identity), after.bindings.get(identity)
        if was is not None and is_now is not None and was.targets != is_now.targets:
            gone[identity] = set(was.clusters) - set(is_now.clusters)
    copies: dict[Identity, frozenset[str]] = {}
    # Unrendered objects were not written either.
    for manifest in render_all(render_inputs(before), only=gone.keys()).manifests if gone else ():
        identity, cluster = manifest.identity, manifest.cluster
        if is_written(before, identity, cluster):
            copies[identity] = copies.get(identity, frozenset()) | {cluster}
    return {identity: clusters for identity, clusters in copies.items() if clusters & gone[identity]}
