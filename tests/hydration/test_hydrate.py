"""`hydrate` with the real helm and kustomize: what it writes is what they say, and it says so again."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reconciler.cli.main import cli
from reconciler.errors import ReconcilerError
from reconciler.yaml import read_yaml
from tests.fakes.sops import Sops
from tests.hydration import copied_store, folder_of_helm, lacks
from tests.present import present
from tests.yaml_text import load_documents

pytestmark = pytest.mark.usefixtures("tools_on_path")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return copied_store(tmp_path)


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, list(map(str, arguments)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def hydrate(store: Path, *arguments: str) -> Result:
    return run("hydrate", store, *arguments)


def fault(store: Path, *arguments: str) -> str:
    """Return why the command does nothing at all."""
    error = CliRunner().invoke(cli, ["hydrate", str(store), *arguments]).exception
    assert isinstance(error, ReconcilerError), error
    return str(error)


def one_render(store: Path, name: str) -> None:
    """Leave one Render of the store, and of what the others are made of no file that would be a document."""
    if name != "shop":
        shutil.rmtree(store / "apps")
    for path in (store / "renders").iterdir():
        if path.stem != name:
            path.unlink()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def bodies(path: Path) -> dict[tuple[str, str], Any]:
    documents = read_yaml(path.name, path.read_bytes()).documents
    return {(found.body["kind"], found.body["metadata"]["name"]): found.body for found in documents}


def processes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every process that is started from now on, but for those of threads that tests before have left to end."""
    started: list[Any] = []
    original, others = subprocess.Popen.__init__, frozenset(threading.enumerate()) - {threading.current_thread()}

    def counted(self: Any, *args: Any, **kwargs: Any) -> None:
        if threading.current_thread() not in others:
            started.append(args)
        original(self, *args, **kwargs)

    monkeypatch.setattr(subprocess.Popen, "__init__", counted)
    return started


def test_what_is_written_is_fresh_and_the_same_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = hydrate(store)
    assert first.exit_code == 0, first.output
    assert first.output.count("[render-hook-dropped]") == 1, "the test of a chart; its migration is a hook of the store"
    written = contents(store / "rendered")
    migrations = [name for name, data in written.items() if b"fleet.reconciler/hook: before" in data]
    assert migrations == ["jobs/base.yaml"]
    validated = run("validate", store)
    assert validated.exit_code == 0, validated.output

    started = processes(monkeypatch)
    assert hydrate(store).output.count("fresh") == 6
    assert started == [], "what is fresh starts nothing, not even to ask a tool for its version"

    values = store / "values/operator-prod.yaml"
    values.write_text("level: 3\n")
    assert hydrate(store).exit_code == 0
    assert len(started) == 4, "of the one render that changed, the base and its variant, twice each"
    values.write_text("level: 2\n")
    assert hydrate(store).exit_code == 0
    assert contents(store / "rendered") == written

    shutil.rmtree(store / "rendered")
    assert hydrate(store).exit_code == 0
    assert contents(store / "rendered") == written


def test_a_forgotten_hydrate_is_red_with_the_command(store: Path) -> None:
    one_render(store, "web")
    assert hydrate(store).exit_code == 0
    (store / "values/web-prod.yaml").write_text("replicas: 5\n")
    result = run("validate", store)
    assert result.exit_code == 1
    assert "values/web-prod.yaml changed since rendered/web was made of it: run reconciler hydrate" in " ".join(
        result.output.split()
    )
    assert run("validate", store, "-o", "json").output.count("render-stale") == 1


def test_an_input_that_is_refused_is_named_and_not_said_to_have_changed(store: Path) -> None:
    one_render(store, "web")
    assert hydrate(store).exit_code == 0
    values = store / "values/web-prod.yaml"
    values.rename(store / "values/there.yaml")
    values.symlink_to("there.yaml")
    told = " ".join(run("validate", store).output.split())
    assert "values/web-prod.yaml is a link" in told
    assert "[render-refused]" in told
    assert "changed since" not in told


