"""`import --from-argocd` and `--from-flux`: from files to a store that is valid but for what is to be rendered."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.unit.cli.command_line import Ran, run
from tests.yaml_text import load_yaml

URL = "https://git.example.com/acme/platform.git"
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
spec:
  project: default
  source: {repoURL: https://git.example.com/acme/platform, path: charts/web, helm: {values: "password: canary-1"}}
  destination: {server: https://eu, namespace: demo}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: eu, labels: {argocd.argoproj.io/secret-type: cluster, stage: prod}}
stringData: {name: eu, server: https://eu, config: '{"bearerToken": "canary-2"}'}
---
"""


class Desk:
    """A checkout, what the tool was told, and a folder for the store."""

    def __init__(self, folder: Path) -> None:
        self.checkout, self.told, self.store = folder / "checkout", folder / "told.yaml", folder / "store"
        chart = self.checkout / "charts/web"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 0.1.0\n")
        (chart / "templates/cm.yaml").write_text("kind: {{ .x }}\n")

    def types(self, *args: str, told: str = SECRET + APPLICATION) -> Ran:
        self.told.write_text(told)
        source = f"{URL}={self.checkout}"
        return run("import", "--from-argocd", str(self.told), "--source", source, "-o", str(self.store), *args)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_store_is_written_that_is_valid_but_for_what_is_to_be_rendered(desk: Desk) -> None:
    done = desk.types()
    assert done.code == 0, done.err
    assert f"left out: {desk.told}:10 spec.project: there are no projects" in done.err
    assert "values/web/base.yaml may hold a secret" in done.err
    assert "canary" not in done.out + done.err
    for file in desk.store.rglob("*"):
        assert not file.is_file() or b"canary-2" not in file.read_bytes()
    assert (desk.store / "sources/platform/charts/web/templates/cm.yaml").read_text() == "kind: {{ .x }}\n"
    validated = run("validate", str(desk.store))
    lines = [line for line in (validated.out + validated.err).splitlines() if line.startswith(("error", "warning"))]
    assert lines, "it is to be rendered"
    assert all("[render-stale]" in line for line in lines), lines


