"""Base against head without a cluster."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.model.binding import Binding, TargetCluster
from reconciler.model.content import Content
from reconciler.model.plan import Action, Manifest
from reconciler.model.problem import Source
from reconciler.model.refs import GVK, Identity
from reconciler.stages.diff_offline import Side, compare_rendered
from reconciler.stages.schema import builtin_schema

DEPLOYMENT = GVK("apps", "v1", "Deployment")
WEB = Identity("apps", "Deployment", "demo", "web")


def manifest(cluster: str, *, replicas: int = 1, image: str = "nginx:1", owner: str = "p", **spec: Any) -> Manifest:
    """A rendered Deployment."""
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "annotations": {"fleet.reconciler/owner": owner}},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}, **spec},
    }
    return Manifest(
        cluster=cluster, gvk=DEPLOYMENT, identity=WEB, content=Content(tree=body), source=Source("a.yaml", 1),
        policy=None,
    )  # fmt: skip


def side(*manifests: Manifest, template: str = "t1", bound: dict[str, int] | None = None) -> Side:
    """A revision; `template` empty: the store does not hold it."""
    replicas = {m.cluster: m.body["spec"]["replicas"] for m in manifests} if bound is None else bound
    targets = tuple(TargetCluster(cluster=cluster, replicas=count) for cluster, count in sorted(replicas.items()))
    bindings = {WEB: Binding(identity=WEB, policy=None, targets=targets)} if targets else {}
    return Side(
        rendered={(m.cluster, m.identity): m for m in manifests},
        bindings=bindings,
        templates={WEB: template} if template else {},
    )


def told(base: Side, head: Side) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """Cluster, action, cause and field causes."""
    return [
        (c.cluster, str(c.action), str(c.cause), [(f.path, str(f.cause)) for f in c.fields])
        for c in compare_rendered(base, head, builtin_schema)
    ]


NOTHING = Side(rendered={})


def test_equal_sets_differ_in_nothing() -> None:
    assert told(side(manifest("m1"), manifest("m2")), side(manifest("m2"), manifest("m1"))) == []


def test_a_fleet_with_another_name_is_declared_and_no_override() -> None:
    def of(fleet: str) -> Side:
        plain = manifest("m1")
        metadata = {**plain.body["metadata"], "labels": {"fleet.reconciler/fleet": fleet}}
        body = {**plain.body, "metadata": metadata}
        return side(replace(plain, content=Content(tree=body)))

    path = "metadata.labels['fleet.reconciler/fleet']"
    assert told(of("shop"), of("store")) == [("m1", "update", "declared", [(path, "declared")])]


def test_a_new_template_is_declared_and_one_that_left_is_removed() -> None:
    assert told(NOTHING, side(manifest("m1"))) == [("m1", "create", "declared", [])]
    assert told(side(manifest("m1")), NOTHING) == [("m1", "delete", "removed", [])]


def test_a_template_without_a_policy_any_more_leaves_by_policy() -> None:
    head = Side(rendered={}, templates={WEB: "t1"})
    assert told(side(manifest("m1")), head) == [("m1", "delete", "policy", [])]


def test_a_move_is_placement() -> None:
    assert told(side(manifest("m1"), manifest("m2")), side(manifest("m2"), manifest("m3"))) == [
        ("m1", "delete", "placement", []),
        ("m3", "create", "placement", []),
    ]


def test_replicas_that_the_placement_moved_are_placement() -> None:
    base = side(manifest("m1", replicas=2), manifest("m2", replicas=2))
    head = side(manifest("m1", replicas=3), manifest("m2", replicas=1))
    assert told(base, head) == [
        ("m1", "update", "placement", [("spec.replicas", "placement")]),
        ("m2", "update", "placement", [("spec.replicas", "placement")]),
    ]


def test_what_changes_under_the_same_template_is_an_override() -> None:
    image = "spec.template.spec.containers[name=web].image"
    same = told(side(manifest("m1")), side(manifest("m1", image="mirror/nginx:1")))
    assert same == [("m1", "update", "override", [(image, "override")])]
    other = told(side(manifest("m1")), side(manifest("m1", image="nginx:2"), template="t2"))
    assert other == [("m1", "update", "declared", [(image, "declared")])]


def test_our_annotation_alone_is_ownership() -> None:
    assert told(side(manifest("m1")), side(manifest("m1", owner="q"))) == [
        ("m1", "update", "ownership", [("metadata.annotations['fleet.reconciler/owner']", "ownership")])
    ]


def test_a_field_that_left_the_template_is_removed() -> None:
    base, head = side(manifest("m1", paused=True)), side(manifest("m1"), template="t2")
    assert told(base, head) == [("m1", "update", "removed", [("spec.paused", "removed")])]


def test_spellings_of_one_value_are_no_change() -> None:
    assert told(side(manifest("m1", volumes=None)), side(manifest("m1"), template="t2")) == []


def test_an_immutable_field_is_a_replacement_with_the_whole_manifest() -> None:
    base = side(manifest("m1", selector={"matchLabels": {"a": "1"}}))
    head = side(manifest("m1", selector={"matchLabels": {"a": "2"}}), template="t2")
    (change,) = compare_rendered(base, head, builtin_schema)
    assert change.action is Action.REPLACE
    assert change.engine == "O"
    assert change.manifest is head.rendered[("m1", WEB)].body


def test_replicas_under_an_autoscaler_are_nobodys_change() -> None:
    was = manifest("m1", replicas=2)
    edited, scaled = manifest("m1", replicas=5), manifest("m1", replicas=5, image="nginx:2")
    assert told(side(was), side(replace(edited, replicas_yielded=True))) == []
    ((_, _, _, fields),) = told(side(was), side(replace(scaled, replicas_yielded=True)))
    assert [path for path, _ in fields] == ["spec.template.spec.containers[name=web].image"]