def test_a_broken_lock_is_not_said_to_be_missing(store: Path) -> None:
    one_render(store, "web")
    assert hydrate(store).exit_code == 0
    (store / "rendered/web/render.lock.json").write_text("{}")
    told = run("validate", store).output
    assert "[render-lock]" in told
    assert "never rendered" not in told


def test_an_edited_output_is_told_and_check_renders_in_truth(store: Path) -> None:
    one_render(store, "jobs")
    assert hydrate(store).exit_code == 0
    assert hydrate(store, "--check").exit_code == 0
    path, lock = store / "rendered/jobs/base.yaml", store / "rendered/jobs/render.lock.json"
    path.write_bytes(path.read_bytes().replace(b"5 4 * * *", b"6 4 * * *"))
    assert "[render-edited]" in run("validate", store).output
    # Somebody who edits the lock as well fools what looks at names alone, and not what renders.
    ids = json.loads(lock.read_text())
    (name,) = ids["outputs"]
    content = path.read_bytes()
    ids["outputs"][name] = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    lock.write_text(json.dumps(ids))
    assert "[render-edited]" not in run("validate", store).output
    checked = hydrate(store, "--check")
    assert checked.exit_code == 1
    assert "rendered/jobs/base.yaml is not what the inputs make" in checked.output
    assert path.read_bytes() == content


def test_a_file_of_somebody_else_in_the_output_is_left_and_told(store: Path) -> None:
    one_render(store, "jobs")
    assert hydrate(store).exit_code == 0
    (store / "rendered/jobs/own.yaml").write_text("{}\n")
    result = hydrate(store)
    assert result.exit_code == 1
    assert "rendered/jobs/own.yaml is not of hydrate" in result.output
    assert (store / "rendered/jobs/own.yaml").exists()


def test_an_output_that_is_not_made_any_more_goes(store: Path) -> None:
    one_render(store, "umbrella")
    assert hydrate(store).exit_code == 0
    assert (store / "rendered/umbrella/only-prod.yaml").exists()
    (store / "values/umbrella-prod.yaml").write_text("global: {region: eu}\n")
    assert hydrate(store).exit_code == 0
    assert not (store / "rendered/umbrella/only-prod.yaml").exists()


def test_inputs_are_no_documents_of_the_store(store: Path) -> None:
    """The raw files of a kustomization and the definitions of a chart go nowhere but through a render."""
    assert hydrate(store).exit_code == 0
    told = json.loads(run("validate", store, "-o", "json").output)
    assert not [found for found in told["problems"] if found["severity"] == "error"], told
    claimed = {found["message"].split("claims ")[1].split(",")[0] for found in told["problems"]
               if found["code"] == "template-unclaimed"}  # fmt: skip
    assert "Deployment shop/shop" in claimed
    assert "Deployment default/shop" not in claimed


@pytest.mark.parametrize(
    ("values", "codes", "paths"),
    [
        ("", {"render-not-deterministic"}, {"data.stamp", "data.epoch"}),
        ("stamp: fixed\n", {"render-not-deterministic"}, {"data.token"}),
    ],
)
def test_random_values_and_the_time_are_noticed(store: Path, values: str, codes: set[str], paths: set[str]) -> None:
    one_render(store, "random")
    (store / "values/random.yaml").write_text(values)
    result = hydrate(store)
    assert result.exit_code == 1
    assert all(code in result.output for code in codes)
    assert all(path in result.output for path in paths)
    assert not (store / "rendered").exists()


def test_a_secret_in_an_output_is_refused_and_not_told(store: Path) -> None:
    one_render(store, "jobs")
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: canary-4711}\n"
    (store / "charts/jobs/templates/secret.yaml").write_text(secret)
    result = hydrate(store)
    assert result.exit_code == 1
    assert "[render-secret]" in result.output
    assert "canary-4711" not in result.output
    assert not (store / "rendered").exists()


