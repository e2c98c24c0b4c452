"""The jobs that check a pull request, run as forges run them: their scripts, against a server that speaks the APIs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.fakes.forge import FakeForge
from tests.unit.cli.command_line import APP, write_store
from tests.yaml_text import load_yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = load_yaml((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
JOB: dict[str, Any] = load_yaml((ROOT / "ci/gitlab.yml").read_text(encoding="utf-8"))["fleet-plan"]

CODES = {"nothing": 0, "change": 2, "held": 3, "broken": 1, "incomplete": 4}
"""The kinds of pull requests, and the exit code of their comparison."""


class Pull(Struct, frozen=True, kw_only=True):
    """A clone as a runner has it: at the head of the pull request, with the target branch fetched."""

    folder: Path
    base: str
    outside: Path


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def pull(tmp_path: Path, request: pytest.FixtureRequest) -> Pull:
    """A small store with a pull request of the kind that the test asks for."""
    origin, clone, outside = (tmp_path / name for name in ("origin", "clone", "outside"))
    origin.mkdir()
    write_store(origin)
    outside.mkdir()
    git(origin, "init", "--quiet")
    if request.param == "held":
        add_many(origin)
    git(origin, "add", "--all")
    git(origin, "commit", "--quiet", "--message", "base")
    base = git(origin, "rev-parse", "HEAD")
    git(origin, "checkout", "--quiet", "-b", "topic")
    change(origin, request.param)
    git(origin, "add", "--all")
    git(origin, "commit", "--quiet", "--allow-empty", "--message", "topic")
    git(tmp_path, "clone", "--quiet", str(origin), str(clone))
    return Pull(folder=clone, base=base, outside=outside)


def add_many(origin: Path) -> None:
    names = [f"gone-{number}" for number in range(40)]
    maps = [f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: demo}}\n" for name in names]
    policy = (
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\n"
        "metadata: {name: gone, namespace: demo}\nspec:\n  preserveResourcesOnDeletion: false\n  resourceSelectors:\n"
        + "".join(f"  - {{apiVersion: v1, kind: ConfigMap, name: {name}}}\n" for name in names)
        + "  placement: {clusterAffinity: {clusterNames: [m1]}}\n"
    )
    (origin / "gone.yaml").write_text("---\n".join([*maps, policy]))


def change(origin: Path, kind: str) -> None:
    app = origin / "app.yaml"
    match kind:
        case "change":
            app.write_text(APP.replace("key: value", "key: other"))
        case "held":
            (origin / "gone.yaml").unlink()
        case "broken":
            app.write_text(f"{APP}\n  - [\n")
        case "incomplete":
            (origin / "free.yaml").write_text(BY_FREE_ROOM)


BY_FREE_ROOM = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: free, namespace: demo}
spec:
  replicas: 4
  selector: {matchLabels: {app: free}}
  template:
    metadata: {labels: {app: free}}
    spec: {containers: [{name: free, image: "free:1"}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: free, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: free}]
  placement:
    clusterAffinity: {clusterNames: [m1, m2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
"""


@pytest.fixture
def forge() -> Iterator[FakeForge]:
    with FakeForge() as made:
        yield made


