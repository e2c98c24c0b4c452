"""What the leader knows of clusters that other processes apply to: it decides what begins there by what they tell.

No times are compared: what a process tells is recorded either is what the leader let begin, or what it was before that,
or news. Source: ADR 22.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct, field

from reconciler.model.fleet import Fleet
from reconciler.model.rollouts.record import Record, Sight, Unseen
from reconciler.model.rollouts.told import Records, Report, Reports, RolloutAccount
from reconciler.stages.shards import shard_of

_NOTHING = Record()
_UNTOLD = Report()

Sights = Mapping[str, Mapping[str, Sight]]
"""By Rollout and cluster."""


class Reported(Struct, frozen=True, kw_only=True):
    """What processes tell of the clusters that are theirs by the commit, and of no others.

    `shards`: by cluster whose it is. `away`: clusters that cannot be changed now, and why. `silent`: of these, those of
    whose copies nothing is known now.
    """

    shards: Mapping[str, str] = field(default_factory=dict)
    reports: Reports = field(default_factory=dict)
    away: Mapping[str, str] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()


def reported_of(fleet: Fleet, accounts: Mapping[str, RolloutAccount], unled: Collection[str]) -> Reported:
    """What is known of the clusters of shards. `accounts`: by shard; `unled`: shards to which nobody applies now.

    What such a shard told last is no word about now: who died while a gate was met does not meet it.
    """
    names = fleet.settings.ha.shards if fleet.settings.ha is not None else ()
    shards = {name: shard for name, cluster in fleet.clusters.items() if (shard := shard_of(cluster, names))}
    reports: dict[str, dict[str, Report]] = {}
    away: dict[str, str] = {}
    silent: set[str] = set()
    for name, shard in shards.items():
        account = accounts.get(shard)
        why = account.clusters.get(name) if account is not None else None
        if shard in unled:
            why = f"nobody applies to shard {shard} now"
            silent.add(name)
        elif why is None:
            why = f"shard {shard} has not told of it yet"
            silent.add(name)
        if why:
            away[name] = why
        for rollout, found in account.reports.items() if account is not None else ():
            if name in found:
                reports.setdefault(rollout, {})[name] = found[name]
    return Reported(shards=shards, reports=reports, away=away, silent=frozenset(silent))


def with_reports(records: Records, before: Records, reported: Reported) -> tuple[Records, Records]:
    """What is recorded by now, and what the processes told is recorded in their clusters: `before`, with what is news.

    `records`: with what the leader let begin; `before`: what a process told when that was decided.
    """
    found = {rollout: dict(each) for rollout, each in records.items()}
    heard = {rollout: dict(each) for rollout, each in before.items()}
    for rollout, reports in reported.reports.items():
        known, told_before = found.setdefault(rollout, {}), heard.setdefault(rollout, {})
        for cluster, report in reports.items():
            record = report.record
            if not record.revision and cluster in reported.away:
                continue  # Its mark could not be read: what is recorded there may come yet.
            is_news = not same(record, told_before.get(cluster)) and not same(record, known.get(cluster))
            told_before[cluster] = record
            if is_news:
                known[cluster] = record
    return _without_empty(found), _without_empty(heard)


def pending_of(records: Records, heard: Records, reported: Reported) -> Records:
    """By Rollout and cluster what is recorded where another revision is to begin."""
    found: dict[str, dict[str, Record]] = {}
    for rollout, known in records.items():
        told = heard.get(rollout, {})
        for cluster, record in known.items():
            before = told.get(cluster, _NOTHING)
            if cluster in reported.shards and not same(record, before):
                found.setdefault(rollout, {})[cluster] = before
    return found


def with_told_sights(seen: Sights, records: Records, reported: Reported) -> Sights:
    """What is seen, by Rollout and cluster, with what others see of the revision that is to be in force there."""
    found: dict[str, Mapping[str, Sight]] = {}
    for rollout, sights in seen.items():
        of_shards: dict[str, Sight] = {}
        for cluster, record in records.get(rollout, {}).items():
            if cluster in reported.shards and record.revision and not record.completed_at:
                of_shards[cluster] = _sight(cluster, record, reported.reports.get(rollout, {}), reported)
        own = {cluster: sight for cluster, sight in sights.items() if cluster not in reported.shards}
        found[rollout] = {**own, **of_shards}
    return found


def same(one: Record, other: Record | None) -> bool:
    """Whether two records tell of the same beginning; none at all is that nothing began."""
    other = other or _NOTHING
    return (one.revision, one.begun_at) == (other.revision, other.begun_at)


def _sight(cluster: str, record: Record, reports: Mapping[str, Report], reported: Reported) -> Sight:
    if cluster in reported.silent:
        return Unseen(reported.away[cluster])
    report = reports.get(cluster, _UNTOLD)
    if not same(report.record, record):
        return Unseen(f"shard {reported.shards[cluster]} has not begun it yet")
    return report.sight or Unseen(f"shard {reported.shards[cluster]} has not looked at it yet")


def _without_empty(found: Mapping[str, Mapping[str, Record]]) -> Records:
    return {
        rollout: {name: record for name, record in each.items() if record != _NOTHING}
        for rollout, each in found.items()
    }
