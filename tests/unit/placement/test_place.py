"""Placement, by the case tables under tests/cases/placement: one table an area, each case citing its rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.binding import Binding
from reconciler.api.problem import Severity
from reconciler.placement import PlacementTables, place
from tests.placement_cases import Case, identity, request_of
from tests.yaml_text import load_yaml

TABLES = Path(__file__).parents[2] / "cases" / "placement"
KNOWN = {
    "case", "source", "note", "clusters", "free", "observed", "policy", "kind", "replicas", "divisible", "requests",
    "components", "previous", "group_in_use", "caps", "excluded", "until", "now", "partial", "fresh", "workloads",
    "workload", "namespace", "expect", "written",
    "completions", "unplaced", "problems", "group", "reasons", "cluster_reasons",
    "priority_classes", "nodeSelector", "nodeTerms", "podTolerations",
}  # fmt: skip


def load() -> list[tuple[str, Case]]:
    cases: list[tuple[str, Case]] = []
    for table in sorted(TABLES.glob("*.yaml")):
        shared: dict[str, Any] = {}
        for entry in load_yaml(table.read_text()):
            if "defaults" in entry:
                shared = entry["defaults"]
                continue
            cases.append((f"{table.stem}: {entry['case']}", {**shared, **entry}))
    return cases


CASES = load()


def test_every_case_has_its_own_name_and_a_source() -> None:
    names = [name for name, _ in CASES]
    assert len(names) == len(set(names))
    for name, case in CASES:
        assert case.get("source"), name
        assert set(case) <= KNOWN, (name, set(case) - KNOWN)
        assert "expect" in case or "workloads" in case, name


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_places_as_the_rule_says(case: Case) -> None:
    result = place(request_of(case))
    workloads = [{**case, **given} for given in case.get("workloads", [{}])]
    for workload in workloads:
        binding = result.bindings[identity(workload)]
        assert {t.cluster: t.replicas for t in binding.targets} == _expected(workload["expect"]), binding.reasons
        assert binding.unplaced == workload.get("unplaced", 0)
        _check_reasons(binding, workload)
    assert [problem.code for problem in result.problems] == [code for w in workloads for code in w.get("problems", [])]
    assert all(problem.severity is Severity.WARNING for problem in result.problems)


def test_what_stays_is_not_placed_again_when_another_one_needs_room() -> None:
    case = {"clusters": ["m1", "m2"], "free": {"m1": 9, "m2": 9}, "policy": {"division": "dynamic-weight"}}
    both = [{"workload": "one", "replicas": 3, "previous": {"m1": 2, "m2": 1}}, {"workload": "two", "replicas": 4}]
    memo = PlacementTables()
    result = place(request_of({**case, "workloads": both}), memo)
    assert [*memo.by_room] == [identity(both[1])]
    assert result.bindings == place(request_of({**case, "workloads": both})).bindings


NODE = {"name": "n1", "allocatable": {"cpu": 4, "pods": 110}}
FULL = {**NODE, "requested": {"cpu": 4, "pods": 1}}
OTHERS = {"namespace": "batch", "pods": 5, "names": ["a", "b", "c"]}
REFUSED = {"namespace": "lost", "pods": 1, "names": ["x"], "refusal": "node selector disk=ssd (1 node)"}
QUOTA = {"namespace": "demo", "hard": {"pods": 0}}
OTHER_NODES = "add nodes that admit its pods, or change what its pods ask for"


@pytest.mark.parametrize(
    ("given", "observed", "says"),
    [
        ({}, {"nodes": [FULL]}, "9 of 9 replicas find no room; nothing of it is placed; add capacity"),
        (
            {},
            {"nodes": [FULL], "pending": [OTHERS, REFUSED]},
            "find no room; in m1 5 pods of batch (a, b, c, …) without a node take room, 1 pod of lost (x) takes none, "
            "since no node admits them: node selector disk=ssd (1 node); nothing of it is placed; add capacity",
        ),
        (
            {"nodeSelector": {"disk": "ssd"}},
            {"nodes": [NODE]},
            "find no room; in m1 no node admits its pods: node selector disk=ssd (1 node); nothing of it is placed; "
            + OTHER_NODES,
        ),
        (
            {},
            {"nodes": [NODE], "quotas": [QUOTA]},
            "nothing of it is placed; raise the ResourceQuota of the namespace demo",
        ),
        (
            {"nodeSelector": {"disk": "ssd"}},
            {"nodes": [NODE], "quotas": [QUOTA]},
            "in m1 no node admits its pods: node selector disk=ssd (1 node), a ResourceQuota of the namespace demo "
            f"lets no more in; nothing of it is placed; {OTHER_NODES}; raise the ResourceQuota of the namespace demo",
        ),
    ],
)
def test_a_shortfall_names_what_takes_the_room_or_why_nothing_helps(
    given: dict[str, Any], observed: dict[str, Any], says: str
) -> None:
    case = {"clusters": ["m1"], "policy": {"division": "dynamic-weight"}, "replicas": 9, "requests": {"cpu": 1}}
    result = place(request_of({**case, "observed": {"m1": observed}, **given}))
    (problem,) = result.problems
    assert problem.code == "not-enough-capacity"
    assert says in problem.message


@pytest.mark.parametrize(
    ("given", "is_advised"),
    [({}, True), ({"partial": True}, False), ({"components": {"Worker": {"replicas": 9}}}, False)],
)
def test_partial_is_advised_only_where_it_would_help(given: dict[str, Any], is_advised: bool) -> None:
    policy = {"division": "dynamic-weight", "gang": "components" in given}
    result = place(request_of({"clusters": ["m1"], "free": {"m1": 1}, "policy": policy, "replicas": 9, **given}))
    (problem,) = result.problems
    assert ("spec.placement.partial" in problem.message) is is_advised


def test_where_a_cap_is_in_the_way_the_advice_says_so() -> None:
    policy = {"division": "dynamic-weight", "affinity": ["m1"]}
    case = {"clusters": ["m1", "m2"], "free": {"m1": 9, "m2": 9}, "policy": policy, "replicas": 3, "caps": {"m1": 1}}
    (problem,) = place(request_of(case)).problems
    assert problem.code == "not-enough-capacity"
    assert "m1 takes no more while a cap is in force (m1: pods wait)" in problem.message
    assert "an edit of the placement or the pod template ends it" in problem.message


def _expected(given: Any) -> dict[str, int | None]:
    return dict(given) if isinstance(given, dict) else dict.fromkeys(given or ())


def _check_reasons(binding: Binding, case: Case) -> None:
    assert set(binding.cluster_reasons) >= set(dict(request_of(case).clusters))
    assert binding.affinity_name == case.get("group", binding.affinity_name)
    said = " | ".join(reason.text for reason in binding.reasons)
    assert said
    for text in case.get("reasons", []):
        assert text in said
    for cluster, text in case.get("cluster_reasons", {}).items():
        assert text in binding.cluster_reasons[cluster].text


def test_a_shortfall_names_three_clusters_at_most() -> None:
    names = [f"m{index}" for index in range(1, 6)]
    seen = {"nodes": [FULL], "pending": [OTHERS]}
    case = {"clusters": names, "policy": {"division": "dynamic-weight"}, "replicas": 9, "requests": {"cpu": 1}}
    (problem,) = place(request_of({**case, "observed": dict.fromkeys(names, seen)})).problems
    assert problem.message.count("pods of batch") == 3
    assert "; and so on in 2 more clusters; nothing" in problem.message
