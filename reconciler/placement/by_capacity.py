"""Placement of replicas by free capacity: dynamic weights and Aggregated, with tiers, groups, caps and exclusions.

Source: Karmada: steady scheduling, "Unschedulable" keeps existing replicas; design#not-enough-room;
design#partial-placement; design#unknown-room; design#room-of-others; design#nothing-taken-away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.policies import Division
from reconciler.placement.candidates import AffinityGroup, CandidateFinder, Candidates, none_fits
from reconciler.placement.capacity import RoomOf
from reconciler.placement.copies import fill_tiers
from reconciler.placement.divide import listed, total_of, webster, without_zeros
from reconciler.placement.spread import keeps_to_maximum, ranked_by_room, select, spread_applies
from reconciler.placement.values import Assignment, PlacementContext, Shortfall, targets_of

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
    situation: PlacementContext, groups: Sequence[AffinityGroup], finder: CandidateFinder, room_of: RoomOf
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
        attempts: list[_PlacementAttempt] = []
        for group in groups:
            attempts.append(attempt := _attempt(wanted, situation, group, finder.find(situation, group), room_of))
            if attempt.failure is None:
                return _assignment(attempt, situation, shortfalls)
            if attempt.failure.code == "capacity-unknown":
                break  # Unknown is not full.
        failed = next((attempt for attempt in attempts if attempt.candidates.members), attempts[0])
        assert failed.failure is not None, "an attempt before one that failed has failed"
        lacks_room = failed.failure.code == "not-enough-capacity"
        eased = _give_back(failed, situation) if lacks_room else failed
        if lacks_room and not eased.missing:
            return _assignment(eased, situation, (*shortfalls, *_that_stay(eased, situation)))
        if lacks_room and situation.partial:
            # What fits, and for the rest the old copies on clusters that should be left.
            counts = total_of(failed.counts, _what_stays(failed, situation, situation.had))
            return _assignment(replace(failed, counts=counts), situation, (failed.failure,))
        shortfalls = shortfalls or (failed.failure,)
        first = first or failed
        names = {member.name for member in failed.candidates.members}
        there_now = ((name, count) for name, count in situation.had.items() if count)
        if not any(count > situation.caps.get(name, count) or name not in names for name, count in there_now):
            break  # Neither the affinity nor a tick takes anything away.
    assert first is not None, "at least one number of replicas is tried"
    return _assignment(
        _previous_placement(first, situation), situation, shortfalls, affinity_name=situation.group_in_use
    )


def _attempt(
    replicas: int, situation: PlacementContext, group: AffinityGroup, candidates: Candidates, room_of: RoomOf
) -> _PlacementAttempt:
    members, had = candidates.members, situation.had
    attempt = _PlacementAttempt(group=group, candidates=candidates, counts={}, missing=replicas)
    if not members:
        return replace(attempt, failure=none_fits(candidates))
    policy = situation.item.policy
    placement = policy.placement
    there = {member.name: had[member.name] for member in members if had.get(member.name)} if had else {}
    goes_back = policy.fail_back and len(group.tiers) > 1
    # The previous placement holds as it is: right sum, no cap exceeded, not too many clusters.
    if (
        not goes_back
        and not situation.fresh
        and sum(there.values()) == replicas
        and all(count <= situation.caps.get(name, count) for name, count in there.items())
        and keeps_to_maximum(placement, [member.region for member in members if member.name in there])
    ):
        text = f"{replicas} replicas stay where they are: {listed(there.items())}"
        return replace(attempt, counts=there, missing=0, texts=(text,))
    texts: tuple[str, ...] = ()
    if spread_applies(placement) or situation.division is Division.AGGREGATED:
        selection = select(placement, ranked_by_room(replicas, members, had, room_of), replicas)
        texts = (selection.text,) if selection.text else ()
        if selection.failure and not (selection.lacks_room and situation.partial):
            code = "not-enough-capacity" if selection.lacks_room else "spread-constraint-unmet"
            return replace(attempt, failure=Shortfall(code=code, text=selection.failure))
        by_name = {member.name: member for member in members}
        members = [by_name[name] for name in selection.names]
    caps = situation.caps
    if had or caps:
        members = [
            one._replace(keeps=min(had.get(one.name, 0), caps.get(one.name, _NO_CAP)), cap=caps.get(one.name))
            if one.name in had or one.name in caps
            else one
            for one in members
        ]
    share, unknown = fill_tiers(replicas, members, [tier.label for tier in group.tiers], room_of, situation)
    if unknown:
        text = f"the free capacity of {', '.join(unknown)} is not known"
        return replace(attempt, failure=Shortfall(code="capacity-unknown", text=text))
    tried = replace(attempt, counts=share.counts, missing=share.missing, texts=(*texts, *share.texts))
    if not share.missing:
        return tried
    text = f"{share.missing} of {replicas} replicas find no room"
    return replace(tried, failure=Shortfall(code="not-enough-capacity", text=text))


def _give_back(attempt: _PlacementAttempt, situation: PlacementContext) -> _PlacementAttempt:
    """Return the attempt with caps and exclusions only as far as others have capacity: the rest stays in place."""
    back = _what_stays(attempt, situation, {*situation.caps, *situation.excluded})
    if not back:
        return attempt
    text = f"{sum(back.values())} replicas find no room elsewhere and stay: {listed(back.items())}"
    missing = attempt.missing - sum(back.values())
    return replace(attempt, counts=total_of(attempt.counts, back), missing=missing, texts=(*attempt.texts, text))


def _that_stay(eased: _PlacementAttempt, situation: PlacementContext) -> tuple[Shortfall, ...]:
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


def _what_stays(attempt: _PlacementAttempt, situation: PlacementContext, clusters: Collection[str]) -> dict[str, int]:
    """Return the old replicas in these clusters that find no place elsewhere."""
    left = {name: count - attempt.counts.get(name, 0) for name, count in situation.had.items() if name in clusters}
    over = {name: count for name, count in left.items() if count > 0}
    return without_zeros(webster(min(attempt.missing, sum(over.values())), over))


def _previous_placement(attempt: _PlacementAttempt, situation: PlacementContext) -> _PlacementAttempt:
    """Return the previous placement; for fewer replicas less of it, first where it should leave anyway."""
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
    situation: PlacementContext,
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
