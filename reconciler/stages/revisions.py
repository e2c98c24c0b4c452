"""What a commit changes in the members, told from the two revisions alone.

Engine O says what differs; the table of deletion causes says what becomes of copies that are no longer wanted; the
guards say what would be held. Source: design, "Diff" (the previous placement of head is the result of base).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec.structs import replace

from reconciler.model.binding import Binding, PreviousPlacement, Reason
from reconciler.model.plan import Action, Change
from reconciler.model.refs import GVK, Identity
from reconciler.stages.claimants import Claimants
from reconciler.stages.decide import Decision
from reconciler.stages.deletion import Fate, Loss, cause_of, fate_of, is_edit, keep_in_force
from reconciler.stages.diff_offline import Side, compare_rendered
from reconciler.stages.moves import Serving, effective, gains
from reconciler.stages.render import Rendering, template_of
from reconciler.stages.schema import Schema


def previous_of(bindings: Mapping[Identity, Binding]) -> dict[Identity, PreviousPlacement]:
    """Bindings as the previous placement of another decision."""
    return {
        identity: PreviousPlacement(identity=identity, targets=binding.targets, affinity_name=binding.affinity_name)
        for identity, binding in bindings.items()
        if binding.targets
    }


def revision_changes(
    base: tuple[Decision, Rendering],
    head: tuple[Decision, Rendering],
    schema_of: Callable[[GVK], Schema | None],
    only: Collection[Identity] | None = None,
) -> tuple[Change, ...]:
    """The changes from one decision to the other, in canonical order, holds of moves included.

    `only`: what was rendered and may differ; None: everything.
    """
    changes = compare_rendered(_side(*base, only), _side(*head, only), schema_of)
    claimants = Claimants(head[0].fleet.propagation)
    settled = (_settled(change, base[0], head[0], claimants) for change in changes if not _is_frozen(change, head[0]))
    return tuple(change for change in settled if change is not None)


def _side(decision: Decision, rendered: Rendering, only: Collection[Identity] | None) -> Side:
    manifests = {(manifest.cluster, manifest.identity): manifest for manifest in rendered.manifests}
    templates = decision.fleet.templates
    found = templates if only is None else templates.keys() & only
    digests = {identity: templates[identity].digest for identity in found}
    return Side(rendered=manifests, bindings=decision.bindings, templates=digests)


def _is_frozen(change: Change, head: Decision) -> bool:
    if change.identity in head.frozen:
        return True
    # Absence proves nothing when the head could not be read completely.
    is_absence = change.action is Action.DELETE and change.identity not in head.bindings
    return is_absence and not head.fleet.is_complete


def _settled(change: Change, base: Decision, head: Decision, claimants: Claimants) -> Change | None:
    if change.action is not Action.DELETE:
        return change
    identity, policy, later = change.identity, base.policies.get(change.identity), head.policies.get(change.identity)
    loss, gone = _loss(identity, base, head), template_of(base.fleet, identity)
    assert gone is not None, f"{identity} was bound and had no template"
    speaking = (later,) if later else claimants.of(gone, policy.ref if policy else None)
    keep = keep_in_force(applied=policy.keep if policy else True, declared=any(each.keep for each in speaking))
    fate = fate_of(loss, keep=keep, is_ack=policy.flavor.is_ack if policy else True)
    follows = identity[:2] == ("", "Namespace") and policy is None
    is_release = fate is Fate.RELEASE or follows
    return replace(
        change,
        action=Action.RELEASE if is_release else Action.DELETE,
        cause=cause_of(loss),
        held=None if is_release else _hold(change, base, head),
        guarded=is_edit(loss) and not follows,
        reason=Reason(rule=loss.name.lower().replace("_", "-"), text=loss.value),
    )


def _loss(identity: Identity, base: Decision, head: Decision) -> Loss:
    if identity in head.bindings:
        return Loss.PLACEMENT_LEFT
    if identity not in head.fleet.templates:
        return Loss.TEMPLATE_LEFT
    was = base.bindings.get(identity)
    return Loss.DEPENDENCY_UNNEEDED if was is not None and was.is_dependency else Loss.POLICY_LEFT


def _hold(change: Change, base: Decision, head: Decision) -> str | None:
    """A copy that moves goes when the new one is healthy, which no revision can tell."""
    target, old = head.bindings.get(change.identity), base.bindings.get(change.identity)
    if target is None or old is None:
        return None
    was = {place.cluster: place.replicas for place in old.targets}
    will_be = {place.cluster: place.replicas for place in target.targets}

    def serving(cluster: str) -> Serving:
        # What is there already is taken to serve.
        return Serving(is_available=not gains(will_be, was, cluster), established=was.get(cluster))

    return effective(will_be, was, serving).holds.get(change.cluster)
