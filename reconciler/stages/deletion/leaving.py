"""Changes for copies of ours that are no longer desired in their clusters.

Source: design#release; design#frozen; design#before-a-deletion.
"""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.binding import Reason
from reconciler.model.observation import Read
from reconciler.model.plan import Action, Change
from reconciler.model.problem import NOWHERE, Problem, Severity, Source
from reconciler.model.refs import Identity
from reconciler.stages.decision import Decision
from reconciler.stages.deletion.deletion import Fate, Loss, cause_of, is_edit
from reconciler.stages.deletion.losses import LostCopy
from reconciler.stages.fleet_snapshot import FleetSnapshot
from reconciler.stages.ownership import is_terminating, managers_of_fleet, missing_witness, terminating
from reconciler.stages.templates import why_confirmed


def lose(
    decision: Decision, snapshot: FleetSnapshot, lost: LostCopy, hold: str | None
) -> tuple[Change | None, Problem | None]:
    """The change that a lost copy asks for, or the problem that stands in its way; neither where it is frozen.

    `hold`: what its move waits for, None: nothing.
    """
    member = snapshot.members[lost.cluster]
    if lost.is_frozen or not isinstance(member, Read):
        return None, None
    identity = lost.live.identity
    if is_terminating(lost.live):
        source = _source(decision, snapshot, identity, member.name)
        return None, terminating(lost.live, member.name, source, is_wanted=False)
    # A Namespace that only follows what lives in it is never deleted by us, and nobody decided that it goes.
    follows = identity[:2] == ("", "Namespace") and lost.owner.policy is None
    release = lost.fate is Fate.RELEASE or follows
    change = Change(
        action=Action.RELEASE if release else Action.DELETE,
        cluster=member.name,
        gvk=lost.live.gvk,
        identity=identity,
        cause=cause_of(lost.loss),
        before=lost.live.body,
        source=_source(decision, snapshot, identity, member.name),
        uid=lost.live.uid,
        resource_version=lost.live.resource_version,
        guarded=is_edit(lost.loss) and not follows,
        reason=Reason(rule=lost.loss.name.lower().replace("_", "-"), text=lost.why),
    )
    suspended = lost.hold or decision.hold(identity, member.name)
    if release:
        return replace(change, held=suspended), None
    change = replace(change, confirm=_why_confirmed(decision, lost))
    row = snapshot.journal.row(member.name, identity)
    settings = snapshot.fleet.settings
    managers = managers_of_fleet(settings.name, settings.previous_names)
    witness = missing_witness(lost.live, member, row.uid if row else None, managers)
    if not snapshot.journal.has_history:
        return replace(change, held="nothing is deleted before one complete round has been recorded"), None
    if witness:
        text = f"{identity} is no longer wanted but is not deleted: {witness}"
        return None, Problem(
            source=change.source, code="not-deleted", message=text, severity=Severity.WARNING, cluster=member.name
        )
    return replace(change, held=hold or suspended), None


def _why_confirmed(decision: Decision, lost: LostCopy) -> str:
    identity = lost.live.identity
    if decision.is_evicted(identity, lost.cluster):
        return ""  # Somebody asked for just that.
    moves = lost.loss in (Loss.PLACEMENT_LEFT, Loss.MOVED_BY_TICK)
    return why_confirmed(identity, lost.live.body, lost.cluster, moves=moves)


def _source(decision: Decision, snapshot: FleetSnapshot, identity: Identity, cluster: str) -> Source:
    template = decision.fleet.templates.get(identity)
    if template is not None:
        return template.source
    row = snapshot.journal.row(cluster, identity)
    return row.source if row else NOWHERE
