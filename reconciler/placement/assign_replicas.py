"""Placement of replicas with and without free capacity: tiers of clusters, groups, dynamic weights, Aggregated, caps.

The first tier fills first, the last empties first; a placement without tiers is one tier. Source: the page "Elastic
scheduling with multi-cluster priorities"; Karmada: overflowAffinities, Duplicated and static weights (divided from
scratch), steady scheduling, "Unschedulable" keeps existing replicas; design#affinity-groups; design#ecs-provision;
design#scaled-to-0; design#not-enough-room; design#partial-placement; design#unknown-room; design#room-of-others;
design#nothing-taken-away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.binding import TargetCluster
from reconciler.api.clusters import Cluster
from reconciler.api.policies import Division
from reconciler.placement.candidates import (
    AffinityGroup,
    Candidate,
    CandidateFinder,
    Candidates,
    keep_previous,
    none_fits,
    tier_of,
)
from reconciler.placement.capacity import RoomOf
from reconciler.placement.divide import (
    Share,
    divide_by_capacity,
    divide_statically,
    listed,
    total_of,
    webster,
    without_zeros,
)
from reconciler.placement.spread import SelectedClusters, is_within_maximum, ranked_by_room, select, spread_applies
from reconciler.placement.values import Assignment, PlacementContext, Shortfall, targets_of


def fill_tiers(
    replicas: int, members: Sequence[Candidate], labels: Sequence[str], room_of: RoomOf, situation: PlacementContext
) -> tuple[Share, list[str]]:
    """Divide the replicas tier by tier; return that, and the clusters with an unknown capacity that matters.

    Each tier gets what it can take of the rest, by the policy's rule. `members`: in order of preference. With
    `ecsProvision` the last tier takes all that remains.
    """
    counts: dict[str, int] = {}
    texts: list[str] = []
    left = replicas
    last = len(labels) - 1
    for index in range(len(labels)):
        tier = members if not last else [member for member in members if member.tier == index]
        if not left:
            texts += [f"{labels[index]}: empties, nothing is left for it"] if any(m.keeps for m in tier) else []
            continue
        if not tier:
            continue
        provides = situation.item.policy.ecs_provision and index == last
        is_enough = not situation.fresh and left <= sum([member.keeps for member in tier])
        room = [] if is_enough else _free_capacity(tier, room_of)
        unknown = [name for name, free in room if free is None]
        if unknown and not provides:
            return Share(counts=counts, missing=left, texts=tuple(texts)), sorted(unknown)
        known = [(name, free or 0) for name, free in room]
        known.sort(key=itemgetter(1), reverse=True)
        share = _share(left, tier, known, situation, provides=provides)
        counts.update(share.counts)
        left = share.missing
        texts.append(f"{labels[index]}: {share.text}" if len(labels) > 1 else share.text)
    return Share(counts=counts, missing=left, texts=tuple(texts)), []


def _free_capacity(tier: Sequence[Candidate], room_of: RoomOf) -> list[tuple[str, int | None]]:
    growing = [m.name for m in tier if m.takes_more and (m.cap is None or m.cap > m.keeps)]
    known = dict(zip(growing, room_of(growing), strict=True))
    left = {m.name: m.cap - m.keeps for m in tier if m.cap is not None}
    if len(growing) == len(tier) and not left:
        return list(known.items())
    room = [(m.name, known.get(m.name, 0)) for m in tier]
    return [(name, free if free is None else min(free, left.get(name, free))) for name, free in room]


def _share(
    replicas: int,
    tier: Sequence[Candidate],
    room: list[tuple[str, int]],
    situation: PlacementContext,
    *,
    provides: bool,
) -> Share:
    aggregated = situation.division is Division.AGGREGATED
    previous = {member.name: member.keeps for member in tier if member.keeps}
    share = divide_by_capacity(replicas, previous, lambda: room, aggregated=aggregated, fresh=situation.fresh)
    if not provides or not share.missing:
        return share
    growing = [member.name for member in tier if member.takes_more and member.cap is None]
    if not growing:
        return share
    # Nodes come where pods wait: Aggregated lets them all wait in one cluster, in use already if there is one.
    names = [next((name for name in growing if share.counts.get(name)), growing[0])] if aggregated else growing
    waiting = without_zeros(webster(share.missing, dict.fromkeys(names, 1)))
    text = f"{share.text}, and wait for new nodes (ecsProvision): {listed(waiting.items(), sign='+')}"
    return Share(counts=total_of(share.counts, waiting), texts=(text,))


def in_order_of_trial(
    groups: Sequence[AffinityGroup], situation: PlacementContext, clusters: Mapping[str, Cluster]
) -> tuple[AffinityGroup, ...]:
    """Return the groups to try, the one in use first. Source: design#group-in-use; design#fail-back."""
    if len(groups) == 1 or situation.fresh or situation.item.policy.fail_back:
        return tuple(groups)
    if not situation.had:
        return tuple(groups)
    in_use = next((group for group in groups if group.name == situation.group_in_use), None)
    if in_use is None:
        # A placement without a group (an observations file, marks read back) is recognised by its clusters.
        held = [clusters[name] for name in situation.had if name in clusters]
        covered = [sum(tier_of(cluster, group)[0] is not None for cluster in held) for group in groups]
        if not any(covered):
            return tuple(groups)
        in_use = groups[covered.index(max(covered))]
    return (in_use, *(group for group in groups if group is not in_use))


