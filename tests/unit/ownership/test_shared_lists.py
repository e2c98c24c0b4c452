"""Lists that are one value for API servers and that others append to. Source: Karmada, lists of a ServiceAccount."""

from __future__ import annotations

from typing import Any

from reconciler.api.plan import Action, Cause
from reconciler.api.refs import GVK, Identity
from tests.fakes.worlds import SERVED, TestBed, fleet_of, policy

ACCOUNT = Identity("", "ServiceAccount", "demo", "app")


def account(*names: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "app", "namespace": "demo"},
    }
    return {**body, "imagePullSecrets": [{"name": name} for name in names]} if names else body


class Scene:
    """A ServiceAccount in m1 with these pull secrets, as we applied it."""

    def __init__(self, monkeypatch: Any, *names: str) -> None:
        monkeypatch.setitem(SERVED, GVK("", "v1", "ServiceAccount"), True)
        self.bed = TestBed("m1")
        self.bed.run(self.fleet(*names))

    def fleet(self, *names: str) -> Any:
        return fleet_of(account(*names), policy("ServiceAccount", "m1"), clusters=("m1",))

    def live(self, *names: str, is_taken: bool = False) -> None:
        """Somebody writes the list; `is_taken`: and owns it alone, as an Update of an atomic list does."""
        self.bed.edit("m1", ACCOUNT, imagePullSecrets=[{"name": name} for name in names])
        if is_taken:
            metadata = self.bed.objects["m1"][ACCOUNT].body["metadata"]
            (ours,) = metadata["managedFields"]
            rest = {key: value for key, value in ours["fieldsV1"].items() if key != "f:imagePullSecrets"}
            theirs = {"manager": "registry", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                      "fieldsV1": {"f:imagePullSecrets": {}}}  # fmt: skip
            fields = [{**ours, "fieldsV1": rest}, theirs]
            self.bed.edit("m1", ACCOUNT, metadata={**metadata, "managedFields": fields})

    def due(self, *names: str) -> list[tuple[Action, Cause, list[str]]]:
        found = [change for change in self.bed.plan(self.fleet(*names)).plan.changes if change.identity == ACCOUNT]
        return [(change.action, change.cause, sent(change.manifest)) for change in found]


def sent(body: Any) -> list[str]:
    return [entry["name"] for entry in body.get("imagePullSecrets", [])]


def test_what_others_add_to_the_pull_secrets_of_a_service_account_stays(monkeypatch: Any) -> None:
    for is_taken in (False, True):
        scene = Scene(monkeypatch, "a")
        scene.live("a", "theirs", is_taken=is_taken)
        assert scene.due("a") == []
        assert scene.due("a", "b") == [(Action.UPDATE, Cause.DECLARED, ["a", "theirs", "b"])]


def test_what_leaves_the_template_leaves(monkeypatch: Any) -> None:
    for is_taken in (False, True):
        scene = Scene(monkeypatch, "a", "b")
        scene.live("a", "theirs", "b", is_taken=is_taken)
        assert scene.due("b") == [(Action.UPDATE, Cause.DECLARED, ["theirs", "b"])]
        assert [names for _, _, names in scene.due()] == [["theirs"]]
        scene.bed.run(scene.fleet())
        assert scene.due() == [], "what is left is theirs, although we sent it"


def test_what_was_sent_along_is_not_taken_for_ours_later(monkeypatch: Any) -> None:
    scene = Scene(monkeypatch, "a")
    scene.live("a", "theirs")
    scene.bed.run(scene.fleet("a", "b"))
    assert scene.due("a", "b") == []
    assert scene.due("a") == [(Action.UPDATE, Cause.DECLARED, ["a", "theirs"])]


def test_one_of_ours_that_somebody_took_away_is_drift(monkeypatch: Any) -> None:
    scene = Scene(monkeypatch, "a")
    scene.live("theirs", is_taken=True)
    assert scene.due("a") == [(Action.UPDATE, Cause.DRIFT, ["theirs", "a"])]


def test_what_the_store_never_mentioned_is_not_touched(monkeypatch: Any) -> None:
    scene = Scene(monkeypatch)
    scene.live("theirs", is_taken=False)
    assert scene.due() == []


def test_tolerations_that_an_api_server_adds_to_a_pod_stay(monkeypatch: Any) -> None:
    monkeypatch.setitem(SERVED, GVK("", "v1", "Pod"), True)
    pod, bed = Identity("", "Pod", "demo", "app"), TestBed("m1")
    ours = [{"key": "for", "operator": "Exists"}, {"key": "for", "operator": "Exists", "effect": "NoExecute"}]
    added = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    containers = [{"name": "main", "image": "nginx:1"}]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app", "namespace": "demo"},
            "spec": {"containers": containers, "tolerations": ours}}  # fmt: skip
    fleet = fleet_of(body, policy("Pod", "m1"), clusters=("m1",))
    bed.run(fleet)
    live = [*ours, {**added, "tolerationSeconds": 300}]
    bed.edit("m1", pod, spec={**bed.objects["m1"][pod].body["spec"], "tolerations": live})
    assert [change for change in bed.plan(fleet).plan.changes if change.identity == pod] == []
    bed.edit("m1", pod, spec={**bed.objects["m1"][pod].body["spec"], "tolerations": live[1:]})
    (change,) = [change for change in bed.plan(fleet).plan.changes if change.identity == pod]
    assert change.manifest is not None
    assert change.manifest["spec"]["tolerations"] == [*live[1:], ours[0]]
