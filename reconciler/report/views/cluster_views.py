"""The fleet at a glance, and one cluster with its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from reconciler import __version__
from reconciler.api.ledger import Event
from reconciler.report.json_parts import problem_part, sorted_problems
from reconciler.report.mask import scrub_text
from reconciler.report.status.history_text import history_entry, no_words
from reconciler.report.status.remedies import STANDBY, remedy_of
from reconciler.report.status.state_document import LEFT_WHY, rank_of
from reconciler.report.views.alerts import NEEDS_MAX, Alerts, needs_of, no_room
from reconciler.report.views.queries import ROWS_MAX
from reconciler.report.views.rollout_views import in_force_in, rollouts_of, timers_of
from reconciler.report.views.view_inputs import JournalRows, ViewModel, copy_part
from reconciler.report.views.view_shapes import (
    Alert,
    AlertKind,
    CapacityPart,
    ClusterCounts,
    ClusterView,
    CommitPart,
    FleetView,
    PlacedObject,
    ProblemPart,
    ProblemsView,
    SourcePart,
    Weight,
)
from reconciler.state import HealthWord, Lag

_RESOURCES: Final = (("cpu", 1000.0), ("memory", 1.0), ("ephemeral-storage", 1.0), ("pods", 1.0))
"""The shown resources of a cluster, with their number of units in a base unit."""


def cluster_view(model: ViewModel, name: str, offset: int = 0, events: Sequence[Event] = ()) -> ClusterView | None:
    """Return the cluster; None: the name is unknown. `events`: the newest about it."""
    here = model.clusters.get(name)
    if here is None:
        return None
    declared = model.facts.schedule.fleet.clusters.get(name)
    is_up = here.is_up
    # The worst first; those that are as wanted are not kept.
    identities = sorted(here.notable, key=lambda identity: (rank_of(here.notable[identity]), identity))
    if is_up:
        identities += sorted(model.facts.manifests.get(name, {}).keys() - here.notable.keys())
    part = identities[offset : offset + ROWS_MAX]
    return ClusterView(
        name=name,
        is_up=is_up,
        is_left=here.is_left,
        why=LEFT_WHY if here.is_left else model.text(here.why_away or ""),
        where=str(declared.source) if declared is not None and declared.source.path else None,
        server=model.text(model.servers[name]) if name in model.servers else None,
        last_contact=here.last_contact or None,
        labels={key: model.text(value) for key, value in (declared.labels.items() if declared is not None else ())},
        taints=tuple(f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
                     for taint in (declared.taints if declared is not None else ())),
        counts={str(lag): count for lag, count in here.syncs.items()},
        health={str(word): count for word, count in here.healths.items()},
        capacity=tuple(_capacity(model, name)),
        suspended=next(
            (
                model.text(f"{one.scope} by {one.who or 'a person'}{f': {one.reason}' if one.reason else ''}")
                for one in model.journal.suspensions
                if one.scope in ("fleet", f"cluster {name}")
            ),
            None,
        ),
        objects=tuple(
            PlacedObject(resource=model.resource(name, one), copy=copy_part(model, name, one, state))
            for one in part
            if (state := model.state(name, one)) is not None
        ),
        total=len(identities),
        offset=offset,
        needs=needs_of(model, cluster=name).listed,
        timers=timers_of(model, cluster=name),
        history=tuple(history_entry(event, model.words) for event in events),
        in_force=in_force_in(model, name),
    )  # fmt: skip


def _capacity(model: ViewModel, name: str) -> Iterator[CapacityPart]:
    observed = model.observations.clusters.get(name)
    nodes = observed.nodes if observed is not None and observed.reachable else None
    for resource, divisor in _RESOURCES:
        if nodes is None:
            yield CapacityPart(name=resource)
            continue
        total, used = (
            sum(getattr(node, part).get(resource, 0) for node in nodes) for part in ("allocatable", "requested")
        )
        yield CapacityPart(name=resource, allocatable=total / divisor, used=used / divisor)


class ProcessState(Struct, frozen=True, kw_only=True):
    """The process's own state."""

    fleet: str
    is_ready: bool
    is_progressing: bool
    phase: str
    source: SourcePart
    journal_error: str = ""
    last_round_at: str = ""
    leads: bool = True
    """True: this process leads; False: it stands by, and the leader has the answers."""


