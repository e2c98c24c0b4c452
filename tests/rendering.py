"""Renders the templates of a small fleet for the case tables of overrides and rendering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reconciler.api.binding import Binding, TargetCluster
from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.documents import pointer_tokens, resolve
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.policy import Claims
from reconciler.render import RenderTables
from reconciler.scheduler import Schedule
from tests.fleets import fleet_of, member, with_templates
from tests.yaml_text import load_yaml

CASES = Path(__file__).parent / "cases"

Case = Mapping[str, Any]

MEMBERS = [member("m1", zone="a"), member("m2", zone="b"), member("m3")]

WEB: Mapping[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "demo", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "initContainers": [{"name": "init", "image": "busybox:1.36"}],
                "containers": [
                    {"name": "nginx", "image": "nginx:1.25", "command": ["nginx"], "args": ["-g", "daemon off;"]},
                    {"name": "side", "image": "docker.io/library/side@sha256:0123456789abcdef0123456789abcdef"},
                ],
            },
        },
    },
}

ABSENT = object()


def cases_of(area: str, *names: str) -> list[Any]:
    """The cases of tables as pytest parameters are made of: dictionaries with `table` added, in order."""
    tables = sorted((CASES / area).glob("*.yaml")) if not names else [CASES / area / f"{name}.yaml" for name in names]
    return [{**case, "table": table.stem} for table in tables for case in load_yaml(table.read_text())]


def name_of(case: Case) -> str:
    """The readable id of a case."""
    return f"{case['table']}: {case['case']}"


def inputs_of(fleet: Fleet, targets: Mapping[Identity, Sequence[TargetCluster]] | None = None) -> RenderTables:
    """Inputs in which every template goes to every cluster, unless `targets` say otherwise."""
    everywhere = tuple(TargetCluster(cluster=name) for name in sorted(fleet.clusters))
    policies = {policy.ref: policy for policy in fleet.propagation}
    policy = next(iter(policies.values()), None)
    bindings = {
        identity: Binding(
            identity=identity,
            policy=policy.ref if policy else None,
            targets=tuple((targets or {}).get(identity, everywhere)),
        )
        for identity in fleet.templates
    }
    schedule = Schedule(
        fleet=fleet,
        interpreters=BUILT_IN_KINDS,
        claims=Claims(),
        bindings=bindings,
        policies=dict.fromkeys(fleet.templates, policy) if policy else {},
    )
    return RenderTables(schedule)


def override_policy(case: Case) -> dict[str, Any]:
    """The policy of a case that only gives `overriders`: an OverridePolicy demo/case for every resource."""
    groups = {"ack": "policy.one.alibabacloud.com/v1alpha1", "karmada": "policy.karmada.io/v1alpha1"}
    rule: dict[str, Any] = {"overriders": case["overriders"]}
    if groups.get(case.get("api", "karmada")) == groups["ack"]:
        rule["targetCluster"] = {"clusterNames": ["m1"]}
    return {
        "apiVersion": groups[case.get("api", "karmada")],
        "kind": "OverridePolicy",
        "metadata": {"name": "case", "namespace": "demo"},
        "spec": {"overrideRules": [rule]},
    }


def fleet_of_case(case: Case) -> Fleet:
    """The fleet of a case: its objects (or the one Deployment `WEB`), its policies and three members."""
    objects = case.get("objects") or [case.get("object", WEB)]
    policies = case.get("policies") or ([override_policy(case)] if "overriders" in case else [])
    files = {"policies.yaml": policies, "clusters.yaml": case.get("clusters", MEMBERS)}
    return with_templates(fleet_of({path: documents for path, documents in files.items() if documents}), objects)


def value_at(body: Any, pointer: str) -> Any:
    """The value at a JSON pointer, ABSENT when there is none."""
    tokens = pointer_tokens(pointer)
    assert tokens is not None, f"{pointer!r} is no JSON pointer"
    steps = resolve(body, tokens)
    if isinstance(steps, str):
        return ABSENT
    for step in steps:
        body = body[step]
    return body


def subject(identities: Mapping[Identity, Any], case: Case) -> Identity:
    """The object that a case looks at: `look: Deployment demo/web`, else its only one."""
    if "look" in case:
        return next(identity for identity in identities if str(identity) == case["look"])
    (only,) = identities
    return only
