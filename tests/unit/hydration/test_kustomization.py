"""A forbidden part of a kustomization is refused before kustomize sees it."""

from __future__ import annotations

import pytest

from reconciler.hydration import StorePathKind, read_kustomization, round_trip

STORE = {
    "apps/base": StorePathKind.FOLDER,
    "apps/web/deploy.yaml": StorePathKind.FILE,
    "apps/web": StorePathKind.FOLDER,
}
PLUGINS = {
    "apps/web/prefix.yaml": b"apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: x-\n",
    "apps/web/exec.yaml": b"apiVersion: someteam/v1\nkind: Exec\nmetadata: {name: p}\n",
    "apps/web/function.yaml": b"""apiVersion: builtin
kind: PrefixTransformer
metadata: {name: p, annotations: {config.kubernetes.io/function: 'exec: {path: ./run.sh}'}}
""",
    "apps/web/chart.yaml": b"apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: p}\n",
}


def read(text: str, name: str = "kustomization.yaml") -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    found = read_kustomization(
        f"apps/web/{name}", text.encode(), lambda path: STORE.get(path, StorePathKind.NOTHING), PLUGINS.get
    )
    return found.folders, [(problem.code, problem.path) for problem in found.problems]


def test_folders_are_followed_and_files_taken() -> None:
    text = """resources: [../base, ./deploy.yaml]
components: [../base/]
patches: [{path: patch.yaml}]
configMapGenerator: [{name: c, files: [key=a.txt], envs: [b.env]}]
transformers: [prefix.yaml]
"""
    assert read(text) == (("apps/base",), [])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("resources: ['https://github.com/org/repo//base?ref=main']", "resources[0]"),
        ("resources: ['github.com/org/repo/base?ref=main']", "resources[0]"),
        ("resources: ['github.com/org/repo']", "resources[0]"),
        ("resources: ['git@github.com:org/repo.git']", "resources[0]"),
        ("resources: ['https://example.com/all.yaml']", "resources[0]"),
        ("bases: [../../../etc]", "bases[0]"),
        ("components: [/etc]", "components[0]"),
        ("resources: [~/x]", "resources[0]"),
        ("resources: [missing.yaml]", "resources[0]"),
        ("resources: [{a: b}]", "resources[0]"),
        ("generators: [exec.yaml]", "generators[0]"),
        ("transformers: [function.yaml]", "transformers[0]"),
        ("validators: [missing.yaml]", "validators[0]"),
        ("generators: [chart.yaml]", "generators[0]"),
        ("generators: [../base]", "generators[0]"),
        ('generators: ["apiVersion: someteam/v1\\nkind: Exec\\n"]', "generators[0]"),
        ("helmCharts: [{name: web, releaseName: web, repo: 'https://charts.example.com'}]", "helmCharts[0].version"),
        ("helmCharts: [{name: web, releaseName: --post-renderer=x}]", "helmCharts[0].releaseName"),
        ("helmCharts: [{name: ../base, releaseName: web}]", "helmCharts[0].name"),
        ("helmCharts: [{name: web, releaseName: w, valuesFile: 'https://x/v'}]", "helmCharts[0].valuesFile"),
        ("helmCharts: [{name: web, releaseName: w}]\nhelmGlobals: {chartHome: /charts}", "helmCharts[0]"),
        ("helmChartInflationGenerator: [{chartName: web}]", "helmChartInflationGenerator"),
        ("configMapGenerator: [{name: c, files: [key=../../../etc/passwd]}]", "configMapGenerator[0].files[0]"),
        ("secretGenerator: [{name: c, envs: ['https://example.com/env']}]", "secretGenerator[0].envs[0]"),
        ("configMapGenerator: [{name: c, env: /etc/environment}]", "configMapGenerator[0].env"),
        ("patches: [{path: 'https://example.com/patch.yaml'}]", "patches[0].path"),
        ("patchesStrategicMerge: [../../../x.yaml]", "patchesStrategicMerge[0]"),
        ("openapi: {path: 'https://example.com/schema.json'}", "openapi.path"),
        ("crds: [/etc/crd.json]", "crds[0]"),
    ],
)
def test_what_would_be_fetched_run_or_read_elsewhere_is_refused_by_name(text: str, path: str) -> None:
    assert read(text) == ((), [("render-refused", path)])


def test_a_generator_of_charts_is_refused_with_what_to_write() -> None:
    found = read_kustomization(
        "apps/web/kustomization.yaml", b"generators: [chart.yaml]", lambda path: StorePathKind.FILE, PLUGINS.get
    )
    assert [problem.message for problem in found.problems] == [
        "write helmCharts in place of a HelmChartInflationGenerator"
    ]


def test_a_name_that_the_store_does_not_read_is_refused() -> None:
    assert read("resources: []", "Kustomization") == ((), [("render-refused", "")])


def test_a_circle_is_found() -> None:
    assert round_trip({"a": ("b",), "b": ("c", "d"), "c": ("a",)}) == ("a", "b", "c", "a")
    assert round_trip({"a": ("b", "c"), "b": ("c",), "c": ()}) == ()
