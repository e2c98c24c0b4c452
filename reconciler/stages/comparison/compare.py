"""One manifest against one live object: the change that makes them equal, or why there is none.

Source: design#three-way-diff; design#foreign-objects; design#autoscaled-replicas; design#jobs; design#drift;
design#replacement.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from reconciler.interpreters.registry import Registry
from reconciler.model.binding import Reason
from reconciler.model.fleet import IgnoreRule
from reconciler.model.ledger import AppliedRow
from reconciler.model.observation import Absent, Live, LiveObject, Present, Unknown
from reconciler.model.plan import Action, Cause, Change, Engine, FieldChange, Manifest
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.comparison.foreign import (
    is_used_as_it_is,
    namespace_remark,
    problem_about,
    refusal,
    second_holder,
)
from reconciler.stages.comparison.replacement import why_not_replaced
from reconciler.stages.comparison.veiled import veiled
from reconciler.stages.diff import Bodies, Desired, Difference, difference_from, sendable
from reconciler.stages.ownership import (
    Ownership,
    Standing,
    Yielded,
    adopted,
    field_manager,
    holds_field,
    managers_of_fleet,
    missing_marks,
    ownership_for,
    ownership_of,
    replicas_path,
    shared_list,
    steady_path,
    strip_marks,
    with_entries_of_others,
    with_live_replicas,
    yielded,
)

_TAKEN_BACK = Reason(rule="released", text="it was released from here, and is taken back")


class Stance(Struct, frozen=True, kw_only=True):
    """How a cluster's objects are compared: who we are and what we may do.

    `record_key`: the journal's key, with which Secret values were hashed when they were recorded.
    """

    fleet: str
    interpreters: Registry
    previous_names: tuple[str, ...] = ()
    record_key: bytes = b""
    self_heal: bool = True
    ignore: tuple[IgnoreRule, ...] = ()


class Comparison(Struct, frozen=True, kw_only=True):
    """What came out. `in_sync`: the live object is ours and equals the manifest. At most one of `change`, `problem`.

    `remark`: what is to be said of an object that is ours, and keeps nothing from being written.
    """

    change: Change | None = None
    problem: Problem | None = None
    remark: Problem | None = None
    in_sync: bool = False
    live: LiveObject | None = None

    @property
    def shows_no_difference(self) -> bool:
        """Whether nothing is known to differ, also where only the API server can vouch for that."""
        change = self.change
        is_doubt = change is not None and (change.action, change.engine) == (Action.UPDATE, Engine.SERVER_SIDE)
        return self.in_sync or (is_doubt and change is not None and not (change.fields or change.removed_paths))


def compare(  # noqa: PLR0913 - what is known of one object
    manifest: Manifest,
    live: Live,
    row: AppliedRow | None,
    bodies: Bodies,
    stance: Stance,
    policy: PropagationPolicy | None,
    ownership: Ownership | None = None,
    *,
    released_uid: str = "",
) -> Comparison:
    """The change that makes `live` equal `manifest`.

    `row`: what the journal recorded of the last apply there. `bodies`: those of the template, with the schema of its
    kind; where that is unknown, engine T does not vouch for removals inside lists. `policy`: the one that governs the
    template. `ownership`: of the live object, when it is known already. `released_uid`: of the object that was released
    there last.
    """
    found = _compared(manifest, live, row, bodies, stance, policy, ownership, released_uid)
    return replace(found, change=veiled(found.change, manifest, row, bodies)) if found.change else found


def _compared(  # noqa: PLR0913, PLR0917 - what is known of one object
    manifest: Manifest,
    live: Live,
    row: AppliedRow | None,
    bodies: Bodies,
    stance: Stance,
    policy: PropagationPolicy | None,
    ownership: Ownership | None,
    released_uid: str,
) -> Comparison:
    match live:
        case Present(object=found):
            if ownership is None:
                ownership = ownership_of(found, stance.fleet, stance.previous_names)
            if ownership.standing is not Standing.OURS:
                ownership = ownership_for(manifest.body, ownership)
                if _is_returning(found, row, released_uid, ownership, stance):
                    return _adoption(manifest, found, bodies, stance, _TAKEN_BACK)
                return _foreign(manifest, found, row, ownership, bodies, stance, policy)
            if row is not None and row.finished and found.uid == row.uid:
                ours = _finished(manifest, found, row, bodies, stance)
            else:
                ours = _ours(manifest, found, row, bodies, stance)
            remark = second_holder(manifest, found)
            return replace(ours, remark=remark) if remark is not None else ours
        case Absent():
            return _absent(manifest, row, bodies, stance)
        case Unknown(why=why):
            return Comparison(
                problem=problem_about(manifest, "object-not-read", f"cannot be read: {why}") if why else None
            )


def _absent(manifest: Manifest, row: AppliedRow | None, bodies: Bodies, stance: Stance) -> Comparison:
    if row is not None and row.finished and _is_as_recorded(manifest, row, bodies, stance):
        return Comparison(in_sync=True)
    # What was applied and is gone was deleted by somebody else.
    cause = Cause.DECLARED if row is None else Cause.DRIFT
    return Comparison(
        change=_change(manifest, Action.CREATE, cause, stance, body=bodies.wanted(manifest.body, manifest.leaves).body)
    )


def _ours(manifest: Manifest, live: LiveObject, row: AppliedRow | None, bodies: Bodies, stance: Stance) -> Comparison:
    predecessors = _predecessors(live, stance) if stance.previous_names else ()
    if predecessors:
        # After a rename the fields of the old name become ours first; else what leaves the store would stay for ever.
        live = replace(live, body=adopted(live.body, field_manager(stance.fleet), predecessors))
    sent = _sent(manifest, live, row, stance)
    wanted = bodies.wanted(sent.body, manifest.leaves)
    difference = _difference(manifest, wanted, live, row, bodies, stance, sent.paths)
    if not difference.fields and not difference.removed_paths:
        # What stands for a real object holds nothing that nobody wrote, so that there is nothing to be unsure of.
        if difference.unsure is None or bodies.are_shared:
            return Comparison(in_sync=True, live=live)
        doubtful = _change(manifest, Action.UPDATE, Cause.DECLARED, stance, body=wanted.body, live=live)
        return Comparison(change=replace(doubtful, predecessors=predecessors, engine=Engine.SERVER_SIDE), live=live)
    if difference.replace:
        return Comparison(change=_replacement(manifest, live, difference, stance), live=live)
    cause = overall_cause(difference.fields)
    held = None
    if cause is Cause.DRIFT and not stance.self_heal:
        held = "drift is left as it is (spec.drift.selfHeal: false)"
    change = _change(manifest, Action.UPDATE, cause, stance, body=wanted.body, live=live, held=held)
    return Comparison(
        change=replace(
            change,
            fields=difference.fields,
            removed_paths=difference.removed_paths,
            in_the_way=difference.in_the_way,
            predecessors=predecessors,
            engine=Engine.SERVER_SIDE if difference.unsure else Engine.THREE_WAY,
        ),
        live=live,
    )


def _sent(manifest: Manifest, live: LiveObject, row: AppliedRow | None, stance: Stance) -> Yielded:
    """The body to send, and what of it is left to others."""
    manager, body = field_manager(stance.fleet), manifest.body
    if shared_list(manifest.identity):
        declared = row.recorded if row is not None else None
        body = with_entries_of_others(manifest.identity, body, live.body, declared, manager)
    if not manifest.replicas_yielded:
        return Yielded(body, ())
    return yielded(body, live.body, replicas_path(manifest.identity, stance.interpreters), manager)


def _predecessors(live: LiveObject, stance: Stance) -> tuple[str, ...]:
    """Managers of earlier names of the fleet that still hold fields of the object."""
    managers = managers_of_fleet(stance.fleet, stance.previous_names)[1:]
    return tuple(manager for manager in managers if holds_field(live, (manager,)))


def _finished(manifest: Manifest, live: LiveObject, row: AppliedRow, bodies: Bodies, stance: Stance) -> Comparison:
    # A finished Job or Pod is history: it is only touched when its template changes.
    if _is_as_recorded(manifest, row, bodies, stance):
        return Comparison(in_sync=True, live=live)
    return _ours(manifest, live, row, bodies, stance)


def _is_as_recorded(manifest: Manifest, row: AppliedRow, bodies: Bodies, stance: Stance) -> bool:
    """Whether the manifest is what was applied last, also where an earlier version sent more or less of a template.

    Else a Job that ran to its end would run again because this program says its labels now.
    """
    if row.manifest_digest == manifest.digest:
        return True
    if row.recorded is None:
        return False
    wanted = bodies.wanted(manifest.body, manifest.leaves).recorded
    return strip_marks(wanted) == _as_sent_now(strip_marks(row.recorded), manifest, stance)


def _as_sent_now(recorded: JsonObject, manifest: Manifest, stance: Stance) -> JsonObject:
    """What was sent, without what is not sent any more: fields that clusters write themselves."""
    return stance.interpreters.of(*manifest.identity[:2]).sanitize(recorded)


def _foreign(
    manifest: Manifest,
    live: LiveObject,
    row: AppliedRow | None,
    ownership: Ownership,
    bodies: Bodies,
    stance: Stance,
    policy: PropagationPolicy | None,
) -> Comparison:
    if is_used_as_it_is(manifest):
        return Comparison(problem=namespace_remark(manifest, live), live=live)
    problem = refusal(manifest, ownership, policy, _lost_marks(live, row, stance))
    if problem is not None:
        return Comparison(problem=problem, live=live)
    return _adoption(manifest, live, bodies, stance)


def _is_returning(
    live: LiveObject, row: AppliedRow | None, released_uid: str, ownership: Ownership, stance: Stance
) -> bool:
    """Whether it is the very object that was released, and nobody else has come to own it.

    One that was ours again since, and lost its marks, was let go by a person.
    """
    is_it = bool(released_uid) and live.uid == released_uid and ownership.standing is Standing.NOBODYS
    return is_it and not dig(live.body, "metadata", "ownerReferences") and not _lost_marks(live, row, stance)


def _adoption(
    manifest: Manifest, live: LiveObject, bodies: Bodies, stance: Stance, reason: Reason | None = None
) -> Comparison:
    # What adoption makes ours and the store does not want goes with the first apply: it is shown beforehand.
    taken = replace(live, body=adopted(live.body, field_manager(stance.fleet)))
    sent = _sent(manifest, taken, None, stance)
    wanted = bodies.wanted(sent.body, manifest.leaves)
    difference = _difference(manifest, wanted, taken, None, bodies, stance, sent.paths)
    change = _change(manifest, Action.ADOPT, Cause.ADOPTION, stance, body=wanted.body, live=live)
    return Comparison(
        change=replace(
            change,
            fields=difference.fields,
            removed_paths=difference.removed_paths,
            reason=reason,
        ),
        live=live,
    )


def _lost_marks(live: LiveObject, row: AppliedRow | None, stance: Stance) -> tuple[str, ...]:
    """The marks that somebody took off an object of ours; nothing when it never was ours.

    It was when the journal recorded this very object, or when it has one of the marks and a field of ours still.
    """
    missing = missing_marks(live, stance.fleet, stance.previous_names)
    if row is not None and row.uid == live.uid:
        return missing
    is_marked = len(missing) == 1 and holds_field(live, managers_of_fleet(stance.fleet, stance.previous_names))
    return missing if is_marked else ()


def _replacement(manifest: Manifest, live: LiveObject, difference: Difference, stance: Stance) -> Change:
    assert difference.replace is not None, "a replacement has its reason"
    held = why_not_replaced(manifest.identity.kind, manifest.body, difference.replace)
    body = with_live_replicas(manifest, live.body, replicas_path(manifest.identity, stance.interpreters))
    change = _change(manifest, Action.REPLACE, Cause.DECLARED, stance, body=body, live=live, held=held)
    return replace(change, fields=difference.fields, steady_path=())


def _difference(
    manifest: Manifest,
    wanted: Desired,
    live: LiveObject,
    row: AppliedRow | None,
    bodies: Bodies,
    stance: Stance,
    left: tuple[str, ...] = (),
) -> Difference:
    recorded = row.recorded if row is not None else None

    def find() -> Difference:
        # Nearly always what was sent last is what would be sent now.
        previous: JsonObject | None = wanted.recorded
        if recorded != previous:
            previous = recorded and sendable(_as_sent_now(recorded, manifest, stance), bodies.schema)
        if previous is not None and shared_list(manifest.identity):
            # What others added is no news: else what somebody took away would look newly declared.
            manager = field_manager(stance.fleet)
            previous = with_entries_of_others(manifest.identity, previous, live.body, previous, manager)
        return difference_from(
            wanted,
            live.body,
            manager=field_manager(stance.fleet),
            previous=previous,
            schema=bodies.schema,
            ignored=(*left, *ignored_paths(manifest.identity, stance.ignore)) if left or stance.ignore else (),
        )

    return bodies.shared_difference(wanted, live.body, recorded, left, find) if bodies.are_shared else find()


def ignored_paths(identity: Identity, rules: tuple[IgnoreRule, ...]) -> tuple[str, ...]:
    """The field paths of `spec.ignore` that concern the object. Source: design#ignored-fields."""
    return tuple(
        path
        for rule in rules
        if rule.kind in ("", identity.kind)
        and rule.group in (None, identity.group)
        and rule.namespace in ("", identity.namespace)
        and rule.name in ("", identity.name)
        for path in rule.paths
    )


def overall_cause(fields: tuple[FieldChange, ...]) -> Cause:
    """The cause of a change as a whole: the one that an author would look for first."""
    causes = {field.cause for field in fields}
    for cause in (
        Cause.DECLARED, Cause.REMOVED, Cause.DRIFT, Cause.OVERRIDE, Cause.PLACEMENT, Cause.OWNERSHIP,
    ):  # fmt: skip
        if cause in causes:
            return cause
    return Cause.DECLARED


def _change(
    manifest: Manifest,
    action: Action,
    cause: Cause,
    stance: Stance,
    *,
    body: JsonObject,
    live: LiveObject | None = None,
    held: str | None = None,
) -> Change:
    path = replicas_path(manifest.identity, stance.interpreters)
    return Change(
        action=action,
        cluster=manifest.cluster,
        gvk=manifest.gvk,
        identity=manifest.identity,
        cause=cause,
        source=manifest.source,
        held=held,
        manifest=body,
        declared=None if body is manifest.body or not shared_list(manifest.identity) else manifest.body,
        before=live.body if live else None,
        manifest_digest=manifest.digest,
        uid=live.uid if live else "",
        resource_version=live.resource_version if live else "",
        steady_path=steady_path(body, live.body, path) if live else (),
    )
