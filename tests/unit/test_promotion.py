"""Promotions: the fields that they carry from one folder to another, what they tell of the rest, and refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.fleet import StoreFile
from reconciler.api.plan import Direction
from reconciler.api.rollouts import FollowClass, Promotion
from reconciler.errors import ConfigurationError
from reconciler.promotion import conflicts, promoted, promotion_changes
from reconciler.report import dump_yaml
from reconciler.yaml import read_yaml
from tests.unit.yaml_cases import cases


def files_of(texts: dict[str, str]) -> tuple[StoreFile, ...]:
    return tuple(StoreFile(path=path, blob=text, data=text.encode()) for path, text in sorted(texts.items()))


def rule_of(**fields: Any) -> Promotion:
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    if "follow" in given:
        given["follow"] = frozenset(map(FollowClass, given["follow"]))
    return Promotion(name="prod", origin="dev", target="prod", **given)


def web(folder: str, image: str, replicas: int = 1) -> tuple[str, str]:
    text = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: {folder}}}\n"
    text += f"spec:\n  replicas: {replicas}\n  template: {{spec: {{containers: [{{name: web, image: '{image}'}}]}}}}\n"
    return f"{folder}/web.yaml", text


@pytest.mark.parametrize("case", cases("promotion/carry.yaml"))
def test_fields_follow_as_the_table_says(case: dict[str, Any]) -> None:
    rule, files = rule_of(**case.get("rule", {})), files_of(case["files"])
    if "refused" in case:
        with pytest.raises(ConfigurationError) as error:
            promoted(rule, files, files, dump_yaml)
        assert case["refused"] in str(error.value)
        return
    made = promoted(rule, files, files, dump_yaml)
    assert {path: data.decode() for path, data in made.files.items()} == case["after"]
    assert list(made.left_out) == case.get("left_out", [])
    assert [change.path for carried in made.carried for change in carried.differing] == case.get("differing", [])


WORDS = st.sampled_from(["a:1", "a:2", "1", "x y", "", "true"])
VALUES = st.recursive(WORDS, lambda below: st.dictionaries(st.sampled_from("pqr"), below, max_size=3), max_leaves=6)
CLASSES = st.frozensets(st.sampled_from(list(FollowClass)))


@given(st.dictionaries(st.sampled_from(["image", "tag", "n"]), VALUES), VALUES, CLASSES)
def test_a_second_promotion_changes_nothing_and_only_what_follows_changed(one: Any, other: Any, follow: Any) -> None:
    rule = rule_of(follow=[*follow], stay=["n"])
    texts = {"dev/values.yaml": dump_yaml({**one, "end": 1}), "prod/values.yaml": dump_yaml({"image": other, "n": 1})}
    made = promoted(rule, files_of(texts), files_of(texts), dump_yaml)
    after = {**texts, **{path: data.decode() for path, data in made.files.items()}}
    assert not promoted(rule, files_of(after), files_of(after), dump_yaml).files
    (document,) = read_yaml("a.yaml", after["prod/values.yaml"].encode()).documents
    assert document.body["n"] == 1
    assert follow or after == texts


def rows(before: dict[str, str], after: dict[str, str]) -> list[tuple[str, str]]:
    told = promotion_changes([rule_of()], files_of(before), files_of(after), lambda *_: "healthy since noon", dump_yaml)
    assert all(row.direction is Direction.PROMOTES for row in told)
    return [(row.path.rpartition(".")[2], row.meaning) for row in told]


def test_a_review_says_what_is_promoted_its_health_and_what_differs() -> None:
    before = dict([web("dev", "web:2"), web("prod", "web:1", 5)])
    assert rows(before, before | dict([web("prod", "web:2", 5)])) == [
        ("image", "from Deployment dev/web, healthy since noon"),
        ("", "differs from Deployment dev/web on purpose: spec.replicas"),
    ]


def test_a_review_says_that_what_is_promoted_has_not_run_at_the_origin() -> None:
    before = dict([web("dev", "web:1"), web("prod", "web:1")])
    (row,) = rows(before, dict([web("dev", "web:2"), web("prod", "web:2")]))
    assert row == ("image", "from Deployment dev/web, not run there yet: the same change brings it there")


def test_a_review_says_that_a_value_is_not_that_of_the_origin() -> None:
    before = dict([web("dev", "web:2"), web("prod", "web:1")])
    assert rows(before, before | dict([web("prod", "web:1-hotfix")])) == [
        ("image", "not of dev, which has another value")
    ]


def test_a_review_says_that_a_version_is_older() -> None:
    before = dict([web("dev", "web:1.9.0"), web("prod", "web:1.10.0")])
    (row,) = rows(before, before | dict([web("prod", "web:1.9.0")]))
    assert row == ("image", "from Deployment dev/web, healthy since noon; an older version than before")


def test_a_review_of_something_else_says_nothing_of_promotions() -> None:
    before = dict([web("dev", "web:2"), web("prod", "web:1")])
    assert not rows(before, before | dict([web("prod", "web:1", 9)]))
    assert not rows(before, before | dict([web("dev", "web:3")]))


def test_what_came_into_the_target_after_the_last_promotion_is_no_edit_of_it() -> None:
    pod = (
        "kind: Pod\napiVersion: v1\nmetadata: {name: new, namespace: %s}\nspec: {containers: [{name: a, image: %s}]}\n"
    )
    last = dict([web("dev", "web:2"), web("prod", "web:2")])
    now = last | {"dev/new.yaml": pod % ("dev", "new:2"), "prod/new.yaml": pod % ("prod", "new:1")}
    made = promoted(rule_of(), files_of(now), files_of(now), dump_yaml)
    assert list(made.files) == ["prod/new.yaml"]
    assert conflicts(rule_of(), files_of(now), files_of(last), made, dump_yaml) == ()
