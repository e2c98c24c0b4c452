"""A manifest of overrides and templates is judged by the schema of the kind before any cluster sees it."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.policies import OverrideOperator, PatchOperation
from reconciler.api.refs import GVK
from reconciler.documents import body_faults, builtin_schema, may_not_fit, schema_of_crd, surely_fits
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions, render_schedule
from reconciler.scheduler import schedule_fleet
from tests.fakes.worlds import NOW, TestBed, config_map, deployment, fleet_of, policy
from tests.present import present
from tests.unit.documents.bundled import bundled_types

DEPLOYMENT = GVK("apps", "v1", "Deployment")
CONTAINER = "/spec/template/spec/containers/0"


def overriding(*operations: dict[str, Any], kind: str = "Deployment", **policy: Any) -> dict[str, Any]:
    api = {"Deployment": "apps/v1", "ConfigMap": "v1"}.get(kind, "example.com/v1")
    target = {"clusterAffinity": {"clusterNames": ["m2"]}, **policy}
    rule = {"targetCluster": target["clusterAffinity"], "overriders": {"plaintext": list(operations)}}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "o", "namespace": "demo"},
        "spec": {"resourceSelectors": [{"apiVersion": api, "kind": kind}], "overrideRules": [rule]},
    }  # fmt: skip


def set_to(path: str, value: Any, operator: str = "add") -> dict[str, Any]:
    return {"operator": operator, "path": path, "value": value}


def problems_of(fleet: Fleet) -> list[tuple[str, str, str, str]]:
    found = render_schedule(schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)).problems
    return [(problem.cluster, problem.code, problem.path, problem.message) for problem in found]


UNFIT = [
    pytest.param(set_to("/spec/replicas", "3", "replace"), "wrong-type",
                 "spec.replicas: a string where a whole number is needed", id="a string for a number"),
    pytest.param(set_to(f"{CONTAINER}/envfrom", []), "unknown-field", "unknown field envfrom; did you mean envFrom?",
                 id="a misspelt field"),
    pytest.param(set_to(f"{CONTAINER}/ports", [{"containerPort": "http"}]), "wrong-type",
                 "spec.template.spec.containers[0].ports[0].containerPort: a string where a whole number is",
                 id="below what was added"),
    pytest.param(set_to(f"{CONTAINER}/env", {"A": "1"}), "wrong-type", "a mapping where a list is", id="another shape"),
    pytest.param(set_to("/spec/paused", "true"), "wrong-type", "a string where a boolean is", id="a quoted boolean"),
    pytest.param(set_to("/metadata/labels", {"a": 1}), "wrong-type", "a number where a string is", id="a bare label"),
    pytest.param(set_to("/specs", {}), "unknown-field", "did you mean spec?", id="at the top"),
    pytest.param(set_to(f"{CONTAINER}/env", [None]), "name-missing", "an environment variable needs a name",
                 id="null in a list"),
    pytest.param({"operator": "remove", "path": "/spec/selector"}, "selector-missing", "spec.selector is missing",
                 id="what a template may not lack"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "code", "says"), UNFIT)
def test_override_that_makes_an_object_unfit_is_an_error_where_it_applies(
    operation: dict[str, Any], code: str, says: str
) -> None:
    fleet = fleet_of(deployment(), policy("Deployment", "m1", "m2"), overriding(operation))
    [(cluster, found, path, message)] = problems_of(fleet)
    assert (cluster, found, path) == ("m2", code, "spec.overrideRules[0].overriders.plaintext[0]")
    assert message.startswith("OverridePolicy demo/o rule 0 plaintext[0] makes Deployment demo/app unfit: ")
    assert says in message
    bed = TestBed()
    created = {(c.cluster, c.identity.kind) for c in bed.plan(fleet).plan.changes}
    assert ("m1", "Deployment") in created
    assert ("m2", "Deployment") not in created
    assert code in {problem.code for problem in bed.plan(fleet).plan.problems}
    assert code in {
        problem.code
        for problem in compare_revisions(fleet, fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS).problems
    }


def test_what_was_applied_last_stays_where_an_override_makes_it_unfit() -> None:
    bed = TestBed()
    documents = [deployment(), config_map(), policy("Deployment", "m2"), policy("ConfigMap", "m2", name="maps")]
    bed.run(fleet_of(*documents))
    edited = [deployment(image="nginx:2"), config_map(a="2"), *documents[2:]]
    plan = bed.plan(fleet_of(*edited, overriding(set_to("/spec/replicas", "3", "replace")))).plan
    assert [(str(c.action), c.identity.kind) for c in plan.changes] == [("update", "ConfigMap")]


def test_number_in_the_data_of_a_config_map_is_an_error() -> None:
    override = overriding(set_to("/data/a", 1), kind="ConfigMap")
    fleet = fleet_of(config_map(a="1"), policy("ConfigMap", "m1", "m2"), override)
    [(cluster, code, _, message)] = problems_of(fleet)
    assert (cluster, code) == ("m2", "wrong-type")
    assert "data.a: a number where a string is needed; quote it" in message


FIT = [
    pytest.param(set_to("/spec/strategy", {"rollingUpdate": {"maxSurge": "25%"}}), id="an int-or-string as a string"),
    pytest.param(set_to("/spec/strategy", {"rollingUpdate": {"maxSurge": 1}}), id="an int-or-string as a number"),
    pytest.param(set_to(f"{CONTAINER}/resources", {"requests": {"cpu": 1, "memory": "1Gi"}}), id="quantities"),
    pytest.param(set_to("/spec/paused", None), id="null"),
    pytest.param(set_to("/spec/replicas", 3.0), id="a whole number with a point"),
]


@pytest.mark.parametrize("operation", FIT)
def test_override_that_fits_is_none(operation: dict[str, Any]) -> None:
    assert problems_of(fleet_of(deployment(), policy("Deployment", "m2"), overriding(operation))) == []


def test_what_a_later_operation_mends_is_no_error() -> None:
    override = overriding(set_to("/spec/replicas", "3"), set_to("/spec/replicas", 3))
    assert problems_of(fleet_of(deployment(), policy("Deployment", "m2"), override)) == []


def crd(*, preserve: bool = False) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "port": {"x-kubernetes-int-or-string": True},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "text": {"type": "string", "nullable": True},
        },
    }
    if preserve:
        spec["x-kubernetes-preserve-unknown-fields"] = True
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]},
    }  # fmt: skip


def thing(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "demo"},
            "spec": spec}  # fmt: skip


def for_things() -> dict[str, Any]:
    document = policy("Thing", "m1", "m2")
    selector = {"apiVersion": "example.com/v1", "kind": "Thing"}
    return {**document, "spec": {**document["spec"], "resourceSelectors": [selector]}}


@pytest.mark.parametrize(
    ("spec", "codes"),
    [
        ({"size": 1, "port": "http", "free": {"a": [1]}, "text": None}, []),
        ({"size": "1"}, ["wrong-type"]),
        ({"syze": 1}, ["unknown-field"]),
        ({"port": 80, "text": 1}, ["wrong-type"]),
    ],
)
def test_object_of_a_kind_that_the_store_defines_is_judged_by_its_definition(
    spec: dict[str, Any], codes: list[str]
) -> None:
    found = problems_of(fleet_of(crd(), thing(**spec), for_things()))
    assert [(cluster, code) for cluster, code, _, _ in found] == [(c, code) for c in ("m1", "m2") for code in codes]
    head = fleet_of(crd(), thing(**spec), for_things())
    told = [
        p.code
        for p in compare_revisions(head, head, Observations(), NOW, interpreters=BUILT_IN_KINDS).problems
        if p.code in codes
    ]
    assert told == codes * 2


def test_object_of_a_kind_that_keeps_unknown_fields_may_have_any() -> None:
    assert problems_of(fleet_of(crd(preserve=True), thing(what=1), for_things())) == []


def test_object_of_a_kind_without_a_schema_is_not_judged() -> None:
    assert problems_of(fleet_of(thing(what=1), for_things())) == []


def test_override_of_a_kind_that_the_store_defines_is_named() -> None:
    override = overriding(set_to("/spec/size", "2"), kind="Thing")
    [(cluster, code, path, _)] = problems_of(fleet_of(crd(), thing(size=1), for_things(), override))
    assert (cluster, code, path) == ("m2", "wrong-type", "spec.overrideRules[0].overriders.plaintext[0]")


def test_quick_answer_is_never_more_generous_than_the_full_one() -> None:
    bodies: list[dict[str, Any]] = [deployment(), config_map(a="1")]
    values: list[Any] = [None, "a", 1, 1.5, True, [], {}, ["a"], [{}], {"a": "b"}, {"a": 1}, {"none": {}}]
    for gvk in bundled_types():
        schema = present(builtin_schema(gvk))
        bodies += [
            {"apiVersion": gvk.api_version, "kind": gvk.kind, name: value}
            for name in [*schema.root.fields.keys() - {"apiVersion", "kind"}, "none"]
            for value in values
        ]
    for body in bodies:
        gvk = GVK.parse(body["apiVersion"], body["kind"])
        schema = present(builtin_schema(gvk))
        if surely_fits(gvk, body):
            assert body_faults(schema.root, body) == [], body
        elif gvk.kind != "CustomResourceDefinition":
            assert body_faults(schema.root, body), body


@pytest.mark.parametrize(
    ("path", "value", "doubtful"),
    [
        ("/spec/replicas", 3, False),
        ("/spec/replicas", "3", True),
        ("/spec/template/spec/containers/-", {"name": "a"}, False),
        ("/spec/template/spec/containers/-", {"nam": "a"}, True),
        ("/spec/replicas/deeper", 1, True),
        ("/metadata/annotations/a~1b", "c", False),
        ("", {}, False),
    ],
)
def test_an_operation_that_could_do_harm_is_known_before_it_is_applied(path: str, value: Any, doubtful: bool) -> None:
    schema = present(builtin_schema(DEPLOYMENT))
    operation = PatchOperation(operator=OverrideOperator.ADD, path=path, value=value)
    assert may_not_fit(schema.root, operation) is doubtful


def test_definition_of_a_kind_is_judged_itself() -> None:
    broken = crd()
    broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["propertys"] = {}
    fleet = fleet_of(broken)
    assert [(p.code, p.path) for p in fleet.problems] == [
        ("unknown-field", "spec.versions[0].schema.openAPIV3Schema.propertys")
    ]
    assert schema_of_crd(crd(), "v1") is not None
