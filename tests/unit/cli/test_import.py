"""`import` from several clusters: files that can be applied at once, and nothing half written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.sim import BackgroundFleet, ClusterSpec, Request, background_fleet
from tests.unit.cli.command_line import CLUSTERS, FLEET, Ran, run
from tests.yaml_text import load_yaml


@pytest.fixture
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    specs = [ClusterSpec(name=name) for name in ("m1", "m2")]
    with background_fleet(specs, tmp_path_factory.mktemp("fleet")) as found:
        for name, value in (("m1", "one"), ("m2", "two")):
            make(found, name, "app", {"key": value})
        make(found, "m1", "only", {})
        yield found


def make(fleet: BackgroundFleet, cluster: str, name: str, data: dict[str, Any]) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}
    request = Request(method="POST", path="/api/v1/namespaces/default/configmaps", query={}, body=body,
                      accept="application/json", content_type="application/json", user_agent="kubectl/v1")  # fmt: skip
    fleet.call(lambda box: box[cluster].request(request))


class Desk:
    def __init__(self, folder: Path, fleet: BackgroundFleet) -> None:
        self.store = folder / "store"
        self.store.mkdir()
        (self.store / "fleet.yaml").write_text(FLEET + CLUSTERS)
        self._environ = {
            "RECONCILER_KUBECONFIG": str(fleet.call(lambda box: box.kubeconfig)),
            "RECONCILER_JOURNAL": str(folder / "journal.db"),
        }

    def types(self, *args: str) -> Ran:
        return run(*args, "--store", str(self.store), **self._environ)


@pytest.fixture
def desk(tmp_path: Path, fleet: BackgroundFleet) -> Desk:
    return Desk(tmp_path, fleet)


def test_what_runs_in_two_clusters_is_one_template_and_is_adopted_without_a_change(desk: Desk) -> None:
    into = desk.store / "adopted"
    done = desk.types("import", "cm", "--cluster", "m1", "--cluster", "m2", "--folder", str(into))
    assert done.code == 0, done.err
    assert sorted(path.relative_to(into).as_posix() for path in into.rglob("*.yaml")) == [
        "default/configmap-app.yaml",
        "default/configmap-only.yaml",
        "default/override-imported-configmap-app.yaml",
        "default/policy-imported-m1-m2.yaml",
        "default/policy-imported-m1.yaml",
    ]
    override = load_yaml((into / "default/override-imported-configmap-app.yaml").read_text())
    assert override["spec"]["overrideRules"] == [
        {
            "targetCluster": {"clusterNames": ["m2"]},
            "overriders": {"plaintext": [{"path": "/data/key", "operator": "replace", "value": "two"}]},
        }
    ]
    plan = desk.types("diff", "--dir").out
    assert "3 adopt" in plan, plan
    assert "data.key" not in plan


def test_a_cluster_that_the_store_lacks_is_named(desk: Desk) -> None:
    done = desk.types("import", "cm", "--cluster", "m1", "--cluster", "m9")
    assert (done.code, "the store has no cluster m9; it has m1, m2" in done.err) == (1, True)


def test_a_kind_that_one_cluster_lacks_ends_it_with_nothing_written(desk: Desk) -> None:
    done = desk.types("import", "cm,widgets", "--cluster", "m1", "--cluster", "m2")
    assert (done.code, done.out) == (1, "")
    assert "no kind is called widgets" in done.err
