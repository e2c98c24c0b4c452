"""Interpreters, by the tables tests/interpreters/KIND/OPERATION.yaml: an object in, what is said of it out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.content import JsonObject, dig
from reconciler.api.demand import PodShape
from reconciler.api.problem import dotted
from reconciler.api.refs import GVK
from reconciler.errors import ConfigurationError
from reconciler.kinds import BUILT_IN_KINDS, GENERIC, Interpreter, fields_of_the_cluster, registry_of
from reconciler.kinds.cluster_fields import CLUSTER_FIELDS
from reconciler.kinds.registry import BUILT_IN
from reconciler.plugins import with_plugins
from tests.yaml_text import load_yaml

HERE = Path(__file__).parent
Case = Mapping[str, Any]


def demand(interpreter: Interpreter, case: Case) -> Any:
    found = interpreter.demand(case["object"])
    described = {"replicas": found.replicas, **shape(found.shape)}
    if not found.is_divisible:
        described["divisible"] = False
    if found.components:
        described["components"] = {
            part.name: {"replicas": part.replicas, **shape(part.shape)} for part in found.components
        }
    return described


def shape(given: PodShape) -> dict[str, Any]:
    terms = [{"labels": listed(term.labels), "fields": listed(term.fields)} for term in given.node_terms]
    described = {
        "requests": dict(given.requests),
        "node_selector": dict(given.node_selector),
        "node_terms": [{key: value for key, value in term.items() if value} for term in terms],
        "tolerations": [list(toleration) for toleration in given.tolerations],
    }
    return {key: value for key, value in described.items() if value}


def listed(requirements: tuple[tuple[str, str, tuple[str, ...]], ...]) -> list[Any]:
    return [[key, operator, *values] for key, operator, values in requirements]


def dependencies(interpreter: Interpreter, case: Case) -> Any:
    described = {}
    for ref in interpreter.dependencies(case["object"]):
        labels = ",".join(f"{key}={value}" for key, value in ref.labels)
        name = f"{ref.identity}[{labels}]" if labels else str(ref.identity)
        granted = f", granted to {ref.granted_to[1]} of {ref.granted_to[2]}" if ref.granted_to else ""
        described[name] = f"{ref.path} (optional)" if ref.optional else f"{ref.path}{granted}"
    return described


def makes(interpreter: Interpreter, case: Case) -> Any:
    return {str(made.identity): "whole" if made.is_whole else "part" for made in interpreter.makes(case["object"])}


def target(interpreter: Interpreter, case: Case) -> Any:
    found = interpreter.scale_target(case["object"])
    return f"{found.group} {found}" if found else None


OPERATIONS: Mapping[str, Callable[[Interpreter, Case], Any]] = {
    "demand": demand,
    "with_replicas": lambda interpreter, case: interpreter.with_replicas(case["object"], case["replicas"]),
    "replicas_path": lambda interpreter, case: dotted(interpreter.replicas_path),
    "dependencies": dependencies,
    "makes": makes,
    "images": lambda interpreter, case: {
        dotted(steps): image for steps, image in interpreter.images(case["object"])
    },
    "containers": lambda interpreter, case: [dotted(steps) for steps in interpreter.containers(case["object"])],
    "pod_template": lambda interpreter, case: interpreter.pod_template(case["object"]),
    "health": lambda interpreter, case: interpreter.health(case["object"]).value,
    "outcome": lambda interpreter, case: interpreter.outcome(case["object"]).value,
    "fails_by_itself": lambda interpreter, case: interpreter.fails_by_itself(
        case["object"], case.get("own", 0), case.get("disrupted", 0)
    ),
    "pods_needed": lambda interpreter, case: interpreter.pods_needed(case["object"]),
    "lacking_pods": lambda interpreter, case: interpreter.lacking_pods(case["object"]),
    "sanitize": lambda interpreter, case: interpreter.sanitize(case["object"]),
    "scale_target": target,
}  # fmt: skip


def load() -> list[Any]:
    return [
        {**case, "table": f"{path.parent.name}/{path.stem}"}
        for path in sorted(HERE.glob("*/*.yaml"))
        for case in load_yaml(path.read_text())
    ]


CASES = load()


def interpreter_of(body: Mapping[str, Any]) -> Interpreter:
    return BUILT_IN_KINDS.of(GVK.parse(body["apiVersion"], body["kind"]).group, body["kind"])


@pytest.mark.parametrize("case", CASES, ids=[f"{case['table']}: {case['case']}" for case in CASES])
def test_interpreter(case: Case) -> None:
    kind, _, operation = case["table"].partition("/")
    assert set(case) <= {"case", "source", "table", "object", "replicas", "own", "disrupted", "expect", "why"}
    interpreter = interpreter_of(case["object"])
    assert kind == "generic" or interpreter is dict(BUILT_IN)[kind]
    before = copy.deepcopy(case["object"])
    assert OPERATIONS[operation](interpreter, case) == case["expect"]
    if operation == "health" and "why" in interpreter.rules:
        assert interpreter.why(case["object"]) == case.get("why", "")
    assert case["object"] == before, "the object was written into"
    assert case["source"]


@pytest.mark.parametrize(("name", "interpreter"), BUILT_IN, ids=[name for name, _ in BUILT_IN])
def test_every_interpreter_has_cases_for_all_that_it_says(name: str, interpreter: Interpreter) -> None:
    tables = {case["table"] for case in CASES}
    said = {name for name in OPERATIONS if name in interpreter.rules}
    assert {f"{name}/{operation}" for operation in said | {"sanitize"}} <= tables
    seen = {
        GVK.parse(case["object"]["apiVersion"], case["object"]["kind"]).group_kind
        for case in CASES
        if case["table"].startswith(f"{name}/")
    }
    assert set(interpreter.kinds) <= seen


@pytest.mark.parametrize("case", CASES, ids=[f"{case['table']}: {case['case']}" for case in CASES])
def test_pruning_twice_is_pruning_once(case: Case) -> None:
    interpreter = interpreter_of(case["object"])
    pruned = interpreter.sanitize(case["object"])
    assert interpreter.sanitize(pruned) is pruned, "what is clean is shared, not copied"


CLUSTER_SCOPED = {"Namespace", "PersistentVolume", "StorageClass", "CustomResourceDefinition"}
OF_GATEWAYS = {"GatewayClass"}
NAMESPACED = {
    "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Ingress", "Service", "PersistentVolumeClaim",
    "ConfigMap", "Secret", "Pod", "LimitRange", "ResourceQuota", "HorizontalPodAutoscaler",
}  # fmt: skip


def test_every_kind_of_the_product_documentation_is_known() -> None:
    known = {kind: interpreter.namespaced for _, interpreter in BUILT_IN for _, kind in interpreter.kinds}
    assert known.keys() >= CLUSTER_SCOPED | NAMESPACED
    assert {kind for kind in known if not known[kind]} == CLUSTER_SCOPED | OF_GATEWAYS


def test_an_unknown_kind_has_no_replicas() -> None:
    interpreter = BUILT_IN_KINDS.of("example.com", "Widget")
    assert interpreter is GENERIC
    assert interpreter.demand({"spec": {"replicas": 3}}).replicas is None


def test_every_interpreter_of_the_program_is_built_in() -> None:
    def below(one: type[Interpreter]) -> set[type[Interpreter]]:
        return {one}.union(*(below(other) for other in one.__subclasses__()))

    written = {one for one in below(Interpreter) if one.__module__.startswith("reconciler.")}
    assert {one.__name__ for one in written - {type(one) for _, one in BUILT_IN}} == {
        "GatewayKind",
        "PodKind",
        "ScaledKind",
    }
    assert [name for name, _ in BUILT_IN] == sorted(name for name, _ in BUILT_IN)


@pytest.mark.parametrize(("name", "interpreter"), BUILT_IN, ids=[name for name, _ in BUILT_IN])
def test_what_a_class_says_of_itself_is_what_it_overrides(name: str, interpreter: Interpreter) -> None:
    assert interpreter.counts_replicas is ("available" in interpreter.rules)
    assert interpreter.tells_by_events is ("lacking_pods" in interpreter.rules)
    assert interpreter.runs_pods is ("images" in interpreter.rules) is ("pod_template" in interpreter.rules)
    assert bool(interpreter.replicas_path) is ("with_replicas" in interpreter.rules)


def test_the_class_of_a_package_says_of_itself_what_it_overrides() -> None:
    class Oven(Interpreter):
        def available(self, live: JsonObject) -> int | None:
            return 1

    assert (Oven.counts_replicas, Oven.tells_by_events, Oven.runs_pods) == (True, False, False)


def test_two_interpreters_of_one_kind_are_refused() -> None:
    double = Interpreter(("apps", "Deployment"))
    with pytest.raises(ConfigurationError, match="Deployment of apps is described by both deployment and mine"):
        registry_of((*BUILT_IN, ("mine", double)))


def test_without_plugins_the_registry_is_the_built_in_one() -> None:
    registry = with_plugins()
    assert registry.of("batch", "Job") is BUILT_IN_KINDS.of("batch", "Job")
    assert registry.of("example.com", "Widget") is GENERIC


def install(folder: Path, plugin: str) -> None:
    """Put a package with an interpreter plugin where Python finds it."""
    info = folder / "widgets-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: widgets\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[reconciler.interpreters]\nwidget = {plugin}\n")
    (folder / "fleet_widgets.py").write_text(
        "from reconciler.kinds.interpreter import Interpreter\n"
        "WIDGET = Interpreter(('example.com', 'Widget'))\n"
        "DEPLOYMENT = Interpreter(('apps', 'Deployment'))\n"
        "TEXT = 'none'\n"
    )
    old = "from reconciler.kinds.interpreter import Interpreter\nOLD = Interpreter(kinds=(('example.com', 'Old'),))\n"
    (folder / "fleet_old_widgets.py").write_text(old)


def test_an_installed_plugin_describes_a_further_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "fleet_widgets:WIDGET")
    monkeypatch.syspath_prepend(tmp_path)
    registry = with_plugins()
    assert registry.of("example.com", "Widget").kinds == (("example.com", "Widget"),)
    assert BUILT_IN_KINDS.of("example.com", "Widget") is GENERIC, "the built-in registry stays as it is"


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        ("fleet_widgets:DEPLOYMENT", "Deployment of apps is described by both deployment and plugin widget"),
        ("fleet_widgets:TEXT", "is no Interpreter"),
        ("fleet_widgets:NOTHING", "does not load"),
        ("fleet_no_such_module:X", "does not load"),
        ("fleet_old_widgets:OLD", "does not load"),
    ],
)
def test_an_unusable_plugin_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: str, said: str) -> None:
    install(tmp_path, plugin)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match=said):
        with_plugins()


WORDS = st.sampled_from(
    [
        "spec", "template", "metadata", "containers", "initContainers", "volumes", "env", "envFrom", "valueFrom",
        "image", "name", "replicas", "resources", "requests", "cpu", "data", "stringData", "status", "conditions",
        "type", "secrets", "target", "secretStoreRef", "destination", "tls", "provider", "secretRef",
        "parallelism", "completions", "selector", "labels",
    ]
)  # fmt: skip
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.floats(allow_nan=False), st.text(max_size=4)),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(WORDS, below, max_size=4)),
    max_leaves=20,
)


@st.composite
def broken_objects(draw: st.DrawFn) -> tuple[Interpreter, Any]:
    """An object of some case in which one subtree is replaced by anything at all."""
    case = draw(st.sampled_from(CASES))
    body = copy.deepcopy(case["object"])
    parent, steps = body, draw(st.lists(st.integers(0, 7), min_size=1, max_size=7))
    for number in steps:
        keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
        if not keys:
            break
        key = keys[number % len(keys)]
        if not isinstance(parent[key], dict | list) or number == steps[-1]:
            parent[key] = draw(ANYTHING)
            break
        parent = parent[key]
    return interpreter_of(case["object"]), body


@given(broken_objects())
def test_no_object_is_so_broken_that_an_operation_fails(drawn: tuple[Interpreter, Any]) -> None:
    interpreter, body = drawn
    before = copy.deepcopy(body)
    interpreter.demand(body)
    interpreter.with_replicas(body, 2)
    interpreter.dependencies(body)
    interpreter.makes(body)
    interpreter.pod_template(body)
    interpreter.health(body)
    interpreter.why(body)
    interpreter.outcome(body)
    interpreter.pods_needed(body)
    interpreter.fails_by_itself(body, 1, 0)
    interpreter.sanitize(body)
    interpreter.scale_target(body)
    assert all(dig(body, *steps) == image for steps, image in interpreter.images(body))
    assert all(isinstance(dig(body, *steps), dict) for steps in interpreter.containers(body))
    assert body == before


def test_every_field_that_clusters_write_is_tried() -> None:
    tried = {
        (GVK.parse(case["object"]["apiVersion"], case["object"]["kind"]).group_kind, field.path)
        for case in CASES
        if case["table"].endswith("/sanitize")
        for _, field in fields_of_the_cluster(case["object"])
    }
    left = {(kind, field.path) for kind, found in CLUSTER_FIELDS.items() for field in found if not field.is_sent}
    assert left - tried == set()