def bash(script: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A script as the runners of both forges run it."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    path = f"{Path(sys.executable).parent}:{inherited['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**inherited, **environment, "PATH": path},
        check=False,
        capture_output=True,
        text=True,
    )


class Runner:
    """GitHub's runner for the steps of the action: inputs, outputs, conditions that tests decide."""

    def __init__(self, pull: Pull, forge: FakeForge) -> None:
        self.pull = pull
        event = pull.outside / "event.json"
        event.write_text(json.dumps(forge.github_event()))
        self.temp = pull.outside / "temp"
        self.temp.mkdir()
        self.environment = {
            **forge.github(str(event)),
            "GITHUB_BASE_REF": "main",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_OUTPUT": str(pull.outside / "output"),
            "GITHUB_STEP_SUMMARY": str(pull.outside / "summary"),
            "GITHUB_PATH": str(pull.outside / "path"),
        }

    def step(self, name: str, **given: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[name]
        assert given.keys() == step["env"].keys()
        return bash(step["run"], self.pull.folder, {**self.environment, **given})

    def plan(self) -> dict[str, str]:
        done = self.step("Plan", STORE=".", OBSERVATIONS="observations", MARKER="")
        assert done.returncode == 0, done.stdout + done.stderr
        self.log = done.stdout
        lines = (self.pull.outside / "output").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(("pull", "kind"), [(kind, kind) for kind in CODES], indirect=["pull"])
def test_the_action_is_green_without_changes_and_with_them_and_red_otherwise(
    pull: Pull, forge: FakeForge, kind: str
) -> None:
    git(pull.folder, "update-ref", "refs/remotes/origin/main", pull.base)
    runner = Runner(pull, forge)
    outputs = runner.plan()
    assert outputs == {"code": str(CODES[kind]), "written": "true"}
    commented = runner.step("Comment", CODE=outputs["code"], RECONCILER_FORGE_TOKEN=forge.token)
    assert commented.returncode == 0, commented.stderr
    assert [one.body.startswith("<!-- fleet-plan -->\n### ") for one in forge.comments] == [True] * (kind != "nothing")
    verdict = runner.step("Verdict", CODE=outputs["code"])
    assert verdict.returncode == (0 if kind in ("nothing", "change") else CODES[kind])
    assert ("::error" in verdict.stdout) is (kind not in ("nothing", "change"))
    files = {path.name for path in (runner.temp / "fleet-plan").iterdir()}
    assert files == {"plan.md", "plan.html", "plan.xml", "annotations.txt"}
    assert (pull.outside / "summary").read_text() == (runner.temp / "fleet-plan/plan.md").read_text()
    first = runner.log.splitlines()[0]
    assert re.match("::(error|warning|notice) title=Fleet plan::", first), "the sum is the first of ten annotations"
    assert len(set(runner.log.splitlines())) == len(runner.log.splitlines())


@pytest.mark.parametrize("pull", ["change"], indirect=True)
def test_the_action_edits_its_comment_when_nothing_is_left_to_change(pull: Pull, forge: FakeForge) -> None:
    git(pull.folder, "update-ref", "refs/remotes/origin/main", pull.base)
    runner = Runner(pull, forge)
    code = runner.plan()["code"]
    runner.step("Comment", CODE=code, RECONCILER_FORGE_TOKEN=forge.token)
    assert "### `ConfigMap demo/app` in `m1`: key `value` → `other`\n" in forge.comments[0].body
    git(pull.folder, "revert", "--no-edit", "HEAD")
    (pull.outside / "output").unlink()
    code = runner.plan()["code"]
    runner.step("Comment", CODE=code, RECONCILER_FORGE_TOKEN=forge.token)
    assert len(forge.comments) == 1
    assert "### no changes\n" in forge.comments[0].body


@pytest.mark.parametrize("pull", ["change"], indirect=True)
def test_a_comparison_that_fails_is_red_and_leaves_no_comment(pull: Pull, forge: FakeForge) -> None:
    git(pull.folder, "update-ref", "refs/remotes/origin/main", pull.base)
    runner = Runner(pull, forge)
    done = runner.step("Plan", STORE="no/such/folder", OBSERVATIONS="", MARKER="")
    assert done.returncode == 0
    assert (pull.outside / "output").read_text() == "code=1\n"
    assert runner.step("Verdict", CODE="1").returncode == 1


@pytest.mark.parametrize(
    ("pull", "kind", "has_token"),
    [("nothing", "nothing", True), ("change", "change", True), ("held", "held", True), ("change", "change", False)],
    indirect=["pull"],
)
def test_the_job_of_gitlab_is_green_without_changes_and_with_them_and_red_otherwise(
    pull: Pull, forge: FakeForge, kind: str, has_token: bool
) -> None:
    environment = {**forge.gitlab(), **JOB["variables"], "CI_MERGE_REQUEST_DIFF_BASE_SHA": pull.base}
    if not has_token:
        del environment["RECONCILER_FORGE_TOKEN"]
    (script,) = JOB["script"]
    done = bash(script, pull.folder, environment)
    assert done.returncode == (0 if kind in ("nothing", "change") else CODES[kind]), done.stdout + done.stderr
    assert len(forge.comments) == (has_token and kind != "nothing")
    kept = [*JOB["artifacts"]["paths"], JOB["artifacts"]["reports"]["junit"]]
    assert all((pull.folder / path).stat().st_size for path in kept)


@pytest.mark.parametrize("pull", ["change"], indirect=True)
def test_a_comment_that_is_refused_is_not_passed_over(pull: Pull, forge: FakeForge) -> None:
    environment = {**forge.gitlab(), **JOB["variables"], "CI_MERGE_REQUEST_DIFF_BASE_SHA": pull.base}
    (script,) = JOB["script"]
    done = bash(script, pull.folder, {**environment, "RECONCILER_FORGE_TOKEN": "expired"})
    assert done.returncode == 1
    assert "the token is not known there, or has expired" in done.stderr


def test_both_install_what_the_lock_pins_and_nothing_else(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    python = tmp_path / "python"
    pip = f'mkdir -p "$3/bin"; printf \'#!/bin/sh\\necho "$@" >> {asked}\\n\' > "$3/bin/pip"; chmod +x "$3/bin/pip"\n'
    python.write_text(f"#!/bin/sh\n{pip}")
    python.chmod(0o755)
    program = tmp_path / ".reconciler"
    program.mkdir()
    (program / "fleet_reconciler-1.0-py3-none-any.whl").touch()
    path = tmp_path / "path"
    environment = {"PROGRAM": str(program), "PYTHON": str(python), "RUNNER_TEMP": f"{tmp_path}/t"}
    environment["GITHUB_PATH"] = str(path)
    done = bash(STEPS["Install"]["run"], tmp_path, environment)
    assert done.returncode == 0, done.stderr
    expected = [
        f"install --quiet --require-hashes -r {program}/requirements.lock",
        f"install --quiet --no-deps {program}/fleet_reconciler-1.0-py3-none-any.whl",
    ]
    assert asked.read_text().splitlines() == expected
    assert path.read_text() == f"{tmp_path}/t/fleet-program/bin\n"
    of_gitlab = [line.replace('"', "").replace("$FLEET_PROGRAM", str(program)) for line in JOB["before_script"]]
    assert [line.replace("-*.whl", "-1.0-py3-none-any.whl") for line in of_gitlab] == [
        f"pip {line}" for line in expected
    ]


def test_nothing_of_a_pull_request_becomes_a_part_of_a_script() -> None:
    for step in STEPS.values():
        assert "${{" not in step.get("run", "")
    used = [step["uses"] for step in STEPS.values() if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)


def test_every_input_and_output_is_there() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\binputs\.(\w+)", text)) == set(ACTION["inputs"])
    assert set(re.findall(r"steps\.plan\.outputs\.(\w+)", text)) == {"code", "written"}


def test_the_job_of_gitlab_is_never_orange() -> None:
    assert "allow_failure" not in JOB