def test_secrets_are_encrypted_for_the_recipients_and_stay_while_the_inputs_do(
    store: Path, sops: Sops, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{sops.binary.parent}")
    one_render(store, "jobs")
    document = store / "renders/jobs.yaml"
    document.write_text(f"{document.read_text()}  secrets: {{age: [{sops.recipient()}]}}\n")
    chart = store / "charts/jobs/templates/secret.yaml"
    head = "---\napiVersion: v1\nkind: Secret\nmetadata:"
    secrets = "".join(f"{head} {{name: {name}}}\nstringData: {{p: canary-4711}}\n" for name in "st")
    chart.write_text(secrets)
    assert hydrate(store).exit_code == 0
    written = contents(store / "rendered")
    value = base64.b64encode(b"canary-4711")
    assert not any(text in b"".join(written.values()) for text in (b"canary-4711", value))
    assert value in sops.decrypt(written["jobs/secrets/demo/s.yaml"])
    assert hydrate(store, "--check").exit_code == 0
    assert run("validate", store).exit_code == 0
    chart.write_text(secrets.replace("4711", "4712"))
    assert hydrate(store).exit_code == 0
    assert base64.b64encode(b"canary-4712") in sops.decrypt((store / "rendered/jobs/secrets/demo/t.yaml").read_bytes())
    # Other ciphertext than the lock names is no output of these inputs.
    (store / "rendered/jobs/secrets/demo/t.yaml").write_bytes(written["jobs/secrets/demo/t.yaml"])
    assert hydrate(store, "--check").exit_code == 1


def test_secrets_and_other_objects_are_left_out_by_the_render(store: Path) -> None:
    one_render(store, "jobs")
    document = store / "renders/jobs.yaml"
    more = "  secrets: {leaveOut: an ExternalSecret}\n  leaveOut: [{kind: Job}, {kind: Gauge}]\n"
    document.write_text(f"{document.read_text()}{more}")
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: canary-4711}\n"
    (store / "charts/jobs/templates/secret.yaml").write_text(secret)
    result = hydrate(store)
    assert result.exit_code == 0, result.output
    assert "renders/jobs.yaml" in result.output and "leaves out nothing" in " ".join(result.output.split())
    assert not {"Secret", "Job"} & {kind for kind, _ in bodies(store / "rendered/jobs/base.yaml")}


def test_an_encrypted_secret_goes_through_with_its_fields_in_their_order(store: Path, sops: Sops) -> None:
    one_render(store, "jobs")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "demo"}}
    text = sops.encrypt_documents({**secret, "data": {"z": "eA==", "a": "eA=="}})
    (store / "charts/jobs/templates/secret.yaml").write_bytes(text)
    result = hydrate(store)
    assert result.exit_code == 0, result.output
    written = store / "rendered/jobs/secrets/demo/s.yaml"
    assert list(bodies(written)["Secret", "s"]["data"]) == ["z", "a"]
    assert b"z: eA==" in sops.decrypt(written.read_bytes())


def test_a_faulty_document_is_told_and_not_passed_over(store: Path) -> None:
    one_render(store, "jobs")
    document = store / "renders/jobs.yaml"
    document.write_text(document.read_text().replace("includeCRDs", "x").replace("kubeVersion", "kubeVersio"))
    result = hydrate(store)
    assert result.exit_code == 1
    assert "did you mean kubeVersion?" in " ".join(result.output.split())


def test_what_a_merge_left_in_an_output_is_written_anew(store: Path) -> None:
    one_render(store, "jobs")
    assert hydrate(store).exit_code == 0
    written = contents(store / "rendered")
    for path in (store / "rendered/jobs").iterdir():
        path.write_text(f"<<<<<<< ours\n{path.read_text()}=======\n>>>>>>> theirs\n")
    assert run("validate", store).exit_code == 1
    assert hydrate(store).exit_code == 0
    assert contents(store / "rendered") == written


