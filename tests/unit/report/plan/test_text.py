"""The terminal report: what destroys first, what is alike once, no colour unless asked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.api.plan import Action, Cause, FieldChange, FieldOwner, Plan
from reconciler.report import Style
from reconciler.report.plan import has_destruction, plan_text
from tests.fakes.holds import hold
from tests.golden.plans import CONFIG_MAP, change, hostile_plan, image_bump, ordinary_plan


def plan_of(*changes: object, **more: object) -> Plan:
    return Plan(base="a", head="b", changes=changes, **more)  # type: ignore[arg-type] # a builder


def test_destruction_comes_before_everything_else() -> None:
    lines = plan_text(ordinary_plan()).splitlines()
    kinds = [line.split()[1] for line in lines if line[:2] in ("- ", "! ", "~ ", "+ ", "^ ")]
    assert kinds[:2] == ["delete", "release"]


def test_a_release_says_in_red_that_nobody_manages_the_object() -> None:
    text = plan_text(plan_of(change(Action.RELEASE, "m1", CONFIG_MAP, "c")), Style(color=True))
    assert "\x1b[31mstays in the cluster and becomes UNMANAGED\x1b[0m" in text


def test_a_pipe_gets_no_colour() -> None:
    assert "\x1b" not in plan_text(ordinary_plan())


def test_nothing_of_the_store_is_a_control_character() -> None:
    text = plan_text(hostile_plan())
    assert all(char == "\n" or char.isprintable() for char in text)


def test_drift_names_manager_and_time() -> None:
    def drifted(cluster: str, time: str) -> object:
        owner = FieldOwner(manager="kubectl-edit", operation="Update", time=time)
        field = FieldChange(path="spec.replicas", before=5, after=3, cause=Cause.DRIFT, owner=owner)
        return change(Action.UPDATE, cluster, CONFIG_MAP, "c", cause=Cause.DRIFT, fields=(field,))

    one = plan_text(plan_of(drifted("m1", "2026-11-21T09:00:00Z")))
    assert "spec.replicas  5 → 3  (set by kubectl-edit at 2026-11-21T09:00:00Z)" in one
    two = plan_text(plan_of(drifted("m1", "2026-11-21T09:00:00Z"), drifted("m2", "2026-11-21T10:00:00Z")))
    assert "(set by kubectl-edit between 2026-11-21T09:00:00Z and 2026-11-21T10:00:00Z)" in two


def test_a_field_that_differs_in_some_clusters_names_them() -> None:
    extra = FieldChange(path="spec.replicas", before=1, after=2)
    text = plan_text(plan_of(image_bump("m1"), image_bump("m2", "web", extra)))
    assert "~ update     m1, m2  Deployment demo/web" in text
    assert "1 → 2  [only m2]" in text
    assert text.count("→ nginx:1.27") == 1


def test_many_clusters_with_equal_counts_are_one_row() -> None:
    text = plan_text(plan_of(*(image_bump(f"prod-{number:03}") for number in range(300)), image_bump("idc", "web")))
    rows = [line.split() for line in text.splitlines() if line.startswith("  ") and line.rstrip().endswith(" 0")]
    assert [row[:-8] for row in rows] == [["each", "of", "301:", "idc,", "prod-{000..299}"], ["Total"]]


def test_what_is_held_says_why_and_how_to_let_it_pass() -> None:
    held = change(Action.DELETE, "m1", CONFIG_MAP, "c", held="guard: 14 deletions")
    text = plan_text(plan_of(held, held_digest="8c1f"))
    assert "HELD: guard: 14 deletions" in text
    assert "spec.guards.confirm: 8c1f" in text
    assert "\nDeletions, replacements and releases\n- delete" in text
    assert "spec.guards.confirm" not in plan_text(plan_of(replace(held, hold=hold("waits for m2 healthy"))))


def test_an_incomplete_plan_never_looks_clean() -> None:
    assert "INCOMPLETE" in plan_text(plan_of(is_complete=False))
    assert "INCOMPLETE" not in plan_text(plan_of())


@pytest.mark.parametrize(
    ("action", "held", "expected"),
    [
        (Action.DELETE, None, True),
        (Action.REPLACE, None, True),
        (Action.RELEASE, None, True),
        (Action.DELETE, "waits", False),
        (Action.UPDATE, None, False),
    ],
)
def test_only_what_destroys_now_is_destruction(action: Action, held: str | None, expected: bool) -> None:
    assert has_destruction(plan_of(change(action, "m1", CONFIG_MAP, "c", held=held))) is expected