SET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: charts}
spec:
  generators:
  - git: {repoURL: https://git.example.com/acme/platform, directories: [{path: "charts/*"}]}
  template:
    metadata: {name: "{{path.basename}}"}
    spec:
      source: {repoURL: https://git.example.com/acme/platform, path: "{{path}}"}
      destination: {server: https://eu, namespace: demo}
"""


@pytest.mark.parametrize("place", ["tests/data/latest", "charts/latest"])
def test_a_link_somewhere_in_a_repository_is_no_folder_of_a_set_and_stops_no_other(desk: Desk, place: str) -> None:
    """Source: Argo CD, reposerver, ListDirectories: filepath.Walk follows no link."""
    link = desk.checkout / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(desk.checkout / "charts/web")
    done = desk.types(told=SECRET + SET)
    assert done.code == 0, done.err
    texts = [path.read_text() for path in desk.store.rglob("*.yaml") if "templates" not in path.parts]
    made = [each for text in texts for each in yaml.safe_load_all(text)]
    assert [each["metadata"]["name"] for each in made if each.get("kind") == "Render"] == ["web"]


def test_a_matrix_of_millions_is_refused_before_it_is_made(desk: Desk) -> None:
    elements = ", ".join(f"{{a: x{number}}}" for number in range(2000))
    lists = f"{{list: {{elements: [{elements}]}}}}, {{list: {{elements: [{elements.replace('a:', 'b:')}]}}}}"
    told = SET.replace("git: {repoURL: https://git.example.com/acme/platform, directories: [{path: \"charts/*\"}]}",
                       f"matrix: {{generators: [{lists}]}}")  # fmt: skip
    assert told != SET
    done = desk.types(told=SECRET + told)
    assert done.code == 1
    assert "more than 100,000 combinations" in done.err


JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: drop-database
  annotations:
    argocd.argoproj.io/hook: PostDelete
    argocd.argoproj.io/sync-options: Prune=false
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: psql}]}}}
"""


def test_what_an_object_says_to_its_tool_is_named_with_file_and_line(desk: Desk) -> None:
    manifests = desk.checkout / "manifests"
    manifests.mkdir()
    (manifests / "job.yaml").write_text(JOB)
    done = desk.types(
        told=SECRET + APPLICATION.replace('charts/web, helm: {values: "password: canary-1"}', "manifests")
    )
    assert done.code == 0, done.err
    said = [line for line in done.err.splitlines() if line.startswith("not kept to: ")]
    assert said == [line for line in said if "job.yaml:6 argocd.argoproj.io/hook: PostDelete: " in line] != []
    validated = run("validate", str(manifests))
    assert validated.code == 1
    for words in (" job.yaml:6 ", " Job drop-database says argocd.argoproj.io/hook: PostDelete", "[directive-refused]"):
        assert words in validated.out + validated.err


def test_what_is_not_carried_over_fails_the_command_and_the_rest_is_written(desk: Desk) -> None:
    other = APPLICATION.replace("name: web", "name: other").replace("https://eu", "https://elsewhere")
    done = desk.types(told=f"{SECRET}{APPLICATION}---\n{other}")
    assert done.code == 1
    assert "Application other: which cluster https://elsewhere is" in done.err
    assert "--cluster-name https://elsewhere=NAME" in done.err
    assert (desk.store / "renders/web.yaml").exists()
    named = Desk(desk.store / "again").types("--cluster-name", "https://elsewhere=us", told=f"{SECRET}{other}")
    assert named.code == 0, named.err


def test_nothing_is_written_over_what_is_there_but_a_store_that_was_begun_goes_on(desk: Desk) -> None:
    desk.store.mkdir()
    (desk.store / "fleet.yaml").write_text("mine")
    done = desk.types()
    assert done.code == 0, done.err
    assert (desk.store / "fleet.yaml").read_text() == "mine"
    again = desk.types()
    assert again.code == 1
    assert "exist already; nothing was written" in again.err


def test_a_link_out_of_a_checkout_is_not_followed(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("canary-of-outside")
    (desk.checkout / "charts/web/values.yaml").symlink_to(outside)
    done = desk.types()
    assert done.code == 1
    assert "charts/web/values.yaml is a link" in done.err
    assert not desk.store.exists()


def test_a_link_in_the_folder_of_the_store_is_not_written_through(desk: Desk, tmp_path: Path) -> None:
    desk.store.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (desk.store / "renders").symlink_to(tmp_path / "elsewhere")
    done = desk.types()
    assert done.code == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_input_that_is_broken_or_too_large_is_told_with_its_line(desk: Desk) -> None:
    broken = desk.types(told=f"{SECRET}{APPLICATION}---\na: [\n")
    assert broken.code == 1
    assert "[yaml-syntax]" in broken.err + broken.out
    assert (desk.store / "renders/web.yaml").exists()
    large = Desk(desk.store / "large").types(told=f"{APPLICATION}# {'x' * 5_000_000}\n")
    assert large.code == 1
    assert "[file-too-large]" in large.err + large.out


def test_what_is_no_document_in_a_folder_is_named_and_no_error(desk: Desk, tmp_path: Path) -> None:
    for name, text in (
        ("app.yaml", SECRET + APPLICATION),
        ("list.json", "[1]"),
        ("scenes.yaml", "- a"),
        ("half.json", "{"),
    ):
        (tmp_path / "told" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "told" / name).write_text(text)
    arguments = ("--source", f"{URL}={desk.checkout}", "--folder", str(desk.store))
    done = run("import", "--from-argocd", str(tmp_path / "told"), *arguments)
    assert done.code == 0, done.err
    assert [line.split("/")[-1] for line in done.err.splitlines() if line.startswith("not read")] == [
        f"{name} is no document" for name in ("half.json", "list.json", "scenes.yaml")
    ]
    single = run("import", "--from-argocd", str(tmp_path / "told/list.json"), *arguments)
    assert (single.code, "[not-an-object]" in single.err + single.out) == (1, True)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--from-argocd", "a", "--from-flux", "b", "-o", "x"], "give one of"),
        (["deployments", "--from-argocd", "a", "-o", "x"], "KIND is of live objects"),
        (["--from-argocd", "a"], "Missing option '--folder'"),
        (["--from-argocd", "a", "-o", "x", "--cluster", "m1"], "see --cluster-name"),
        (["--from-flux", "a", "-o", "x"], "--from-flux NAME=PATH"),
        (["--from-argocd", "absent.yaml", "-o", "x"], "absent.yaml"),
        (["--from-argocd", "a", "-o", "x", "--source", "nothing"], "an equals sign"),
        ([], "Missing argument 'KIND[,KIND…]'"),
        (["cm"], "Missing option '--cluster'"),
    ],
)
def test_options_that_do_not_fit_are_told(args: list[str], why: str, tmp_path: Path) -> None:
    done = run("import", *args)
    assert done.code in (1, 2)
    assert why in " ".join(done.err.split())


def test_charts_of_kustomizations_that_others_serve_are_to_be_brought(desk: Desk) -> None:
    charts = [{"name": name, "releaseName": name, "repo": "https://x", "version": "1"} for name in ("b", "a")]
    (desk.checkout / "k").mkdir()
    (desk.checkout / "k/kustomization.yaml").write_text(yaml.safe_dump({"helmCharts": charts}))
    done = desk.types(
        told=SECRET + APPLICATION.replace('path: charts/web, helm: {values: "password: canary-1"}', "path: k")
    )
    assert done.code == 0, done.err
    assert f"next 1: 'reconciler hydrate --update {desk.store}' brings charts of kustomizations" in done.err
    assert "serve: a, b" in done.err


def test_files_that_sourceignore_leaves_out_are_no_part_of_what_flux_makes_of_a_folder(
    desk: Desk, tmp_path: Path
) -> None:
    documents = [
        {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "p"},
         "spec": {"url": URL}},
        {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "all"},
         "spec": {"path": "deploy", "sourceRef": {"kind": "GitRepository", "name": "p"}}},
    ]  # fmt: skip
    (tmp_path / "eu.yaml").write_text(yaml.safe_dump_all(documents))
    names = ("a.yaml", "tests/b.yaml", "web/tests/c.yaml", "web/d.yaml", "web/e.yaml", "old/f.yaml")
    for name in names:
        path = desk.checkout / "deploy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {path.stem}}}\n")
    (desk.checkout / ".sourceignore").write_text("# all but deploy\n/*\n!/deploy\ntests/\n")
    (desk.checkout / "deploy/.sourceignore").write_text("/old\n")
    (desk.checkout / "deploy/web/.sourceignore").write_text("*.yaml\n!d.yaml\n")
    arguments = (
        "--from-flux",
        f"eu={tmp_path}/eu.yaml",
        "--source",
        f"{URL}={desk.checkout}",
        "--folder",
        str(desk.store),
    )
    done = run("import", *arguments)
    assert done.code == 0, done.err
    made = load_yaml((desk.store / "apps/all/kustomization.yaml").read_text())
    assert made["resources"] == ["manifests/deploy/a.yaml", "manifests/deploy/web/d.yaml"]
    (desk.checkout / ".sourceignore").write_text("!\n")
    done = run("import", *arguments)
    assert ".sourceignore:1: not in gitignore syntax" in done.err
    assert done.code == 1


