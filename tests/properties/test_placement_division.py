"""Laws of the division of replicas."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.placement import webster
from reconciler.placement.divide import divide_by_capacity, divide_statically

VOTES = st.dictionaries(st.sampled_from([f"m{index}" for index in range(12)]), st.integers(0, 60), max_size=9)


def one_by_one(seats: int, votes: dict[str, int]) -> dict[str, int]:
    """Webster's method by its definition: the oracle."""
    given_seats = dict.fromkeys(votes, 0)
    parties = [name for name, vote in votes.items() if vote > 0]
    for _ in range(seats if parties else 0):
        winner = min(parties, key=lambda n: (-Fraction(votes[n], 2 * given_seats[n] + 1), given_seats[n], n))
        given_seats[winner] += 1
    return given_seats


@given(st.integers(0, 150), VOTES)
@settings(deadline=None)
def test_seats_are_those_of_the_definition(seats: int, votes: dict[str, int]) -> None:
    assert webster(seats, votes) == one_by_one(seats, votes)


@given(
    st.integers(0, 10**9), st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 2**53), min_size=1)
)
@settings(deadline=None)
def test_seats_add_up_and_nobody_loses_by_one_more(seats: int, votes: dict[str, int]) -> None:
    now, one_more = webster(seats, votes), webster(seats + 1, votes)
    assert sum(now.values()) == seats
    assert sorted(one_more[name] - now[name] for name in votes) == [0] * (len(votes) - 1) + [1]


@given(VOTES, st.data())
@settings(deadline=None)
def test_nobody_gets_more_seats_than_votes_while_there_are_enough(votes: dict[str, int], data: st.DataObject) -> None:
    seats = webster(data.draw(st.integers(0, sum(votes.values()))), votes)
    assert all(seats[name] <= votes[name] for name in votes)


@given(st.integers(0, 90), VOTES.filter(bool))
@settings(deadline=None)
def test_static_shares_add_up_also_without_any_weight(replicas: int, weights: dict[str, int]) -> None:
    assert sum(divide_statically(replicas, weights).counts.values()) == replicas


@given(st.integers(0, 90), VOTES, VOTES, st.booleans(), st.booleans())
@settings(deadline=None)
def test_shares_by_capacity_and_what_is_missing_add_up(
    replicas: int, kept: dict[str, int], room: dict[str, int], aggregated: bool, fresh: bool
) -> None:
    offered = {**dict.fromkeys(kept, 0), **room}
    ordered = sorted(offered.items(), key=lambda entry: -entry[1])
    share = divide_by_capacity(replicas, kept, lambda: ordered, aggregated=aggregated, fresh=fresh)
    assert sum(share.counts.values()) + share.missing == replicas
    for name, count in share.counts.items():
        assert 0 < count <= kept.get(name, 0) + room.get(name, 0)
    if not fresh and sum(kept.values()) <= replicas:
        assert all(share.counts.get(name, 0) >= count for name, count in kept.items())


@given(st.integers(1, 90), VOTES, VOTES)
@settings(deadline=None)
def test_aggregated_uses_no_cluster_that_it_could_do_without(
    replicas: int, kept: dict[str, int], room: dict[str, int]
) -> None:
    ordered = sorted(room.items(), key=lambda entry: -entry[1])
    share = divide_by_capacity(replicas, {}, lambda: ordered, aggregated=True)
    used = [name for name, _ in ordered if share.counts.get(name)]
    if used and not share.missing:
        assert sum(room[name] for name in used[:-1]) < replicas
