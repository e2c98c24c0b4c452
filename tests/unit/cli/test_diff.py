"""`diff`: exit codes, and which stream says what."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.plan import Action, Cause, Change, Plan
from reconciler.api.problem import Problem, Severity, Source
from reconciler.api.refs import GVK, Identity
from reconciler.cli.diff import exit_code, only, settings_of
from tests.fakes.holds import hold
from tests.fakes.store_trees import commit_all
from tests.unit.cli.command_line import APP, run, write_store

EXAMPLE = Path(__file__).parents[3] / "examples/fleet-repo"

CREATE = Change(
    action=Action.CREATE,
    cluster="m1",
    gvk=GVK("", "v1", "ConfigMap"),
    identity=Identity("", "ConfigMap", "demo", "app"),
    cause=Cause.DECLARED,
)


def held(why: str) -> Change:
    return Change(action=Action.DELETE, cluster="m1", gvk=CREATE.gvk, identity=CREATE.identity, cause=Cause.REMOVED,
                  hold=hold(why))  # fmt: skip


def problem(severity: Severity, cluster: str = "") -> Problem:
    return Problem(source=Source("a.yaml", 1), code="x", message="m", severity=severity, cluster=cluster)


PLANS: Mapping[str, tuple[Plan, int, int]] = {
    "nothing to do": (Plan(base="", head=""), 0, 0),
    "a change": (Plan(base="", head="", changes=(CREATE,)), 0, 2),
    "held by a guard": (Plan(base="", head="", changes=(CREATE, held("guard: too many"))), 0, 3),
    "held by a move": (Plan(base="", head="", changes=(held("waits for m2 healthy"),)), 0, 2),
    "a cluster was not read": (Plan(base="", head="", changes=(CREATE,), is_complete=False), 0, 4),
    "not read and held": (Plan(base="", head="", changes=(held("guard: "),), is_complete=False), 0, 4),
    "a warning": (Plan(base="", head="", problems=(problem(Severity.WARNING),)), 0, 0),
    "an error beats all": (Plan(base="", head="", changes=(CREATE,), problems=(problem(Severity.ERROR),)), 1, 1),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_exit_code_says_what_a_pull_request_wants_to_know(name: str) -> None:
    plan, plain, detailed = PLANS[name]
    assert (exit_code(plan, detailed=False), exit_code(plan, detailed=True)) == (plain, detailed)


def test_errors_of_a_review_count_beside_a_comparison_with_the_clusters() -> None:
    found = [
        Problem(source=Source("a.yaml", 1), code=code, message="m") for code in ("capacity-unknown", "secret-in-clear")
    ]
    kept = settings_of(Plan(base="", head="", problems=tuple(found)))
    assert ([one.code for one in kept.problems], exit_code(kept, detailed=False)) == (["secret-in-clear"], 1)


def test_a_plan_of_one_cluster_keeps_its_order() -> None:
    other = Change(action=Action.CREATE, cluster="m2", gvk=CREATE.gvk, identity=CREATE.identity, cause=Cause.DECLARED)
    plan = Plan(base="", head="", changes=(other, CREATE), waves=((0,), (1,)),
                problems=(problem(Severity.ERROR, "m2"), problem(Severity.ERROR)))  # fmt: skip
    kept = only(plan, ("m1",))
    assert (kept.changes, kept.waves) == ((CREATE,), ((0,),))
    assert [found.cluster for found in kept.problems] == [""]
    assert only(plan, ()) is plan


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A store of two commits: the second one changes the ConfigMap."""
    write_store(tmp_path)
    commit_all(tmp_path, "first", new=True)
    (tmp_path / "app.yaml").write_text(APP.replace("key: value", "key: other"))
    commit_all(tmp_path, "second")
    return tmp_path


def test_two_revisions_are_compared_without_a_cluster(repository: Path) -> None:
    done = run("diff", str(repository), "--base", "HEAD~1", "--head", "HEAD", "--detailed-exitcode", "-o", "json")
    assert (done.code, done.err) == (2, "")
    document = json.loads(done.out)
    assert [(change["action"], change["cluster"]) for change in document["changes"]] == [("update", "m1")]
    assert document["changes"][0]["fields"][0]["path"] == "data.key"