def test_the_same_release_of_flux_in_two_clusters_is_one_render_with_variants(desk: Desk, tmp_path: Path) -> None:
    for cluster, size in (("eu", 1), ("us", 2)):
        documents = [
            {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
             "metadata": {"name": "p", "namespace": "demo"}, "spec": {"url": URL}},
            {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
             "metadata": {"name": "web", "namespace": "demo"},
             "spec": {"values": {"size": size}, "chart": {"spec": {
                 "chart": "charts/web", "sourceRef": {"kind": "GitRepository", "name": "p"}}}}},
        ]  # fmt: skip
        (tmp_path / f"{cluster}.yaml").write_text(yaml.safe_dump_all(documents))
    inputs = [option for name in ("eu", "us") for option in ("--from-flux", f"{name}={tmp_path / name}.yaml")]
    done = run("import", *inputs, "--source", f"{URL}={desk.checkout}", "--folder", str(desk.store))
    assert done.code == 0, done.err
    render = load_yaml((desk.store / "renders/web.yaml").read_text())["spec"]
    assert render["placement"]["clusters"] == {"clusterNames": ["eu", "us"]}
    assert [(one["name"], one["values"]) for one in render["variants"]] == [
        ("eu", ["values/web/eu.yaml"]), ("us", ["values/web/us.yaml"]),
    ]  # fmt: skip
    assert load_yaml((desk.store / "values/web/us.yaml").read_text()) == {"size": 2}
