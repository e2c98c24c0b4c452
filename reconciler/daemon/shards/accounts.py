"""What a process tells the others, made of what its loop has shown last; and what the guards make of what they tell."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.observing.reading import constraints_in
from reconciler.daemon.vitals.board import Shown
from reconciler.model.ledger import AppliedRow, Losses
from reconciler.model.observation import ClusterObservation, Health, Observations, Workload
from reconciler.model.plan import Action, Cause, Change
from reconciler.model.refs import Identity
from reconciler.stages.deletion import NOBODY, Others
from reconciler.stages.moves import is_waiting
from reconciler.stages.observations import put_together
from reconciler.stages.shards import Account, Due, Guarded
from reconciler.stages.state import Degraded, HealthState, Progressing

_ACTIONS = frozenset(Action)


def account_of_shard(
    shard: str, shown: Shown, live: Mapping[str, ClusterObservation], journal: Journal, asked: Collection[Identity]
) -> Account:
    """What a shard tells: its clusters, what it is about to delete, and of which copies elsewhere it wants to know.

    `live`: its clusters as it saw them last; `asked`: objects of whose copies here others want to know.
    """
    planned, facts, ledger = shown.picture.round, shown.picture.state.facts, journal.ledger()
    revision = planned.decision.fleet.revision
    sick = facts.health if facts is not None else {}
    told = {
        name: _with_asked(found, ledger.get(name, {}), sick.get(name, {}), asked)
        for name, found in sorted(live.items())
        if name in shown.picture.state.clusters
    }
    losses = journal.losses()
    guarded = Guarded(
        revision=revision,
        due=tuple(_due(change) for change in planned.plan.changes if change.guarded or change.confirm),
        made=losses.made,
        held_since=losses.held_since,
        managed={name: len(rows) for name, rows in sorted(ledger.items())},
    )
    return Account(
        shard=shard,
        revision=revision,
        observations=Observations(clusters=told),
        asks=tuple(sorted({change.identity for change in planned.plan.changes if is_waiting(change)})),
        guarded={shard: guarded},
    )


def account_of_leader(shown: Shown, journal: Journal, accounts: Iterable[Account]) -> Account:
    """What the leader tells: the observations that it decided by, and what it decided; `accounts`: of the shards.

    How copies serve that somebody asks for is told as it is known now: it decides nothing about placement.
    """
    found = list(accounts)
    latest = put_together(account.observations for account in found).clusters
    asks = sorted({identity for account in found for identity in account.asks})
    clusters = {
        name: _with_latest(seen, latest.get(name), asks) for name, seen in sorted(shown.observations.clusters.items())
    }
    return Account(
        revision=shown.picture.round.decision.fleet.revision,
        observations=Observations(
            clusters=clusters, constraints=constraints_in(journal), previous=journal.previous_placements()
        ),
        asks=tuple(asks),
        guarded={each.shard: each.guarded[each.shard] for each in found if each.shard in each.guarded},
        orders=journal.suspension_rows(),
    )


def others_of(leader: Account | None, own: str, shards: Iterable[str], revision: str) -> Others:
    """What the guards of a shard count of the others, as the leader tells it."""
    told = leader.guarded if leader is not None else {}
    waits = [name for name in shards if name != own and (name not in told or told[name].revision != revision)]
    if waits:
        return replace(NOBODY, awaited=f"shard {', '.join(sorted(waits))}")
    found = [guarded for name, guarded in sorted(told.items()) if name != own]
    return Others(
        due=tuple(_change(due) for guarded in found for due in guarded.due if due.action in _ACTIONS),
        managed={name: count for guarded in found for name, count in guarded.managed.items()},
        losses=Losses(
            made=tuple(loss for guarded in found for loss in guarded.made),
            held_since={name: since for guarded in found for name, since in guarded.held_since.items()},
        ),
    )


def _with_asked(
    seen: ClusterObservation,
    rows: Mapping[Identity, AppliedRow],
    sick: Mapping[Identity, HealthState],
    asked: Collection[Identity],
) -> ClusterObservation:
    """The observation with the copies that others ask for. When it was made is left out: it says nothing new."""
    workloads = {identity: _known(found, rows.get(identity)) for identity, found in seen.workloads.items()}
    workloads |= dict(_copies(rows, sick, asked))
    return replace(seen, observed_at="", pods=None, workloads=workloads)


def _known(found: Workload, row: AppliedRow | None) -> Workload:
    if row is None:
        return found
    return replace(found, established=row.established, manifest_digest=row.manifest_digest)


def _copies(
    rows: Mapping[Identity, AppliedRow], sick: Mapping[Identity, HealthState], asked: Iterable[Identity]
) -> Iterator[tuple[Identity, Workload]]:
    for identity in asked:
        row = rows.get(identity)
        if row is None:
            continue
        health = _health(sick.get(identity))
        is_well = health is Health.HEALTHY
        yield (
            identity,
            Workload(
                gvk=row.gvk,
                identity=identity,
                replicas=row.replicas or 0,
                ready=(row.replicas or 0) if is_well else 0,
                health=health,
                established=row.established,
                manifest_digest=row.manifest_digest,
            ),
        )


def _health(found: HealthState | None) -> Health:
    """What is not among those that are not well is healthy."""
    if found is None:
        return Health.HEALTHY
    if isinstance(found, Progressing):
        return Health.PROGRESSING
    return Health.UNHEALTHY if isinstance(found, Degraded) else Health.UNKNOWN


def _with_latest(
    seen: ClusterObservation, latest: ClusterObservation | None, asked: Iterable[Identity]
) -> ClusterObservation:
    if latest is None:
        return seen
    workloads = {identity: found for identity in asked if (found := latest.workloads.get(identity)) is not None}
    gone = {identity for identity in asked if identity not in latest.workloads}
    kept = {identity: found for identity, found in seen.workloads.items() if identity not in gone}
    return replace(seen, reachable=seen.reachable and latest.reachable, observed_at="", workloads={**kept, **workloads})


def _due(change: Change) -> Due:
    return Due(
        action=str(change.action),
        cluster=change.cluster,
        gvk=change.gvk,
        identity=change.identity,
        guarded=change.guarded,
        confirm=change.confirm,
    )


def _change(due: Due) -> Change:
    return Change(
        action=Action(due.action),
        cluster=due.cluster,
        gvk=due.gvk,
        identity=due.identity,
        cause=Cause.DECLARED,
        guarded=due.guarded,
        confirm=due.confirm,
    )
