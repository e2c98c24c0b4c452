"""Copies that are no longer wanted, in whole rounds. Source: docs/concepts/deletion.md."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.plan import Action, Change
from reconciler.api.refs import Identity
from reconciler.ownership import strip_marks
from tests.fakes.worlds import TestBed, config_map, deployment, fleet_of, policy

NAMES = ("a", "b", "c", "d")
"""One more than may go unconfirmed where little is ours."""


def changes(bed: TestBed, fleet: Fleet, action: Action) -> list[Change]:
    found = bed.plan(fleet).plan.changes
    return [change for change in found if change.action is action and change.identity.kind != "Namespace"]


def by_guard(held: list[Change]) -> list[bool]:
    return [(change.held or "").startswith("guard: ") for change in held]


@pytest.mark.parametrize(("keep", "action"), [(True, Action.RELEASE), (False, Action.DELETE)])
def test_guards_count_releases_as_they_count_deletions(keep: bool, action: Action) -> None:
    bed, rule = TestBed(), policy("ConfigMap", "m1", preserveResourcesOnDeletion=keep)
    bed.run(fleet_of(*map(config_map, NAMES), rule))
    assert by_guard(changes(bed, fleet_of(rule), action)) == [True] * 4
    assert by_guard(changes(bed, fleet_of(config_map("d"), rule), action)) == [False] * 3


@pytest.mark.parametrize(
    "said", [{"helm.sh/resource-policy": "keep"}, {"argocd.argoproj.io/sync-options": "Validate=true,Prune=false"}]
)
@pytest.mark.parametrize("is_by_override", [False, True])
def test_what_another_tool_was_to_keep_is_released(said: dict[str, str], is_by_override: bool) -> None:
    bed, rule = TestBed(), policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    body, overrides = config_map("a"), []
    if is_by_override:
        overriders = {"annotationsOverrider": [{"operator": "add", "value": said}]}
        spec = {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
            "overrideRules": [{"overriders": overriders}],
        }
        overrides = [{"apiVersion": rule["apiVersion"], "kind": "OverridePolicy",
                      "metadata": {"name": "o", "namespace": "demo"}, "spec": spec}]  # fmt: skip
    else:
        body["metadata"]["annotations"] = said
    bed.run(fleet_of(body, config_map("b"), rule, *overrides))
    if not is_by_override:
        assert [c.identity.name for c in changes(bed, fleet_of(rule), Action.DELETE)] == ["b"]
    assert "a" in [c.identity.name for c in changes(bed, fleet_of(rule), Action.RELEASE)]


def test_a_move_counts_with_the_copy_that_it_deletes() -> None:
    bed = TestBed()
    bed.run(fleet_of(*map(deployment, NAMES), policy("Deployment", "m1")))
    moved = fleet_of(*map(deployment, NAMES), policy("Deployment", "m2"))
    bed.run(moved)
    for name in NAMES:
        bed.healthy("m2", Identity("apps", "Deployment", "demo", name))
    deletions = changes(bed, moved, Action.DELETE)
    assert [change.cluster for change in deletions] == ["m1"] * 4
    assert by_guard(deletions) == [True] * 4


def by_label(api: str, *, keep: bool, **labels: dict[str, str]) -> Fleet:
    """A workload that goes where the label `tier: web` is; `labels`: those of each cluster."""
    clusters = [
        {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name, "labels": found}}
        for name, found in labels.items()
    ]
    affinity: dict[str, Any] = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "web"}}}}
    rule = policy("Deployment", api=api, placement=affinity, preserveResourcesOnDeletion=keep)
    return fleet_of(*clusters, deployment(), rule, clusters=())


ACK, KARMADA = "policy.one.alibabacloud.com", "policy.karmada.io"


@pytest.mark.parametrize(
    ("api", "keep", "action", "held"),
    [
        (ACK, True, Action.DELETE, "waits for m2 healthy"),
        (ACK, False, Action.DELETE, "waits for m2 healthy"),
        (KARMADA, True, Action.RELEASE, None),
        (KARMADA, False, Action.DELETE, "waits for m2 healthy"),
    ],
)
def test_a_cluster_that_loses_its_label_is_left_as_by_an_edit(
    api: str, keep: bool, action: Action, held: str | None
) -> None:
    bed = TestBed("m1", "m2")
    bed.run(by_label(api, keep=keep, m1={"tier": "web"}, m2={}))
    moved = by_label(api, keep=keep, m1={}, m2={"tier": "web"})
    assert [(change.cluster, change.held) for change in changes(bed, moved, action)] == [("m1", held)]
    assert [change.cluster for change in changes(bed, moved, Action.CREATE)] == ["m2"]


def mounting(name: str, kind: str = "Deployment") -> dict[str, Any]:
    """A workload that needs the ConfigMap `shared`; a StatefulSet whose claims are deleted with it."""
    body = deployment(name)
    body["kind"] = kind
    body["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "shared"}}]
    if kind == "StatefulSet":
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        retention = {"whenDeleted": "Delete", "whenScaled": "Retain"}
        body["spec"] |= {"volumeClaimTemplates": [claim], "persistentVolumeClaimRetentionPolicy": retention}
    return body


def carrying(name: str, *, keep: bool, of: str = "", kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    """A policy for one workload and what it needs."""
    found = policy(kind, "m1", name=name, propagateDeps=True, preserveResourcesOnDeletion=keep, **spec)
    found["spec"]["resourceSelectors"][0] |= {"apiVersion": "apps/v1", "name": of or name}
    return found


def leaving(bed: TestBed, fleet: Fleet) -> dict[str, tuple[Action, str | None]]:
    found = bed.plan(fleet).plan.changes
    return {change.identity.name: (change.action, change.held) for change in found if change.identity.namespace}


SHARED = config_map("shared", value="1")


@pytest.mark.parametrize("is_in_store", [True, False])
@pytest.mark.parametrize("keeper", ["renamed", "second"])
def test_what_a_released_workload_needs_is_released_with_it(keeper: str, is_in_store: bool) -> None:
    """The mark of a dependency names one policy, which need not be the one that says keep in this commit."""
    bed = TestBed("m1")
    bed.run(fleet_of(mounting("a"), mounting("b"), SHARED, carrying("a", keep=False), carrying("b", keep=False),
                     clusters=("m1",)))  # fmt: skip
    name = "new" if keeper == "renamed" else "b"
    rest = [SHARED] if is_in_store else []
    after = fleet_of(*rest, carrying("a", keep=False), carrying(name, keep=True, of="b"), clusters=("m1",))
    kept = (Action.RELEASE, None)
    assert leaving(bed, after) == {"a": (Action.DELETE, None), "b": kept, "shared": kept}
    first = bed.plan(after).plan
    waves = [{first.changes[index].identity.name for index in wave} for wave in first.waves]
    assert waves[0] == {"shared"}, "what dies in between must not find it without its owner"


@pytest.mark.parametrize(("has_policy", "action"), [(False, Action.DELETE), (True, Action.RELEASE)])
def test_what_an_earlier_release_shares_goes_with_the_last_owner_unless_its_own_policy_keeps_it(
    has_policy: bool, action: Action
) -> None:
    bed = TestBed("m1")
    own = policy("ConfigMap", "m1", name="own", preserveResourcesOnDeletion=True)
    rules = [carrying("a", keep=False), carrying("b", keep=True), *([own] if has_policy else [])]
    bed.run(fleet_of(mounting("a"), mounting("b"), SHARED, *rules, clusters=("m1",)))
    bed.run(fleet_of(mounting("a"), SHARED, *rules, clusters=("m1",)))
    bed.run(fleet_of(mounting("a"), SHARED, *rules, clusters=("m1",)))
    after = leaving(bed, fleet_of(*rules, clusters=("m1",)))
    assert after == {"a": (Action.DELETE, None), "shared": (action, None)}


def test_what_a_held_workload_needs_stays_until_it_has_left() -> None:
    bed, rule = TestBed("m1"), carrying("db", keep=False, kind="StatefulSet")
    before = fleet_of(mounting("db", "StatefulSet"), SHARED, rule, clusters=("m1",))
    bed.run(before)
    after = fleet_of(rule, clusters=("m1",))
    held = leaving(bed, after)
    assert (held["db"][1] or "").startswith("guard: ")
    assert held["shared"] == (Action.DELETE, "waits until StatefulSet demo/db has left")
    guards = {"guards": {"confirm": bed.plan(after).plan.held_digest}}
    settings = {
        "apiVersion": "fleet.reconciler/v1alpha1",
        "kind": "Fleet",
        "metadata": {"name": "test"},
        "spec": guards,
    }
    assert {held for _, held in leaving(bed, fleet_of(settings, rule, clusters=("m1",))).values()} == {None}


def test_what_a_suspended_workload_needs_stays_until_it_has_left() -> None:
    bed = TestBed("m1")
    bed.run(fleet_of(mounting("a"), mounting("b"), SHARED, carrying("a", keep=False), carrying("b", keep=False),
                     clusters=("m1",)))  # fmt: skip
    suspended = carrying("b", keep=False, suspension={"dispatching": True})
    found = leaving(bed, fleet_of(carrying("a", keep=False), suspended, clusters=("m1",)))
    assert found["a"] == (Action.DELETE, None)
    assert found["b"] == (Action.DELETE, "dispatching is suspended by PropagationPolicy demo/b")
    assert found["shared"] == (Action.DELETE, "waits until Deployment demo/b has left")


def test_what_a_workload_needs_that_lost_its_marks_is_released() -> None:
    """Taking a mark off lets it go; it must not lose its configuration when its template leaves the store."""
    bed, rule = TestBed("m1"), carrying("a", keep=False)
    bed.run(fleet_of(mounting("a"), SHARED, rule, clusters=("m1",)))
    identity = Identity("apps", "Deployment", "demo", "a")
    live = bed.objects["m1"][identity]
    bed.objects["m1"][identity] = replace(live, body=strip_marks(live.body))
    assert leaving(bed, fleet_of(rule, clusters=("m1",))) == {"shared": (Action.RELEASE, None)}


def test_what_travels_with_a_released_workload_is_released_with_it() -> None:
    """A Service that selects its pods does not go either."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front", "namespace": "demo"},
               "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}  # fmt: skip
    bed, brings = TestBed("m1"), {"fleet.reconciler/bring": "services"}
    before, after = carrying("a", keep=False), carrying("new", keep=True, of="a")
    for found in (before, after):
        found["metadata"]["annotations"] = brings
    bed.run(fleet_of(mounting("a"), SHARED, service, before, clusters=("m1",)))
    kept = (Action.RELEASE, None)
    assert leaving(bed, fleet_of(service, after, clusters=("m1",))) == {"a": kept, "front": kept, "shared": kept}
