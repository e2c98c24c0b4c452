"""The first line says in words what happens."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from reconciler.api.plan import MISSING, Action, FieldChange, Plan
from reconciler.api.refs import GVK
from reconciler.report.plan import first_line, plain, plan_text
from tests.golden.hostile_plans import plans
from tests.golden.plans import CONFIG_MAP, DEPLOYMENT, change, image_bump, ordinary_plan
from tests.golden.pulls import PULLS

LINES = {
    "nothing": "no changes",
    "two-deletions": "2 deletions, 1 replacement; 1 deletion held for now",
    "fleet-wide-bump": "5,000 Deployments in 10 clusters: image nginx:1.27 → 1.28; 50 deletions held by the guard",
    "released-team": "4,000 releases",
    "own-images": "1,000 Deployments in 3 clusters: image",
    "broken-file": "1 error",
    "unreadable-cluster": "Deployment shop/web in hz-prod-a: image nginx:1.27 → 1.28; 1 error; incomplete",
    "without-observations": "1 not judged; incomplete",
}


@pytest.mark.parametrize("name", LINES)
def test_a_recorded_pull_request_is_told_in_words(name: str) -> None:
    assert plain(first_line(PULLS[name]())) == LINES[name]


def told(*changes: object, **more: object) -> str:
    return plain(first_line(Plan(base="a", head="b", changes=changes, **more)))  # type: ignore[arg-type] # a builder


def test_a_long_namespace_hides_no_name() -> None:
    long = change(Action.CREATE, "m1", DEPLOYMENT, "web")
    long = replace(long, identity=long.identity._replace(namespace="n" * 63))
    assert told(long) == f"Deployment {'n' * 63}/web created in m1"


def test_what_is_made_and_what_is_taken_over_is_told() -> None:
    assert told(change(Action.CREATE, "m1", DEPLOYMENT, "web")) == "Deployment demo/web created in m1"
    adopted = (change(Action.ADOPT, f"m{n}", CONFIG_MAP, "c") for n in range(3))
    assert told(*adopted) == "ConfigMap demo/c adopted in 3 clusters"


@pytest.mark.parametrize(
    ("path", "before", "after", "words"),
    [
        ("spec.replicas", 2, 3, "scaled 2 → 3"),
        ("metadata.labels['app.kubernetes.io/name']", MISSING, "x", "app.kubernetes.io/name (absent) → x"),
        ("data['nginx.conf']", "a" * 99, "b", "nginx.conf"),
        ("spec.image", "reg:5000/a:1", "reg:5000/a:2", "image a:1 → 2"),
        ("spec.image", "reg:5000/a", "reg:5000/b", "image reg:5000/a → reg:5000/b"),
        ("spec.tags[name=x]", 1, 2, "spec.tags[name=x] 1 → 2"),
        ("", 1, 2, "whole object 1 → 2"),
    ],
)
def test_a_field_is_told_by_its_last_name_and_short_values(
    path: str, before: object, after: object, words: str
) -> None:
    field = FieldChange(path=path, before=before, after=after)
    assert told(change(Action.UPDATE, "m1", CONFIG_MAP, "c", fields=(field,))) == f"ConfigMap demo/c in m1: {words}"


def test_values_that_differ_between_objects_are_not_told_as_one() -> None:
    other = FieldChange(path=image_bump("m1").fields[0].path, before="a:1", after="a:2")
    line = told(image_bump("m1", "a"), replace(image_bump("m1", "b"), fields=(other,)))
    assert line == "2 Deployments in m1: image"


def test_a_plan_of_which_nothing_is_known_says_so() -> None:
    assert told(is_complete=False) == "incomplete: not all that changes is known"


def test_images_of_different_registries_are_told_by_what_they_share() -> None:
    field = FieldChange(path=image_bump("m1").fields[0].path, before="reg.cn/nginx:1.25", after="reg.cn/nginx:1.27")
    mirrored = replace(image_bump("m2"), fields=(field,))
    assert told(image_bump("m1"), mirrored) == "Deployment demo/web in 2 clusters: image nginx:1.25 → 1.27"


def test_a_hidden_value_is_not_told() -> None:
    assert "«" not in plain(first_line(ordinary_plan()))
    assert "«" not in plan_text(ordinary_plan()).splitlines()[0]


def test_changes_beyond_the_most_frequent_are_counted() -> None:
    line = told(*(change(Action.CREATE, "m1", GVK("example.com", "v1", f"Kind{n}"), "x") for n in range(5)))
    assert line.endswith("; 3 more changes")


@given(plans())
def test_only_a_plan_that_could_see_everything_says_no_changes(plan: Plan) -> None:
    line = plain(first_line(plan))
    assert line
    assert "\n" not in line
    is_clean = not plan.changes and not plan.problems and plan.is_complete
    assert (line == "no changes") is is_clean
