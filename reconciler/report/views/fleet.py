"""The fleet at a glance."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from reconciler.report.history_text import history_entry
from reconciler.report.mask import scrub_text
from reconciler.report.views.needs import NEEDS_MAX, Needs, needs_of
from reconciler.report.views.rollouts import rollouts_of
from reconciler.report.views.shapes import ClusterCounts, CommitPart, FleetView, Need, SourcePart, Weight, What
from reconciler.report.views.sight import Noted, Sight, is_cluster_in_step, words_for_history
from reconciler.report.views.timers import timers_of
from reconciler.stages.state import HealthWord, Lag


class Signs(Struct, frozen=True, kw_only=True):
    """The process's own state. `rounds`: since its start."""

    reconciler: str
    fleet: str
    is_ready: bool
    is_progressing: bool
    phase: str
    source: str
    source_read_at: str = ""
    source_error: str = ""
    rounds: int = 0
    last_round_at: str = ""
    leads: bool = True
    """True: this process leads; False: it stands by, and the leader has the answers."""


def fleet_view(signs: Signs, sight: Sight | None, noted: Noted) -> FleetView:
    """Return the state of the fleet and its alerts. `sight` None: no round has ended yet."""
    needs = needs_of(sight) if sight is not None else _before_the_first(signs, noted)
    clusters = sight.clusters.values() if sight is not None else ()
    syncs, healths = Counter(dict.fromkeys(Lag, 0)), Counter(dict.fromkeys(HealthWord, 0))
    for found in clusters:
        syncs.update(found.syncs)
        healths.update(found.healths)
    observes = sight is not None and sight.facts.decision.fleet.settings.observe_only
    return FleetView(
        reconciler=signs.reconciler,
        fleet=signs.fleet,
        mode="observe" if observes else "apply",
        is_ready=signs.is_ready,
        is_progressing=signs.is_progressing,
        phase=signs.phase,
        time=signs.last_round_at or None,
        round=sight.picture.number if sight is not None else 0,
        since=sight.since if sight is not None else None,
        source=SourcePart(
            description=scrub_text(signs.source),
            read_at=signs.source_read_at or None,
            error=scrub_text(signs.source_error) or None,
        ),
        commit=_commit(sight) if sight is not None else None,
        clusters=ClusterCounts(
            total=len(clusters),
            in_sync=sum(map(is_cluster_in_step, clusters)),
            away=sum(found.why_away is not None for found in clusters),
            left=sum(found.is_left for found in clusters),
        ),
        objects={str(lag): syncs[lag] for lag in Lag},
        health={str(word): healths[word] for word in HealthWord},
        needs=needs.listed[:NEEDS_MAX],
        needs_total=needs.total,
        timers=timers_of(sight) if sight is not None else (),
        events=tuple(history_entry(event, words_for_history(sight)) for event in noted.events),
        rollouts=rollouts_of(sight) if sight is not None else (),
    )


def _before_the_first(signs: Signs, noted: Noted) -> Needs:
    """Of a service that has not made a round yet."""
    found = []
    if not signs.leads:
        found.append(Need(weight=Weight.INFO, what=What.PROBLEM, title="this process stands by",
                          why=scrub_text(signs.phase), todo="look at the page of the one that leads"))  # fmt: skip
    if signs.source_error:
        todo = "mend what is said; it is read again by itself"
        found.append(Need(weight=Weight.ERROR, what=What.SOURCE, title="the store cannot be read",
                          why=scrub_text(signs.source_error), todo=todo))  # fmt: skip
    if noted.error:
        found.append(Need(weight=Weight.ERROR, what=What.PROBLEM, title="the journal cannot be read",
                          why=scrub_text(noted.error)))  # fmt: skip
    return Needs(listed=tuple(found), total=len(found))


def _commit(sight: Sight) -> CommitPart | None:
    revision = sight.facts.decision.fleet.revision
    if not revision:
        return None
    words = sight.words(revision)
    if words is None:
        return CommitPart(revision=revision)
    return CommitPart(revision=revision, author=sight.text(words.author), subject=sight.text(words.subject),
                      time=words.time)  # fmt: skip
