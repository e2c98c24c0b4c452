"""A fault of the program is the failure of the one thing that was worked on. Source: design#boundaries.

Each place that docs/architecture.md lists is given something that raises.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final

import pytest

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.api.problem import Problem
from reconciler.containment import INTERNAL_ERROR
from reconciler.controller.round.failed_changes import log_faults
from reconciler.fleet import parse, parse_file
from reconciler.kinds import BUILT_IN_KINDS, Registry
from reconciler.lint import lint
from reconciler.planner import compare_revisions
from reconciler.report import rendering
from reconciler.report.plan.plan_patches import plan_patches
from reconciler.scheduler import ScheduleTables, schedule_fleet
from tests.fakes.raising import with_rules
from tests.fakes.worlds import NOW, TestBed, config_map, deployment, fleet_of, policy

SECRET: Final = "hunter2-canary"
_PARTS: Final = {
    "type": "array",
    "items": {"type": "object"},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
_SPEC: Final = {"type": "object", "properties": {"parts": _PARTS}}
_SCHEMA: Final = {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}}
WIDGETS: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": _SCHEMA}],
    },
}
WIDGETS_TO_M1: Final = {
    "resourceSelectors": [{"apiVersion": "example.com/v1", "kind": "Widget"}],
    "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
}


def faults(problems: tuple[Problem, ...]) -> list[Problem]:
    return [problem for problem in problems if problem.code == INTERNAL_ERROR]


def about_bad(body: Any) -> None:
    """Raise at what is named `bad`, with a text that nobody should see."""
    found = body.get("metadata", {}).get("name", "") if isinstance(body, dict) else str(body)
    if found == "bad":
        raise TypeError(f"no {SECRET}")


def spoilt_registry(name: str) -> Registry:
    """Make a function of the interpreter of Deployments raise at what is named `bad`."""
    deployments = BUILT_IN_KINDS.of("apps", "Deployment")
    sound = getattr(deployments, name)

    def spoilt(body: Any, *args: Any) -> Any:
        about_bad(body)
        return sound(body, *args)

    return Registry({**BUILT_IN_KINDS.by_kind, ("apps", "Deployment"): with_rules(deployments, **{name: spoilt})})


def store(image: str, *more: dict[str, Any]) -> Any:
    wide = policy("Deployment", "m1", preserveResourcesOnDeletion=False, propagateDeps=True)
    wide["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    bad = deployment("bad", image=image)
    bad["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    return fleet_of(bad, deployment("good", image=image), config_map("settings", a="b"), wide, *more)


IN_PLANS: Final = ("demand", "dependencies", "pod_template", "scale_target", "sanitize", "with_replicas")


@pytest.mark.parametrize("name", IN_PLANS)
def test_an_interpreter_that_raises_freezes_the_one_object(name: str) -> None:
    bed = TestBed()
    bed.run(store("nginx:1"))
    bed.interpreters = spoilt_registry(name)
    found = bed.plan(store("nginx:2"))
    assert [(c.identity.name, str(c.action)) for c in found.plan.changes if c.held is None] == [("good", "update")]
    (problem,) = {(p.code, p.source.path) for p in faults(found.plan.problems)}
    assert problem == (INTERNAL_ERROR, "all.yaml")
    assert all("demo/bad" in p.message and "TypeError" in p.message for p in faults(found.plan.problems))
    assert all(SECRET not in f"{p.message}{p.trace}" for p in faults(found.plan.problems))


@pytest.mark.parametrize("name", ["demand", "dependencies", "sanitize"])
def test_render_and_validate_go_on_without_it(name: str) -> None:
    fleet = store("nginx:1")
    schedule = schedule_fleet(fleet, TestBed().observations, NOW, interpreters=spoilt_registry(name))
    shown = rendering(schedule, with_bodies=True)
    names = {manifest.identity.name for manifest in shown.manifests}
    assert "good" in names and "bad" not in names
    assert faults(shown.problems)
    lint(fleet, schedule.claims, BUILT_IN_KINDS)


def test_what_is_frozen_for_a_fault_is_tried_again_when_it_changes() -> None:
    bed = TestBed()
    tables = ScheduleTables()
    fleet = store("nginx:1")
    under = partial(schedule_fleet, observations=bed.observations, now=NOW, tables=tables)
    first = under(fleet, interpreters=spoilt_registry("demand"))
    again = under(fleet, interpreters=first.interpreters)
    assert first.frozen == again.frozen == {i for i in fleet.templates if i.name == "bad"}
    assert tables.changed == set()
    assert not first.fleet.is_complete
    mended = under(store("nginx:2"), interpreters=BUILT_IN_KINDS)
    assert not mended.frozen and mended.fleet.is_complete


def raising(sound: Callable[..., Any], is_bad: Callable[..., bool]) -> Callable[..., Any]:
    def spoilt(*args: Any, **more: Any) -> Any:
        if is_bad(*args, **more):
            raise KeyError(SECRET)
        return sound(*args, **more)

    return spoilt


STAGES: Final[dict[str, tuple[str, Callable[..., bool]]]] = {
    "matching": ("reconciler.policy.indexes.PolicyIndex.matches", lambda _, t: t.identity.name == "bad"),
    "placing": ("reconciler.placement.place._Round._situation", lambda _, item: item.identity.name == "bad"),
    "binding": ("reconciler.placement.place._Round._binding", lambda _, identity: identity.name == "bad"),
    "linking": ("reconciler.scheduler.dependencies._links", lambda t, *_: t.identity.name == "bad"),
    "rendering": ("reconciler.render.declared_body.RenderTables.subject", lambda _, one: one.name == "bad"),
    "comparing": ("reconciler.diff.compare.Comparer.compare", lambda _, m, *__: m.identity.name == "bad"),
    "losing": ("reconciler.planner.diff_all.lost_copies", lambda identity, *_: identity.name == "bad"),
}  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_raises_at_one_object_freezes_it_alone(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bed = TestBed()
    bed.run(store("nginx:1"))
    path, is_bad = STAGES[stage]
    owner, name = path.rsplit(".", 1)
    target = import_module(owner) if owner.islower() else _attribute(owner)
    monkeypatch.setattr(target, name, raising(getattr(target, name), is_bad))
    found = bed.plan(store("nginx:2"))
    assert [(c.identity.name, str(c.action)) for c in found.plan.changes if c.held is None] == [("good", "update")]
    assert [p.message.split(":")[0] for p in faults(found.plan.problems)] == ["Deployment demo/bad"]
    assert SECRET not in str(found.plan.problems)


def _attribute(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(import_module(module), name)


GOOD_FILE: Final = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good, namespace: demo}\n"
BAD_FILE: Final = GOOD_FILE.replace(b"good", b"bad")


def test_a_reader_that_raises_at_a_file_freezes_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    target = import_module("reconciler.fleet.parse")
    monkeypatch.setattr(target, "read_yaml", raising(target.read_yaml, lambda path, _: path == "bad.yaml"))
    files = (StoreFile(path="bad.yaml", blob="1", data=BAD_FILE), StoreFile(path="good.yaml", blob="2", data=GOOD_FILE))
    fleet = parse(Snapshot(revision="r", files=files))
    assert [identity.name for identity in fleet.templates] == ["good"]
    assert [(p.code, str(p.source)) for p in fleet.problems] == [(INTERNAL_ERROR, "bad.yaml")]
    assert fleet.frozen[0].everything and not fleet.is_complete


def test_a_parser_that_raises_at_a_document_freezes_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    target = import_module("reconciler.templates.rules")
    spoilt = raising(lambda *_: None, lambda body, _: body["metadata"]["name"] == "bad")
    monkeypatch.setitem(target._BY_KIND, ("", "ConfigMap"), spoilt)
    parsed = parse_file(StoreFile(path="a.yaml", blob="1", data=GOOD_FILE + b"---\n" + BAD_FILE))
    assert [template.identity.name for template in parsed.templates] == ["good"]
    assert [(p.code, str(p.source)) for p in parsed.problems] == [(INTERNAL_ERROR, "a.yaml:5")]
    assert [identity.name for reach in parsed.frozen for identity in reach.identities] == ["bad"]


@pytest.mark.parametrize("port", ["name: {a: b}", "name: [a]", "name: b, protocol: {a: b}", "name: b, protocol: [TCP]"])
def test_a_port_whose_fields_are_no_text_is_refused_by_name(port: str) -> None:
    text = (
        "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: demo}\n"
        f"spec:\n  ports:\n  - {{port: 80, {port}}}\n  - {{port: 81, name: x}}\n"
    )
    parsed = parse_file(StoreFile(path="a.yaml", blob="1", data=text.encode()))
    assert parsed.problems and {(p.code, p.source.line) for p in parsed.problems} == {("wrong-type", 6)}


@pytest.mark.parametrize(
    "parts", [[{"name": [{}]}], [{"name": {"a": 1}}, {"name": "b"}], [{"name": "a"}, {"name": []}]]
)
def test_a_list_by_keys_that_are_no_scalars_is_compared_as_a_whole(parts: list[Any]) -> None:
    def fleet(of: list[Any]) -> Any:
        widget = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": "demo"},
            "spec": {"parts": of},
        }
        return fleet_of(WIDGETS, widget, {**policy("Widget", "m1"), "spec": WIDGETS_TO_M1})

    for base, head in ((parts, [{"name": "a"}]), ([{"name": "a"}], parts), (parts, [{"name": "b"}, {"name": "c"}])):
        plan = compare_revisions(fleet(base), fleet(head), Observations(), NOW, interpreters=BUILT_IN_KINDS)
        (change,) = (change for change in plan.changes if change.identity.kind == "Widget")
        assert [field.path for field in change.fields] == ["spec.parts"]
        patches: Any = plan_patches(plan)["patches"]
        (patch,) = (part["patch"] for part in patches if part["resource"]["kind"] == "Widget")
        assert patch == [{"op": "replace", "path": "/spec/parts", "value": head}]


@pytest.mark.parametrize("comment", [b"# caf\xe9\n", b"# caf\xe9! \n", b"a: caf\xe9! x\n"])
@pytest.mark.parametrize("separator", [b"", b"---\n", b"--- # x\n"])
def test_a_file_in_another_encoding_is_refused_with_its_line(comment: bytes, separator: bytes) -> None:
    policies = (
        b"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: demo}\n"
        b"spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}\n"
    )
    parsed = parse_file(StoreFile(path="a.yaml", blob="1", data=comment + separator + policies))
    assert ("not-utf-8", 1) in {(p.code, p.source.line) for p in parsed.problems}
    assert INTERNAL_ERROR not in {p.code for p in parsed.problems}


def test_a_fault_is_logged_once_with_its_place(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = import_module("reconciler.fleet.parse")
    monkeypatch.setattr(target, "read_yaml", raising(target.read_yaml, lambda path, _: True))
    problems = parse_file(StoreFile(path="bad.yaml", blob="1", data=BAD_FILE)).problems
    with caplog.at_level(logging.ERROR, "reconciler"):
        log_faults((), problems)
        log_faults(problems, problems)
    (record,) = caplog.records
    assert "fleet/parse.py" in record.__dict__["error"] and SECRET not in record.__dict__["error"]
