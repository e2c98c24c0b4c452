"""Random series of edits by several managers leave the same object, with the same owners, on both kinds of cluster."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.contract.sim_examples import path_of
from tests.contract.sim_sides import JSON_PATCH, MERGE, STRATEGIC, Reply, Side, comparable, new_space

pytest_plugins = ("tests.contract.sim_fixtures",)
pytestmark = pytest.mark.apiserver

STEPS = 8
MANAGERS = ("ours", "theirs", "hand")


def some(rng: random.Random, names: str) -> list[str]:
    return [name for name in names if rng.random() < 0.5]


def random_config_map(rng: random.Random) -> Any:
    metadata: dict[str, Any] = {"name": "x"}
    for field in ("labels", "annotations"):
        if rng.random() < 0.5:
            metadata[field] = {name: rng.choice("12") for name in some(rng, "ab")}
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    if rng.random() < 0.9:
        body["data"] = {name: rng.choice("12") for name in some(rng, "abcd")}
    return body


def random_container(rng: random.Random, name: str) -> Any:
    container: dict[str, Any] = {"name": name, "image": f"i:{rng.choice('12')}"}
    if rng.random() < 0.6:
        container["env"] = [{"name": n, "value": rng.choice("12")} for n in rng.sample("abc", rng.randint(0, 3))]
    if rng.random() < 0.4:
        container["args"] = some(rng, "xy")
    if rng.random() < 0.4:
        ports: list[dict[str, Any]] = [
            {"containerPort": 80},
            {"containerPort": 82, "protocol": "UDP"},
            {"containerPort": 81},
        ]
        container["ports"] = rng.sample(ports, rng.randint(0, 3))
    if rng.random() < 0.4:
        container["resources"] = {
            "requests": {n: rng.choice(("1", "1000m", "500m")) for n in some(rng, "c") and ["cpu"]}
        }
    if rng.random() < 0.2:
        container["livenessProbe"] = {"httpGet": {"port": 80}}
    return container


def random_deployment(rng: random.Random) -> Any:
    containers = [random_container(rng, name) for name in rng.sample(["m", "n"], rng.randint(1, 2))]
    pod: dict[str, Any] = {"containers": containers}
    if rng.random() < 0.3:
        pod["nodeSelector"] = dict.fromkeys(some(rng, "ab"), "y")
    if rng.random() < 0.3:
        pod["tolerations"] = [{"key": name, "operator": "Exists"} for name in some(rng, "ab")]
    if rng.random() < 0.4:
        pod["volumes"] = [{"name": name, "emptyDir": {}} for name in some(rng, "vw")]
    labels = {"app": "x", **{name: rng.choice("12") for name in some(rng, "a")}}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    # Paused and without pods: no controller moves while the edits are compared.
    spec |= {"paused": True, "replicas": 0}
    if rng.random() < 0.3:
        spec["strategy"] = rng.choice(
            ({"type": "Recreate"}, {"type": "RollingUpdate"}, {"rollingUpdate": {"maxSurge": 1}})
        )
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec}


def random_service(rng: random.Random) -> Any:
    ports = [
        {"name": f"p{n}", "port": n, **({"targetPort": 8000 + n} if rng.random() < 0.5 else {})} for n in (1, 2, 3)
    ]
    spec: dict[str, Any] = {"ports": rng.sample(ports, rng.randint(1, 3))}
    if rng.random() < 0.6:
        spec["selector"] = {name: rng.choice("12") for name in some(rng, "ab")}
    if rng.random() < 0.3:
        spec["sessionAffinity"] = "ClientIP"
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": spec}


KINDS = {
    "config map": ("api/v1/configmaps", random_config_map),
    "deployment": ("apis/apps/v1/deployments", random_deployment),
    "service": ("api/v1/services", random_service),
}


def edit(side: Side, path: str, body: Any, choice: tuple[str, str, bool]) -> Reply:
    """One edit: apply, or the same content as another kind of write."""
    verb, manager, force = choice
    match verb:
        case "merge":
            return side.patch(path, body, manager, content_type=MERGE)
        case "strategic":
            return side.patch(path, body, manager, content_type=STRATEGIC)
        case "put":
            return side.send("PUT", path, body, fieldManager=manager)
        case "json":
            return side.patch(
                path, [{"op": "add", "path": "/metadata/labels", "value": {"j": "1"}}], manager, content_type=JSON_PATCH
            )
    return side.apply(path, body, manager, force=force)


def outcome(reply: Reply) -> Any:
    """Return the content of a reply, without parts that differ from cluster to cluster."""
    if reply.status >= 400:
        causes = (reply.body.get("details") or {}).get("causes") or []
        return reply.status, reply.body.get("reason"), sorted(str(cause.get("field")) for cause in causes)
    body = comparable(reply.body)
    body.pop("status", None)
    body["metadata"].pop("namespace")
    # Entries of the same second are ordered by name, others by time: the order is no part of the comparison.
    entries = [e for e in body["metadata"].pop("managedFields", []) if e["manager"] in MANAGERS]
    annotations = body["metadata"].get("annotations") or {}
    annotations.pop("deployment.kubernetes.io/revision", None)
    if not annotations:
        body["metadata"].pop("annotations", None)
    return reply.status, body, sorted(entries, key=lambda e: (e["manager"], e["operation"]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_random_edits_end_alike(sim_side: Side, real_side: Side, kind: str, seed: int) -> None:
    check(sim_side, real_side, kind, seed)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_edits_end_alike(sim_side: Side, real_side: Side, kind: str) -> None:
    for seed in range(1000, 1300):
        check(sim_side, real_side, kind, seed)


def check(sim_side: Side, real_side: Side, kind: str, seed: int) -> None:
    """Make the same edits on both and compare every answer."""
    rng = random.Random(f"{kind} {seed}")
    kind_path, make = KINDS[kind]
    paths = {side.name: path_of(kind_path, new_space(side), "x") for side in (sim_side, real_side)}
    log: list[Any] = []
    for _ in range(STEPS):
        verb = rng.choices(("apply", "merge", "strategic", "put", "json"), (6, 2, 2, 1, 1))[0]
        choice = (verb, rng.choice(MANAGERS), rng.random() < 0.6)
        body = make(rng)
        log.append((choice, body))
        replies = [outcome(edit(side, paths[side.name], body, choice)) for side in (sim_side, real_side)]
        assert replies[0] == replies[1], (seed, log)