def test_kustomize_patches_what_helm_makes(store: Path) -> None:
    one_render(store, "web")
    document = store / "renders/web.yaml"
    overlay = "values: [values/web-prod.yaml], overlay: after/web/prod}"
    text = document.read_text().replace("values: [values/web-prod.yaml]}", overlay)
    document.write_text(f"{text}  kustomize: {{path: after/web/base}}\n")
    for folder, resource, line in (("base", "helm.yaml", "a: base"), ("prod", "../base", "b: prod")):
        (store / "after/web" / folder).mkdir(parents=True)
        labels = f"labels: [{{pairs: {{{line}}}}}]"
        (store / f"after/web/{folder}/kustomization.yaml").write_text(f"resources: [{resource}]\n{labels}\n")
    result = hydrate(store)
    assert result.exit_code == 0, result.output
    labels_of = [body["metadata"]["labels"] for body in bodies(store / "rendered/web/base.yaml").values()]
    assert all(labels["a"] == "base" and "b" not in labels for labels in labels_of)
    overrides = (store / "rendered/web/overrides.yaml").read_text()
    assert "/metadata/labels/b" in overrides and ":2.8" in overrides
    assert hydrate(store).output == "web: fresh\n"
    said = run("validate", store)
    assert said.exit_code == 0, said.output
    after = store / "after/web/base/kustomization.yaml"
    after.write_text(after.read_text().replace("base", "other"))
    assert "after/web/base/kustomization.yaml changed" in " ".join(run("validate", store).output.split())
    after.write_text("resources: []\n")
    assert "after/web/base does not name helm.yaml" in " ".join(hydrate(store).output.split())


def test_an_api_that_a_chart_asks_for_and_the_store_defines_is_named(store: Path) -> None:
    one_render(store, "jobs")
    (store / "gauges.yaml").write_bytes((store / "charts/operator/crds/gauges.yaml").read_bytes())
    asks = '{{ if .Capabilities.APIVersions.Has "measure.example.com/v1" }}\n# a gauge\n{{ end }}\n'
    (store / "charts/jobs/templates/gauge.yaml").write_text(asks)
    assert "asks whether measure.example.com/v1 is served" in " ".join(hydrate(store).output.split())
    document = store / "renders/jobs.yaml"
    more = 'kubeVersion: "1.36", apiVersions: [measure.example.com/v1]'
    document.write_text(document.read_text().replace('kubeVersion: "1.36"', more))
    assert "render-api-not-named" not in hydrate(store).output


@pytest.mark.parametrize("is_archive", [False, True])
def test_a_schema_that_is_served_elsewhere_is_named_and_stops_nothing(store: Path, is_archive: bool) -> None:
    one_render(store, "jobs")
    chart = store / "charts/jobs"
    address = "https://charts.example.com/common/values.schema.json"
    schema = f'{{"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{{"$ref": "{address}"}}]}}'
    (chart / "values.schema.json").write_text(schema)
    if is_archive:
        with tarfile.open(store / "charts/jobs.tgz", "w:gz") as archive:
            archive.add(chart, "jobs")
        document = store / "renders/jobs.yaml"
        document.write_text(document.read_text().replace("chart: charts/jobs", "chart: charts/jobs.tgz"))
    result = hydrate(store)
    assert result.exit_code == 0, result.output
    assert f"its values at {address}" in result.output
    assert "[render-schema-remote]" in result.output


def test_what_validate_would_refuse_is_told_and_not_written(store: Path) -> None:
    one_render(store, "jobs")
    budget = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: b}\n"
    (store / "charts/jobs/templates/budget.yaml").write_text(budget)
    for arguments in ([], ["--check"]):
        result = hydrate(store, *arguments)
        assert result.exit_code == 1
        assert "rendered/jobs/base.yaml" in result.output
        assert "[api-version-unknown]" in result.output
        assert "jobs: rendered/jobs is not written" in result.output
    assert not (store / "rendered").exists()


@pytest.mark.parametrize("is_on", [False, True])
def test_a_dependency_that_is_not_to_be_had_is_needed_only_where_it_is_used(store: Path, is_on: bool) -> None:
    one_render(store, "web")
    chart = store / "charts/web/Chart.yaml"
    more = "{name: redis-ha, version: 4.x.x, repository: 'https://charts.example.com', condition: cache.enabled}"
    chart.write_text(f"{chart.read_text()}\ndependencies: [{more}]\n")
    for path, value in (("charts/web/values.yaml", "false"), ("values/web-prod.yaml", str(is_on).lower())):
        (store / path).write_text(f"{(store / path).read_text()}\ncache: {{enabled: {value}}}\n")
    result = hydrate(store)
    said = " ".join(result.output.split())
    assert result.exit_code == int(is_on), said
    assert ("uses redis-ha 4.x.x of https://charts.example.com in the variant prod" in said) == is_on
    assert ("or set cache.enabled: false" in said) == is_on


