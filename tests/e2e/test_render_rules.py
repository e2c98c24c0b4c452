"""Every rule of policies and placement through `render`: a store as people write it, and what comes out.

One table an area under tests/cases/rules; each case cites the page, Karmada's behaviour or a row of `docs/design.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.rule_stores import Rendered, render
from tests.yaml_text import load_yaml

TABLES = Path(__file__).parents[1] / "cases" / "rules"
INPUT = {
    "case", "source", "note", "clusters", "fleet", "store", "files", "free", "observed", "previous", "constraints",
    "now", "args",
}  # fmt: skip
EXPECTED = {
    "placement", "bindings", "unplaced", "problems", "says", "policy", "reasons", "objects", "fields", "absent",
    "overrides", "exit",
}  # fmt: skip

Case = Mapping[str, Any]


def load() -> list[tuple[str, Case]]:
    cases: list[tuple[str, Case]] = []
    for table in sorted(TABLES.glob("*.yaml")):
        shared: dict[str, Any] = {}
        for entry in load_yaml(table.read_text()):
            if "defaults" in entry:
                shared = entry["defaults"]
            elif "case" in entry:
                cases.append((f"{table.stem}: {entry['case']}", {**shared, **entry}))
    return cases


CASES = load()


def test_every_case_has_its_own_name_a_source_and_known_keys() -> None:
    names = [name for name, _ in CASES]
    assert len(names) == len(set(names))
    for name, case in CASES:
        assert case.get("source"), name
        assert set(case) <= INPUT | {"expect"}, (name, set(case) - INPUT)
        assert set(case["expect"]) <= EXPECTED, (name, set(case["expect"]) - EXPECTED)


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_renders_as_the_rule_says(case: Case, tmp_path: Path) -> None:
    found, expect = render(tmp_path, case), case["expect"]
    told = yaml.safe_dump([found.document["problems"], found.document["bindings"]], sort_keys=False)
    for name, placement in expect.get("placement", {}).items():
        assert found.placements.get(name) == placement, f"{name}\n{told}"
    if "bindings" in expect:
        assert sorted(found.bindings) == sorted(expect["bindings"]), told
    for name, binding in found.bindings.items():
        if name in expect.get("placement", {}):
            assert binding["unplaced"] == expect.get("unplaced", {}).get(name, 0), told
    _check_problems(found, expect, told)
    _check_words(found, expect, told)
    _check_objects(found, expect)
    assert found.exit_code == expect.get("exit", 0), told


def _check_problems(found: Rendered, expect: Case, told: str) -> None:
    problems = [problem for problem in found.document["problems"] if problem["severity"] != "hint"]
    assert sorted(problem["code"] for problem in problems) == sorted(expect.get("problems", [])), told
    for code, words in expect.get("says", {}).items():
        assert any(words in f"{p['source']} {p['path']} {p['message']}" for p in problems if p["code"] == code), told


def _check_words(found: Rendered, expect: Case, told: str) -> None:
    for name, words in expect.get("policy", {}).items():
        policy = found.bindings[name]["policy"]
        shown = policy and " ".join(part for part in policy.values() if part)
        assert shown == words, told
    for name, words in expect.get("reasons", {}).items():
        assert words in " | ".join(found.bindings[name]["reasons"]), told


def _check_objects(found: Rendered, expect: Case) -> None:
    objects = found.objects
    if "objects" in expect:
        assert sorted(objects) == sorted(expect["objects"])
    for name in expect.get("absent", []):
        assert name not in objects
    for name, fields in expect.get("fields", {}).items():
        assert name in objects, sorted(objects)
        for path, value in fields.items():
            assert _at(objects[name]["manifest"], path) == value, (name, path)
    for name, rules in expect.get("overrides", {}).items():
        assert objects[name]["overrides"] == rules


def _at(value: Any, path: str) -> Any:
    """`spec/template/spec/containers/0/image`, slashes in keys as ~1; None when it is not there."""
    for part in path.split("/"):
        step = part.replace("~1", "/")
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value
