"""Division of replicas over clusters by weights: exact integers, the same result on every machine.

Source: Karmada: Webster's method (Sainte-Laguë) since 1.16, steady scaling of dynamic weights and Aggregated;
design#division.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

_EXACT = 96
"""Bits with which a floored quotient orders exactly: fractions over odd numbers below 2**47 differ by over 2**-94."""

Room = Sequence[tuple[str, int]]
"""Clusters with the replicas that each could still take, in the order in which Aggregated prefers them."""


def webster(seats: int, votes: Mapping[str, int]) -> dict[str, int]:
    """Return seats per party by Webster's method: each seat goes to the greatest votes / (2·seats + 1).

    Ties go to the party with fewer seats, then to the smaller name. Parties without votes get none. Monotone in `seats`
    (nobody loses when more are handed out), and nobody gets more seats than votes while `seats` ≤ Σ votes.

    >>> webster(14, {"m1": 3, "m2": 2, "m3": 1})
    {'m1': 7, 'm2': 5, 'm3': 2}
    """
    return dict.fromkeys(sorted(votes), 0) | _seats_won(seats, votes.items())


def _seats_won(seats: int, votes: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the seats of those who may win some, in no particular order."""
    parties = [entry for entry in votes if entry[1] > 0]
    if not parties or seats <= 0:
        return {}
    if len(parties) > seats:
        # Nobody wins a first seat before all who have more votes, or as many and a smaller name.
        parties.sort()
        parties.sort(key=itemgetter(1), reverse=True)
        del parties[seats:]
    won = dict.fromkeys([name for name, _ in parties], 0)
    # With divisor 2·Σvotes/(2·seats − parties) the rounded quotients sum up to `seats` at most, and every seat of an
    # equal priority is among them, so they are the first seats of the one-by-one procedure.
    numerator, total = 2 * seats - len(parties), sum(vote for _, vote in parties)
    if numerator > 0:
        won = {name: (vote * numerator // total + 1) // 2 for name, vote in parties}
    left = seats - sum(won.values())
    queue = [(-((vote << _EXACT) // (2 * won[name] + 1)), won[name], name, vote) for name, vote in parties]
    heapq.heapify(queue)
    for _ in range(left):
        _, held, name, vote = queue[0]
        held += 1
        won[name] = held
        heapq.heapreplace(queue, (-((vote << _EXACT) // (2 * held + 1)), held, name, vote))
    return won


class Share(Struct, frozen=True, kw_only=True):
    """The result of a division: replicas per cluster (zeros left out) and the number without capacity."""

    counts: Mapping[str, int]
    missing: int = 0
    texts: tuple[str, ...] = ()
    """The arithmetic, for people."""

    @property
    def text(self) -> str:
        """Return the arithmetic of a single division."""
        return self.texts[0]


def listed(counts: Iterable[tuple[str, int]], *, sign: str = "", limit: int = 12) -> str:
    """Return `m1 2, m2 1`: at most `limit` clusters, then how many more there are and their sum."""
    entries = list(counts)
    text = ", ".join(f"{name} {sign}{count}" for name, count in entries[:limit])
    rest = entries[limit:]
    return f"{text} and {len(rest)} more with {sum([count for _, count in rest])}" if rest else text or "nothing"


def without_zeros(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts above 0, by name. Source: Karmada: a cluster with 0 replicas leaves the placement."""
    return {name: counts[name] for name in sorted(counts) if counts[name] > 0}


def total_of(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the replicas of both by cluster, without zeros."""
    return without_zeros({name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}})


def divide_statically(replicas: int, weights: Mapping[str, int]) -> Share:
    """Return shares by static weights alone; all weigh 1 if none has any. Source: Karmada; design#division."""
    used = weights if any(weights.values()) else dict.fromkeys(weights, 1)
    counts = without_zeros(webster(replicas, used))
    named = sorted((name, weight) for name, weight in used.items() if weight > 0)
    equal = "" if used is weights else " (no entry of the list matches a candidate, so everybody weighs 1)"
    text = f"static weights {listed(named)}{equal}, {replicas} replicas -> {listed(counts.items())}"
    return Share(counts=counts, texts=(text,))


def divide_by_capacity(
    replicas: int, previous: Mapping[str, int], room: Callable[[], Room], *, aggregated: bool, fresh: bool = False
) -> Share:
    """Return the share of each cluster by free capacity, on top of existing replicas.

    `previous`: on clusters that are still candidates; `room`: their additional capacity. Equal: nothing moves. Fewer:
    counts shrink in proportion. More: the rest is divided by capacity. `fresh`: all is, by capacity plus replicas.
    Source: Karmada: dynamic weights and Aggregated, steady and fresh mode.
    """
    there = sum(previous.values())
    if fresh:
        anew = [(name, free + previous.get(name, 0)) for name, free in room()]
        anew.sort(key=lambda entry: -entry[1])
        return _grow(replicas, {}, anew, aggregated=aggregated)
    if there == replicas:
        counts = without_zeros(previous)
        return Share(counts=counts, texts=(f"{replicas} replicas stay: {listed(counts.items())}",))
    if there < replicas:
        return _grow(replicas, previous, room(), aggregated=aggregated)
    votes = [(name, count) for name, count in previous.items() if count > 0]
    votes.sort(key=lambda entry: (-entry[1], entry[0]))
    if aggregated:
        votes = _shortest_prefix(votes, replicas)
    counts = without_zeros(webster(replicas, dict(votes)))
    text = f"scaled down to {replicas} in proportion to {listed(votes)} -> {listed(counts.items())}"
    return Share(counts=counts, texts=(text,))


def _grow(replicas: int, previous: Mapping[str, int], room: Room, *, aggregated: bool) -> Share:
    wanted = replicas - sum(previous.values())
    missing = max(0, wanted - sum([free for _, free in room]))
    chosen = [(name, free) for name, free in room if free > 0]
    if aggregated:
        in_use = [entry for entry in chosen if previous.get(entry[0], 0) > 0]
        chosen = _shortest_prefix(in_use + [entry for entry in chosen if previous.get(entry[0], 0) <= 0], wanted)
    added = without_zeros(_seats_won(wanted - missing, chosen))
    counts = total_of(previous, added)
    keeps = f"keeps {listed(without_zeros(previous).items())}; " if any(previous.values()) else ""
    weighed = "aggregated by free room" if aggregated else "dynamic weights by free room"
    if not chosen:
        text = f"{keeps}no free room for {wanted} {'more ' if keeps else ''}replicas"
    else:
        additions = listed(added.items(), sign="+" if previous else "")
        text = f"{keeps}{weighed} {listed(chosen)}: {wanted} {'more ' if keeps else ''}replicas -> {additions}"
        text += f", {missing} find no room" if missing else ""
    return Share(counts=counts, missing=missing, texts=(text,))


def _shortest_prefix(entries: Sequence[tuple[str, int]], wanted: int) -> list[tuple[str, int]]:
    """Return the first clusters whose sum reaches `wanted`; all of them when it never does."""
    total = 0
    for index, (_, amount) in enumerate(entries):
        total += amount
        if total >= wanted:
            return list(entries[: index + 1])
    return list(entries)
