"""System namespaces that the Fleet document allows, over commits that allow them and no more."""

from __future__ import annotations

import json
from typing import Any

from reconciler.api.fleet import Fleet, StoreFile
from reconciler.fleet import AssemblyTables, assemble, parse_file
from reconciler.hydration import blob_id
from reconciler.policy import ClaimTables, claim

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "kube-system"}}


def policy(**selector: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", **selector}],
            "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
        },
    }


def settings(*allowed: str) -> dict[str, Any]:
    spec = {"namespaces": {"allowed": list(allowed)}} if allowed else {}
    return {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "f"}, "spec": spec}


def test_claims_follow_what_the_fleet_document_allows_over_commits() -> None:
    assembly, claims = AssemblyTables(), ClaimTables()

    def claimed(*documents: dict[str, Any]) -> tuple[list[str], list[str]]:
        texts = {f"{found['kind']}.yaml": json.dumps(found).encode() for found in documents}
        files = [parse_file(StoreFile(path=path, blob=blob_id(data), data=data)) for path, data in texts.items()]
        fleet: Fleet = assemble("r", files, (), assembly)
        assert fleet == assemble("r", files)
        found = claim(fleet, claims)
        return list(map(str, found.claims)), sorted(problem.code for problem in (*fleet.problems, *found.problems))

    broad, named = policy(), policy(namespace="kube-system")
    assert claimed(CONFIG, settings(), broad) == ([], ["never-distributed"])
    assert claimed(CONFIG, settings("kube-system"), broad) == (["ConfigMap kube-system/c"], [])
    assert claimed(CONFIG, settings("kube-public"), broad) == ([], ["never-distributed"])
    assert claimed(CONFIG, settings("kube-system"), named) == (["ConfigMap kube-system/c"], [])
    assert claimed(CONFIG, settings(), named) == ([], ["system-namespace"])
    assert claimed(CONFIG, settings("kube-system"), broad) == (["ConfigMap kube-system/c"], [])
