"""Patterns mean what Git means by them, and cost no more than their length times that of the name."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from reconciler.store import is_ignored, with_rules
from reconciler.store.ignore import MAX_PATTERN, MAX_STARS, parse_pattern

NAMES = st.text(alphabet="ab-]", min_size=1, max_size=4)
SEGMENTS = st.one_of(
    st.text(alphabet="ab*?-", min_size=1, max_size=5), st.sampled_from(["**", "[ab]", "[!a]*", "a[a-b]", "\\*"])
)


def is_matched(line: str, path: str, *, is_folder: bool = False) -> bool:
    rules, problems = with_rules(None, "", line.encode())
    assert not problems
    return is_ignored(rules, path, is_folder=is_folder)


@pytest.mark.parametrize(
    ("line", "matched", "others"),
    [
        ("a.yaml", ["a.yaml", "x/a.yaml"], ["a.yaml.b", "ba.yaml"]),
        ("/a.yaml", ["a.yaml"], ["x/a.yaml"]),
        ("x/a.yaml", ["x/a.yaml"], ["y/x/a.yaml", "a.yaml"]),
        ("**/x/a", ["x/a", "y/x/a", "y/z/x/a"], ["a", "x/y/a"]),
        ("x/**/a", ["x/a", "x/y/a", "x/y/z/a"], ["a", "y/x/a"]),
        ("x/**", ["x/a", "x/y/a"], ["x", "y/x/a"]),
        ("*.y*ml", ["a.yaml", "x/b.yml", "a.y.ml"], ["a.json", "a.yaml.x"]),
        ("a*b*c", ["abc", "axbxc", "abcbc", "abbc"], ["abcb", "ab", "xabc"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "a-x"]),
        ("[!a-c]x", ["dx"], ["ax"]),
        ("[]x]y", ["]y", "xy"], ["ay"]),
        ("[ab", ["[ab"], ["a"]),
        ("\\#a", ["#a"], ["a"]),
        ("\\!a", ["!a"], ["a"]),
        ("a\\*", ["a*"], ["ab"]),
        ("a ", ["a"], ["a "]),
        ("a\\ ", ["a "], ["a"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
    ],
)
def test_a_pattern_matches_as_in_gitignore(line: str, matched: list[str], others: list[str]) -> None:
    assert [path for path in (*matched, *others) if is_matched(line, path)] == matched


def test_what_ends_in_a_slash_matches_folders_alone() -> None:
    assert is_matched("a/", "x/a", is_folder=True)
    assert not is_matched("a/", "x/a")


@pytest.mark.parametrize("line", ["", "   ", "# a", "#"])
def test_blank_lines_and_comments_say_nothing(line: str) -> None:
    assert parse_pattern(line) is None


@pytest.mark.parametrize("line", ["!", "/", "!/"])
def test_a_pattern_that_names_nothing_is_refused(line: str) -> None:
    _, problems = with_rules(None, "", line.encode())
    assert [problem.code for problem in problems] == ["ignore-pattern-refused"]


@given(st.lists(SEGMENTS, min_size=1, max_size=4), st.lists(NAMES, min_size=1, max_size=4), st.booleans())
def test_every_pattern_says_what_another_reader_of_gitignore_says(
    segments: list[str], names: list[str], is_anchored: bool
) -> None:
    line, path = ("/" if is_anchored else "") + "/".join(segments), "/".join(names)
    # There, a pattern that matches a folder matches what is in it as well: here its folder was asked before.
    above = ["/".join(names[:length]) for length in range(1, len(names))]
    mine = is_matched(line, path) or any(is_matched(line, folder, is_folder=True) for folder in above)
    assert mine is GitIgnoreSpec.from_lines([line]).match_file(path), (line, path)


@pytest.mark.parametrize(
    "pattern",
    ["*a" * MAX_STARS + "b", "*?" * MAX_STARS + "b", "[!b]*" * MAX_STARS + "c", ("*" + "a" * 30) * MAX_STARS + "b",
     "**/a*" * 4 + "/b", "**/*a*a/" * 2 + "b", "*[a-z]" * MAX_STARS + "0"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["a" * 255, "a/" * 2_000 + "a", ("a" * 250 + "/") * 16 + "a"])
def test_no_pattern_takes_longer_than_its_length_times_that_of_the_name(pattern: str, path: str) -> None:
    assert len(pattern) <= MAX_PATTERN
    rules, problems = with_rules(None, "", pattern.encode())
    assert not problems
    tries = []
    for _ in range(3):
        started_s = time.process_time()
        is_ignored(rules, path, is_folder=False)
        tries.append(time.process_time() - started_s)
    assert min(tries) < 0.02
