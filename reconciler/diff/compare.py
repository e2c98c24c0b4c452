"""One manifest against one live object: the change that makes them equal, or why there is none.

Source: design#three-way-diff; design#foreign-objects; design#autoscaled-replicas; design#jobs; design#drift;
design#replacement.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.binding import Reason
from reconciler.api.clusters import Absent, Live, LiveObject, Present
from reconciler.api.content import JsonObject, dig, with_value
from reconciler.api.fleet import IgnoreRule
from reconciler.api.ledger import AppliedRow
from reconciler.api.plan import MISSING, Action, Cause, Change, Engine, FieldChange, HeldBy, Hold, Manifest
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.diff.canonical import sendable
from reconciler.diff.foreign import (
    end_to_leave_after,
    namespace_remark,
    other_release,
    problem_in_cluster,
    refusal,
    second_holder,
)
from reconciler.diff.immutable import why_not_replaced
from reconciler.diff.three_way import difference_from
from reconciler.diff.trees import Bodies, Desired, Difference, desired_of
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.observations import has_succeeded
from reconciler.ownership import (
    RELEASE,
    ObjectOwner,
    Ownership,
    adopted,
    field_manager,
    fleet_names,
    holds_field,
    holds_hashes,
    is_marked_encrypted,
    missing_marks,
    ownership_for,
    ownership_of,
    replicas_path,
    shared_list,
    steady_path,
    strip_marks,
    with_entries_of_others,
    yielded,
)
from reconciler.scheduler import KindSchemas, Schedule

_TAKEN_BACK = Reason(rule="released", text="it was released from here, and is taken back")
_STRIPPED = Reason(rule="stripped", text="the cluster (an admission webhook?) stripped our mark from what we wrote")


class Comparison(Struct, frozen=True, kw_only=True):
    """The result; at most one of `change`, `problem`. `in_sync`: ours and equal. `remark`: a warning, writes go on."""

    change: Change | None = None
    problem: Problem | None = None
    remark: Problem | None = None
    in_sync: bool = False
    live: LiveObject | None = None

    @property
    def shows_no_difference(self) -> bool:
        """Return whether no difference is known, also if only the API server can confirm that."""
        change = self.change
        is_doubt = change is not None and (change.action, change.engine) == (Action.UPDATE, Engine.SERVER_SIDE)
        return self.in_sync or (is_doubt and change is not None and not (change.fields or change.removed_paths))


def ignored_paths(identity: Identity, rules: tuple[IgnoreRule, ...]) -> tuple[str, ...]:
    """Return the field paths of `spec.ignore` that concern the object. Source: design#ignored-fields."""
    return tuple(path for rule in rules if rule.names(identity) for path in rule.paths)


def overall_cause(fields: tuple[FieldChange, ...]) -> Cause:
    """Return the cause of a change as a whole: the one that an author would look for first."""
    causes = {field.cause for field in fields}
    order = (Cause.DECLARED, Cause.REMOVED, Cause.DRIFT, Cause.OVERRIDE, Cause.PLACEMENT, Cause.OWNERSHIP)
    return next((cause for cause in order if cause in causes), Cause.DECLARED)


