from __future__ import annotations

from contextlib import ExitStack

import pytest

from reconciler.errors import AnswerTooLarge
from reconciler.kube.connection.bounds import Budget


def test_one_cluster_may_take_half_of_it_and_not_a_byte_more() -> None:
    budget = Budget(1000)
    with budget.share("m1") as take:
        take(500)
        with pytest.raises(AnswerTooLarge):
            take(1)
    assert budget.taken == 0


def test_who_takes_no_more_than_the_others_goes_on_while_one_has_taken_its_part() -> None:
    budget = Budget(1000)
    with budget.share("greedy") as greedy, budget.share("m2") as second, budget.share("m3") as third:
        greedy(500)
        second(160)
        third(160)
        with pytest.raises(AnswerTooLarge) as error:
            greedy(1)
        assert error.value.cluster == "greedy"
        assert budget.taken == 821


def test_all_of_them_together_take_no_more_than_the_whole() -> None:
    budget, names, refused = Budget(10_000), [f"m{number:03}" for number in range(100)], 0
    with ExitStack() as held:
        for name in names:
            take = held.enter_context(budget.share(name))
            for _ in range(100):
                before = budget.taken
                try:
                    take(10)
                except AnswerTooLarge:
                    refused += 1
                    break
                assert before < budget.taken <= 10_000
        assert refused > 0
    assert budget.taken == 0


def test_what_one_answer_took_is_given_back_with_it_alone() -> None:
    budget = Budget(1000)
    with budget.share("m1") as first:
        first(100)
        with budget.share("m1") as second:
            second(200)
        assert budget.taken == 100