def place_copies(
    situation: PlacementContext, groups: Sequence[AffinityGroup], finder: CandidateFinder, room_of: RoomOf
) -> Assignment:
    """Return a placement in the first group with a candidate; without any, existing copies stay."""
    placement, wanted = situation.item.policy.placement, situation.replicas
    # The capacity for 0 replicas does not matter.
    free: RoomOf = room_of if wanted else lambda names: [0] * len(names)
    failures: list[tuple[Candidates, Shortfall]] = []
    for group in groups:
        candidates = finder.find(situation, group)
        if not candidates.members:
            failures.append((candidates, none_fits(candidates)))
            continue
        if spread_applies(placement):
            selection = select(placement, ranked_by_room(wanted, candidates.members, situation.had, free), wanted)
        else:
            selection = SelectedClusters(names=tuple(member.name for member in candidates.members))
        if selection.failure:
            failures.append((candidates, Shortfall(code="spread-constraint-unmet", text=selection.failure)))
            continue
        return _placed(situation, group, candidates, selection, finder)
    candidates, shortfall = failures[0]
    text = f"{shortfall.text}; the previous placement stays" if situation.had else shortfall.text
    if situation.item.demand.replicas is None:
        targets = tuple(TargetCluster(cluster=name) for name in situation.had)
    elif situation.division is Division.DUPLICATED or not situation.replicas:
        targets = targets_of(dict.fromkeys(situation.had, situation.replicas))
    else:
        targets = targets_of(_previous_counts(situation, candidates))
    unplaced = max(0, situation.replicas - sum(target.replicas or 0 for target in targets))
    return keep_previous(situation, candidates, shortfall, targets, text, unplaced)


def _placed(
    situation: PlacementContext,
    group: AffinityGroup,
    candidates: Candidates,
    selection: SelectedClusters,
    finder: CandidateFinder,
) -> Assignment:
    names, item = sorted(selection.names), situation.item
    scheduling = item.policy.placement.scheduling
    if item.demand.replicas is None:
        targets = tuple(TargetCluster(cluster=name) for name in names)
        text = f"{item.gvk.kind} has no replicas: a copy on {_each(len(names))}"
        rule = "copies"
    elif situation.division is Division.DUPLICATED:
        targets = targets_of(dict.fromkeys(names, situation.replicas))
        text = f"Duplicated: all {situation.replicas} replicas on {_each(len(names))}"
        rule = str(Division.DUPLICATED)
    elif not situation.replicas:
        first_tier = min(member.tier for member in candidates.members)
        primary = [member.name for member in candidates.members if member.tier == first_tier]
        stays = [name for name in names if name in situation.had]
        text = "scaled to 0: it stays where it is, with 0 replicas"
        if not stays:
            stays = [name for name in names if name in primary] or names
            if situation.division is Division.STATIC:
                weighed = finder.weights_of(scheduling, stays)
                stays = [name for name in stays if weighed[name]] or stays
            text = "0 replicas and nowhere yet: the object goes to the candidates"
        targets = targets_of(dict.fromkeys(stays, 0))
        rule = "scaled-to-zero"
    else:
        weighed = finder.weights_of(scheduling, names)
        share = divide_statically(situation.replicas if item.demand.is_divisible else 1, weighed)
        counts, text = share.counts, share.text
        if not item.demand.is_divisible:
            counts = dict.fromkeys(counts, situation.replicas)
            text = f"{item.gvk.kind} cannot be divided: whole on the heaviest; {text}"
        targets, rule = targets_of(counts), str(Division.STATIC)
    spread = (situation.reason("spread", selection.text),) if selection.text else ()
    reasons = (*spread, situation.reason(rule, text))
    return Assignment(targets=targets, affinity_name=group.name, reasons=reasons, cluster_reasons=candidates.reasons)


