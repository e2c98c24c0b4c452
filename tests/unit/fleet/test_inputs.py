"""A file that a Render reads is no document; everything else is as it was."""

from __future__ import annotations

from reconciler.api.fleet import Fleet, StoreFile
from reconciler.fleet import AssemblyTables, ParsedFile, assemble, parse_file, without_secrets
from reconciler.hydration import lock_text

RENDER = "apiVersion: fleet.reconciler/v1alpha1\nkind: Render\nmetadata: {{name: {}}}\nspec: {{{}, output: {}}}\n"
CHART = "helm: {chart: charts/web, namespace: demo, kubeVersion: '1.36', values: [values/web.yaml]}"
KUSTOMIZE = "kustomize: {path: apps/prod}"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}, namespace: demo}}\n"


def parsed(path: str, text: str) -> ParsedFile:
    return parse_file(StoreFile(path=path, blob=str(hash(text)), data=text.encode()))


def fleet(files: dict[str, str], tables: AssemblyTables | None = None) -> Fleet:
    found = [parsed(path, text) for path, text in files.items()]
    return assemble("r", found, tables=tables)


def names(found: Fleet) -> list[str]:
    return [identity.name for identity in found.templates]


STORE = {
    "renders/web.yaml": RENDER.format("web", CHART, "rendered/web"),
    "renders/app.yaml": RENDER.format("app", KUSTOMIZE, "rendered/app"),
    "charts/web/crds/one.yaml": CONFIG.format("of-chart"),
    "charts/webother/one.yaml": CONFIG.format("beside"),
    "values/web.yaml": "apiVersion: v1\nreplicas: 2\n",
    "apps/prod/kustomization.yaml": "resources: [../base, more.yaml]\n",
    "apps/prod/more.yaml": CONFIG.format("of-overlay"),
    "apps/base/kustomization.yaml": "resources: [one.yaml]\n",
    "apps/base/one.yaml": "{{ no yaml",
    "apps/other/one.yaml": CONFIG.format("own"),
}


def test_inputs_of_charts_and_of_what_kustomizations_lead_to_are_left_out() -> None:
    found = fleet(STORE)
    assert names(found) == ["beside", "own"]
    assert found.is_complete
    assert [render.name for render in found.renders] == ["app", "web"]
    assert not [problem for problem in found.problems if problem.severity == "error"], found.problems


def test_a_broken_render_leaves_everything_as_it_is() -> None:
    found = fleet({**STORE, "renders/app.yaml": RENDER.format("app", "kustomise: {}", "x")})
    assert not found.is_complete
    assert any(reach.everything for reach in found.frozen)


def test_a_render_among_the_inputs_of_another_is_an_error() -> None:
    found = fleet({**STORE, "apps/base/render.yaml": RENDER.format("inner", CHART, "rendered/inner")})
    assert "render-inputs" in [problem.code for problem in found.problems]
    assert not found.is_complete


def test_two_of_a_name_and_outputs_in_one_another_are_errors() -> None:
    twins = fleet(
        {"a.yaml": RENDER.format("web", CHART, "rendered/a"), "b.yaml": RENDER.format("web", CHART, "rendered/b")}
    )
    assert [problem.code for problem in twins.problems] == ["duplicate-identity"] * 2
    assert not twins.renders
    nested = fleet({"a.yaml": RENDER.format("a", CHART, "rendered"), "b.yaml": RENDER.format("b", CHART, "rendered/b")})
    assert [problem.code for problem in nested.problems] == ["render-output"] * 2
    assert not nested.renders


def test_a_commit_after_another_says_the_same_as_from_nothing() -> None:
    tables = AssemblyTables()
    fleet(STORE, tables)
    for path, text in (
        ("charts/web/crds/two.yaml", CONFIG.format("another")),
        ("apps/base/two.yaml", CONFIG.format("another")),
        ("apps/other/two.yaml", CONFIG.format("another")),
        ("apps/prod/kustomization.yaml", "resources: [../other]\n"),
        ("renders/app.yaml", "# gone\n"),
        ("renders/app.yaml", STORE["renders/app.yaml"]),
    ):
        changed = {**STORE, path: text}
        assert fleet(changed, tables) == fleet(changed)
    without = {path: text for path, text in STORE.items() if not path.startswith("renders/")}
    only_tables = AssemblyTables()
    fleet(without, only_tables)
    assert fleet(STORE, only_tables) == fleet(STORE)


def test_what_no_render_reads_is_built_upon() -> None:
    tables = AssemblyTables()
    files = {path: parsed(path, text) for path, text in STORE.items()}
    assemble("r", files.values(), tables=tables)
    read = {**files, "apps/prod/more.yaml": parsed("apps/prod/more.yaml", CONFIG.format("renamed"))}
    assert tables.update("r", list(read.values()), ()) is None
    own = {**files, "apps/other/one.yaml": parsed("apps/other/one.yaml", CONFIG.format("renamed"))}
    built = tables.update("r", list(own.values()), ())
    assert built is not None
    assert built == assemble("r", own.values())


def test_a_broken_lock_is_told_and_freezes_nothing() -> None:
    for text in ("<<<<<<< ours\n", "{}\n", '{"inputs": {"../x": "y"}, "outputs": {}, "spec": "", "tool": {}}\n'):
        found = fleet({**STORE, "rendered/web/render.lock.json": text})
        assert found.is_complete, text
        assert [problem.source.path for problem in found.problems] == ["rendered/web/render.lock.json"]
        assert found.problems[0].severity == "error"


def test_a_lock_is_kept_whole_beside_the_journal() -> None:
    text = lock_text(fleet(STORE).renders[0], {"charts/web/templates/secret.yaml": "a" * 40}, {"helm": "4"}, {}, {})
    file = StoreFile(path="rendered/web/render.lock.json", blob="x", data=text)
    kept = without_secrets(file)
    assert parse_file(kept).locks == parse_file(file).locks
