"""Placement of replicas by free capacity: dynamic weights and Aggregated, with tiers, groups, caps and exclusions.

Source: Karmada: steady scheduling, "Unschedulable" keeps existing replicas; design#not-enough-room;
design#partial-placement; design#unknown-room; design#room-of-others; design#nothing-taken-away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.policies import Division
from reconciler.placement.candidates import AffinityGroup, Candidate, CandidateFinder, Candidates, none_fits
from reconciler.placement.capacity import RoomOf
from reconciler.placement.copies import Rule, fill_tiers
from reconciler.placement.divide import listed, total_of, webster, without_zeros
from reconciler.placement.spread import keeps_to_maximum, ranked_by_room, select, spread_applies
from reconciler.placement.values import Assignment, Shortfall, Situation, targets_of

CONSTRAINED_STAY = "constrained-replicas-stay"

_NO_CAP = 2**63 - 1


class _PlacementAttempt(Struct, frozen=True, kw_only=True):
    """One group tried with a number of replicas. `failure` None: it worked."""

    group: AffinityGroup
    candidates: Candidates
    counts: Mapping[str, int]
    missing: int = 0
    texts: tuple[str, ...] = ()
    failure: Shortfall | None = None


def place_by_capacity(
    situation: Situation,
    groups: Sequence[AffinityGroup],
    finder: CandidateFinder,
    clusters: Mapping[str, Cluster],
    room_of: RoomOf,
) -> Assignment:
    """Return a placement by free capacity; groups are given in the order in which they are tried.

    If the replicas fit nowhere, existing ones stay and the shortfall is reported. If a cluster must be left, as many
    replicas as existed before are still placed. With `partial`, as many as fit are placed.
    """
    there = sum(situation.had.values())
    shortfalls: tuple[Shortfall, ...] = ()
    first: _PlacementAttempt | None = None
    retries = 0 < there < situation.replicas and not situation.fresh
    for wanted in (situation.replicas, there) if retries else (situation.replicas,):
        attempts = _try_groups(wanted, situation, groups, finder, clusters, room_of)
        if attempts[-1].failure is None:
            return _assignment(attempts[-1], situation, shortfalls)
        failed = next((attempt for attempt in attempts if attempt.candidates.members), attempts[0])
        assert failed.failure is not None, "an attempt before one that failed has failed"
        lacks_room = failed.failure.code == "not-enough-capacity"
        eased = _give_back(failed, situation) if lacks_room else failed
        if lacks_room and not eased.missing:
            return _assignment(eased, situation, (*shortfalls, *_that_stay(eased, situation)))
        if lacks_room and situation.partial:
            return _assignment(_with_old_copies(failed, situation), situation, (failed.failure,))
        shortfalls = shortfalls or (failed.failure,)
        first = first or failed
        if not _has_to_move(situation, failed.candidates):
            break
    assert first is not None, "at least one number of replicas is tried"
    return _assignment(_kept(first, situation), situation, shortfalls, affinity_name=situation.group_in_use)


def _has_to_move(situation: Situation, candidates: Candidates) -> bool:
    """Return whether the affinity or a tick takes anything away. Too many clusters and too little capacity do not."""
    names = {member.name for member in candidates.members}
    return any(
        count > situation.caps.get(name, count) or name not in names for name, count in situation.had.items() if count
    )


def _try_groups(
    replicas: int,
    situation: Situation,
    groups: Sequence[AffinityGroup],
    finder: CandidateFinder,
    clusters: Mapping[str, Cluster],
    room_of: RoomOf,
) -> list[_PlacementAttempt]:
    """Return attempts up to the first that worked. Unknown capacity ends the search: unknown is not full."""
    attempts: list[_PlacementAttempt] = []
    for group in groups:
        attempt = _attempt(replicas, situation, group, finder.find(situation, group), clusters, room_of)
        attempts.append(attempt)
        if attempt.failure is None or attempt.failure.code == "capacity-unknown":
            break
    return attempts


def _attempt(
    replicas: int,
    situation: Situation,
    group: AffinityGroup,
    candidates: Candidates,
    clusters: Mapping[str, Cluster],
    room_of: RoomOf,
) -> _PlacementAttempt:
    members, had = candidates.members, situation.had
    attempt = _PlacementAttempt(group=group, candidates=candidates, counts={}, missing=replicas)
    if not members:
        return replace(attempt, failure=none_fits(candidates))
    there = {member.name: had[member.name] for member in members if had.get(member.name)} if had else {}
    goes_back = situation.item.policy.fail_back and len(group.tiers) > 1
    if not goes_back and _stays(replicas, there, situation, clusters):
        text = f"{replicas} replicas stay where they are: {listed(there.items())}"
        return replace(attempt, counts=there, missing=0, texts=(text,))
    policy = situation.item.policy
    placement = policy.placement
    texts: tuple[str, ...] = ()
    if spread_applies(placement) or situation.division is Division.AGGREGATED:
        selection = select(placement, ranked_by_room(replicas, members, had, clusters, room_of), replicas)
        texts = (selection.text,) if selection.text else ()
        if selection.failure and not (selection.lacks_room and situation.partial):
            code = "not-enough-capacity" if selection.lacks_room else "spread-constraint-unmet"
            return replace(attempt, failure=Shortfall(code=code, text=selection.failure))
        by_name = {member.name: member for member in members}
        members = [by_name[name] for name in selection.names]
    members = _with_what_they_keep(members, situation)
    rule = Rule(situation.division is Division.AGGREGATED, situation.fresh, policy.ecs_provision)
    outcome = fill_tiers(replicas, members, [tier.label for tier in group.tiers], room_of, rule)
    if outcome.unknown:
        text = f"the free capacity of {', '.join(outcome.unknown)} is not known"
        return replace(attempt, failure=Shortfall(code="capacity-unknown", text=text))
    tried = replace(attempt, counts=outcome.counts, missing=outcome.missing, texts=(*texts, *outcome.texts))
    if not outcome.missing:
        return tried
    text = f"{outcome.missing} of {replicas} replicas find no room"
    return replace(tried, failure=Shortfall(code="not-enough-capacity", text=text))


def _stays(replicas: int, there: Mapping[str, int], situation: Situation, clusters: Mapping[str, Cluster]) -> bool:
    """Return whether the previous placement holds as it is: right sum, no cap exceeded, not too many clusters."""
    return (
        not situation.fresh
        and sum(there.values()) == replicas
        and all(count <= situation.caps.get(name, count) for name, count in there.items())
        and keeps_to_maximum(situation.item.policy.placement, {name: clusters[name].region for name in there})
    )


def _with_what_they_keep(members: Sequence[Candidate], situation: Situation) -> Sequence[Candidate]:
    had, caps = situation.had, situation.caps
    if not had and not caps:
        return members
    return [
        member._replace(keeps=min(had.get(member.name, 0), caps.get(member.name, _NO_CAP)), cap=caps.get(member.name))
        if member.name in had or member.name in caps
        else member
        for member in members
    ]


def _give_back(attempt: _PlacementAttempt, situation: Situation) -> _PlacementAttempt:
    """Return the attempt with caps and exclusions only as far as others have capacity: the rest stays in place."""
    ticked = {*situation.caps, *situation.excluded}
    over = {name: count - attempt.counts.get(name, 0) for name, count in situation.had.items() if name in ticked}
    back = without_zeros(webster(min(attempt.missing, sum(max(0, count) for count in over.values())), over))
    if not back:
        return attempt
    text = f"{sum(back.values())} replicas find no room elsewhere and stay: {listed(back.items())}"
    missing = attempt.missing - sum(back.values())
    return replace(attempt, counts=total_of(attempt.counts, back), missing=missing, texts=(*attempt.texts, text))


def _that_stay(eased: _PlacementAttempt, situation: Situation) -> tuple[Shortfall, ...]:
    """Return the shortfall of replicas that a tick or a person wants away and nobody can take."""
    why = {**situation.cap_reasons, **situation.excluded}
    over = {
        name: count - (0 if name in situation.excluded else situation.caps.get(name, count))
        for name, count in eased.counts.items()
        if name in why
    }
    stuck = without_zeros(over)
    if not stuck:
        return ()
    causes = "; ".join(f"{name}: {why[name]}" for name in stuck)
    number = sum(stuck.values())
    who = "1 replica should leave" if number == 1 else f"{number} replicas should leave"
    text = f"{who} {', '.join(stuck)}, and nobody else has room ({causes})"
    return (Shortfall(code=CONSTRAINED_STAY, text=text),)


def _with_old_copies(attempt: _PlacementAttempt, situation: Situation) -> _PlacementAttempt:
    """Return the replicas that fit, and for the rest the old copies on clusters that should be left."""
    left = {name: count for name, count in situation.had.items() if count > attempt.counts.get(name, 0)}
    old = {name: count - attempt.counts.get(name, 0) for name, count in left.items()}
    stay = without_zeros(webster(min(attempt.missing, sum(old.values())), old))
    return replace(attempt, counts=total_of(attempt.counts, stay))


def _kept(attempt: _PlacementAttempt, situation: Situation) -> _PlacementAttempt:
    """The previous placement; when fewer replicas are asked for, less of it, first where it should leave anyway."""
    had, total = situation.had, min(situation.replicas, sum(situation.had.values()))
    names = {member.name for member in attempt.candidates.members}
    staying = {name: count for name, count in had.items() if name in names}
    leaving = {name: count for name, count in had.items() if name not in names}
    if sum(staying.values()) > total:
        counts = webster(total, staying)
    else:
        counts = {**staying, **webster(total - sum(staying.values()), leaving)}
    stays = without_zeros(counts)
    text = f"the previous placement stays: {listed(stays.items())}" if stays else "nothing of it is placed"
    return replace(attempt, counts=stays, texts=(text,))


def _assignment(
    attempt: _PlacementAttempt,
    situation: Situation,
    shortfalls: tuple[Shortfall, ...],
    affinity_name: str | None = None,
) -> Assignment:
    reasons = [situation.reason(str(situation.division), text) for text in attempt.texts]
    reasons += [situation.reason(shortfall.code, shortfall.text) for shortfall in shortfalls]
    return Assignment(
        targets=targets_of(attempt.counts),
        unplaced=max(0, situation.replicas - sum(attempt.counts.values())),
        affinity_name=attempt.group.name if affinity_name is None else affinity_name,
        reasons=tuple(reasons),
        cluster_reasons=attempt.candidates.reasons,
        shortfalls=shortfalls,
    )
