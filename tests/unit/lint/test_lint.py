from __future__ import annotations

from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet, FleetSettings
from reconciler.api.plan import Plan
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.lint import held_settings, lint
from reconciler.policy import claim
from reconciler.scheduler import Sources, schedule_fleet
from tests.unit import policy_cases
from tests.unit.policy_cases import GROUPS, USUAL, cases, spec_of

WEB = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: demo}}"


def fleet_of(text: str, name: str = "shop") -> Fleet:
    return replace(policy_cases.fleet_of(text), settings=FleetSettings(name=name))


def _store(case: dict[str, Any]) -> str:
    """The Deployment demo/web, members m1 and m2 unless the case lists others, and the case's policies."""
    documents = [WEB, *case.get("templates", [])]
    clusters = (
        _document("cluster.karmada.io/v1alpha1", "Cluster", {"name": name}, {})
        for name in case.get("clusters", ["m1", "m2"])
    )
    documents.extend(map(yaml.safe_dump, clusters))
    for policy in case["policies"]:
        kind = policy.get("kind", "PropagationPolicy")
        metadata = {"name": "web"} if kind.startswith("Cluster") else {"name": "web", "namespace": "demo"}
        metadata |= policy.get("metadata", {})
        documents.append(yaml.safe_dump(_document(GROUPS["ack"], kind, metadata, spec_of(policy, kind))))
    for override in case.get("overrides", []):
        rule = {"overriders": {"plaintext": [{"operator": "remove", "path": "/spec/x"}]}}
        rule |= {"targetCluster": override["target"]} if "target" in override else {}
        spec = {
            "resourceSelectors": override.get("selectors", USUAL["resourceSelectors"]),
            "overrideRules": override.get("rules", [rule]),
        }
        metadata = {"name": "o", "namespace": "demo"}
        documents.append(yaml.safe_dump(_document(GROUPS["ack"], "OverridePolicy", metadata, spec)))
    return "\n---\n".join(documents)


def _document(api_version: str, kind: str, metadata: dict[str, Any], spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("case", cases("lint/lint.yaml"))
def test_says_what_is_odd_about_a_store(case: dict[str, Any]) -> None:
    fleet = fleet_of(_store(case))
    carried = [identity for identity in fleet.templates if str(identity) in case.get("carried", [])]
    problems = lint(fleet, claim(fleet), BUILT_IN_KINDS, carried)
    found = "\n".join(map(str, problems))
    expected = case["problems"]
    assert sorted((p.code, p.path) for p in problems) == sorted((e["code"], e.get("path", "")) for e in expected), found
    for want in expected:
        got = next(p for p in problems if (p.code, p.path) == (want["code"], want.get("path", "")))
        assert got.severity == want.get("severity", "warning"), found
        assert want.get("says", "") in got.message, found
        assert got.source.line or want["code"] == "no-clusters", found


def test_a_store_of_its_name_alone_has_nothing_odd_and_an_empty_one_has_no_name() -> None:
    fleet = fleet_of("")
    assert lint(fleet, claim(fleet), BUILT_IN_KINDS) == ()
    (problem,) = lint(fleet_of("", name=""), claim(fleet), BUILT_IN_KINDS)
    assert (problem.code, problem.severity) == ("no-fleet", "error")


def test_fields_of_a_policy_are_named_by_their_own_lines() -> None:
    rest = {"dependentOverrides": ["none"], "suspension": {"dispatchingOnClusters": {"clusterNames": ["x1"]}}}
    text = _store({"policies": [{"add": rest}]})
    fleet = fleet_of(text)
    schedule = schedule_fleet(fleet, Observations(), "2026-11-28T12:00:00Z", interpreters=BUILT_IN_KINDS)
    problems = {problem.code: problem for problem in (*schedule.problems, *lint(fleet, claim(fleet), BUILT_IN_KINDS))}
    lines = text.splitlines()
    for code, field in (("waits-for-override", "dependentOverrides:"), ("cluster-unknown", "clusterNames:")):
        assert lines[problems[code].source.line - 1].strip() == field


def test_many_lost_templates_are_one_line() -> None:
    templates = [WEB.replace("name: web", f"name: w{number}") for number in range(9)]
    named = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": f"w{number}"} for number in range(9)]
    rest = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    policies = [
        {"add": {"resourceSelectors": named}},
        {"metadata": {"name": "rest"}, "add": {"resourceSelectors": rest}},
    ]
    fleet = fleet_of(_store({"policies": policies, "templates": templates}))
    (overlap,) = (p for p in lint(fleet, claim(fleet), BUILT_IN_KINDS) if p.code == "policies-overlap")
    assert "Deployment demo/w0, Deployment demo/w1, Deployment demo/w2 and 6 more" in overlap.message


SEALED = "{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, metadata: {name: db, namespace: demo}}"
ADDING = (
    "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: e, namespace: demo}, "
    "spec: {target: {name: db, creationPolicy: Merge}}}"
)
SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: %s}}"


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        ((SEALED, SECRET % "demo"), ["SealedSecret demo/db makes Secret demo/db"]),
        ((ADDING, SECRET % "demo"), []),
        ((SEALED, SECRET % "other"), []),
        ((SEALED,), []),
    ],
)
def test_a_secret_that_is_made_and_in_the_store_is_told_of(documents: tuple[str, ...], told: list[str]) -> None:
    fleet = fleet_of("\n---\n".join(documents))
    found = lint(fleet, claim(fleet), BUILT_IN_KINDS, makers=Sources.among(fleet, BUILT_IN_KINDS).makers)
    twice = [problem.message for problem in found if problem.code == "secret-made-twice"]
    assert [message.partition(",")[0] for message in twice] == told


def test_a_review_names_the_clusters_that_nobody_declares_where_it_brings_them() -> None:
    def store(*names: str, clusters: tuple[str, ...] = ("m1", "m2")) -> Fleet:
        weights = [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in names]
        scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                      "weightPreference": {"staticWeightList": weights}}  # fmt: skip
        return fleet_of(_store({"policies": [{"placement": {"replicaScheduling": scheduling}}], "clusters": clusters}))

    def named(base: Fleet, head: Fleet) -> list[str]:
        return [problem.message for problem in held_settings(Plan(base="", head=""), (), base, head).problems]

    misspelt = ["no Cluster document declares m22; did you mean m2?"]
    assert named(store("m1", "m2"), store("m1", "m22")) == misspelt
    assert named(store("m1", "m22"), store("m1", "m22", "m2")) == []
    assert len(named(store("m1", "m2"), store("m1", "m2", clusters=("m1",)))) == 1