def fleet_view(signs: ProcessState, model: ViewModel | None, rows: JournalRows) -> FleetView:
    """Return the state of the fleet and its alerts. `model` None: no round has ended yet."""
    needs = needs_of(model) if model is not None else _before_the_first(signs, rows)
    clusters = model.clusters.values() if model is not None else ()
    commit = None
    if model is not None and (revision := model.facts.schedule.fleet.revision):
        commit = CommitPart(revision=revision)
        if (words := model.words(revision)) is not None:
            author, subject = model.text(words.author), model.text(words.subject)
            commit = CommitPart(revision=revision, author=author, subject=subject, time=words.time)
    syncs, healths = Counter(dict.fromkeys(Lag, 0)), Counter(dict.fromkeys(HealthWord, 0))
    for cluster in clusters:
        syncs.update(cluster.syncs)
        healths.update(cluster.healths)
    return FleetView(
        reconciler=__version__,
        fleet=signs.fleet,
        mode="observe" if model is not None and model.facts.schedule.fleet.settings.observe_only else "apply",
        is_ready=signs.is_ready,
        is_progressing=signs.is_progressing,
        phase=signs.phase,
        time=signs.last_round_at or None,
        round=model.picture.number if model is not None else 0,
        since=model.since if model is not None else None,
        source=signs.source,
        commit=commit,
        clusters=ClusterCounts(
            total=len(clusters),
            in_sync=sum(one.is_up and one.syncs.get(Lag.SYNCED, 0) == one.total for one in clusters),
            away=sum(cluster.why_away is not None for cluster in clusters),
            left=sum(cluster.is_left for cluster in clusters),
        ),
        objects={str(lag): syncs[lag] for lag in Lag},
        health={str(word): healths[word] for word in HealthWord},
        needs=needs.listed[:NEEDS_MAX],
        needs_total=needs.total,
        timers=timers_of(model) if model is not None else (),
        events=tuple(history_entry(event, model.words if model is not None else no_words) for event in rows.events),
        rollouts=rollouts_of(model) if model is not None else (),
    )


def _before_the_first(signs: ProcessState, rows: JournalRows) -> Alerts:
    """Of a service that has not made a round yet."""
    alerts = []
    if not signs.leads:
        alerts.append(Alert(weight=Weight.INFO, what=AlertKind.PROBLEM, title="this process stands by",
                          why=scrub_text(signs.phase), todo=STANDBY))  # fmt: skip
    if signs.source.error:
        todo = "fix what is said; it is read again automatically"
        alerts.append(Alert(weight=Weight.ERROR, what=AlertKind.SOURCE, title="the store cannot be read",
                          why=signs.source.error, todo=todo))  # fmt: skip
    if rows.error:
        alerts.append(Alert(weight=Weight.ERROR, what=AlertKind.PROBLEM, title="the journal cannot be read",
                          why=scrub_text(rows.error)))  # fmt: skip
    alerts += no_room(scrub_text(signs.journal_error))
    return Alerts(listed=tuple(alerts), total=len(alerts))


_PROBLEMS_MAX: Final = 2000


def problems_view(model: ViewModel) -> ProblemsView:
    """The problems, errors before warnings before hints; at most 2,000 of `total`."""
    ordered = sorted_problems(model.picture.round.plan.problems)
    return ProblemsView(
        problems=tuple(
            ProblemPart(**dict(problem_part(model.masker.problem(one))), todo=remedy_of(one.code))
            for one in ordered[:_PROBLEMS_MAX]
        ),
        total=len(ordered),
    )