def test_a_fault_of_a_chart_is_told_in_words_of_helm(store: Path) -> None:
    one_render(store, "web")
    (store / "values/web-prod.yaml").write_text("ingress: {enabled: true}\n")
    result = hydrate(store)
    assert result.exit_code == 1
    assert "ingress.host" in result.output
    assert "[render-failed]" in result.output


def test_a_chart_may_be_an_archive(store: Path, tmp_path: Path) -> None:
    one_render(store, "web")
    assert hydrate(store).exit_code == 0
    written = bodies(store / "rendered/web/base.yaml")
    helm = present(folder_of_helm())
    subprocess.run(
        [helm / "helm", "package", store / "charts/web", "-d", store / "vendor"], check=True, capture_output=True
    )
    shutil.rmtree(store / "charts/web")
    document = store / "renders/web.yaml"
    document.write_text(document.read_text().replace("charts/web", "vendor/web-1.4.0.tgz"))
    assert "[render-stale]" in run("validate", store).output
    assert hydrate(store).exit_code == 0
    assert bodies(store / "rendered/web/base.yaml") == written


def test_a_binary_that_is_named_is_the_one_or_nothing(store: Path) -> None:
    one_render(store, "jobs")
    folder = present(folder_of_helm())
    helm = folder / "helm"
    digest = hashlib.sha256(helm.read_bytes()).hexdigest()
    assert "--helm-sha256 says which" in fault(store, "--helm", str(helm))
    assert "is not the binary" in fault(store, "--helm", str(helm), "--helm-sha256", "0" * 64)
    assert hydrate(store, "--helm", str(helm), "--helm-sha256", digest).exit_code == 0


