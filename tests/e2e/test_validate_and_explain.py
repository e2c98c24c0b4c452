"""`explain` says why, with places."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from reconciler.cli.explain import command as explain
from tests.e2e.rule_stores import observations, write_store

OVERRIDE = {"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}}


EXPLAINED: list[tuple[str, Mapping[str, Any], str, list[str]]] = [
    (
        "winner, losers and clusters",
        {"store": [{"Deployment": "web", "replicas": 1},
                   {"PropagationPolicy": "best", "select": ["apps/v1/Deployment/web"], "placement": {"at": ["m1"]}},
                   {"PropagationPolicy": "rest", "placement": {}}]},
        "deployment/web",
        ["PropagationPolicy demo/best  s01.yaml:1  selects it by name (s01.yaml:12)",
         "not PropagationPolicy demo/rest: it selects by kind, PropagationPolicy demo/best by name",
         "in    m1   named in clusterNames (s01.yaml:7)", "out   m2   not named in clusterNames (s01.yaml:7)",
         "m1: 1 replica\n"],
    ),
    (
        "the arithmetic of growth",
        {"free": {"m1": 6, "m2": 2}, "previous": {"Deployment demo/web": {"m1": 2}},
         "store": [{"Deployment": "web", "replicas": 6}, {"PropagationPolicy": "web", "placement": {"by": "dynamic"}}]},
        "deployment/web",
        ["keeps m1 2; dynamic weights by free room m1 6, m2 2: 4 more replicas -> m1 +3, m2 +1 (s01.yaml:"],
    ),
    (
        "what finds no place",
        {"free": {"m1": 1, "m2": 0},
         "store": [{"Deployment": "web", "replicas": 2}, {"PropagationPolicy": "web", "placement": {"by": "dynamic"}}]},
        "deployment/web",
        ["no place for 2 replicas", "because: 1 of 2 replicas find no room (s01.yaml:", "[not-enough-capacity]"],
    ),
    (
        "what ticks have decided",
        {"free": {"m1": 6, "m2": 6}, "previous": {"Deployment demo/web": {"m1": 2, "m2": 1}},
         "constraints": [{"resource": "Deployment demo/web", "cluster": "m1", "excludes": True, "reason": "unhealthy"}],
         "store": [{"Deployment": "web", "replicas": 3}, {"PropagationPolicy": "web", "placement": {"by": "dynamic"}}]},
        "deployment/web",
        ["out   m1   excluded: unhealthy", "Constraints\n  m1: excluded, unhealthy\n", "m2: 3 replicas"],
    ),
    (
        "a cap",
        {"free": {"m1": 6, "m2": 6}, "previous": {"Deployment demo/web": {"m1": 2, "m2": 1}},
         "constraints": [
             {"resource": "Deployment demo/web", "cluster": "m1", "replicasMax": 1, "reason": "1 pod found no node"},
             {"resource": "Deployment demo/web", "cluster": "m2", "replicasMax": 2, "reason": "over",
              "until": "2020-01-01T00:00:00Z"}],
         "store": [{"Deployment": "web", "replicas": 3}, {"PropagationPolicy": "web", "placement": {"by": "dynamic"}}]},
        "deployment/web",
        ["Constraints\n  m1: at most 1 replica, 1 pod found no node\n\nPlacement\n  m1: 1 replica\n  m2: 2 replicas"],
    ),
    (
        "overrides that are set again",
        {"store": [{"ConfigMap": "c"}, {"PropagationPolicy": "p", "select": ["v1/ConfigMap"], "placement": {}},
                   {"OverridePolicy": "o", "select": ["v1/ConfigMap"], "overrideRules": [OVERRIDE, {
                       "overriders": {"labelsOverrider": [{"operator": "replace", "value": {"a": "c"}}]}}]}]},
        "configmap/c",
        ["m1, m2: metadata.labels.a  OverridePolicy demo/o rule 0 labelsOverrider[0]  (s02.yaml:10)  set again below",
         "m1, m2: metadata.labels.a  OverridePolicy demo/o rule 1 labelsOverrider[0]  (s02.yaml:15)\n"],
    ),
    (
        "what follows its owner",
        {"store": [{"Deployment": "web", "container": {"envFrom": [{"configMapRef": {"name": "c"}}]}},
                   {"ConfigMap": "c"},
                   {"PropagationPolicy": "p", "propagateDeps": True, "placement": {"at": ["m1"]}}]},
        "configmap/c",
        ["none of its own; it follows Deployment demo/web under PropagationPolicy demo/p  s02.yaml:1",
         "in    m1   follows Deployment demo/web (s00.yaml:1)", "out   m2   nothing that brings it along goes there"],
    ),
    (
        "what is held",
        {"store": [{"ConfigMap": "c"},
                   {"PropagationPolicy": "p", "select": ["v1/ConfigMap"], "dependentOverrides": ["o"],
                    "placement": {}}]},
        "configmap/c",
        ["Held\n  m1: waits for OverridePolicy demo/o"],
    ),
    ("what nobody claims", {"store": [{"ConfigMap": "c"}]}, "configmap/c", ["no policy claims it, so it goes nowhere"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "resource", "lines"), [entry[1:] for entry in EXPLAINED], ids=[entry[0] for entry in EXPLAINED]
)
def test_explain_says_why(tmp_path: Path, case: Mapping[str, Any], resource: str, lines: list[str]) -> None:
    store = write_store(tmp_path / "store", case)
    (tmp_path / "seen.yaml").write_text(yaml.safe_dump(observations(case) or {"version": 1}))
    args = [resource, str(store), "--dir", "--observations", str(tmp_path / "seen.yaml")]
    done = CliRunner().invoke(explain, args, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    for line in lines:
        assert line in done.stdout, done.stdout