class Comparer:
    """Compares manifests with the objects of clusters, by one schedule and the snapshot that it was made of."""

    def __init__(self, schedule: Schedule, snapshot: FleetSnapshot, *, are_shared: bool = False) -> None:
        """`are_shared`: members hold the same live object where they got the same; they stand for real ones."""
        self.schedule = schedule
        self.snapshot = snapshot
        self.schemas = KindSchemas(schedule, snapshot.schemas)
        self._settings = snapshot.fleet.settings
        self.names = fleet_names(self._settings)
        """Of the fleet, the present one first."""
        self._manager = field_manager(self._settings.name)
        self._are_shared = are_shared
        self._bodies: tuple[Identity, Bodies] | None = None

    def compare(self, manifest: Manifest, live: Live, ownership: Ownership | None = None) -> Comparison:
        """Return the change that makes `live` equal `manifest`. `ownership`: of the object, if known already."""
        # The bodies of the template; clusters are compared one after the other, and share them.
        if self._bodies is None or self._bodies[0] != manifest.identity:
            schema, key = self.schemas.of(manifest.gvk), self.snapshot.journal.record_key
            self._bodies = manifest.identity, Bodies(schema, key, are_shared=self._are_shared)
        row, bodies = self.snapshot.journal.row(manifest.cluster, manifest.identity), self._bodies[1]
        if isinstance(live, Present):
            compared = self._present(manifest, live.object, row, bodies, ownership)
        elif isinstance(live, Absent):
            is_same = row is not None and other_release(manifest.body, row.recorded) is None
            if row is not None and row.finished and is_same and self._has_run(manifest, row, bodies):
                return Comparison(in_sync=True)
            # What was applied and is gone was deleted by somebody else, or by us: its record has no uid then.
            cause = Cause.DRIFT if row is not None and is_same and row.uid else Cause.DECLARED
            wanted = bodies.wanted(manifest.body, manifest.leaves)
            compared = Comparison(change=self._change(manifest, Action.CREATE, cause, body=wanted.body))
        else:
            why = f"cannot be read: {live.why}" if live.why else None
            compared = Comparison(problem=problem_in_cluster(manifest, "object-not-read", why) if why else None)
        if (change := compared.change) is None:
            return compared
        # Mark and redact for the journal values that are encrypted in the store. Formerly encrypted ones are still in
        # the cluster, and in the differences.
        if manifest.leaves and change.manifest is not None:
            record = bodies.recorded(change.declared or change.manifest, manifest.leaves)
            return replace(compared, change=replace(change, is_sealed=True, declared=record))
        if manifest.identity[:2] != ("", "Secret") and (
            (row is not None and holds_hashes(row.recorded))
            or (change.before is not None and is_marked_encrypted(change.before))
        ):
            return replace(compared, change=replace(change, is_sealed=True))
        return compared

    def altered(self, change: Change, answer: LiveObject) -> tuple[FieldChange, ...]:
        """Return the fields of a write that are not as sent: `before` is there, `after` was asked for.

        `answer`: the acknowledged object, the first sign of an admission webhook. Additions and other spellings are as
        wanted; without a schema a dry run tells later. Source: design#altered-writes.
        """
        schema = self.schemas.of(change.gvk)
        if change.manifest is None or schema is None:
            return ()
        # An API server adds tolerations to every Pod, and a registry its pull secret to every account.
        body = with_entries_of_others(change.identity, change.manifest, answer.body, change.manifest, self._manager)
        difference = difference_from(
            desired_of(body),
            answer.body,
            manager=self._manager,
            # Sent a moment ago: fields that only the answer has are defaults, or others' own.
            previous=body,
            schema=schema,
            ignored=ignored_paths(change.identity, self._settings.ignore),
        )
        return tuple([field for field in difference.fields if field.after is not MISSING])

    def _present(
        self, manifest: Manifest, live: LiveObject, row: AppliedRow | None, bodies: Bodies, ownership: Ownership | None
    ) -> Comparison:
        if ownership is None:
            ownership = ownership_of(live, self.names)
        if ownership.standing is not ObjectOwner.OURS:
            ownership = ownership_for(manifest.body, ownership)
            released = self.snapshot.journal.released.get(manifest.cluster, {}).get(manifest.identity, "")
            is_it = bool(released) and live.uid == released and ownership.standing is ObjectOwner.NOBODYS
            # One that was ours again since, and lost its marks, was released by a person.
            lost = self._lost_marks(live, row)
            if is_it and not dig(live.body, "metadata", "ownerReferences") and not lost:
                return self._adoption(manifest, live, bodies, _TAKEN_BACK)
            if row is not None and row.uid == live.uid and ownership.standing is ObjectOwner.NOBODYS and not lost:
                return self._adoption(manifest, live, bodies, _STRIPPED)
            if manifest.identity[:2] == ("", "Namespace") and manifest.policy is None:
                # It only follows its objects: it must exist, but need not be ours.
                return Comparison(problem=namespace_remark(manifest, live), live=live)
            problem = refusal(manifest, live, ownership, self.schedule.policies.get(manifest.identity), lost)
            return self._adoption(manifest, live, bodies) if problem is None else Comparison(problem=problem, live=live)
        if (other := other_release(manifest.body, live.body)) is not None:
            body = bodies.wanted(manifest.body, manifest.leaves).body
            change = self._change(manifest, Action.REPLACE, Cause.DECLARED, body=body, live=live)
            return Comparison(change=replace(change, fields=(other,)), live=live)
        if (end := end_to_leave_after(manifest.body, live)) is not None:
            # Its manifest goes along, to be recorded.
            body = bodies.wanted(manifest.body, manifest.leaves).body
            change = self._change(manifest, Action.DELETE, Cause.COMPLETED, body=body, live=live)
            return Comparison(change=replace(change, reason=Reason(rule="completed", text=f"it {end}")), live=live)
        # A finished Job or Pod is history: it is only touched when its template changes.
        is_finished = row is not None and row.finished and live.uid == row.uid
        has_run = is_finished and row is not None and self._has_run(manifest, row, bodies)
        # A hook may have succeeded for the release that it is for now without a command that saw its end.
        release, of = (dig(body, "metadata", "annotations", RELEASE) for body in (manifest.body, live.body))
        if has_run or (release is not None and release == of and has_succeeded(live.body)):
            ours = Comparison(in_sync=True, live=live)
        else:
            ours = self._ours(manifest, live, row, bodies)
        remark = second_holder(manifest, live)
        return replace(ours, remark=remark) if remark is not None else ours

    def _ours(self, manifest: Manifest, live: LiveObject, row: AppliedRow | None, bodies: Bodies) -> Comparison:
        managers = map(field_manager, self.names[1:])
        predecessors = tuple([manager for manager in managers if holds_field(live, (manager,))])
        if predecessors:
            # After a rename the fields of the old name become ours first; else what leaves the store would stay.
            live = replace(live, body=adopted(live.body, self._manager, predecessors))
        body, left = self._sent(manifest, live, row)
        wanted = bodies.wanted(body, manifest.leaves)
        difference = self._difference(manifest, wanted, live, row, bodies, left)
        if not difference.fields and not difference.removed_paths:
            # What stands for a real object holds nothing that nobody wrote, so that there is nothing to be unsure of.
            if difference.unsure is None or bodies.are_shared:
                return Comparison(in_sync=True, live=live)
            doubtful = self._change(manifest, Action.UPDATE, Cause.DECLARED, body=wanted.body, live=live)
            return Comparison(change=replace(doubtful, predecessors=predecessors, engine=Engine.SERVER_SIDE), live=live)
        if difference.replace:
            hold = why_not_replaced(manifest.identity.kind, manifest.body, difference.replace)
            path = self._replicas_path(manifest)
            current = dig(live.body, *path) if manifest.replicas_yielded else None
            body = manifest.body if current is None else with_value(manifest.body, path, current)
            change = self._change(manifest, Action.REPLACE, Cause.DECLARED, body=body, live=live, hold=hold)
            return Comparison(change=replace(change, fields=difference.fields, steady_path=()), live=live)
        cause = overall_cause(difference.fields)
        hold = None
        if cause is Cause.DRIFT and not self._settings.self_heal:
            hold = Hold(HeldBy.SETTINGS, "drift is left as it is (spec.drift.selfHeal: false)")
        change = self._change(manifest, Action.UPDATE, cause, body=wanted.body, live=live, hold=hold)
        change = replace(
            change,
            fields=difference.fields,
            removed_paths=difference.removed_paths,
            in_the_way=difference.in_the_way,
            predecessors=predecessors,
            engine=Engine.SERVER_SIDE if difference.unsure else Engine.THREE_WAY,
        )
        return Comparison(change=change, live=live)

    def _sent(self, manifest: Manifest, live: LiveObject, row: AppliedRow | None) -> tuple[JsonObject, tuple[str, ...]]:
        """Return the body to send, and its fields that are left to others."""
        body = manifest.body
        if shared_list(manifest.identity):
            declared = row.recorded if row is not None else None
            body = with_entries_of_others(manifest.identity, body, live.body, declared, self._manager)
        if not manifest.replicas_yielded:
            return body, ()
        return yielded(body, live.body, self._replicas_path(manifest), self._manager)

    def _replicas_path(self, manifest: Manifest) -> tuple[str, ...]:
        return replicas_path(manifest.identity, self.snapshot.interpreters)

    def _has_run(self, manifest: Manifest, row: AppliedRow, bodies: Bodies) -> bool:
        """Return whether a finished run was for this manifest: by a hook's release, else by its fields."""
        release = dig(manifest.body, "metadata", "annotations", RELEASE)
        is_of_release = release is not None and release == dig(row.recorded, "metadata", "annotations", RELEASE)
        if is_of_release or row.manifest_digest == manifest.digest:
            return True
        if row.recorded is None:
            return False
        # A Job that ran to its end does not run again because this version sends other labels than an earlier one.
        wanted = bodies.wanted(manifest.body, manifest.leaves).recorded
        sanitize = self.snapshot.interpreters.of(*manifest.identity[:2]).sanitize
        return strip_marks(wanted) == sanitize(strip_marks(row.recorded))

    def _adoption(
        self, manifest: Manifest, live: LiveObject, bodies: Bodies, reason: Reason | None = None
    ) -> Comparison:
        # What adoption makes ours and the store does not want goes with the first apply: it is shown beforehand.
        owned = replace(live, body=adopted(live.body, self._manager))
        body, left = self._sent(manifest, owned, None)
        wanted = bodies.wanted(body, manifest.leaves)
        difference = self._difference(manifest, wanted, owned, None, bodies, left)
        change = self._change(manifest, Action.ADOPT, Cause.ADOPTION, body=wanted.body, live=live)
        change = replace(change, fields=difference.fields, removed_paths=difference.removed_paths, reason=reason)
        return Comparison(change=change, live=live)

    def _lost_marks(self, live: LiveObject, row: AppliedRow | None) -> tuple[str, ...]:
        """Return the marks that somebody took off an object of ours (recorded, or with a mark and a field left)."""
        missing = missing_marks(live.body, self.names)
        if row is not None and row.uid == live.uid:
            stripped = missing_marks(row.recorded, self.names) if row.recorded is not None else ()
            return tuple([mark for mark in missing if mark not in stripped])
        return missing if len(missing) == 1 and holds_field(live, tuple(map(field_manager, self.names))) else ()

    def _difference(
        self,
        manifest: Manifest,
        wanted: Desired,
        live: LiveObject,
        row: AppliedRow | None,
        bodies: Bodies,
        left: tuple[str, ...],
    ) -> Difference:
        """Return what differs; where members share their objects, it is found once. `left`: paths left to others."""
        recorded = row.recorded if row is not None else None
        key = (id(wanted.body), id(live.body), id(recorded), left)
        if bodies.are_shared and (known := bodies.differences.get(key)) is not None:
            return known[1]
        # Nearly always the last sent manifest equals the next one.
        previous: JsonObject | None = wanted.recorded
        if recorded != previous:
            # Without fields that are not sent any more: those that clusters write themselves.
            previous = recorded and sendable(
                self.snapshot.interpreters.of(*manifest.identity[:2]).sanitize(recorded), bodies.schema
            )
        if previous is not None and shared_list(manifest.identity):
            # What others added is no news: else what somebody took away would look newly declared.
            previous = with_entries_of_others(manifest.identity, previous, live.body, previous, self._manager)
        ignore = self._settings.ignore
        difference = difference_from(
            wanted,
            live.body,
            manager=self._manager,
            previous=previous,
            schema=bodies.schema,
            ignored=(*left, *ignored_paths(manifest.identity, ignore)) if left or ignore else (),
        )
        if bodies.are_shared:
            bodies.differences[key] = ((wanted.body, live.body, recorded), difference)
        return difference

    def _change(
        self,
        manifest: Manifest,
        action: Action,
        cause: Cause,
        *,
        body: JsonObject,
        live: LiveObject | None = None,
        hold: Hold | None = None,
    ) -> Change:
        return Change(
            action=action,
            cluster=manifest.cluster,
            gvk=manifest.gvk,
            identity=manifest.identity,
            cause=cause,
            source=manifest.source,
            hold=hold,
            manifest=body,
            declared=None if body is manifest.body or not shared_list(manifest.identity) else manifest.body,
            before=live.body if live else None,
            manifest_digest=manifest.digest,
            uid=live.uid if live else "",
            resource_version=live.resource_version if live else "",
            steady_path=steady_path(body, live.body, self._replicas_path(manifest)) if live else (),
        )
