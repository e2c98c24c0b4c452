"""`completion`: scripts for three shells, and quick answers behind them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.command_line import run, write_store

HEAVY = ("kubernetes", "aiohttp", "pygit2", "yaml", "msgspec", "logging", "rich", "reconciler.api.fleet")
"""Modules that a person who waits for each key must not wait for."""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_prints_a_script(shell: str) -> None:
    done = run("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_RECONCILER_COMPLETE={shell}_complete" in done.out
    assert done.out.startswith("#")


def test_the_script_is_bash() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    done = subprocess.run(
        [bash, "-n"], input=run("completion", "bash").out, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def completed(*lines: str) -> list[list[str]]:
    """Return what the shell is told for each line, which ends where the person is typing."""
    code = (
        "import os, sys\nfrom reconciler.cli.main import main\n"
        f"for line in {lines!r}:\n"
        "    os.environ |= {'COMP_WORDS': line, 'COMP_CWORD': str(line.count(' '))}\n"
        "    try:\n        main()\n    except SystemExit:\n        pass\n"
        "    print('of', line)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    environment = {**os.environ, "_RECONCILER_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, text=True, capture_output=True, check=True)
    assert done.stderr.strip() == "[]", done.stderr
    answers: list[list[str]] = [[]]
    for told in done.stdout.splitlines():
        if told.startswith("of "):
            answers.append([])
        else:
            answers[-1].append(told.partition(",")[2])
    return answers[:-1]


def test_completes_without_a_heavy_import() -> None:
    answers = {
        "reconciler re": ["render", "resume"],
        "reconciler wh": ["why"],
        "reconciler --con": ["--config"],
        "reconciler journal ver": ["verify"],
        "reconciler status --rel": ["--released"],
        "reconciler completion ": ["bash", "fish", "zsh"],
        "reconciler render -o ": ["yaml", "json", "name", "placementdecision"],
    }
    assert dict(zip(answers, completed(*answers), strict=True)) == answers


def test_an_unknown_shell_is_a_usage_error() -> None:
    assert run("completion", "tcsh").code == 2


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a branch and a tag, and a kubeconfig."""
    write_store(tmp_path)
    (tmp_path / "web.yaml").write_text(
        "kind: Deployment\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  name: not-this\n"
    )
    for command in ("init --quiet -b main", "add .", "-c user.name=a -c user.email=a@b.c commit --quiet -m m",
                    "tag v1", "branch feature/x", "pack-refs --all", "branch later"):  # fmt: skip
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    kubeconfig = tmp_path / "kube"
    kubeconfig.write_text("contexts:\n- context: {cluster: c}\n  name: hangzhou\n- name: beijing\nusers:\n- name: no\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    return tmp_path


def test_completes_what_the_store_and_the_kubeconfig_hold(store: Path) -> None:
    answers = {
        "reconciler get dep": ["deploy", "deployment"],
        "reconciler get job,poddis": ["job,poddisruptionbudget"],
        "reconciler get pods -n ": ["demo", "shop"],
        "reconciler get pods --cluster ": ["m1", "m2"],
        "reconciler explain deploy/": ["deploy/web"],
        "reconciler history -n demo cm/": ["cm/app"],
        "reconciler suspend deployment/w": ["deployment/web"],
        "reconciler diff --base ": ["HEAD", "feature/x", "later", "main", "v1"],
        "reconciler validate --rev f": ["feature/x"],
        "reconciler init --context ": ["beijing", "hangzhou"],
    }
    assert dict(zip(answers, completed(*answers), strict=True)) == answers


def test_nothing_is_looked_through_where_nobody_keeps_a_store(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(store))
    assert "demo" not in completed("reconciler get pods -n ")[0]
