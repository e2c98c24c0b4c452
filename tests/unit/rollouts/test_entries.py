"""The entries of a mark, those that are believed, and that no mark puts a cluster a step back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.rollout_progress import EarlierRevision, Record
from reconciler.rollouts import believed, entries_of, has_beginnings, is_past, records_of_entries

NOW = "2026-11-23T12:00:00Z"
TIMES = [f"2026-11-{day}T10:00:00Z" for day in (20, 21, 22)]
times = st.sampled_from(TIMES)
records = st.builds(
    Record,
    revision=st.sampled_from(["c1", "c2"]),
    begun_at=times,
    completed_at=times | st.just(""),
    steady_since=times | st.just(""),
    earlier=st.lists(
        st.builds(EarlierRevision, revision=st.sampled_from(["c3", "c4"]), left_at=times),
        max_size=2,
        unique_by=lambda found: found.revision,
    ).map(tuple),
)
names = st.sampled_from(["web", "api", "a.b-c"])


@given(st.dictionaries(names, records))
def test_a_mark_tells_what_was_written_into_it(known: dict[str, Record]) -> None:
    told = records_of_entries(entries_of(known), NOW)
    assert told == {name: replace(found, steady_since="") for name, found in known.items()}
    assert has_beginnings(entries_of(known), entries_of(known))
    assert all(believed(known[name], found) is None for name, found in told.items())


@given(records | st.none(), records)
def test_the_later_beginning_counts_and_what_is_known_is_never_given_up_for_an_older_one(
    known: Record | None, told: Record
) -> None:
    after = believed(known, told) or known
    assert after is not None
    assert after.begun_at == max(told.begun_at, known.begun_at if known is not None else "")
    assert believed(after, told) is None
    assert is_past(after, told)


@given(st.dictionaries(st.text(max_size=20).map("rollout.".__add__) | st.text(max_size=20), st.text(max_size=60)))
def test_no_mark_breaks_anything(entries: dict[str, str]) -> None:
    records_of_entries(entries, NOW)
    has_beginnings(entries, entries_of({"web": Record(revision="c1", begun_at=TIMES[0])}))


def test_a_turn_alone_is_no_entry_and_is_kept_beside_what_a_mark_tells() -> None:
    turn = Record(turn="c2", turn_at=TIMES[1])
    assert entries_of({"web": turn}) == {}
    told = Record(revision="c1", begun_at=TIMES[0])
    assert believed(turn, told) == Record(revision="c1", begun_at=TIMES[0], turn="c2", turn_at=TIMES[1])
    assert not is_past(turn, told)


def test_a_completion_is_learned_and_ends_the_time_of_success() -> None:
    known = Record(revision="c1", begun_at=TIMES[0], steady_since=TIMES[1])
    told = Record(revision="c1", begun_at=TIMES[0], completed_at=TIMES[2])
    assert believed(known, told) == told
    assert has_beginnings(entries_of({"web": known}), entries_of({"web": told})), "it is worth no write"


def test_a_name_that_makes_no_key_is_left_out() -> None:
    record = Record(revision="c1", begun_at=TIMES[0])
    assert list(entries_of({"a" * 62 + "." + "b" * 62: record})) == [f"rollout.{'a' * 62}.{'b' * 62}"]
    assert entries_of({".".join(["a" * 61] * 4): record}) == {}


def test_a_mark_is_read_up_to_a_bound() -> None:
    record = Record(revision="c1", begun_at=TIMES[0])
    entries = entries_of({f"r{number}": record for number in range(1500)})
    assert len(records_of_entries(entries, NOW)) == 1000


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-11-22T10:00:00+02:00", "2026-11-22T08:00:00Z"),
        ("2026-11-22T10:00:00.9Z", "2026-11-22T10:00:00Z"),
        ("2026-11-22T10:00:00", "2026-11-22T10:00:00Z"),
        ("2999-01-01T00:00:00Z", NOW),
    ],
)
def test_times_are_read_as_they_are_written_here_and_none_is_yet_to_come(written: str, read: str) -> None:
    told = records_of_entries({"rollout.web": f'{{"revision":"c1","begunAt":"{written}"}}'}, NOW)
    assert told == {"web": Record(revision="c1", begun_at=read)}
