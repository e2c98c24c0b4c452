"""The reach of a broken policy, and its limits: each fault crossed with each kind of both groups."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import yaml

from reconciler.api.binding import PreviousPlacement
from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.api.problem import Severity
from reconciler.fleet import Earlier, assemble, parse_file, with_last_good
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.scheduler import schedule_fleet
from tests.fakes.worlds import FLEET, NOW, config_map, deployment
from tests.unit.yaml_cases import CASES
from tests.yaml_text import load_yaml

FAULTS = load_yaml((CASES / "badinput/policies.yaml").read_text())["faults"]
GROUPS = ("policy.one.alibabacloud.com", "policy.karmada.io")
KINDS = ("PropagationPolicy", "ClusterPropagationPolicy", "OverridePolicy", "ClusterOverridePolicy")
OTHERS = [
    FLEET,
    {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"}},
    {
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": "all"},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": "apps/v1", "kind": "Deployment"},
                {"apiVersion": "v1", "kind": "ConfigMap"},
                {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"},
            ],
            "placement": {},
        },
    },
    deployment("web"),
    deployment("db"),
    config_map("web", a="1"),
    {
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "demo"},
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    },
    {**deployment("web"), "metadata": {"name": "web", "namespace": "other"}},
    {**config_map("web", a="1"), "metadata": {"name": "web", "namespace": "other"}},
]  # fmt: skip
CASES_OF_ALL = [
    pytest.param(fault, kind, group, id=f"{fault['name']}-{kind}-{group}")
    for fault, kind, group in product(FAULTS, KINDS, GROUPS)
    if kind in fault.get("only", KINDS)
]


def _sound(kind: str, group: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "demo", "name": "web"}]
    }
    if "Propagation" in kind:
        spec["placement"] = {"clusterAffinity": {"clusterNames": ["m1"]}}
    else:
        spec["overrideRules"] = [{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}}]
    metadata = {"name": "p"} if kind.startswith("Cluster") else {"name": "p", "namespace": "demo"}
    return {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def _merged(value: Any, patch: Any) -> Any:
    if not (isinstance(value, dict) and isinstance(patch, dict)):
        return patch
    merged = {key: _merged(value.get(key), below) for key, below in patch.items() if below is not None}
    return {key: below for key, below in value.items() if key not in patch} | merged


def _broken(fault: dict[str, Any], kind: str, group: str) -> str:
    document = _merged(_sound(kind, group), fault.get("merge", {}))
    text = str(yaml.safe_dump(document, sort_keys=False))
    old, new = fault.get("swap", ("", ""))
    assert old in text
    text = text.replace(old, new) if old else text
    return f"{text}---\n{text}" if fault.get("twice") else text


def _file(path: str, text: str) -> StoreFile:
    return StoreFile(path=path, blob=text, data=text.encode())


def _fleet(policy: str, earlier: Earlier) -> Fleet:
    files = [_file("others.yaml", yaml.safe_dump_all(OTHERS)), _file("policy.yaml", policy)]
    snapshot = Snapshot(revision="r1", files=tuple(files))
    return assemble(snapshot.revision, with_last_good(map(parse_file, snapshot.files), earlier))


def _frozen(fleet: Fleet, *unplaced: str) -> set[str]:
    """Return what is frozen when everything but this is placed."""
    previous = {
        identity: PreviousPlacement(identity=identity, targets=())
        for identity in fleet.templates
        if _shown(identity) not in unplaced
    }
    schedule = schedule_fleet(fleet, Observations(previous=previous), NOW, interpreters=BUILT_IN_KINDS)
    return set(map(_shown, schedule.frozen))


def _shown(identity: Any) -> str:
    return f"{identity.kind} {identity.namespace}/{identity.name}"


def _may_be_frozen(fault: dict[str, Any], kind: str, fleet: Fleet) -> set[str]:
    told = fault.get("of_cluster", fault["frozen"]) if kind.startswith("Cluster") else fault["frozen"]
    everything = set(map(_shown, fleet.templates))
    if told == ["all"]:
        return everything
    return {one for one in everything if " demo/" in one} if told == ["demo"] else set(told)


@pytest.mark.parametrize(("fault", "kind", "group"), CASES_OF_ALL)
def test_a_broken_policy_freezes_what_it_may_mean_alone(fault: dict[str, Any], kind: str, group: str) -> None:
    broken = _broken(fault, kind, group)
    fleet = _fleet(broken, Earlier())
    reached = _may_be_frozen(fault, kind, fleet)
    assert [problem for problem in fleet.problems if problem.severity is Severity.ERROR]
    assert not fleet.is_complete
    # Nobody knows what it said before.
    assert _frozen(fleet) == reached
    if fault.get("twice"):
        return  # Each of the two is good by itself: which of them counts is for a person to say.
    # It is new: what is placed goes on, and what is placed nowhere waits.
    new = _fleet(broken, Earlier(new=frozenset({"policy.yaml"})))
    assert _frozen(new) == set()
    assert _frozen(new, *reached) == reached
    # It was good: that stays in force.
    good = parse_file(_file("policy.yaml", yaml.safe_dump(_sound(kind, group))))
    before = _fleet(broken, Earlier(good={"policy.yaml": good}))
    assert _frozen(before, *reached) == set()
    names = {policy.ref.name for policy in before.propagation} | {policy.ref.name for policy in before.overrides}
    assert names == {"all", "p"}
