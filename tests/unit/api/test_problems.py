from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.problem import Problem, Severity, Source, with_problems, without_problems

PROBLEMS = st.lists(
    st.builds(
        Problem,
        source=st.builds(Source, st.sampled_from("ab"), st.integers(0, 60)),
        code=st.sampled_from(["c", "d"]),
        message=st.just("m"),
        severity=st.sampled_from(Severity),
    ),
    max_size=90,
)


@given(PROBLEMS, PROBLEMS, PROBLEMS)
def test_problems_are_joined_as_if_all_of_them_were_sorted(
    before: list[Problem], more: list[Problem], others: list[Problem]
) -> None:
    known = tuple(sorted(set(before)))
    assert with_problems(known, more, others) == tuple(sorted({*before, *more, *others}))
    assert without_problems(known, more) == tuple(sorted(set(before) - set(more)))


def test_what_adds_nothing_leaves_the_same_object() -> None:
    known = tuple(Problem(source=Source("a", line), code="c", message="m") for line in range(5))
    again = [Problem(source=Source("a", line), code="c", message="m") for line in range(5)]
    assert with_problems(known, again[:3]) is known
    assert with_problems(known) is known
    assert without_problems(known, ()) is known
