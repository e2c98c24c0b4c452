"""What a round leaves in the journal beside its intents: placements, what was found in step, finished runs, events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.adapters.journal import Journal
from reconciler.daemon.act import Result
from reconciler.daemon.look import Looked
from reconciler.engine import Round
from reconciler.model.binding import PreviousPlacement
from reconciler.model.ledger import AppliedRow, Event
from reconciler.model.member import Read
from reconciler.model.observation import LiveObject
from reconciler.model.plan import Action, Manifest
from reconciler.model.refs import Identity
from reconciler.report.plan_json import summary
from reconciler.stages.marks import read_owner
from reconciler.stages.moves import Run, run_of

_RUNS = frozenset({("batch", "Job"), ("", "Pod")})


def remember(journal: Journal, planned: Round, looked: Looked, results: Sequence[Result]) -> int:
    """Record the round as complete; its number."""
    plan, fleet = planned.plan, looked.world.fleet
    with journal.transaction():
        journal.record_applied(_confirmed(planned, looked, {(r.change.cluster, r.change.identity) for r in results}))
        journal.record_bindings(fleet.revision, _placements(planned, looked))
        number = journal.record_round(fleet.revision, looked.now, summary(plan.changes))
        journal.record_events(_events(number, looked.now, results))
    return number


def _placements(planned: Round, looked: Looked) -> dict[Identity, PreviousPlacement]:
    """The decided placements; those of templates that a broken file froze stay as they were."""
    before = looked.world.observations.previous
    kept = {identity: before[identity] for identity in planned.decision.frozen if identity in before}
    return kept | {
        identity: PreviousPlacement(identity=identity, targets=binding.targets, affinity_name=binding.affinity_name)
        for identity, binding in planned.decision.bindings.items()
        if binding.targets
    }


def _confirmed(planned: Round, looked: Looked, written: set[tuple[str, Identity]]) -> Iterable[AppliedRow]:
    """Rows of objects that were found to be ours and as wanted, where the journal does not say so yet."""
    for cluster, manifests in planned.manifests.items():
        member = looked.world.members[cluster]
        if not isinstance(member, Read):
            continue
        due = {change.identity for change in planned.plan.changes if change.cluster == cluster}
        rows = looked.world.ledger.get(cluster, {})
        for identity, manifest in manifests.items():
            live = member.objects.get(identity)
            if live is None or identity in due or (cluster, identity) in written:
                continue
            row = _row(cluster, manifest, live, looked.world.fleet.revision)
            if row is not None and _is_news(row, rows.get(identity)):
                yield row


def _row(cluster: str, manifest: Manifest, live: LiveObject, revision: str) -> AppliedRow | None:
    owner = read_owner(live.body)
    if owner is None:
        return None
    return AppliedRow(
        cluster=cluster,
        gvk=manifest.gvk,
        identity=manifest.identity,
        uid=live.uid,
        manifest_digest=manifest.digest,
        recorded=manifest.body,
        policy=str(owner.policy) if owner.policy else "",
        keep=owner.keep,
        flavor=owner.flavor,
        replicas=owner.replicas,
        dependency=owner.dependency,
        finished=manifest.identity[:2] in _RUNS and run_of(live.body) is Run.FINISHED,
        revision=revision,
        source=manifest.source,
    )


def _is_news(row: AppliedRow, known: AppliedRow | None) -> bool:
    if known is None:
        return True
    return (row.uid, row.manifest_digest, row.finished) != (known.uid, known.manifest_digest, known.finished)


def _events(number: int, time: str, results: Sequence[Result]) -> Iterable[Event]:
    for result in results:
        change = result.change
        yield Event(
            round=number,
            time=time,
            kind="failed" if result.error else _PAST[change.action],
            subject=f"{change.identity} @ {change.cluster}",
            data={
                "cause": str(change.cause),
                "source": str(change.source),
                "fields": [field.path for field in change.fields],
                **({"error": result.error} if result.error else {}),
                **({"why": change.reason.text} if change.reason else {}),
            },
        )


_PAST = {
    Action.CREATE: "created",
    Action.UPDATE: "updated",
    Action.REPLACE: "replaced",
    Action.DELETE: "deleted",
    Action.RELEASE: "released",
    Action.ADOPT: "adopted",
}
