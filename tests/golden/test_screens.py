"""Every screen of the reports as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.api.binding import Binding, Reason, TargetCluster
from reconciler.api.content import Content
from reconciler.api.plan import Manifest, Plan
from reconciler.api.problem import Problem, Source
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.report import Rendering, Style, json_text, problems_text, render_json, render_yaml, table
from reconciler.report.plan import plan_document, plan_text
from reconciler.report.plan.annotations import github_annotations
from reconciler.report.plan.markdown import plan_markdown
from reconciler.report.plan.plan_patches import plan_patches
from tests.golden.plans import HOSTILE, base64_of, hostile_plan, large_plan, ordinary_plan

Golden = Callable[[str, str], None]
NOTHING = Plan(base="main", head="topic")


def test_plan_text(golden: Golden) -> None:
    golden("plan.txt", plan_text(ordinary_plan()))


def test_plan_text_in_colour(golden: Golden) -> None:
    golden("plan_colour.txt", plan_text(ordinary_plan(), Style(color=True)))


def test_plan_text_of_a_hostile_store(golden: Golden) -> None:
    golden("plan_hostile.txt", plan_text(hostile_plan()))


def test_plan_text_without_changes(golden: Golden) -> None:
    golden("plan_nothing.txt", plan_text(NOTHING))


def test_plan_markdown(golden: Golden) -> None:
    golden("plan.md.txt", plan_markdown(ordinary_plan(), marker="shop"))


def test_plan_markdown_of_a_hostile_store(golden: Golden) -> None:
    golden("plan_hostile.md.txt", plan_markdown(hostile_plan(), marker=HOSTILE[13]))


def test_plan_markdown_without_changes(golden: Golden) -> None:
    golden("plan_nothing.md.txt", plan_markdown(NOTHING))


@pytest.mark.parametrize("budget", [32_768, 4096])
def test_plan_markdown_that_is_cut(golden: Golden, budget: int) -> None:
    golden(f"plan_cut_{budget}.md.txt", plan_markdown(large_plan(clusters=20, workloads=150), budget=budget))


def test_plan_json(golden: Golden) -> None:
    golden("plan.json.txt", json_text(plan_document(ordinary_plan())))


def test_plan_patches(golden: Golden) -> None:
    golden("plan_patches.json.txt", json_text(plan_patches(ordinary_plan())))


def rendering() -> Rendering:
    web = Identity("apps", "Deployment", "demo", "web")
    policy = PolicyRef("PropagationPolicy", "demo", "web")
    manifest = Manifest(
        cluster="m1",
        gvk=GVK("apps", "v1", "Deployment"),
        identity=web,
        content=Content(
            tree={
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "demo", "annotations": {"note": "on", "time": "22:22"}},
                "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]}}},
            }
        ),
        source=Source("apps/web.yaml", 1),
        policy=policy,
        overrides=("OverridePolicy demo/web rule 0",),
    )
    secret = Manifest(
        cluster="m1",
        gvk=GVK("", "v1", "Secret"),
        identity=Identity("", "Secret", "demo", "db"),
        content=Content(
            tree={
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "db", "namespace": "demo"},
                "data": {"password": base64_of("hunter2"), "again": base64_of("hunter2"), "user": base64_of("admin")},
            }
        ),
        source=Source("apps/db.yaml", 1),
        policy=policy,
    )
    return Rendering(
        revision="dir:0123456789abcdef",
        bindings=(
            Binding(
                identity=web,
                policy=policy,
                targets=(TargetCluster(cluster="m1", replicas=2),),
                unplaced=1,
                reasons=(Reason(rule="claim", text="selected by name", source=Source("policies/web.yaml", 6)),),
            ),
            Binding(identity=secret.identity, policy=policy, targets=(TargetCluster(cluster="m1"),)),
            Binding(identity=Identity("", "ConfigMap", "demo", "unclaimed"), policy=None),
        ),
        kinds={Identity("", "ConfigMap", "demo", "unclaimed"): GVK("", "v1", "ConfigMap")},
        manifests=(manifest, secret),
        problems=ordinary_plan().problems,
        policies={policy: Source("policies/web.yaml", 1)},
    )


def test_render_json(golden: Golden) -> None:
    golden("render.json.txt", render_json(rendering()))


def test_render_yaml(golden: Golden) -> None:
    golden("render.yaml.txt", render_yaml(rendering().manifests))


def test_problems(golden: Golden) -> None:
    golden("problems.txt", problems_text(ordinary_plan().problems))


def hostile_problems() -> tuple[Problem, ...]:
    return hostile_plan().problems


def test_problems_of_a_hostile_store(golden: Golden) -> None:
    golden("problems_hostile.txt", problems_text(hostile_problems()))


def test_github_annotations(golden: Golden) -> None:
    golden("github.txt", github_annotations([*ordinary_plan().problems, *hostile_problems()]))


def test_a_table(golden: Golden) -> None:
    rows = [("m1", "web", "2/2", None), ("hz-prod-a", "日本", "10/10", "Y"), ("m2", HOSTILE[0], "", "")]
    golden("table.txt", table(("cluster", "name", "ready", "adoption"), rows, right=frozenset({2})))
