"""Case tables of policies: documents in, problems and normalised values out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct

from reconciler.api.clusters import Cluster
from reconciler.api.content import Content
from reconciler.api.fleet import Fleet, FrozenReach, Template
from reconciler.api.policies import LabelSelector, OverridePolicy, PropagationPolicy
from reconciler.api.problem import Document, Problem, Severity, Source
from reconciler.api.refs import GVK, Identity
from reconciler.documents import OVERRIDE_KINDS, PROPAGATION_KINDS
from reconciler.fleet import CLUSTER_APIS
from reconciler.fleet.cluster_documents import parse_cluster
from reconciler.policy import parse_override_policy, parse_propagation_policy
from reconciler.yaml import read_yaml
from tests.yaml_text import load_yaml

CASES = Path(__file__).parents[1] / "cases"
GROUPS = {
    "ack": "policy.one.alibabacloud.com/v1alpha1",
    "older": "one.alibabacloud.com/v1alpha1",
    "karmada": "policy.karmada.io/v1alpha1",
}


def cases(*paths: str) -> list[Any]:
    """Every case of the tables as pytest parameters, named after the file and the case."""
    params = []
    for path in paths:
        loaded = load_yaml((CASES / path).read_text())
        for case in loaded:
            assert case["source"], f"{path}: {case['name']} cites no source"
            name = re.sub(r"[^A-Za-z0-9]+", "-", case["name"]).strip("-")
            params.append(pytest.param(case, id=f"{Path(path).stem}:{name}"))
    return params


def documents_of(text: str, path: str = "store.yaml") -> tuple[Document, ...]:
    read = read_yaml(path, text.encode())
    assert not read.problems, read.problems
    return read.documents


USUAL = {
    "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
    "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
}
"""A propagation policy that is right; a case adds to it."""


def spec_of(case: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The spec of a case: whole (`spec`), or the usual one with `add`, `placement`, or the overriders of one `rule`."""
    if "spec" in case:
        return dict(case["spec"])
    if "Override" in kind:
        rules = {"overrideRules": [{"targetCluster": {"clusterNames": ["m1"]}, "overriders": case["overriders"]}]}
        return {"resourceSelectors": USUAL["resourceSelectors"], **rules}
    placement = {"placement": case["placement"]} if "placement" in case else {}
    return {**USUAL, **placement, **case.get("add", {})}


def document_of(case: Mapping[str, Any], kind: str) -> Document:
    """The document of a case: written out, or made of its spec with the usual rest."""
    if "document" in case:
        (document,) = documents_of(case["document"])
        return document
    kind = case.get("kind", kind)
    metadata = {"name": "web"} if kind.startswith("Cluster") else {"name": "web", "namespace": "demo"}
    body = {
        "apiVersion": GROUPS[case.get("group", "ack")],
        "kind": kind,
        "metadata": metadata | case.get("metadata", {}),
        "spec": spec_of(case, kind),
    }
    (document,) = documents_of(yaml.safe_dump(body, sort_keys=False))
    return document


def check_problems(case: Mapping[str, Any], problems: tuple[Problem, ...]) -> None:
    """Compare problems with the case: code, path, severity, and where given the line and a part of the text."""
    expected = case.get("problems", [])
    found = "\n".join(map(str, problems))
    assert sorted((p.code, p.path) for p in problems) == sorted((e["code"], e["path"]) for e in expected), found
    for want in expected:
        got = next(p for p in problems if (p.code, p.path) == (want["code"], want["path"]))
        assert got.severity == want.get("severity", "error"), found
        assert "line" not in want or got.source.line == want["line"], found
        assert want.get("says", "") in got.message, found


def check_values(case: Mapping[str, Any], key: str, value: Any) -> None:
    """Compare parts of a normalised value with the case; no value is expected exactly when there is an error."""
    refused = any(problem.get("severity", "error") == "error" for problem in case.get("problems", []))
    assert (value is None) is refused
    for path, want in case.get(key, {}).items():
        assert plain(part_of(value, path)) == want, path


def part_of(value: Any, path: str) -> Any:
    """A part of a value by attributes and indexes: `placement.terms.0.name`."""
    for step in path.split("."):
        value = value[int(step)] if step.isdigit() else getattr(value, step)
    return value


def plain(value: Any) -> Any:
    """A value as YAML would write it, without sources."""
    if isinstance(value, LabelSelector):
        return [f"{r.key} {r.operator.value} {','.join(sorted(r.values))}".strip() for r in value.requirements]
    if isinstance(value, Struct):
        names = value.__struct_fields__
        return {name: plain(getattr(value, name)) for name in names if name not in ("source", "digest")}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return sorted(plain(item) for item in value)
    if hasattr(value, "_fields"):
        return str(value)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return value


def fleet_of(text: str, *, frozen: tuple[FrozenReach, ...] = ()) -> Fleet:
    """A fleet of the documents of a text: policies, members, everything else templates."""
    propagation: list[PropagationPolicy] = []
    overrides: list[OverridePolicy] = []
    clusters: dict[str, Cluster] = {}
    templates: dict[Identity, Template] = {}
    problems: list[Problem] = []
    for document in documents_of(text):
        api_version, kind = document.body["apiVersion"], document.body["kind"]
        found: tuple[Problem, ...] = ()
        if kind in PROPAGATION_KINDS:
            policy, found = parse_propagation_policy(document)
            propagation += [policy] if policy else []
        elif kind in OVERRIDE_KINDS:
            override, found = parse_override_policy(document)
            overrides += [override] if override else []
        elif CLUSTER_APIS.get(api_version) == kind:
            cluster, found = parse_cluster(document)
            clusters |= {cluster.name: cluster} if cluster else {}
        else:
            template = template_of(document.body, document.source)
            templates[template.identity] = template
        problems += [problem for problem in found if problem.severity is Severity.ERROR]
    assert not problems, problems
    return Fleet(
        revision="test",
        clusters=clusters,
        templates=templates,
        propagation=tuple(propagation),
        overrides=tuple(overrides),
        frozen=frozen,
    )


def template_of(body: Mapping[str, Any], source: Source | None = None) -> Template:
    """A template of a body; cluster-scoped kinds are those of the pages."""
    gvk = GVK.parse(body["apiVersion"], body["kind"])
    scoped = gvk.kind in ("Namespace", "PersistentVolume", "StorageClass", "CustomResourceDefinition", "ClusterRole")
    namespace = "" if scoped else body["metadata"].get("namespace", "default")
    identity = Identity(gvk.group, gvk.kind, namespace, body["metadata"]["name"])
    return Template(gvk=gvk, identity=identity, content=Content(tree=body), source=source or Source("store.yaml", 1))
