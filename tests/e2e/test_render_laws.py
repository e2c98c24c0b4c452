"""Laws that hold for every fleet, through the `render` command: sums, room, stillness, independence of files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reconciler.cli.render import command
from tests.e2e.rule_stores import NOW, Rendered, cluster, document, observations
from tests.examples import examples

pytestmark = pytest.mark.timeout(600)

Doc = dict[str, Any]
CLUSTERS = ("m1", "m2", "m3", "m4")
quick = settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def run(files: Mapping[str, str], seen: Mapping[str, Any]) -> Rendered:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in files.items():
            target = folder / "store" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        (folder / "observed.json").write_text(json.dumps(seen))
        args = [str(folder / "store"), "--dir", "-o", "json", "--now", NOW]
        done = CliRunner().invoke(command, [*args, "--observations", str(folder / "observed.json")])
    assert done.exit_code in (0, 1), done.output
    return Rendered(json.loads(done.stdout), done.exit_code)


divisions = st.sampled_from(["duplicated", "dynamic", "aggregated", "static", "gang"])


@st.composite
def placements(draw: st.DrawFn, division: str) -> Doc:
    where = draw(st.lists(st.sampled_from(CLUSTERS), min_size=1, unique=True))
    found: Doc = {}
    shape = draw(st.sampled_from(["all", "named", "groups"]))
    if shape == "named":
        found["at"] = where
    if shape == "groups":
        cut = draw(st.integers(1, len(where)))
        groups = {"first": where[:cut], "second": where[cut:] or ["m4"]}
        found["groups"] = groups
    if division == "static":
        found["by"] = draw(st.dictionaries(st.sampled_from(CLUSTERS), st.integers(1, 5), min_size=1))
    elif division == "gang":
        found["replicaScheduling"] = {"replicaSchedulingType": "Divided", "customSchedulingType": "Gang"}
    else:
        found["by"] = division
    if draw(st.integers(0, 4)) == 0:
        least = draw(st.integers(1, 2))
        found["spreadConstraints"] = [
            {"spreadByField": "cluster", "minGroups": least, "maxGroups": draw(st.integers(least, 3))}
        ]
    return found


@st.composite
def workloads(draw: st.DrawFn, name: str) -> tuple[list[Doc], Doc, dict[str, int]]:
    """A Deployment with a policy of its own, what the policy asks for, and a previous placement."""
    division = draw(divisions)
    replicas, cpu = draw(st.integers(0, 12)), draw(st.integers(1, 3))
    policy: Doc = {"PropagationPolicy": name, "select": [f"apps/v1/Deployment/{name}"]}
    policy["placement"] = draw(placements(division))
    if draw(st.integers(0, 3)) == 0:
        policy["api"] = "karmada"
    elif draw(st.integers(0, 3)) == 0:
        policy["autoScaling"] = {"ecsProvision": True}
    if "groups" in policy["placement"] and draw(st.booleans()):
        policy["annotations"] = {"fleet.reconciler/fail-back": "true"}
    template = {"Deployment": name, "replicas": replicas, "requests": {"cpu": str(cpu)}}
    before = draw(st.dictionaries(st.sampled_from(CLUSTERS), st.integers(1, 6), max_size=3))
    asked = {"division": division, "replicas": replicas, "cpu": cpu, "provisions": "autoScaling" in policy}
    return [template, policy], asked, before


class Case:
    """A fleet with what is known of it: documents, and rooms that follow from placements."""

    def __init__(self, documents: list[Doc], asked: dict[str, Doc], size: Mapping[str, int]) -> None:
        self.documents = documents
        self.asked = asked
        self.size = size

    def __repr__(self) -> str:
        return f"Case({self.documents}, {self.asked}, {self.size})"

    def files(self) -> dict[str, str]:
        return {"all.yaml": yaml.safe_dump_all([*map(document, self.documents), *self.clusters()])}

    def clusters(self) -> list[Doc]:
        return [cluster(name, {}) for name in CLUSTERS]

    def seen(self, placed: Mapping[str, Mapping[str, int]]) -> Doc:
        """Observations of clusters that run what is placed."""
        observed: Doc = {}
        for name, cpus in self.size.items():
            counts = {workload: placed.get(workload, {}).get(name, 0) for workload in self.asked}
            used = sum(count * self.asked[workload]["cpu"] for workload, count in counts.items())
            node = {
                "name": "n", "allocatable": {"cpu": str(cpus), "pods": "500"},
                "requested": {"cpu": str(used), "pods": str(sum(counts.values()))},
            }  # fmt: skip
            observed[name] = {"nodes": [node]}
        previous = {f"Deployment demo/{name}": dict(counts) for name, counts in placed.items() if counts}
        found = observations({"observed": observed, "previous": previous})
        assert found is not None
        return found


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Case, dict[str, dict[str, int]]]:
    documents: list[Doc] = []
    asked: dict[str, Doc] = {}
    before: dict[str, dict[str, int]] = {}
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        made, wanted, had = draw(workloads(name))
        documents += made
        asked[name] = wanted
        before[name] = had
    size = {name: draw(st.integers(0, 20)) for name in CLUSTERS}
    return Case(documents, asked, size), before


def counts_of(found: Rendered, asked: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    placements = found.placements
    return {
        name: {where: count or 0 for where, count in placements.get(f"Deployment demo/{name}", {}).items()}
        for name in asked
    }


@quick
@given(fleets())
def test_sums_are_exact_and_room_is_kept(given_fleet: tuple[Case, dict[str, dict[str, int]]]) -> None:
    case, before = given_fleet
    found = run(case.files(), case.seen(before))
    after = counts_of(found, case.asked)
    for name, asked in case.asked.items():
        binding = found.bindings.get(f"Deployment demo/{name}")
        assert binding is not None, found.document["problems"]
        if asked["division"] == "duplicated":
            assert set(after[name].values()) <= {asked["replicas"]}
        else:
            assert sum(after[name].values()) + binding["unplaced"] == asked["replicas"]
        if asked["division"] == "gang" and asked["replicas"] and len(before[name]) <= 1:
            assert len(after[name]) <= 1
    for where, cpus in case.size.items():
        used = sum(counts.get(where, 0) * case.asked[name]["cpu"] for name, counts in before.items())
        grown = 0
        for name, asked in case.asked.items():
            if asked["division"] in ("dynamic", "aggregated", "gang") and not asked["provisions"]:
                grown += max(0, after[name].get(where, 0) - before[name].get(where, 0)) * asked["cpu"]
        assert grown <= max(0, cpus - used), f"{where}: {grown} more on {cpus} - {used}"


@quick
@given(fleets())
def test_rounds_come_to_rest(given_fleet: tuple[Case, dict[str, dict[str, int]]]) -> None:
    case, placed = given_fleet
    found = run(case.files(), case.seen(placed))
    for _ in range(10):
        after = counts_of(found, case.asked)
        again = run(case.files(), case.seen(after))
        if again.document["bindings"] == found.document["bindings"] or counts_of(again, case.asked) == after:
            return
        found = again
    raise AssertionError(f"it still moves: {counts_of(found, case.asked)}")


@quick
@given(fleets())
def test_what_is_placed_in_full_stays(given_fleet: tuple[Case, dict[str, dict[str, int]]]) -> None:
    case, before = given_fleet
    first = run(case.files(), case.seen(before))
    assume(all(not binding["unplaced"] for binding in first.bindings.values()))
    assume(not any(problem["severity"] == "warning" for problem in first.document["problems"]))
    after = counts_of(first, case.asked)
    goes_back = [
        name
        for name in case.asked
        if "annotations" in next(d for d in case.documents if d.get("PropagationPolicy") == name)
    ]
    again = counts_of(run(case.files(), case.seen(after)), case.asked)
    assert {n: c for n, c in again.items() if n not in goes_back} == {
        n: c for n, c in after.items() if n not in goes_back
    }


def without_places(value: Any) -> Any:
    """A rendering without file names and lines."""
    if isinstance(value, dict):
        return {key: without_places(below) for key, below in value.items() if key not in ("source", "revision")}
    if isinstance(value, list):
        return [without_places(item) for item in value]
    return value.partition(" (")[0] if isinstance(value, str) else value


@quick
@given(fleets(), st.randoms(use_true_random=False))
def test_files_and_order_do_not_matter(given_fleet: tuple[Case, dict[str, dict[str, int]]], random: Any) -> None:
    case, before = given_fleet
    documents: Sequence[Any] = [*map(document, case.documents), *case.clusters()]
    shuffled = list(documents)
    random.shuffle(shuffled)
    scattered: dict[str, list[Any]] = {}
    for item in shuffled:
        scattered.setdefault(random.choice(["a.yaml", "deep/er/b.yml", "z/c.yaml"]), []).append(item)
    files = {name: yaml.safe_dump_all(items) for name, items in scattered.items()}
    one, other = run(case.files(), case.seen(before)), run(files, case.seen(before))
    for rendered in (one, other):
        rendered.document["problems"].sort(key=lambda problem: (problem["code"], problem["message"]))
    assert without_places(one.document) == without_places(other.document)


@quick
@given(
    st.dictionaries(st.sampled_from(CLUSTERS), st.integers(1, 9), min_size=1),
    st.dictionaries(st.sampled_from(CLUSTERS), st.integers(0, 20), min_size=4),
    st.integers(0, 15),
    st.integers(1, 5),
    st.sampled_from(["static", "dynamic"]),
)
def test_nobody_loses_when_more_is_asked_for(
    weights: Doc, size: dict[str, int], replicas: int, more: int, division: str
) -> None:
    def placed(count: int) -> dict[str, int]:
        by = weights if division == "static" else "dynamic"
        documents: list[Doc] = [
            {"Deployment": "a", "replicas": count},
            {"PropagationPolicy": "a", "placement": {"by": by}},
        ]
        case = Case(documents, {"a": {"cpu": 1}}, size)
        found = run(case.files(), case.seen({}))
        assume(not found.bindings["Deployment demo/a"]["unplaced"])
        return counts_of(found, case.asked)["a"]

    fewer, greater = placed(replicas), placed(replicas + more)
    assert all(greater.get(name, 0) >= count for name, count in fewer.items())
