"""Unkind worlds for trials: what may go wrong inside a cluster while its API server answers.

A further world is a class with `strike` and `end` in `worlds`: a trial draws from them, and ends all of them before it
asks the fleet to come to rest.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, Protocol

from reconciler.sim import Backup, Cluster, ClusterServer, Fault, FaultKind, Part, Refused, Request, forbidden
from reconciler.sim.objects.defaults import defaulted
from reconciler.sim.objects.kinds import BY_KIND
from reconciler.sim.state.state import as_it_is
from tests.fakes.definitions import DEFINITION, definition

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class UnkindWorld(Protocol):
    """One thing that goes wrong in a cluster, as often as it likes."""

    def strike(self, server: ClusterServer, rng: random.Random) -> None:
        """Let it go wrong, or better, or otherwise."""

    def end(self, server: ClusterServer) -> None:
        """Let all be well."""


class PartsAsleep:
    """Controllers, scheduler and kubelets that are dead or, woken and put to sleep again, slow."""

    def strike(self, server: ClusterServer, rng: random.Random) -> None:
        """Some parts do nothing until the next strike."""
        server.cluster.let_sleep(*rng.sample(tuple(Part), rng.randint(0, len(Part))))

    def end(self, server: ClusterServer) -> None:
        """All parts work."""
        server.cluster.let_sleep()


class NodesStarved:
    """A node with room for less: pods that come find none, those that run go on."""

    ROOM = "110"

    def strike(self, server: ClusterServer, rng: random.Random) -> None:
        """The only node has room for a few pods, or for all."""
        server.cluster.set_capacity("n1", pods=rng.choice(("1", "3", self.ROOM)))

    def end(self, server: ClusterServer) -> None:
        server.cluster.set_capacity("n1", pods=self.ROOM)


class QuotaExceeded:
    """A quota in each namespace that lets controllers make few pods, or none."""

    NAME: Final = "few-pods"

    def strike(self, server: ClusterServer, rng: random.Random) -> None:
        self.end(server)
        pods = rng.choice((0, 1, 3, None))
        for namespace in server.cluster.state.sorted("Namespace") if pods is not None else ():
            metadata = {"name": self.NAME, "namespace": namespace["metadata"]["name"]}
            quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata,
                     "spec": {"hard": {"pods": str(pods)}}}  # fmt: skip
            server.cluster.state.put(defaulted(quota))
        server.cluster.run_controllers()

    def end(self, server: ClusterServer) -> None:
        """There is no quota."""
        state = server.cluster.state
        for quota in state.sorted("ResourceQuota"):
            if quota["metadata"]["name"] == self.NAME:
                state.remove(BY_KIND["ResourceQuota"].group_plural, quota)
        server.cluster.run_controllers()


class KindsGone:
    """A kind that goes, comes back, is served in another version or scope, or fails by itself."""

    FORMS: Final = (("Namespaced", "v1"), ("Namespaced", "v2"), ("Namespaced", "v1", "v2"), ("Cluster", "v1"))
    ANSWERS: Final = (FaultKind.UNKNOWN, FaultKind.NOT_ALLOWED, FaultKind.INTERNAL, FaultKind.UNAVAILABLE)

    def strike(self, server: ClusterServer, rng: random.Random) -> None:
        """The definition goes, or another one takes its place, with all objects of it; or requests for a kind fail."""
        match rng.randrange(3):
            case 0:
                undefine(server.cluster)
            case 1:
                undefine(server.cluster)
                define(server.cluster, *rng.choice(self.FORMS))
            case _:
                plural = rng.choice(("configmaps", "secrets", "deployments", "widgets"))
                fault = Fault(kind=rng.choice(self.ANSWERS))
                server.faults.order(fault, when=_asks_for(plural), times=rng.randint(3, 60))

    def end(self, server: ClusterServer) -> None:
        """The kind is defined as at the beginning; faults end with the others."""
        undefine(server.cluster)
        define(server.cluster)


class Webhooks:
    """Admission that changes, refuses or takes its time with what clients write of a kind."""

    def strike(self, server: ClusterServer, rng: random.Random) -> None:
        state, kind = server.cluster.state, rng.choice(("ConfigMap", "Secret", "Deployment", "Widget"))
        state.admit, server.faults.write_latency_s = as_it_is, 0.0
        match rng.randrange(4):
            case 0:
                state.admit = _changing(kind)
            case 1:
                state.admit = _refusing(kind)
            case 2:
                server.faults.write_latency_s = rng.choice((0.05, 0.3))

    def end(self, server: ClusterServer) -> None:
        """Everything is admitted; latency ends with the other faults."""
        server.cluster.state.admit = as_it_is


class Restored:
    """A cluster whose etcd is put back to an earlier state."""

    def __init__(self) -> None:
        self._backups: dict[str, Backup] = {}

    def strike(self, server: ClusterServer, rng: random.Random) -> None:
        """A backup is made, or the last one is put back."""
        cluster = server.cluster
        backup = self._backups.pop(cluster.name, None)
        if backup is None:
            self._backups[cluster.name] = cluster.back_up()
            return
        cluster.put_back(backup)
        server.break_connections()

    def end(self, server: ClusterServer) -> None:
        """Check that what was put back stays."""


def define(cluster: Cluster, *form: str) -> None:
    """Somebody defines the kind Widget: a scope, and the versions that are served."""
    _ask(cluster, "POST", _DEFINITIONS, definition(*form))


def undefine(cluster: Cluster) -> None:
    """Somebody deletes the definition, if it is there."""
    if cluster.state.get("CustomResourceDefinition", "", DEFINITION) is not None:
        _ask(cluster, "DELETE", f"{_DEFINITIONS}/{DEFINITION}")


def _ask(cluster: Cluster, method: str, path: str, body: Any = None) -> None:
    answer = cluster.request(Request(method=method, path=path, body=body, user_agent="kubectl/v1.36"))
    assert answer.status < 300, answer
    cluster.run_controllers()


def _asks_for(plural: str) -> Callable[[Request], bool]:
    return lambda request: plural in request.path.split("/")


def _changing(kind: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A webhook that sets a label, and the value of a ConfigMap."""

    def admit(body: dict[str, Any]) -> dict[str, Any]:
        if body["kind"] != kind:
            return body
        labels = {**(body["metadata"].get("labels") or {}), "injected": "yes"}
        changed = {**body, "metadata": {**body["metadata"], "labels": labels}}
        if kind == "ConfigMap" and "value" in (body.get("data") or {}):
            changed["data"] = {**body["data"], "value": "injected"}
        return changed

    return admit


def _refusing(kind: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def admit(body: dict[str, Any]) -> dict[str, Any]:
        if body["kind"] == kind:
            raise _denied(body["metadata"]["name"])
        return body

    return admit


def _denied(name: str) -> Refused:
    return forbidden("", "", name, 'admission webhook "deny.example.com" denied the request: not today')


def worlds() -> tuple[UnkindWorld, ...]:
    return (PartsAsleep(), NodesStarved(), QuotaExceeded(), KindsGone(), Webhooks(), Restored())
