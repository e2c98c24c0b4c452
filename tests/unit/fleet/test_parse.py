from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields

from reconciler.api.fleet import Fleet, FrozenReach, Snapshot, StoreFile
from reconciler.api.problem import Problem, Severity, Source
from reconciler.fleet import ParsedFile, assemble, is_store_file, parse, parse_file
from tests.unit.yaml_cases import CASES, cases


def _snapshot(files: dict[str, str], revision: str = "r1") -> Snapshot:
    stored = tuple(
        StoreFile(path=path, blob=f"{hash(text):x}", data=text.encode()) for path, text in sorted(files.items())
    )
    return Snapshot(revision=revision, files=stored)


def _reach(reach: FrozenReach) -> str:
    policy = f" of {reach.policy}" if reach.policy else ""
    if reach.everything:
        return "everything"
    if reach.identities:
        return " + ".join(sorted(str(identity) for identity in reach.identities))
    if reach.selectors:
        return " and ".join(f"selects {selector.kind}" for selector in reach.selectors) + policy
    return f"namespace {reach.namespace}"


@pytest.mark.parametrize("case", cases("badinput/stores.yaml"))
def test_reads_stores_as_the_table_says(case: dict[str, Any]) -> None:
    fleet = parse(_snapshot(case["files"]))
    assert [str(identity) for identity in fleet.templates] == case.get("templates", [])
    assert [_reach(reach) for reach in fleet.frozen] == case.get("frozen", [])
    found = [f"{problem.severity} {problem.source} {problem.code}" for problem in fleet.problems]
    assert found == case.get("problems", [])
    assert fleet.is_complete is not bool(case.get("frozen"))


def test_names_both_places_of_a_duplicate() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
    fleet = parse(_snapshot({"a.yaml": text, "b.yaml": f"# moved\n{text}"}))
    assert ["b.yaml:2" in problem.message for problem in fleet.problems] == [True, False]
    assert ["a.yaml:1" in problem.message for problem in fleet.problems] == [False, True]


def test_counts_skipped_documents_in_one_hint() -> None:
    fleet = parse(_snapshot({"a.yaml": "x: 1\n---\nw: 2\n", "b.yaml": "z: 1\n"}))
    (hint,) = fleet.problems
    assert hint.severity is Severity.HINT
    assert hint.message.startswith("3 documents")


def test_freezes_everything_when_a_file_could_not_be_read() -> None:
    unread = Problem(source=Source("a.yaml"), code="file-unreadable", message="no")
    fleet = parse(Snapshot(revision="r1", files=(StoreFile(path="a.yaml", blob="", data=b"", faults=(unread,)),)))
    assert fleet.problems == (unread,)
    assert [reach.everything for reach in fleet.frozen] == [True]
    assert not fleet.is_complete


def test_stays_complete_with_warnings_of_the_snapshot() -> None:
    hint = Problem(source=Source("a"), code="submodule-skipped", message="no", severity=Severity.HINT)
    assert assemble("r1", [], [hint]).is_complete


def _without_places(fleet: Fleet) -> list[Any]:
    return [
        [(identity, template.digest) for identity, template in fleet.templates.items()],
        [policy.ref for policy in fleet.propagation],
        [policy.ref for policy in fleet.overrides],
        list(fleet.clusters),
        list(fleet.custom_kinds.items()),
    ]


_GOOD = [
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: z}\n",
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n"
    "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}\n",
    "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: z}\nspec:\n"
    "  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n",
    "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: o}\n"
    "spec: {overrideRules: []}\n",
    "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m2}\n",
    "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\n",
    "apiVersion: v1\nkind: Namespace\nmetadata: {name: z}\n",
]
_BAD = st.sampled_from(
    ["a: [", "\x00", "- 1\n", "a: 1\na: 2\n", "{{ x }}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: C}\n", "\t"]
)


@given(st.permutations(_GOOD), st.permutations([f"{letter}/f.yaml" for letter in "abcdefg"]))
@settings(max_examples=30)
def test_result_depends_neither_on_names_nor_on_order_of_files(texts: list[str], paths: list[str]) -> None:
    one = parse(_snapshot(dict(zip(paths, texts, strict=True))))
    other = parse(_snapshot({"all.yaml": "---\n".join(_GOOD)}))
    assert _without_places(one) == _without_places(other)


@given(_BAD, st.integers(0, len(_GOOD)))
@settings(max_examples=50)
def test_one_bad_file_never_hides_those_of_others(bad: str, position: int) -> None:
    good = {f"f{number}.yaml": text for number, text in enumerate(_GOOD)}
    fleet = parse(_snapshot({**good, f"f{position}-bad.yaml": bad}))
    assert _without_places(fleet) == _without_places(parse(_snapshot(good)))
    assert not fleet.is_complete
    assert {problem.source.path for problem in fleet.problems} == {f"f{position}-bad.yaml"}


def test_parses_a_file_again_only_when_it_changes() -> None:
    cache: dict[str, ParsedFile] = {}
    first = parse(_snapshot({"a.yaml": _GOOD[0], "b.yaml": _GOOD[1]}), cache)
    kept = dict(cache)
    second = parse(_snapshot({"a.yaml": _GOOD[0], "b.yaml": _GOOD[6], "c.yaml": _GOOD[1]}, "r2"), cache)
    assert len(cache) == 3
    assert [key for key in cache if cache[key] is kept.get(key)] == [key for key in kept if key.endswith(":a.yaml")]
    assert second.templates[next(iter(first.templates))] is first.templates[next(iter(first.templates))]
    assert _without_places(second) == _without_places(parse(_snapshot({"x.yaml": "---\n".join(_GOOD[:2] + _GOOD[6:])})))


def test_gives_the_same_result_with_and_without_a_cache() -> None:
    snapshot = _snapshot({"a.yaml": "\n---\n".join(_GOOD), "b.yaml": "a: [", "c.yaml": "x: 1\n"})
    cache: dict[str, ParsedFile] = {}
    plain, cold, warm = parse(snapshot), parse(snapshot, cache), parse(snapshot, cache)
    for field in fields(Fleet):
        assert getattr(plain, field.name) == getattr(cold, field.name) == getattr(warm, field.name), field.name


def test_keeps_the_documents_of_a_file_apart() -> None:
    parsed = parse_file(StoreFile(path="a.yaml", blob="1", data="---\n".join(_GOOD).encode()))
    assert [len(getattr(parsed, name)) for name in ("templates", "propagation", "overrides", "clusters")] == [
        3,
        1,
        1,
        2,
    ]
    assert parsed.templates[1].source == Source("a.yaml", 5)


@pytest.mark.parametrize(
    ("path", "is_read"),
    [("a.yaml", True), ("x/a.yml", True), ("a.json", True), ("a.yaml~", False), ("a.YAML", False), ("a.txt", False)],
)
def test_reads_only_files_with_a_suffix_of_documents(path: str, is_read: bool) -> None:
    assert is_store_file(path) is is_read


def test_every_table_of_bad_input_cites_its_source() -> None:
    for table in ("badinput/stores.yaml", "badinput/templates.yaml", "badinput/yaml.yaml", "yaml/scalars.yaml"):
        assert "\nsource:" in (CASES / table).read_text()
