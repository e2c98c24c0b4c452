"""Alerts: the worst first, equal ones once with their count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import chain
from typing import Final

from msgspec import Struct

from reconciler.api.binding import Tick
from reconciler.api.ledger import EventKind
from reconciler.api.problem import NOWHERE, Problem, Severity
from reconciler.api.refs import Identity
from reconciler.incremental import by_key
from reconciler.observations import MOVE_STALLED
from reconciler.report.status.remedies import NO_ROOM, OF_MACHINE, remedy_of, remedy_of_problem, todo_of
from reconciler.report.status.state_document import LEFT_WHY
from reconciler.report.views.alert_words import NeedKey, keys_of, need_of, order_of, these_copies
from reconciler.report.views.rollout_views import cluster_in, rollout_needs
from reconciler.report.views.view_inputs import ViewModel
from reconciler.report.views.view_shapes import Alert, AlertKind, Weight

NEEDS_MAX: Final = 200
_WEIGHTS, _KINDS = list(Weight), list(AlertKind)
"""Both in the order of alerts."""
_IN_STATES: Final = frozenset(
    {MOVE_STALLED, "object-not-ours", "object-of-another-tool", "object-let-go", "object-not-read", "cluster-not-read"}
)
"""Problems that are also the state of an object or a cluster, which names it."""


class Alerts(Struct, frozen=True, kw_only=True):
    """The needs that are listed, and how many there are."""

    listed: tuple[Alert, ...] = ()
    total: int = 0


def needs_of(model: ViewModel, *, cluster: str | None = None, identity: Identity | None = None) -> Alerts:
    """Return the alerts. `cluster`, `identity`: only those in that cluster, or about that object."""
    groups = _copies_by_need(model, cluster, identity)
    worst = nsmallest(NEEDS_MAX, groups.items(), key=lambda group: _rank(*order_of(*group)))
    alerts = [need_of(model, key, copies) for key, copies in worst]
    alerts += _of_clusters(model, cluster, identity)
    if identity is None:
        alerts += _suspensions(model, cluster)
        alerts += rollout_needs(model, cluster)
    alerts += _evictions(model, cluster, identity)
    alerts += _moves(model, cluster, identity)
    if cluster is None and identity is None:
        alerts += chain(_of_the_store(model), _problems(model, model.picture.round.plan.problems))
    elif identity is not None:
        alerts += _problems(model, model.facts.problems.get(identity, ()))
    alerts.sort(key=lambda need: _rank(need.weight, need.what, need.count, need.title))
    alerts = [*no_room(model.text(model.journal_error)), *alerts]  # nothing else is fixed before that
    return Alerts(listed=tuple(alerts[:NEEDS_MAX]), total=len(alerts) + len(groups) - len(worst))


def _rank(weight: Weight, what: AlertKind, count: int, title: str) -> tuple[int, int, int, str]:
    return _WEIGHTS.index(weight), _KINDS.index(what), -count, title


def no_room(error: str) -> Iterator[Alert]:
    """Yield the alert of a journal that cannot be written. `error`: why; empty: it can be."""
    if error:
        title = "nothing is applied: the journal cannot be written"
        yield Alert(weight=Weight.ERROR, what=AlertKind.PROBLEM, title=title, why=error, todo=NO_ROOM)


def _of_the_store(model: ViewModel) -> Iterator[Alert]:
    if model.picture.source_error:
        yield Alert(
            weight=Weight.ERROR,
            what=AlertKind.SOURCE,
            title="the store cannot be read",
            why=model.text(model.picture.source_error),
            since=model.journal.since(EventKind.SOURCE_FAILED, "store"),
            revision=model.facts.schedule.fleet.revision or None,
            todo=todo_of(EventKind.SOURCE_FAILED, "store", {}),
        )
    if model.journal.error:
        yield Alert(weight=Weight.ERROR, what=AlertKind.PROBLEM, title="the journal cannot be read",
                   why=model.text(model.journal.error),
                   todo="history, orders and timers are not shown meanwhile")  # fmt: skip


def _of_clusters(model: ViewModel, only: str | None, identity: Identity | None) -> Iterator[Alert]:
    for name, state in sorted(model.clusters.items()):
        if only not in (None, name) or (identity is not None and model.state(name, identity) is None):
            continue
        if state.is_left:
            yield Alert(weight=Weight.WARNING, what=AlertKind.LEFT, title=f"cluster {name} has left the store",
                       why=LEFT_WHY, cluster=name, count=state.total,
                       todo=f"bring its Cluster document back, or delete what is ours in {name} by hand")  # fmt: skip
        elif state.why_away is not None:
            cluster = model.facts.schedule.fleet.clusters.get(name)
            yield Alert(
                weight=Weight.ERROR,
                what=AlertKind.AWAY,
                title=f"cluster {name} cannot be read",
                why=f"{model.text(state.why_away)}; last read: {state.last_contact or 'never'}",
                cluster=name,
                count=max(1, state.total),
                since=model.journal.since(EventKind.CLUSTER_AWAY, f"cluster {name}") or state.last_contact or None,
                where=str(cluster.source) or None if cluster is not None else None,
                todo=todo_of(EventKind.CLUSTER_AWAY, f"cluster {name}", {"why": state.why_away}),
            )


def _copies_by_need(
    model: ViewModel, only: str | None, identity: Identity | None
) -> dict[NeedKey, list[tuple[str, Identity]]]:
    """Return the copies of each alert that are not synced or not healthy, in the clusters that were read."""
    groups: dict[NeedKey, list[tuple[str, Identity]]] = {}
    for name, cluster in sorted(model.clusters.items()):
        if only not in (None, name) or cluster.why_away is not None or cluster.is_left:
            continue
        states = cluster.notable
        chosen = states.items() if identity is None else [(identity, states[identity])] if identity in states else []
        for each, state in chosen:
            for key in keys_of(model, name, each, state):
                groups.setdefault(key, []).append((name, each))
    return groups


def _suspensions(model: ViewModel, only: str | None) -> Iterator[Alert]:
    for record in model.journal.suspensions:
        if only is not None and record.scope not in ("fleet", f"cluster {only}"):
            continue
        until = f"until {record.until}" if record.until else "until it is resumed"
        title = model.text(f"{record.scope} is suspended {until}")
        yield Alert(weight=Weight.INFO, what=AlertKind.SUSPENDED, title=title, why=model.text(record.reason),
                   cluster=cluster_in(record.scope), since=model.journal.since(EventKind.SUSPENDED, record.scope),
                   who=model.text(record.who) or None,
                   todo=model.text(todo_of(EventKind.SUSPENDED, record.scope, {})))  # fmt: skip


def _evictions(model: ViewModel, only: str | None, identity: Identity | None) -> Iterator[Alert]:
    for order in model.journal.evictions:
        if only not in (None, order.cluster) or identity not in (None, order.identity):
            continue
        until = f" until {order.until}" if order.until else ""
        title = model.text(f"{order.identity} is kept out of {order.cluster}{until}")
        yield Alert(weight=Weight.INFO, what=AlertKind.EVICTED, title=title, why=model.text(order.reason),
                   cluster=order.cluster, resource=model.resource(order.cluster, order.identity),
                   since=order.since or None, who=model.text(order.who) or None,
                   todo=model.text(todo_of(EventKind.EVICTED, f"{order.identity} @ {order.cluster}", {})))  # fmt: skip


_MOVED: Final = {Tick.DESCHEDULING: "fewer replicas than its policy gives", Tick.FAILOVER: "others take over"}


def _moves(model: ViewModel, only: str | None, identity: Identity | None) -> Iterator[Alert]:
    """Yield what a tick took out of clusters; those of one tick and cluster are one."""
    groups = by_key(
        ((one.tick, one.cluster), one)
        for one in model.constraints
        if one.tick in _MOVED and only in (None, one.cluster) and identity in (None, one.identity)
    )
    for (tick, cluster), constraints in groups.items():
        first, copies = constraints[0], [(cluster, one.identity) for one in constraints]
        yield Alert(
            weight=Weight.INFO,
            what=AlertKind.MOVED,
            title=model.text(f"{these_copies(copies)}: {_MOVED[tick]}"),
            why=model.text(first.reason),
            cluster=cluster,
            resource=model.resource(cluster, first.identity) if len(constraints) == 1 else None,
            count=len(constraints),
            since=min((one.since for one in constraints if one.since), default=None),
            who=str(tick),
            todo=model.text(todo_of(EventKind.CONSTRAINED, f"{first.identity} @ {cluster}", {"tick": tick})),
        )


def _problems(model: ViewModel, problems: Iterable[Problem]) -> Iterator[Alert]:
    """Yield errors and warnings, without hints. Those of the same words are one."""
    groups = by_key(
        ((problem.severity, problem.code, problem.message, problem.cluster), problem)
        for problem in problems
        if problem.severity is not Severity.HINT and problem.code not in _IN_STATES
    )
    for (severity, code, _, cluster), alike in groups.items():
        first, is_error = model.masker.problem(alike[0]), severity is Severity.ERROR
        # A problem of one cluster is of what is there, which no commit made.
        in_force = model.facts.schedule.fleet.revision if not cluster and code not in OF_MACHINE else ""
        revision = model.last_change(in_force, first.source.path)
        place = f" {first.path}" if first.path else ""
        where = f"{first.source}{place}" if first.source != NOWHERE else None
        yield Alert(
            weight=Weight.ERROR if is_error else Weight.WARNING,
            what=AlertKind.PROBLEM,
            title=first.message if not cluster else f"{cluster}: {first.message}",
            why=code,
            cluster=cluster or None,
            count=len(alike),
            revision=revision or None,
            who=model.author(revision),
            where=where,
            todo=remedy_of_problem(code, revision) if is_error and where and revision else remedy_of(code),
        )
