"""Choice of regions and their scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.placement.spread import Ranked, Region, choose_regions, region_score
from tests.yaml_text import load_yaml

CASES = load_yaml((Path(__file__).parents[2] / "cases" / "regions" / "choice.yaml").read_text())


def ranked(*clusters: tuple[int, int]) -> list[Ranked]:
    """Clusters as (score, available)."""
    return [Ranked(f"m{index}", 0, score, available, "r") for index, (score, available) in enumerate(clusters)]


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_chooses_the_best_combination(case: dict[str, Any]) -> None:
    regions = [Region(name, score, tuple(ranked(*[(0, 0)] * count))) for name, count, score in case["regions"]]
    chosen = choose_regions(regions, case["least"], case["most"], case["clusters"])
    assert [region.name for region in chosen] == case["expect"]


def test_many_regions_are_chosen_by_score_without_trying_every_combination() -> None:
    regions = [Region(f"r{index:03}", index, tuple(ranked((0, 0)))) for index in range(150)]
    chosen = choose_regions(regions, 70, 80, 75)
    assert [region.name for region in chosen] == [f"r{index:03}" for index in range(149, 74, -1)]


@pytest.mark.parametrize(
    ("first", "second", "needs", "first_wins"),
    [
        ([(100, 30), (100, 30), (0, 30)], [(100, 30), (100, 30), (100, 10)], (20, 1, 1, True), True),
        ([(100, 30), (0, 30), (0, 10)], [(100, 30), (100, 30), (100, 10)], (20, 1, 1, True), False),
        ([(100, 30), (0, 30)], [(100, 10), (100, 10)], (100, 2, 1, False), True),
        ([(0, 100), (0, 100)], [(100, 50), (100, 50)], (100, 2, 1, False), False),
    ],
    ids=[
        "duplicated: more clusters with room for all",
        "duplicated: as many, higher score",
        "divided: room for its share",
        "divided: both have room, higher score",
    ],
)
def test_scores_room_before_locality(
    first: list[tuple[int, int]], second: list[tuple[int, int]], needs: tuple[int, int, int, bool], first_wins: bool
) -> None:
    *numbers, duplicated = needs
    scores = [region_score(ranked(*side), *numbers, duplicated=duplicated) for side in (first, second)]
    assert (scores[0] > scores[1]) is first_wins


def test_a_region_without_any_fitting_cluster_scores_nothing() -> None:
    assert region_score(ranked((100, 1)), 5, 1, 1, duplicated=True) == 0
