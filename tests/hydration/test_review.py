"""The review of a pull request that changes values, and of one that forgot to render."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.hydration import copied_store
from tests.hydration.test_hydrate import hydrate, one_render, run

pytestmark = pytest.mark.usefixtures("tools_on_path")
POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "ClusterPropagationPolicy",
    "metadata": {"name": "web"},
    "spec": {
        "resourceSelectors": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "demo"},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "namespace": "demo"},
        ],
        "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2", "m3"]}},
    },
}


def git(store: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=bob", "-c", "user.email=bob@example.com"]
    subprocess.run(["git", *identity, "-C", store, *arguments], check=True, capture_output=True)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A repository whose outputs are fresh."""
    store = copied_store(tmp_path)
    one_render(store, "web")
    (store / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    assert hydrate(store).exit_code == 0
    git(store, "init", "--quiet", "-b", "main")
    git(store, "add", ".")
    git(store, "commit", "--quiet", "-m", "Begin")
    return store


def change(store: Path) -> None:
    values = store / "values/web-prod.yaml"
    values.write_text(values.read_text().replace("LEVEL: warn", "LEVEL: error"))


def test_one_value_of_one_variant_is_one_field_in_its_clusters(store: Path) -> None:
    change(store)
    assert hydrate(store).exit_code == 0
    git(store, "commit", "--quiet", "-am", "Log less in production")
    result = run("diff", store, "--base", "main~1", "--head", "main")
    assert result.exit_code == 0
    expected = (Path(__file__).parent / "one_value.txt").read_text()
    assert re.sub(r"[0-9a-f]{12} → [0-9a-f]{12}", "BASE → HEAD", result.stdout) == expected


def test_a_commit_that_forgot_to_render_is_red_with_the_command(store: Path) -> None:
    change(store)
    git(store, "commit", "--quiet", "-am", "Log less in production")
    for result in (run("diff", store, "--base", "main~1", "--head", "main"), run("validate", store, "--rev", "main")):
        assert result.exit_code == 1
        said = " ".join(result.output.split())
        assert "[render-stale]" in said
        assert "values/web-prod.yaml changed since rendered/web was made of it: run reconciler hydrate" in said
    assert run("diff", store, "--base", "main", "--head", "main~1").exit_code == 0


def test_a_commit_names_contents_as_the_files_do(store: Path) -> None:
    """The lock was written from files; the ids of the commit are the same, without reading any of them."""
    assert run("validate", store, "--rev", "main").exit_code == 0
    assert run("validate", store).exit_code == 0
