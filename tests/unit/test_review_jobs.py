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
COMMENT: dict[str, Any] = load_yaml((ROOT / "ci/github-comment/action.yml").read_text(encoding="utf-8"))
COMMENT_STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in COMMENT["runs"]["steps"]}
GITLAB: dict[str, Any] = load_yaml((ROOT / "ci/gitlab.yml").read_text(encoding="utf-8"))
SHARED: dict[str, Any] = GITLAB[".fleet"]
JOB: dict[str, Any] = GITLAB["fleet-plan"]
COMMENTS: dict[str, Any] = GITLAB["fleet-comments"]

CODES = {"nothing": 0, "change": 2, "held": 3, "broken": 1, "incomplete": 4}
"""The kinds of pull requests, and the exit code of their comparison."""


class Pull(Struct, frozen=True, kw_only=True):
    """A clone as a runner has it: at the head of the pull request, with the target branch fetched."""

    folder: Path
    base: str
    head: str
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
    git(clone, "update-ref", "refs/remotes/origin/main", base)
    git(clone, "update-ref", "refs/fleet/target", base)
    return Pull(folder=clone, base=base, head=git(clone, "rev-parse", "HEAD"), outside=outside)


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
    path = f"{environment.get('PATH_FIRST', '')}:{Path(sys.executable).parent}:{inherited['PATH']}".lstrip(":")
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
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_OUTPUT": str(pull.outside / "output"),
            "GITHUB_STEP_SUMMARY": str(pull.outside / "summary"),
        }

    def step(self, name: str, **given: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[name]
        assert given.keys() == step["env"].keys()
        return bash(step["run"], self.pull.folder.parent, {**self.environment, **given})

    def plan_of(self, store: str, observations: str = "observations") -> subprocess.CompletedProcess[str]:
        head = git(self.pull.folder, "rev-parse", "HEAD")
        return self.step(
            "Plan", CHECKOUT=self.pull.folder.name, STORE=store, OBSERVATIONS=observations, MARKER="",
            BASE=self.pull.base, HEAD=head, EVENT="pull_request_target",
        )  # fmt: skip

    def comment(self, code: str, token: str, head: str = "") -> subprocess.CompletedProcess[str]:
        given = {"CODE": code, "RECONCILER_FORGE_TOKEN": token}
        given["HEAD"] = head or git(self.pull.folder, "rev-parse", "HEAD")
        assert given.keys() == COMMENT_STEPS["Comment"]["env"].keys()
        return bash(COMMENT_STEPS["Comment"]["run"], self.pull.outside, {**self.environment, **given})

    def plan(self) -> dict[str, str]:
        done = self.plan_of(".")
        assert done.returncode == 0, done.stdout + done.stderr
        self.log = done.stdout
        lines = (self.pull.outside / "output").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(("pull", "kind"), [(kind, kind) for kind in CODES], indirect=["pull"])
def test_the_action_is_green_without_changes_and_with_them_and_red_otherwise(
    pull: Pull, forge: FakeForge, kind: str
) -> None:
    runner = Runner(pull, forge)
    outputs = runner.plan()
    assert outputs == {"code": str(CODES[kind]), "written": "true"}
    commented = runner.comment(outputs["code"], forge.token)
    assert commented.returncode == 0, commented.stderr
    assert [one.body.startswith("<!-- fleet-plan -->\n### ") for one in forge.comments] == [True] * (kind != "nothing")
    verdict = runner.step("Verdict", CODE=outputs["code"])
    assert verdict.returncode == (0 if kind in ("nothing", "change") else CODES[kind])
    assert ("::error" in verdict.stdout) is (kind not in ("nothing", "change"))
    files = {path.name for path in (runner.temp / "fleet-plan").iterdir()}
    assert files == {"plan.md", "plan.html", "plan.xml", "annotations.txt", "revision"}
    assert (pull.outside / "summary").read_text() == (runner.temp / "fleet-plan/plan.md").read_text()
    first = runner.log.splitlines()[0]
    assert re.match("::(error|warning|notice) title=Fleet plan::", first), "the sum is the first of ten annotations"
    assert len(set(runner.log.splitlines())) == len(runner.log.splitlines())


@pytest.mark.parametrize("pull", ["change"], indirect=True)
def test_the_action_edits_its_comment_when_nothing_is_left_to_change(pull: Pull, forge: FakeForge) -> None:
    runner = Runner(pull, forge)
    code = runner.plan()["code"]
    runner.comment(code, forge.token)
    assert "### `ConfigMap demo/app` in `m1`: key `value` → `other`\n" in forge.comments[0].body
    git(pull.folder, "revert", "--no-edit", "HEAD")
    (pull.outside / "output").unlink()
    code = runner.plan()["code"]
    runner.comment(code, forge.token)
    assert len(forge.comments) == 1
    assert "### no changes\n" in forge.comments[0].body


@pytest.mark.parametrize("pull", ["change"], indirect=True)
def test_a_comparison_that_fails_is_red_and_leaves_no_comment(pull: Pull, forge: FakeForge) -> None:
    runner = Runner(pull, forge)
    done = runner.plan_of("no/such/folder", "")
    assert done.returncode == 0
    assert (pull.outside / "output").read_text() == "code=1\n"
    assert runner.step("Verdict", CODE="1").returncode == 1


@pytest.mark.parametrize("pull", ["change"], indirect=True)
def test_a_plan_of_another_head_is_not_commented(pull: Pull, forge: FakeForge) -> None:
    runner = Runner(pull, forge)
    code = runner.plan()["code"]
    done = runner.comment(code, forge.token, head=pull.base)
    assert done.returncode == 1
    assert "is no plan of" in done.stdout
    (runner.temp / "fleet-plan/plan.md").write_text("All is well.\n")
    assert runner.comment(code, forge.token).returncode == 1
    assert forge.comments == []


def gitlab(pull: Pull, forge: FakeForge) -> dict[str, str]:
    """The environment of a job that a schedule of the default branch starts."""
    origin = pull.folder.parent / "origin"
    git(origin, "update-ref", "refs/merge-requests/7/head", pull.head)
    forge.head = pull.head
    return {**forge.gitlab(), **SHARED["variables"], "CI_COMMIT_BRANCH": "main"}


@pytest.mark.parametrize(("pull", "kind"), [(kind, kind) for kind in CODES], indirect=["pull"])
def test_the_jobs_of_gitlab_are_green_without_changes_and_with_them_and_red_otherwise(
    pull: Pull, forge: FakeForge, kind: str
) -> None:
    environment = gitlab(pull, forge)
    (script,) = JOB["script"]
    done = bash(script, pull.folder, environment)
    assert done.returncode == (0 if kind in ("nothing", "change") else CODES[kind]), done.stdout + done.stderr
    assert forge.comments == []
    kept = [*JOB["artifacts"]["paths"], JOB["artifacts"]["reports"]["junit"]]
    assert all((pull.folder / path).stat().st_size for path in kept)
    (script,) = COMMENTS["script"]
    done = bash(script.replace("/tmp/", f"{pull.outside}/"), pull.folder, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(forge.comments) == (kind != "nothing")


@pytest.mark.parametrize("pull", ["change"], indirect=True)
def test_a_comment_that_is_refused_is_not_passed_over(pull: Pull, forge: FakeForge) -> None:
    (script,) = COMMENTS["script"]
    environment = {**gitlab(pull, forge), "RECONCILER_FORGE_TOKEN": "expired"}
    done = bash(script.replace("/tmp/", f"{pull.outside}/"), pull.folder, environment)
    assert done.returncode == 1


@pytest.mark.parametrize("pull", ["change"], indirect=True)
def test_a_hostile_branch_brings_no_judge_and_sees_no_token(pull: Pull, forge: FakeForge) -> None:
    """Wheel, lock, jobs and observations of the head take no part, and its plan is made without any token."""
    origin, own = pull.folder.parent / "origin", pull.outside / "own"
    program = {"requirements.lock": "of the base", "fleet_reconciler-1.0-py3-none-any.whl": "of the base"}
    hostile = {".reconciler/action.yml": "evil", ".github/workflows/fleet.yml": "evil", "observed.yaml": "evil"}
    git(origin, "checkout", "--quiet", "main")
    write(origin / ".reconciler", program)
    git(origin, "add", "--all")
    git(origin, "commit", "--quiet", "--message", "program")
    base = git(origin, "rev-parse", "HEAD")
    git(origin, "checkout", "--quiet", "-b", "evil")
    write(origin / ".reconciler", dict.fromkeys(program, "evil"))
    write(origin, hostile)
    git(origin, "add", "--all")
    git(origin, "commit", "--quiet", "--message", "evil")
    git(pull.folder, "fetch", "--quiet", "origin")
    git(pull.folder, "checkout", "--quiet", "--detach", git(origin, "rev-parse", "HEAD"))
    # Programs that say what they were given.
    own.mkdir()
    for name in ("pip", "reconciler"):
        said = pull.outside / name
        path = own / name
        lines = (
            "#!/bin/sh",
            f"exec >> {said}",
            'echo "$@"',
            "env",
            'for x; do if [ -f "$x" ]; then cat "$x"; fi; done',
        )
        path.write_text("\n".join(lines))
        path.chmod(0o755)
    runner = Runner(Pull(folder=pull.folder, base=base, head="", outside=pull.outside), forge)
    runner.environment["PATH_FIRST"] = str(own)
    assert runner.plan_of(".").returncode == 0
    environment = {**gitlab(pull, forge), "PATH_FIRST": str(own)}
    before = "\n".join(SHARED["before_script"]).replace("/tmp/", f"{pull.outside}/")
    done = bash(before + "\n" + JOB["script"][0], pull.folder, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (script,) = COMMENTS["script"]
    bash(script.replace("/tmp/", f"{pull.outside}/"), pull.folder, environment)
    judged = (pull.outside / "reconciler").read_text()
    assert "evil" not in (pull.outside / "pip").read_text()
    assert "of the base" in (pull.outside / "pip").read_text()
    assert f"--base {base}" in judged
    assert "RECONCILER_OBSERVATIONS" not in judged
    of_plans = [part for part in re.split(r"^(?=diff |validate |comment )", judged, flags=re.MULTILINE) if part]
    assert len(of_plans) >= 4
    assert not any(forge.token in part for part in of_plans if not part.startswith("comment "))


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_both_install_what_the_lock_pins_and_nothing_else(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    python = tmp_path / "python"
    pip = f'mkdir -p "$3/bin"; printf \'#!/bin/sh\\necho "$@" >> {asked}\\n\' > "$3/bin/pip"; chmod +x "$3/bin/pip"\n'
    python.write_text(f"#!/bin/sh\n{pip}")
    python.chmod(0o755)
    program = tmp_path / ".reconciler"
    program.mkdir()
    (program / "fleet_reconciler-1.0-py3-none-any.whl").touch()
    environment = {"PROGRAM": str(program), "PYTHON": str(python), "RUNNER_TEMP": f"{tmp_path}/t"}
    done = bash(STEPS["Install"]["run"], tmp_path, environment)
    assert done.returncode == 0, done.stderr
    expected = [
        f"install --quiet --require-hashes -r {program}/requirements.lock",
        f"install --quiet --no-deps {program}/fleet_reconciler-1.0-py3-none-any.whl",
    ]
    assert asked.read_text().splitlines() == expected
    assert COMMENT_STEPS["Install"]["run"] == STEPS["Install"]["run"]
    lines = [line for line in SHARED["before_script"] if line.startswith("pip ")]
    of_gitlab = [line.replace('"', "").replace("/tmp/fleet-program/$FLEET_PROGRAM", str(program)) for line in lines]
    assert [line.replace("-*.whl", "-1.0-py3-none-any.whl") for line in of_gitlab] == [
        f"pip {line}" for line in expected
    ]


def test_nothing_of_a_pull_request_becomes_a_part_of_a_script() -> None:
    steps = [*STEPS.values(), *COMMENT_STEPS.values()]
    for step in steps:
        assert "${{" not in step.get("run", "")
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)


def test_every_input_and_output_is_there() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\binputs\.(\w+)", text)) == set(ACTION["inputs"])
    assert set(re.findall(r"steps\.plan\.outputs\.(\w+)", text)) == {"code", "written"}


def test_the_job_of_gitlab_is_never_orange() -> None:
    assert "allow_failure" not in {**SHARED, **JOB, **COMMENTS}
