"""A version goes from one environment to the next: its health is told, and the review shows it."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pygit2
import pytest
from pygit2.enums import ResetMode

from reconciler.sim import BackgroundFleet
from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import FLEET, Daemon, GitRepository
from tests.fakes.documents import config_map, policy, web
from tests.program import run_text
from tests.soak.rollouts import image_of, until

ENVIRONMENTS = {"dev": "m1", "prod": "m2"}


def placed(namespace: str, document: Mapping[str, Any]) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


def has(fleet: BackgroundFleet, namespace: str) -> str:
    cluster = ENVIRONMENTS[namespace]
    return image_of(fleet.call(lambda box: box[cluster].state.get("Deployment", namespace, "web")))


def in_step(daemon: Daemon, revision: str) -> bool:
    """Return whether the journal has the revision everywhere, healthy, and nothing more to do."""
    done = run_text("status", "--journal", daemon.journal, "-o", "json", code=None).stdout
    status = json.loads(done) if done.startswith("{") else {}
    is_done = status.get("revision") == revision and not any(status["summary"].values())
    return is_done and not status["troublesTotal"]


class Tags(ThreadingHTTPServer):
    """A registry that tells the tags of every image."""

    def __init__(self, *tags: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({"tags": tags}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Environments:
    """Staging and production: a namespace each in a real cluster, a folder each in one store, and a service."""

    def __init__(self, folder: Path, clusters: ThreeClusters, binaries: Path, image: str) -> None:
        self.fleet = f"f{uuid.uuid4().hex[:8]}"
        self.members = {"staging": clusters.m1, "prod": clusters.m2}
        self.spaces = {name: f"{name}-{self.fleet}" for name in self.members}
        self.store = GitRepository(folder / "store", self.fleet, tuple(one.name for one in self.members.values()))
        self.daemon = Daemon(self.store.folder, clusters.kubeconfig, folder / "state/journal.db")
        self.git = pygit2.Repository(str(self.store.folder))
        self.git.config["user.name"], self.git.config["user.email"] = "Ada", "ada@example.com"
        self._environ = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
        for name, member in self.members.items():
            self._environment(name, member.name, image)
            member.add_node(f"node-{self.fleet}")
        rule = {"from": "staging", "to": "prod", "follow": ["images", "values"],
                "namespaces": {self.spaces["staging"]: self.spaces["prod"]}}  # fmt: skip
        self.store.write("promotion.yaml", {"apiVersion": FLEET, "kind": "Promotion", "metadata": {"name": "prod"},
                                            "spec": rule})  # fmt: skip

    def _environment(self, folder: str, cluster: str, image: str) -> None:
        """A Deployment of kustomize, whose image is updated in staging alone, and a ConfigMap."""
        namespace, pod = self.spaces[folder], web(image, 1)
        self.store.write(f"{folder}/web/web.yaml", {**pod, "metadata": {"name": "web", "namespace": namespace}})
        images = [{"name": image, "newTag": "1.0.0"}]
        self.store.write(f"{folder}/web/kustomization.yaml", {"resources": ["web.yaml"], "images": images})
        spec: dict[str, Any] = {"kustomize": {"path": f"{folder}/web"}, "output": f"rendered/{namespace}",
                                "placement": {"clusters": {"clusterNames": [cluster]}}}  # fmt: skip
        if folder == "staging":
            spec["images"] = [{"name": image, "update": "1.x"}]
        self.store.write(f"{folder}/render.yaml", {"apiVersion": FLEET, "kind": "Render",
                                                   "metadata": {"name": namespace}, "spec": spec})  # fmt: skip
        self.store.write(f"{folder}/mode.yaml", placed(namespace, config_map("mode", mode="one")))
        self.store.write(f"{folder}/policy.yaml", placed(namespace, policy("mode", "ConfigMap", cluster)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """End the service, and take the nodes away, so that no other test meets them."""
        self.daemon.kill()
        for member in self.members.values():
            member.remove_node(f"node-{self.fleet}")

    def run(self, command: str, *args: str | Path, code: int | None = 0) -> str:
        done = run_text(command, self.store.folder, *args, environment=self._environ, code=code)
        return done.stdout + done.stderr

    def review(self) -> str:
        """Return the plan that a pull request of the promotion shows."""
        journal = ("--journal", self.daemon.journal)
        return self.run("diff", "--base", "main", "--head", "promote/prod", *journal, code=None)

    def merge(self, branch: str, what: str) -> None:
        """Take a branch over, and wait until all is as it says."""
        self.git.reset(self.git.lookup_branch(branch).peel(pygit2.Commit).id, ResetMode.HARD)
        self.git.lookup_branch(branch).delete()
        self.reach(str(self.git.head.target), what)

    def reach(self, revision: str, what: str) -> None:
        """Wait until both clusters are as a revision says."""
        until(self.daemon, lambda: in_step(self.daemon, revision), what)

    def runs(self, name: str) -> tuple[str, str]:
        """The tag of the image in an environment, and the mode."""
        get = partial(self.members[name].kubectl, "-n", self.spaces[name], "get")
        image = get("deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
        return image.rpartition(":")[2], get("configmap", "mode", "-o", "jsonpath={.data.mode}")


@pytest.mark.apiserver
def test_updates_and_promotions_reach_one_real_cluster_after_the_other(
    tmp_path: Path, three_clusters: ThreeClusters, kubernetes_binaries: Path
) -> None:
    """An update by rule and a change by hand are seen healthy in staging, promoted, reviewed, merged and applied."""
    with Tags("1.0.0", "1.1.0", "2.0.0") as tags:
        image = f"localhost:{tags.server_address[1]}/shop/web"
        with Environments(tmp_path, three_clusters, kubernetes_binaries, image) as both:
            both.run("hydrate")
            first = both.store.commit("begin")
            both.daemon.start()
            both.reach(first, "both environments")

            both.run("hydrate", "--update", "--branch", "updates")
            both.merge("updates", "the update in staging")
            assert (both.runs("staging"), both.runs("prod")) == (("1.1.0", "one"), ("1.0.0", "one"))
            told = both.run("promote", "--to", "prod", "--journal", both.daemon.journal)
            healthy = "from staging/web/kustomization.yaml, healthy there, without change or failure since 20"
            assert healthy in told
            assert "'reconciler hydrate --branch promote/prod'" in told
            both.run("hydrate", "--branch", "promote/prod")
            said = both.review()
            assert both.runs("prod") == ("1.0.0", "one")
            assert healthy in said
            assert f"{image}:1.0.0 → {image}:1.1.0" in said
            both.merge("promote/prod", "the update in prod")
            assert both.runs("prod") == ("1.1.0", "one")

            mode = both.store.folder / "staging/mode.yaml"
            mode.write_text(mode.read_text().replace("one", "two"))
            both.reach(both.store.commit("another mode"), "the mode in staging")
            both.run("promote", "--to", "prod", "--journal", both.daemon.journal)
            assert f"from ConfigMap {both.spaces['staging']}/mode, healthy there" in both.review()
            both.merge("promote/prod", "the mode in prod")
            assert both.runs("prod") == both.runs("staging") == ("1.1.0", "two")
            assert both.daemon.stop() == 0