def test_no_binary_of_the_store_is_run(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_render(store, "jobs")
    (store / "bin").mkdir()
    script = store / "bin/helm"
    script.write_text(f"#!/bin/sh\ntouch {store}/was-run\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{store}/bin")
    assert "is in the store" in fault(store)
    monkeypatch.chdir(store)
    monkeypatch.setenv("PATH", "bin:.")
    assert "is not on the PATH" in fault(store)
    assert not (store / "was-run").exists()


def test_a_chart_sees_what_the_clusters_serve_and_the_lock_says_so(store: Path, tmp_path: Path) -> None:
    """The lock records what was observed: later runs and `--check` need neither the file nor a cluster."""
    one_render(store, "web")
    (store / "charts/web/templates/monitor.yaml").write_text(
        '{{ if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}\n'
        "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\n"
        "metadata: {name: web, namespace: demo}\nspec: {endpoints: [], selector: {}}\n{{ end }}\n"
    )
    names = [
        found.body["metadata"]["name"] for found in read_yaml("c", (store / "clusters.yaml").read_bytes()).documents
    ]
    apis = ["apps/v1/Deployment", "monitoring.coreos.com/v1/ServiceMonitor", "cert-manager.io/v1/Issuer"]
    observed = tmp_path / "observed.yaml"

    def observe(lacking: str = "") -> None:
        clusters = [{"name": name, "apis": apis if name != lacking else apis[:1]} for name in names]
        observed.write_text(json.dumps({"version": 1, "clusters": clusters}))

    def kinds() -> set[str]:
        return {kind for kind, _ in bodies(store / "rendered/web/base.yaml")}

    assert hydrate(store).exit_code == 0
    assert "ServiceMonitor" not in kinds()
    observe()
    result = hydrate(store, "--observations", str(observed))
    assert result.exit_code == 0, result.output
    assert "ServiceMonitor" in kinds()
    lock = json.loads((store / "rendered/web/render.lock.json").read_bytes())
    assert lock["served"][""] == ["monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor"]
    observed.unlink()
    assert "fresh" in hydrate(store).output
    assert "as committed" in hydrate(store, "--check").output
    assert run("validate", store).exit_code == 0
    observe(lacking=names[-1])
    result = hydrate(store, "--observations", str(observed))
    assert f"monitoring.coreos.com/v1 is not served by {names[-1]}" in " ".join(result.output.split())
    assert result.exit_code == 0, result.output
    assert "ServiceMonitor" not in kinds()


def test_an_imported_kustomization_with_charts_is_what_kustomize_makes_of_it(store: Path, tmp_path: Path) -> None:
    checkout, fleet = tmp_path / "checkout", tmp_path / "fleet"
    shutil.copytree(store / "charts/web", checkout / "base/charts/web")
    shutil.copytree(store / "charts/web", checkout / "second/helm/web")
    schema = {"properties": {"replicas": {"$ref": "https://schemas.example.com/replicas.json"}}}
    (checkout / "second/helm/web/values.schema.json").write_text(json.dumps(schema))
    chart = {"name": "web", "releaseName": "shop", "namespace": "shop", "kubeVersion": "1.36", "skipHooks": True,
             "valuesFile": "values.yaml", "valuesInline": {"replicas": 3}}  # fmt: skip
    # kustomize of Argo CD takes files from outside where --load-restrictor says so.
    more = {"name": "web", "releaseName": "more", "valuesInline": {"greeting": "ho"}, "skipTests": True,
            "additionalValuesFiles": ["v.yaml"]}  # fmt: skip
    second = {"namePrefix": "x-", "helmGlobals": {"chartHome": "helm"},
              "helmCharts": [{**more, "releaseName": "third", "valuesMerge": "merge"}]}  # fmt: skip
    base = {"resources": ["../extra.yaml", "../second"], "labels": [{"pairs": {"by": "kustomize"}}],
            "helmCharts": [chart, {**more, "includeCRDs": True}]}  # fmt: skip
    patch = json.dumps([{"op": "replace", "path": "/spec/replicas", "value": 5}])
    overlay = {"resources": ["../base"], "patches": [{"target": {"kind": "Deployment"}, "patch": patch}]}
    files = {"base/kustomization.yaml": base, "eu/kustomization.yaml": {"resources": ["../base"]},
             "us/kustomization.yaml": overlay, "base/values.yaml": {"replicas": 2, "greeting": "hi"},
             "base/v.yaml": {"replicas": 4}, "second/v.yaml": {"of": None}, "second/kustomization.yaml": second,
             "extra.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}}}  # fmt: skip
    for path, body in files.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(json.dumps(body))
    url = "https://git.example.com/acme/platform"
    spec = {"source": {"repoURL": url, "path": "{{at}}"}, "destination": {"name": "{{at}}", "namespace": "shop"}}
    generators = [{"list": {"elements": [{"at": "eu"}, {"at": "us"}]}}]
    template = {"metadata": {"name": "web-{{at}}"}, "spec": spec}
    told = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "web"},
            "spec": {"generators": generators, "template": template}}  # fmt: skip
    (tmp_path / "told.json").write_text(json.dumps(told))
    imported = run("import", "--from-argocd", tmp_path / "told.json", "--source", f"{url}={checkout}",
                   "--cluster-name", "eu=eu", "--cluster-name", "us=us", "--folder", fleet)  # fmt: skip
    assert imported.exit_code == 0, imported.output
    hydrated = hydrate(fleet)
    assert hydrated.exit_code == 0, hydrated.output
    assert "https://schemas.example.com/replicas.json" in hydrated.output
    (checkout / "second/helm/web/values.schema.json").unlink()
    for cluster in ("eu", "us"):
        options = ["--enable-helm", "--load-restrictor", "LoadRestrictionsNone", "--helm-kube-version", "1.36"]
        made = subprocess.run(
            ["kubectl", "kustomize", *options, str(checkout / cluster)], capture_output=True, check=True
        )
        wanted = {(body["kind"], body["metadata"]["name"]): body for body in load_documents(made.stdout.decode())}
        (tmp_path / f"{cluster}.yaml").write_text(run("render", fleet, "--cluster", cluster).output)
        held = {key: body for key, body in bodies(tmp_path / f"{cluster}.yaml").items() if key[0] != "Namespace"}
        assert held.keys() == wanted.keys()
        for key, body in wanted.items():
            expected = {**body, "metadata": {"namespace": "shop", **body["metadata"]}}
            assert lacks(expected, held[key]) == [], f"{key} @ {cluster}"
