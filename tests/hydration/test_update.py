"""Charts that others serve come into the store by `--update` alone, and are the ones that the document names."""

from __future__ import annotations

import hashlib
import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pygit2
import pytest

from tests.fakes.store_trees import commit_all
from tests.hydration import copied_store, folder_of_helm
from tests.hydration.test_hydrate import hydrate, one_render, run
from tests.yaml_text import load_documents

pytestmark = pytest.mark.usefixtures("tools_on_path")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Charts:
    def __init__(self, archive: bytes) -> None:
        self.archive = archive
        self.digest = f"sha256:{hashlib.sha256(archive).hexdigest()}"
        config = b'{"name":"jobs","version":"0.0.3","apiVersion":"v2"}'
        config_id = f"sha256:{hashlib.sha256(config).hexdigest()}"
        layer = {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": self.digest,
                 "size": len(archive)}  # fmt: skip
        about = {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": config_id, "size": len(config)}
        manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": about, "layers": [layer]}).encode()
        manifest_id = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        entry = "{apiVersion: v2, name: jobs, version: 0.0.3, urls: [jobs-0.0.3.tgz]}"
        index = f"apiVersion: v1\nentries:\n  jobs:\n  - {entry}\n"
        pages = {
            "/index.yaml": (index.encode(), "text/yaml"),
            "/jobs-0.0.3.tgz": (archive, "application/gzip"),
            "/v2/": (b"{}", "application/json"),
            "/v2/charts/jobs/tags/list": (b'{"name":"charts/jobs","tags":["0.0.3"]}', "application/json"),
            "/v2/charts/jobs/manifests/0.0.3": (manifest, MANIFEST),
            f"/v2/charts/jobs/manifests/{manifest_id}": (manifest, MANIFEST),
            f"/v2/charts/jobs/blobs/{self.digest}": (archive, "application/octet-stream"),
            f"/v2/charts/jobs/blobs/{config_id}": (config, "application/octet-stream"),
        }
        self.asked: list[str] = []
        asked = self.asked
        self._pages = pages

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                body, kind = pages.get(self.path.partition("?")[0], (b"", ""))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.send_header("Content-Length", str(len(body)))
                if kind == MANIFEST:
                    self.send_header("Docker-Content-Digest", manifest_id)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def do_HEAD(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"

    def serve(self, path: str, body: bytes) -> None:
        self._pages[path] = (body, "application/json")


@pytest.fixture
def charts(tmp_path: Path) -> Iterator[Charts]:
    helm = folder_of_helm()
    assert helm is not None
    chart = copied_store(tmp_path / "packed") / "charts/jobs"
    subprocess.run([helm / "helm", "package", chart, "-d", tmp_path], check=True, capture_output=True)
    served = Charts((tmp_path / "jobs-0.0.3.tgz").read_bytes())
    thread = threading.Thread(target=served.server.serve_forever, daemon=True)
    thread.start()
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = copied_store(tmp_path)
    one_render(store, "jobs")
    return store


def name_chart(store: Path, chart: str) -> None:
    document = store / "renders/jobs.yaml"
    document.write_text(document.read_text().replace("chart: charts/jobs", chart))


@pytest.mark.parametrize("form", ["repository", "registry"])
def test_a_chart_is_vendored_and_then_rendered_without_network(store: Path, charts: Charts, form: str) -> None:
    where = {"repository": f"chart: jobs, repository: 'http://{charts.address}'",
             "registry": f"chart: 'oci://{charts.address}/charts/jobs'"}[form]  # fmt: skip
    name_chart(store, f"{where}, version: 0.0.3, digest: '{charts.digest}'")
    before = hydrate(store)
    assert before.exit_code == 1
    assert "reconciler hydrate --update brings it into the store" in " ".join(before.output.split())
    assert charts.asked == []
    done = hydrate(store, "--update")
    assert done.exit_code == 0, done.output
    assert charts.asked
    assert (store / "vendor/jobs-0.0.3.tgz").exists()
    assert (store / "rendered/jobs/base.yaml").exists()
    assert run("validate", store).exit_code == 0
    asked = len(charts.asked)
    assert hydrate(store, "--update").exit_code == 0
    assert hydrate(store, "--check").exit_code == 0
    assert len(charts.asked) == asked


@pytest.mark.parametrize("repo", ["http://{}", "oci://{}/charts/"])
def test_a_chart_of_a_kustomization_is_unpacked_where_kustomize_looks_for_it(
    store: Path, charts: Charts, repo: str
) -> None:
    chart = {"name": "jobs", "repo": repo.format(charts.address), "version": "0.0.3", "releaseName": "jobs",
             "namespace": "shop", "skipTests": True}  # fmt: skip
    (store / "kustom").mkdir()
    (store / "kustom/kustomization.yaml").write_text(json.dumps({"namespace": "shop", "helmCharts": [chart]}))
    document = load_documents((store / "renders/jobs.yaml").read_text())[0]
    spec = {"output": "rendered/jobs", "kustomize": {"path": "kustom"}}
    (store / "renders/jobs.yaml").write_text(json.dumps({**document, "spec": spec}))
    assert "kustom/charts/jobs-0.0.3/jobs is not in the store; reconciler hydrate --update" in " ".join(
        hydrate(store).output.split()
    )
    done = hydrate(store, "--update")
    assert done.exit_code == 0, done.output
    assert (store / "kustom/charts/jobs-0.0.3/jobs/Chart.yaml").exists()
    assert (store / "rendered/jobs/base.yaml").exists()
    assert run("validate", store).exit_code == 0
    asked = len(charts.asked)
    assert "jobs: fresh" in hydrate(store, "--update").output
    assert len(charts.asked) == asked


def test_another_archive_than_the_named_one_is_not_taken(store: Path, charts: Charts) -> None:
    name_chart(
        store, f"chart: jobs, repository: 'http://{charts.address}', version: 0.0.3, digest: 'sha256:{'1' * 64}'"
    )
    result = hydrate(store, "--update")
    assert result.exit_code == 1
    assert f"has {charts.digest}, not the digest that the document names" in " ".join(result.output.split())
    assert not (store / "vendor").exists()


def test_a_digest_that_is_not_known_yet_is_told_and_then_taken(store: Path, charts: Charts) -> None:
    unknown = f"sha256:{'0' * 64}"
    name_chart(store, f"chart: jobs, repository: 'http://{charts.address}', version: 0.0.3, digest: '{unknown}'")
    result = hydrate(store, "--update")
    assert result.exit_code == 1
    assert f"has {charts.digest}; write it as spec.helm.digest" in " ".join(result.output.split())
    assert not (store / "vendor").exists()
    document = store / "renders/jobs.yaml"
    document.write_text(document.read_text().replace(unknown, charts.digest))
    assert hydrate(store, "--update").exit_code == 0
    assert run("validate", store).exit_code == 0


def test_a_vendored_archive_that_was_swapped_is_refused(store: Path, charts: Charts) -> None:
    name_chart(store, f"chart: jobs, repository: 'http://{charts.address}', version: 0.0.3, digest: '{charts.digest}'")
    assert hydrate(store, "--update").exit_code == 0
    (store / "vendor/jobs-0.0.3.tgz").write_bytes(b"swapped")
    assert "[render-stale]" in run("validate", store).output
    result = hydrate(store)
    assert result.exit_code == 1
    assert "is not the archive that digest names" in " ".join(result.output.split())


def test_a_newer_version_in_the_range_of_the_document_is_written(store: Path, charts: Charts) -> None:
    where = (
        f"chart: jobs, repository: 'http://{charts.address}', version: 0.0.2, digest: '{charts.digest}', update: 0.x"
    )
    name_chart(store, where)
    (store / "vendor").mkdir()
    (store / "vendor/jobs-0.0.2.tgz").write_bytes(charts.archive)
    written = (store / "renders/jobs.yaml").read_text()
    result = hydrate(store, "--update")
    assert result.exit_code == 0, result.output
    assert "jobs: chart 0.0.2 → 0.0.3 (renders/jobs.yaml)" in result.output
    document = store / "renders/jobs.yaml"
    assert document.read_text() == written.replace("version: 0.0.2", "version: 0.0.3")
    assert [path.name for path in (store / "vendor").iterdir()] == ["jobs-0.0.3.tgz"]
    assert (store / "rendered/jobs/base.yaml").exists()
    assert run("validate", store).exit_code == 0
    assert "jobs: fresh" in hydrate(store, "--update").output
    document.write_text(document.read_text().replace("0.x", "1.x"))
    assert "[render-failed]" in hydrate(store, "--update").output


def test_newer_charts_and_images_are_a_commit_on_a_branch(store: Path, charts: Charts) -> None:
    image = f"localhost:{charts.server.server_address[1]}/shop/web"
    where = (
        f"chart: jobs, repository: 'http://{charts.address}', version: 0.0.2, digest: '{charts.digest}', update: 0.x"
    )
    name_chart(store, f"{where}, values: [values/jobs-images.yaml]")
    document = store / "renders/jobs.yaml"
    document.write_text(document.read_text() + f"  images: [{{name: '{image}', update: 1.x}}]\n")
    values = f"# images\nimage:\n  repository: {image}\n  tag: 1.2.0 # web\n"
    (store / "values/jobs-images.yaml").write_text(values)
    charts.serve("/v2/shop/web/tags/list", b'{"tags": ["1.2.0", "1.3.0", "2.0.0", "latest"]}')
    commit_all(store, new=True)
    git = pygit2.Repository(str(store))
    git.config["user.name"], git.config["user.email"] = "Ada", "ada@example.com"
    head, before = git.head.target, {path: path.read_bytes() for path in store.rglob("*.yaml")}
    result = hydrate(store, "--update", "--branch", "updates")
    assert result.exit_code == 0, result.output
    assert f"jobs: {image} 1.2.0 → 1.3.0 (values/jobs-images.yaml)" in " ".join(result.output.split())
    assert {path: path.read_bytes() for path in store.rglob("*.yaml")} == before
    assert git.head.target == head
    made = git.lookup_branch("updates").peel(pygit2.Commit)
    assert made.message.startswith("Update charts, images and what is rendered of them\n\n")
    tree = made.tree
    changed = tree / "values/jobs-images.yaml"
    assert isinstance(changed, pygit2.Blob)
    assert changed.data.decode() == values.replace("1.2.0", "1.3.0")
    assert {"vendor/jobs-0.0.3.tgz", "rendered/jobs/base.yaml"} <= {
        delta.new_file.path for delta in git.diff(str(head), "updates").deltas
    }
    again = hydrate(store, "--update", "--branch", "updates")
    assert (again.exit_code, "nothing to commit" in again.output) == (0, True), again.output


def test_what_is_only_rendered_says_so(store: Path) -> None:
    commit_all(store, new=True)
    git = pygit2.Repository(str(store))
    git.config["user.name"], git.config["user.email"] = "Ada", "ada@example.com"
    ran = hydrate(store, "--branch", "rendered")
    assert ran.exit_code == 0, ran.output
    assert git.lookup_branch("rendered").peel(pygit2.Commit).message.startswith("Render what changed\n\nrendered/")


def test_a_registry_that_cannot_be_asked_is_told_and_its_images_stay(store: Path, charts: Charts) -> None:
    document = store / "renders/jobs.yaml"
    image = f"localhost:{charts.server.server_address[1]}/shop/none"
    document.write_text(
        document.read_text().replace("chart: charts/jobs", "chart: charts/jobs, values: [values/jobs-images.yaml]")
        + f"  images: [{{name: '{image}', update: 1.x}}]\n"
    )
    (store / "values/jobs-images.yaml").write_text(f"image: '{image}:1.2.0'\n")
    result = hydrate(store, "--update")
    assert result.exit_code == 1
    assert "the registry has no such image" in " ".join(result.output.split())
    assert (store / "values/jobs-images.yaml").read_text() == f"image: '{image}:1.2.0'\n"
