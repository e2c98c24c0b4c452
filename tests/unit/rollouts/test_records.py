"""Records of rollouts, their part in a ConfigMap, and which revision is the release of HEAD."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.rollout_progress import Record
from reconciler.rollouts import entry_of, newest, record_of

TIMES = st.sampled_from(["2026-11-23T10:00:00Z", "2026-11-23T10:00:00.5Z"])


@given(revision=st.text("0123456789abcdef", min_size=7, max_size=40), begun=TIMES, done=TIMES | st.just(""))
def test_an_entry_tells_the_record(revision: str, begun: str, done: str) -> None:
    record = Record(revision=revision, begun_at=begun, completed_at=done)
    assert record_of(entry_of(record)) == record


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"revision":"5f3c9d2"}',
        '{"revision":"5f3c9d2","begunAt":"soon"}',
        '{"revision":7,"begunAt":"2026-11-23T10:00:00Z"}',
        '{"begunAt":"2026-11-23T10:00:00Z"}',
    ],
)
def test_what_is_no_entry_tells_nothing(entry: str) -> None:
    assert record_of(entry) is None


def test_an_entry_of_a_later_version_is_read() -> None:
    entry = '{"revision":"5f3c9d2","begunAt":"2026-11-23T10:00:00Z","more":"x"}'
    assert record_of(entry) == Record(revision="5f3c9d2", begun_at="2026-11-23T10:00:00Z")


@pytest.mark.parametrize(
    ("alike", "release"),
    [([], "head"), (["new"], "new"), (["old"], "old"), (["old", "new"], "new")],
    ids=["another one", "it leaves the rollout alone", "a revert", "the newest that is alike"],
)
def test_the_release_of_head(alike: list[str], release: str) -> None:
    assert (newest(frozenset(alike), {}, ("old", "new", "head")) or "head") == release
