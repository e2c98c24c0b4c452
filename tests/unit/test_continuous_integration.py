"""The checks before a commit, a push and a merge equal `make` and .ci/run, with least rights."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.present import present
from tests.real_clusters import BINARIES
from tests.yaml_text import load_yaml

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[Any, Any] = load_yaml((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
HOOKS: dict[str, Any] = load_yaml((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
TARGETS = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
STAGES = re.findall(r"(?m)^(?:stage|beside) make (\S+)$", (ROOT / ".ci/run").read_text(encoding="utf-8"))
(JOB,) = WORKFLOW["jobs"].values()
STEPS: list[dict[str, Any]] = JOB["steps"]


def test_the_workflow_runs_what_is_run_at_home() -> None:
    assert [step for step in STEPS if step.get("run") == ".ci/run"] == STEPS[-1:]
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_workflow_runs_for_pushes_and_pull_requests_without_the_rights_of_the_repository() -> None:
    events = WORKFLOW[True]  # YAML 1.1 reads the word `on` so
    assert set(events) == {"push", "pull_request"}
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in JOB
    assert "secrets." not in (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")


def test_actions_of_others_are_pinned_and_keep_no_credentials() -> None:
    used = [step for step in STEPS if "uses" in step]
    assert used
    for step in used:
        assert re.fullmatch(r"actions/checkout@[0-9a-f]{40}", step["uses"])
        assert step["with"]["persist-credentials"] is False
        assert step["with"]["fetch-depth"] == 0, "the check of the changelog passes shallow clones"


def find_binaries(assets: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "KUBEBUILDER_ASSETS": assets}
    command = ["bash", "-e", "-c", STEPS[0]["run"]]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def test_the_workflow_fails_where_no_folder_with_binaries_is_named() -> None:
    assert JOB["env"]["KUBEBUILDER_ASSETS"] == "${{ vars.KUBEBUILDER_ASSETS }}"
    done = find_binaries("")
    assert done.returncode == 1
    assert done.stdout.startswith("::error::The repository variable KUBEBUILDER_ASSETS")


@pytest.mark.parametrize("lacking", [*BINARIES, None])
def test_the_workflow_fails_where_one_of_the_binaries_is_missing(tmp_path: Path, lacking: str | None) -> None:
    for name in BINARIES:
        (tmp_path / name).touch(mode=0o755)
    if lacking is None:
        assert find_binaries(str(tmp_path)).returncode == 0
        return
    (tmp_path / lacking).unlink()
    done = find_binaries(str(tmp_path))
    assert done.returncode == 1
    assert done.stdout == f"::error::{tmp_path} has no {lacking} that can be executed\n"


def test_the_script_says_what_it_lacks_without_kubernetes_binaries(tmp_path: Path) -> None:
    script = tmp_path / "clone/.ci/run"
    script.parent.mkdir(parents=True)
    script.write_bytes((ROOT / ".ci/run").read_bytes())
    environment = {"PATH": os.environ["PATH"], "CI": "true"}
    done = subprocess.run(["bash", str(script)], env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "KUBEBUILDER_ASSETS must name a folder" in done.stderr


@pytest.mark.parametrize("lacking", ["chromium", "promtool", "sops", "helm"])
def test_the_script_says_what_to_install_where_it_may_not(tmp_path: Path, lacking: str) -> None:
    """Nothing on the path but what the script itself calls: no browser, no promtool, no apt-get."""
    (tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "id", *({"chromium", "promtool", "sops", "age-keygen", "helm"} - {lacking})):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "/bin/true")
    script = tmp_path / "clone/.ci/run"
    script.parent.mkdir(parents=True)
    script.write_bytes((ROOT / ".ci/run").read_bytes())
    environment = {"PATH": str(tmp_path / "bin"), "KUBEBUILDER_ASSETS": str(tmp_path)}
    command = [str(tmp_path / "bin/bash"), str(script)]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    told = {
        "sops": "SOPS_ASSETS must name a folder with sops and age-keygen",
        "helm": "RENDER_TOOLS must name a folder with helm 4",
    }
    assert done.stderr.startswith(told.get(lacking, f"{lacking} is missing: install it, or Debian's "))


def test_the_script_says_what_it_lacks_without_sops(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "id", "chromium-browser", "promtool"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "/bin/true")
    script = tmp_path / "clone/.ci/run"
    script.parent.mkdir(parents=True)
    script.write_bytes((ROOT / ".ci/run").read_bytes())
    environment = {"PATH": str(tmp_path / "bin"), "KUBEBUILDER_ASSETS": str(tmp_path)}
    command = [str(tmp_path / "bin/bash"), str(script)]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("SOPS_ASSETS must name a folder with sops and age-keygen")


def test_every_stage_of_the_script_is_a_target_of_make() -> None:
    assert {"lint", "changelog", "build", "alone", "together"} <= set(STAGES) <= TARGETS


@pytest.mark.parametrize("broken", [*STAGES, None])
def test_the_script_fails_of_each_stage_that_fails(tmp_path: Path, broken: str | None) -> None:
    """Lint runs beside others, and its failure is seen all the same."""
    tools = tmp_path / "tools"
    tools.mkdir()
    made = tmp_path / "made"
    for name in ("chromium-browser", "promtool", "sops", "age-keygen", "make"):
        (tools / name).write_text(f'#!/bin/sh\necho "$1" >>{made}\necho "made $1"\n[ "$1" != {broken} ]\n')
        (tools / name).chmod(0o755)
    folder = str(tools)
    done = subprocess.run(
        [ROOT / ".ci/run"], check=False, capture_output=True, text=True, timeout=180,
        env={"PATH": f"{folder}:{os.environ['PATH']}", "KUBEBUILDER_ASSETS": folder, "SOPS_ASSETS": folder,
             "RENDER_TOOLS": folder},
    )  # fmt: skip
    begun = made.read_text().split()
    assert (done.returncode == 0) is (broken is None), done.stdout + done.stderr
    assert ("together" in begun) is (broken in {"together", None})
    assert broken is not None or (sorted(begun) == sorted(STAGES) and "made lint" in done.stdout)


def test_every_hook_is_a_target_of_make_and_downloads_nothing() -> None:
    for repository in HOOKS["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            words = hook["entry"].split()
            assert words[0] == "make"
            assert set(words[1:]) <= TARGETS
            assert hook["language"] == "system"
            assert set(hook["stages"]) <= set(HOOKS["default_install_hook_types"])


def test_what_is_checked_before_a_commit_needs_no_look_at_commits() -> None:
    """A commit that lacks its line in the changelog could not be fixed otherwise."""
    hooks = [hook for repository in HOOKS["repos"] for hook in repository["hooks"]]
    before = {hook["entry"] for hook in hooks if "pre-commit" in hook["stages"]}
    assert before == {"make lint"}
    lint = present(re.search(r"(?ms)^lint:.*?\n\n", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert "changelog" not in lint[0]


def test_the_quick_tests_are_there() -> None:
    named = present(re.search(r"(?m)^QUICK := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(encoding="utf-8")))
    paths = named[1].replace("\\\n", " ").split()
    assert len(paths) > 5
    assert not [path for path in paths if not (ROOT / path).exists()]