def _each(clusters: int) -> str:
    return "the one selected cluster" if clusters == 1 else f"each of {clusters} selected clusters"


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
            return _assignment(eased, situation, (*shortfalls, *_shortfall_that_stays(eased, situation)))
        # What fits, and for the rest the old copies on clusters that should be left.
        counts = total_of(failed.counts, _stranded(failed, situation, situation.had))
        if lacks_room and situation.partial and counts:
            return _assignment(replace(failed, counts=counts), situation, (failed.failure,))
        shortfalls = shortfalls or (failed.failure,)
        first = first or failed
        names = {member.name for member in failed.candidates.members}
        there_now = ((name, count) for name, count in situation.had.items() if count)
        if not any(count > situation.caps.get(name, count) or name not in names for name, count in there_now):
            break  # Neither the affinity nor a tick takes anything away.
    assert first is not None, "at least one number of replicas is tried"
    stays = _previous_counts(situation, first.candidates)
    text = f"the previous placement stays: {listed(stays.items())}" if stays else "nothing of it is placed"
    attempt = replace(first, counts=stays, texts=(text,))
    return _assignment(attempt, situation, shortfalls, affinity_name=situation.group_in_use)


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
        and is_within_maximum(placement, [member.region for member in members if member.name in there])
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
    text = ", ".join([f"{share.missing} of {replicas} replicas find no room", *texts])
    return replace(tried, failure=Shortfall(code="not-enough-capacity", text=text))


def _give_back(attempt: _PlacementAttempt, situation: PlacementContext) -> _PlacementAttempt:
    """Return the attempt with caps and exclusions only as far as others have capacity: the rest stays in place."""
    back = _stranded(attempt, situation, {*situation.caps, *situation.excluded})
    if not back:
        return attempt
    text = f"{sum(back.values())} replicas find no room elsewhere and stay: {listed(back.items())}"
    missing = attempt.missing - sum(back.values())
    return replace(attempt, counts=total_of(attempt.counts, back), missing=missing, texts=(*attempt.texts, text))


def _shortfall_that_stays(eased: _PlacementAttempt, situation: PlacementContext) -> tuple[Shortfall, ...]:
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


def _stranded(attempt: _PlacementAttempt, situation: PlacementContext, clusters: Collection[str]) -> dict[str, int]:
    """Return the old replicas in these clusters that find no place elsewhere."""
    left = {name: count - attempt.counts.get(name, 0) for name, count in situation.had.items() if name in clusters}
    over = {name: count for name, count in left.items() if count > 0}
    return without_zeros(webster(min(attempt.missing, sum(over.values())), over))


def _previous_counts(situation: PlacementContext, candidates: Candidates) -> dict[str, int]:
    """Return the previous placement; for fewer replicas less of it, first where it should leave anyway."""
    had, total = situation.had, min(situation.replicas, sum(situation.had.values()))
    names = {member.name for member in candidates.members}
    staying = {name: count for name, count in had.items() if name in names}
    leaving = {name: count for name, count in had.items() if name not in names}
    counts = webster(min(total, sum(staying.values())), staying)
    counts |= webster(total - sum(counts.values()), leaving)
    # A copy that was scaled to 0 stays as well.
    return {name: count for name, count in counts.items() if count or not had[name]}


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
