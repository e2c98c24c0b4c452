"""PlacementDecisions as KEP-5313 has them: slices, labels, references, and what the API has no field for."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.binding import Binding, Reason, TargetCluster
from reconciler.api.refs import GVK, Identity
from reconciler.documents import is_dns_subdomain, is_label_value
from reconciler.report import Rendering
from reconciler.report.render_json import decision_key, placement_decisions, placement_key

WEB = Identity("apps", "Deployment", "demo", "web")
KINDS = {WEB: GVK("apps", "v1", "Deployment")}


def slices(*bindings: Binding, **namespaces: str) -> list[Any]:
    return placement_decisions(Rendering(revision="r", bindings=bindings, kinds=KINDS), namespaces)


def test_a_placement_is_one_slice_with_reasons_and_replicas() -> None:
    binding = Binding(
        identity=WEB,
        policy=None,
        targets=(TargetCluster("m2", 1), TargetCluster("m1", 2)),
        unplaced=3,
        cluster_reasons={"m1": Reason(rule="r", text="it is\nin  eu", cluster="m1")},
        reasons=(Reason(rule="r", text="static weights"), Reason(rule="x", text="not m2's", cluster="m1")),
    )
    key = "deployment-web-" + decision_key(WEB)[-10:]
    assert slices(binding, m1="fleet") == [
        {
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "PlacementDecision",
            "metadata": {
                "name": f"{key}-0",
                "namespace": "demo",
                "labels": {
                    "multicluster.x-k8s.io/decision-key": key,
                    "multicluster.x-k8s.io/decision-index": "0",
                    "multicluster.x-k8s.io/placement-key": "deployment.web",
                },
                "annotations": {
                    "fleet.reconciler/resource": "apps/v1/Deployment demo/web",
                    "fleet.reconciler/replicas": '{"m1":2,"m2":1}',
                    "fleet.reconciler/unplaced": "3",
                },
            },
            "decisions": [
                {"clusterProfileRef": {"name": "m1", "namespace": "fleet"}, "reason": "it is in eu"},
                {"clusterProfileRef": {"name": "m2"}, "reason": "static weights"},
            ],
            "schedulerName": "fleet-reconciler",
        }
    ]


def test_a_hundred_clusters_a_slice() -> None:
    names = [f"c{number:03}" for number in range(250)]
    binding = Binding(identity=WEB, policy=None, targets=tuple(TargetCluster(name, 1) for name in reversed(names)))
    found = slices(binding)
    assert [len(one["decisions"]) for one in found] == [100, 100, 50]
    assert [one["metadata"]["labels"]["multicluster.x-k8s.io/decision-index"] for one in found] == ["0", "1", "2"]
    assert len({one["metadata"]["labels"]["multicluster.x-k8s.io/decision-key"] for one in found}) == 1
    assert len({one["metadata"]["name"] for one in found}) == 3
    told = [each["clusterProfileRef"]["name"] for one in found for each in one["decisions"]]
    assert told == names
    replicas = [json.loads(one["metadata"]["annotations"]["fleet.reconciler/replicas"]) for one in found]
    assert [sorted(each) for each in replicas] == [names[:100], names[100:200], names[200:]]


def test_what_goes_nowhere_is_decided_too() -> None:
    (found,) = slices(Binding(identity=WEB, policy=None))
    assert found["decisions"] == []


def test_what_waits_says_so_and_a_long_reason_is_cut() -> None:
    reasons = (Reason(rule="waits", text="not sent yet"), Reason(rule="r", text="x" * 999))
    (found,) = slices(Binding(identity=WEB, policy=None, targets=(TargetCluster("m1"),), reasons=reasons))
    assert found["metadata"]["annotations"]["fleet.reconciler/waits"] == "not sent yet"
    assert "fleet.reconciler/replicas" not in found["metadata"]["annotations"]
    assert len(found["decisions"][0]["reason"]) == 256


NAMES = st.text(st.sampled_from("abz019-.:_A"), min_size=1, max_size=253)


@given(st.lists(st.builds(Identity, st.sampled_from(["", "apps"]), st.sampled_from(["ConfigMap", "ClusterRole"]),
                          st.sampled_from(["", "demo"]), NAMES), unique=True, max_size=5))  # fmt: skip
def test_keys_are_legal_and_each_resource_has_its_own(identities: list[Identity]) -> None:
    for identity in identities:
        assert is_label_value(decision_key(identity)) and is_label_value(placement_key(identity))
        assert is_dns_subdomain(f"{decision_key(identity)}-0") and re.fullmatch("[a-z0-9-]+", decision_key(identity))
    assert len({decision_key(identity) for identity in identities}) == len(identities)
