"""A version goes from one environment to the next on embedded clusters: its health is told, and the review shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pygit2
from pygit2.enums import ResetMode

from reconciler.sim import BackgroundFleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import policy, web
from tests.program import run_text
from tests.soak.rollouts import image_of, scene, until

ENVIRONMENTS = {"dev": "m1", "prod": "m2"}


def placed(namespace: str, document: Mapping[str, Any]) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


def put(store: GitRepository, namespace: str, image: str) -> str:
    store.write(f"{namespace}/web.yaml", placed(namespace, web(image, 1 if namespace == "dev" else 2)))
    return store.commit(f"{namespace} {image}")


def has(fleet: BackgroundFleet, namespace: str) -> str:
    """Return the image that runs in an environment."""
    cluster = ENVIRONMENTS[namespace]
    return image_of(fleet.call(lambda box: box[cluster].state.get("Deployment", namespace, "web")))


def in_step(daemon: Daemon, revision: str) -> bool:
    """Return whether the journal has the revision everywhere, healthy, and nothing more to do."""
    done = run_text("status", "--journal", daemon.journal, "-o", "json", code=None).stdout
    status = json.loads(done) if done.startswith("{") else {}
    is_done = status.get("revision") == revision and not any(status["summary"].values())
    return is_done and not status["troublesTotal"]


def test_a_version_is_promoted_once_it_is_healthy(tmp_path: Path) -> None:
    with scene(tmp_path) as (fleet, store, daemon, _):
        for file in ("rollout.yaml", "web-policy.yaml"):
            (store.folder / file).unlink()
        for namespace, cluster in ENVIRONMENTS.items():
            store.write(f"{namespace}/policy.yaml", placed(namespace, policy("web", "Deployment", cluster)))
            store.write(f"{namespace}/web.yaml", placed(namespace, web("nginx:1", 2)))
        store.write_text(
            "promotion.yaml",
            "apiVersion: fleet.reconciler/v1alpha1\nkind: Promotion\n"
            "metadata: {name: prod}\nspec: {from: dev, to: prod}\n",
        )
        store.commit("begin")
        git = pygit2.Repository(str(store.folder))
        git.config["user.name"], git.config["user.email"] = "Ada", "ada@example.com"
        daemon.start()
        revision = put(store, "dev", "nginx:2")
        until(daemon, lambda: in_step(daemon, revision), "the version in dev")
        assert (has(fleet, "dev"), has(fleet, "prod")) == ("nginx:2", "nginx:1")
        told = run_text("promote", store.folder, "--to", "prod", "--journal", daemon.journal)
        assert "from Deployment dev/web, healthy there, without change or failure since 20" in told.stdout
        assert "spec.replicas" in told.stdout
        review = run_text(
            "diff", store.folder, "--base", "main", "--head", "promote/prod", "--journal", daemon.journal, code=None
        ).stdout
        assert "> promotes  Promotion prod: Deployment prod/web" in review
        assert "healthy there, without change or failure since 20" in review
        assert "on purpose: spec.replicas" in review
        merged = git.lookup_branch("promote/prod").peel(pygit2.Commit).id
        git.reset(merged, ResetMode.HARD)
        until(daemon, lambda: has(fleet, "prod") == "nginx:2", "the version in prod")
        assert daemon.stop() == 0
