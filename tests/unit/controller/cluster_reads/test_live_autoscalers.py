"""An autoscaler decides about the replicas of its workload, however the object came to be ours and whatever we send.

On embedded clusters. Source: design#autoscaled-replicas.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.fleet import Fleet
from reconciler.api.plan import Action, Change
from reconciler.controller.round.send_change import perform
from reconciler.errors import WriteConflict
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.sim import Request
from tests.fakes.members import FLEET, Open, opened
from tests.fakes.worlds import deployment, fleet_of, job, policy
from tests.present import present

RETAIN = {"resourcetemplate.karmada.io/retain-replicas": "true"}
APPS, BATCH = "/apis/apps/v1/namespaces/demo/deployments", "/apis/batch/v1/namespaces/demo/jobs"
SCALERS = "/apis/autoscaling/v2/namespaces/demo/horizontalpodautoscalers"


def store(*more: dict[str, Any], image: str = "nginx:1", kind: str = "Deployment", **spec: Any) -> Fleet:
    body = deployment(image=image)
    return fleet_of(*more, body, policy(kind, "m1", **spec), clusters=("m1", "m2"))


def send(scene: Open, method: str, path: str, body: Any, manager: str = "keda-operator", **query: str) -> Any:
    types = {"POST": "application/json", "PATCH": "application/merge-patch+json"}
    request = Request(method=method, path=path, query={"fieldManager": manager, **query}, body=body,
                      content_type=types.get(method, ""), accept="application/json", user_agent=manager)  # fmt: skip
    answer = scene.box["m1"].request(request)
    assert answer.status < 300, answer
    return answer.body


def scale(scene: Open, replicas: int, manager: str = "keda-operator") -> None:
    send(scene, "PATCH", f"{APPS}/app/scale", {"spec": {"replicas": replicas}}, manager)


def add_autoscaler(scene: Open, target: dict[str, str] | None = None) -> None:
    """One that is in the cluster alone, as KEDA makes them."""
    reference = target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "any", "namespace": "demo"},
            "spec": {"scaleTargetRef": reference, "maxReplicas": 9}}  # fmt: skip
    send(scene, "POST", SCALERS, body)


def replicas(scene: Open, kind: str = "Deployment", field: str = "replicas") -> Any:
    live = present(scene.live("m1", kind=kind))
    return live["spec"].get(field)


async def due(scene: Open, fleet: Fleet, kind: str = "Deployment") -> list[Change]:
    _, planned = await scene.plan(fleet)
    return [change for change in planned.plan.changes if change.identity.kind == kind]


async def apply(scene: Open, fleet: Fleet) -> None:
    for result in await scene.apply(fleet):
        assert not result.error, result


async def test_what_an_autoscaler_of_the_cluster_chose_is_no_difference(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        add_autoscaler(scene)
        scale(scene, 5)
        assert await due(scene, store()) == []
        for image in ("nginx:2", "nginx:3"):
            await apply(scene, store(image=image))
            assert replicas(scene) == 5
        assert await due(scene, store(image="nginx:3")) == []


async def test_a_scaled_object_of_the_cluster_is_an_autoscaler(tmp_path: Path) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
    names = {
        "plural": "scaledobjects",
        "singular": "scaledobject",
        "kind": "ScaledObject",
        "listKind": "ScaledObjectList",
    }
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                  "metadata": {"name": "scaledobjects.keda.sh"},
                  "spec": {"group": "keda.sh", "scope": "Namespaced", "names": names,
                           "versions": [version]}}  # fmt: skip
    async with opened(tmp_path) as scene:
        send(scene, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        scene.box["m1"].run_controllers()
        await apply(scene, store())
        body = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "any"},
                "spec": {"scaleTargetRef": {"name": "app"}}}  # fmt: skip
        send(scene, "POST", "/apis/keda.sh/v1alpha1/namespaces/demo/scaledobjects", body)
        scale(scene, 0)
        assert await due(scene, store()) == []


async def test_an_autoscaler_of_a_kind_without_an_interpreter_is_heeded(tmp_path: Path) -> None:
    """A ReplicationController is in no group, as custom kinds are."""
    pods = {"metadata": {"labels": {"app": "app"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    body = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "app", "namespace": "demo"},
            "spec": {"replicas": 2, "selector": {"app": "app"}, "template": pods}}  # fmt: skip
    old = fleet_of(body, policy("ReplicationController", "m1"), clusters=("m1", "m2"))
    path = "/api/v1/namespaces/demo/replicationcontrollers/app/scale"
    async with opened(tmp_path) as scene:
        await apply(scene, old)
        add_autoscaler(scene, {"apiVersion": "v1", "kind": "ReplicationController", "name": "app"})
        send(scene, "PATCH", path, {"spec": {"replicas": 5}}, "kube-controller-manager")
        assert await due(scene, old, "ReplicationController") == []


async def test_a_released_autoscaler_goes_on_scaling(tmp_path: Path) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
              "metadata": {"name": "any", "namespace": "demo"},
              "spec": {"maxReplicas": 9, "scaleTargetRef": target}}  # fmt: skip
    goes = policy("HorizontalPodAutoscaler", "m1", name="any", preserveResourcesOnDeletion=True)
    goes["spec"]["resourceSelectors"][0]["apiVersion"] = "autoscaling/v2"
    async with opened(tmp_path) as scene:
        await apply(scene, store(scaler, goes))
        scale(scene, 5, "kube-controller-manager")
        await apply(scene, store())
        assert scene.live("m1", "any", "HorizontalPodAutoscaler") is not None
        await apply(scene, store(image="nginx:2"))
        assert replicas(scene) == 5


async def test_a_persons_number_counts_while_an_autoscaler_is_there_and_is_drift_otherwise(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        scale(scene, 6, "kubectl")
        (change,) = await due(scene, store())
        assert [field.path for field in change.fields] == ["spec.replicas"]
        add_autoscaler(scene)
        assert await due(scene, store()) == []


async def test_an_edit_before_the_autoscaler_ever_acted_keeps_the_number(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        add_autoscaler(scene)
        await apply(scene, store(image="nginx:2"))
        assert replicas(scene) == 2, "leaving the field out would reset it to 1 while we alone own it"


async def test_an_autoscaler_that_acts_between_the_look_and_the_write_is_not_undone(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        (change,) = await due(scene, store(image="nginx:2"))
        scale(scene, 5)
        with pytest.raises(WriteConflict, match="was scaled meanwhile"):
            await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        assert replicas(scene) == 5


async def test_a_status_that_moves_on_between_the_look_and_the_write_does_no_harm(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        (change,) = await due(scene, store(image="nginx:2"))
        send(scene, "PATCH", f"{APPS}/app/status", {"status": {"observedGeneration": 77}}, "kube-controller-manager")
        await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        live = present(scene.live("m1", kind="Deployment"))
        assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"


async def test_a_create_that_arrived_before_and_was_scaled_since_is_not_sent_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        send(scene, "DELETE", f"{APPS}/app", None)
        (change,) = await due(scene, store())
        assert change.action is Action.CREATE
        await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        scale(scene, 5)
        with pytest.raises(WriteConflict):
            await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        assert replicas(scene) == 5


async def test_the_number_survives_the_adoption_of_what_kubectl_made(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, fleet_of(clusters=("m1", "m2")))
        send(
            scene, "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
        )
        send(scene, "POST", APPS, deployment(replicas=4), "kubectl-client-side-apply")
        add_autoscaler(scene)
        await apply(scene, store(conflictResolution="Overwrite"))
        assert replicas(scene) == 4
        await apply(scene, store(image="nginx:2", conflictResolution="Overwrite"))
        assert replicas(scene) == 4


async def test_the_number_survives_the_renaming_of_the_fleet(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        add_autoscaler(scene)
        scale(scene, 5)
        renamed = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "next"},
                   "spec": {"previousNames": [FLEET]}}  # fmt: skip
        (change,) = await due(scene, store(renamed, image="nginx:2"))
        await perform(scene.members["m1"], change, ("next", FLEET), BUILT_IN_KINDS)
        assert replicas(scene) == 5


async def test_the_old_name_of_the_fleet_is_no_other_owner(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        add_autoscaler(scene)
        renamed = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "next"},
                   "spec": {"previousNames": [FLEET]}}  # fmt: skip
        (change,) = await due(scene, store(renamed))
        await perform(scene.members["m1"], change, ("next", FLEET), BUILT_IN_KINDS)
        assert replicas(scene) == 2


async def test_a_replacement_has_the_number_that_was_chosen(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        add_autoscaler(scene)
        scale(scene, 5)
        body = deployment()
        body["metadata"]["annotations"] = {"fleet.reconciler/replace": "allowed"}
        body["spec"]["selector"]["matchLabels"]["tier"] = body["spec"]["template"]["metadata"]["labels"]["tier"] = "a"
        changed = fleet_of(body, policy("Deployment", "m1"), clusters=("m1", "m2"))
        (change,) = await due(scene, changed)
        assert change.action is Action.REPLACE
        await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        assert replicas(scene) == 5


async def test_without_its_autoscaler_the_store_is_in_force_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        add_autoscaler(scene)
        scale(scene, 5, "kube-controller-manager")
        await apply(scene, store(image="nginx:2"))
        send(scene, "DELETE", f"{SCALERS}/any", None)
        (change,) = await due(scene, store(image="nginx:2"))
        assert [(field.path, field.before, field.after) for field in change.fields] == [("spec.replicas", 5, 2)]


@pytest.mark.parametrize(("writer", "is_left"), [("kube-controller-manager", True), ("kubectl", False)])
async def test_where_autoscalers_may_not_be_listed_what_they_wrote_counts(
    tmp_path: Path, writer: str, is_left: bool
) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        scale(scene, 5, writer)
        scene.box["m1"].permits = lambda verb, group, plural, namespace: plural != "horizontalpodautoscalers"
        assert bool(await due(scene, store())) is not is_left


async def test_the_label_leaves_the_parallelism_of_a_job_to_others(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        body = job()
        body["metadata"]["labels"] = RETAIN
        body["spec"] |= {"parallelism": 2, "completions": 6}
        fleet = fleet_of(body, policy("Job", "m1"), clusters=("m1", "m2"))
        await apply(scene, fleet)
        send(scene, "PATCH", f"{BATCH}/app", {"spec": {"parallelism": 4}}, "queue")
        assert await due(scene, fleet, "Job") == []
        body["metadata"]["annotations"] = {"note": "edited"}
        await apply(scene, fleet_of(body, policy("Job", "m1"), clusters=("m1", "m2")))
        assert replicas(scene, "Job", "parallelism") == 4


async def test_without_what_the_journal_remembered_the_number_is_left_all_the_same(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await apply(scene, store())
        add_autoscaler(scene)
        scale(scene, 5)
        scene.journal.reset()
        await apply(scene, store(image="nginx:2"))
        assert replicas(scene) == 5


GADGETS = "/apis/example.com/v1/namespaces/demo/gadgets"


async def test_a_custom_kind_is_left_what_its_scale_subresource_names(tmp_path: Path) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"scale": paths}}
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                  "metadata": {"name": "gadgets.example.com"},
                  "spec": {"group": "example.com", "scope": "Namespaced", "names": names,
                           "versions": [version]}}  # fmt: skip

    def gadget(colour: str) -> Fleet:
        body = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "app", "namespace": "demo"},
                "spec": {"size": 2, "colour": colour}}  # fmt: skip
        goes = policy("Gadget", "m1")
        goes["spec"]["resourceSelectors"][0]["apiVersion"] = "example.com/v1"
        return fleet_of(body, goes, clusters=("m1", "m2"))

    async with opened(tmp_path) as scene:
        send(scene, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        scene.box["m1"].run_controllers()
        await apply(scene, gadget("red"))
        reference = {"apiVersion": "example.com/v1", "kind": "Gadget", "name": "app"}
        send(scene, "POST", SCALERS, {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                                      "metadata": {"name": "any"},
                                      "spec": {"scaleTargetRef": reference, "maxReplicas": 9}})  # fmt: skip
        send(scene, "PATCH", f"{GADGETS}/app/scale", {"spec": {"replicas": 5}}, "kube-controller-manager")
        assert [change for change in await due(scene, gadget("red"), "Gadget") if change.engine == "T"] == []
        await apply(scene, gadget("blue"))
        assert send(scene, "GET", f"{GADGETS}/app", None)["spec"] == {"size": 5, "colour": "blue"}