def test_equal_revisions_exit_with_0(repository: Path) -> None:
    done = run("diff", str(repository), "--base", "HEAD", "--head", "HEAD", "--detailed-exitcode")
    assert done.code == 0


def test_the_head_is_the_files_as_they_lie(repository: Path) -> None:
    (repository / "app.yaml").write_text(APP.replace("key: value", "key: edited"))
    done = run("diff", str(repository), "--base", "HEAD", "-o", "json")
    assert json.loads(done.out)["changes"][0]["fields"][0]["after"] == "edited"


def test_an_error_of_the_store_exits_with_1(repository: Path) -> None:
    (repository / "bad.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: BAD, namespace: demo}\n")
    assert run("diff", str(repository), "--base", "HEAD", "--detailed-exitcode").code == 1


def test_an_unknown_revision_is_one_line(repository: Path) -> None:
    done = run("diff", str(repository), "--base", "v9")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: there is no branch or tag v9, and it is no commit id (branches here: ")
    assert done.err.count("\n") == 1


def test_a_comparison_of_revisions_deletes_at_most_what_the_guard_lets_pass(repository: Path) -> None:
    many = "---\n".join(APP.replace("name: app", f"name: app-{index}") for index in range(6))
    many = many.replace("placement:", "preserveResourcesOnDeletion: false\n  placement:")
    (repository / "many.yaml").write_text(many)
    commit_all(repository, "many")
    (repository / "many.yaml").unlink()
    done = run("diff", str(repository), "--base", "HEAD", "--detailed-exitcode")
    assert done.code == 3
    assert "spec.guards.confirm:" in done.out


@pytest.mark.parametrize(("given", "instead"), [(("--rev", "HEAD"), "--head"), (("--server-side",), "--live")])
def test_what_a_comparison_of_revisions_does_not_use_is_refused(
    repository: Path, given: tuple[str, ...], instead: str
) -> None:
    done = run("diff", str(repository), "--base", "HEAD", *given)
    assert done.code == 1
    assert f"{given[0]} says nothing where --base compares two revisions; write {instead}" in done.err


def test_observations_do_not_pass_unused_where_the_clusters_are_asked(repository: Path, tmp_path: Path) -> None:
    observed = tmp_path / "observed.yaml"
    observed.write_text("version: 1\nclusters: []\n")
    done = run("diff", str(repository), "--observations", str(observed))
    assert done.code == 1
    assert "--base" in done.err


PAGES = {
    "dynamic-distribution": ("web-demo.yaml", "web-demo:0.5.0", "Deployment default/web-demo"),
    "elastic-priorities": ("demo.yaml", "replicas: 2", "Deployment test/qwen3"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_divides_by_free_capacity_is_never_no_changes(tmp_path: Path, page: str) -> None:
    """Source: "Dynamic distribution and descheduling", "Elastic scheduling with multi-cluster priorities"."""
    name, words, subject = PAGES[page]
    store = tmp_path / "store"
    shutil.copytree(EXAMPLE / "clusters", store / "clusters")
    shutil.copytree(EXAMPLE / "pages" / page, store / "page")
    shutil.copy(EXAMPLE / "fleet.yaml", store)
    commit_all(store, "base", new=True)
    path = store / "page" / name
    text = path.read_text()
    assert words in text

    def checked() -> tuple[int, str, Any]:
        asked = ("diff", str(store), "--base", "HEAD", "--detailed-exitcode")
        done = run(*asked)
        return done.code, done.out, json.loads(run(*asked, "-o", "json").out)

    assert (checked()[0], checked()[2]["unjudged"]) == (0, [])
    path.write_text(text.replace(words, words.replace(words[-1], "7")))
    code, said, document = checked()
    assert (code, document["complete"]) == (4, False)
    assert [found["notes"] for found in document["unjudged"]] == [["its template changes"]]
    assert subject in said
    assert "not known without observations" in said
    for left in (store / "page").iterdir():
        left.unlink()
    code, said, document = checked()
    assert code == 4
    (found,) = (found for found in document["unjudged"] if found["resource"]["kind"] == "Deployment")
    assert "in the clusters where it runs" in found["notes"][-1]
    assert subject in said
