"""The mistakes that newcomers make: the exit code of each, and word for word what is said."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command_line import Ran, run, write_store
from tests.yaml_text import load_yaml

FOLDER = Path(__file__).parent
CASES: list[dict[str, Any]] = load_yaml((FOLDER / "mistakes.yaml").read_text())
SLIPS: list[dict[str, Any]] = load_yaml((FOLDER / "slips.yaml").read_text())


def typed(case: Mapping[str, Any], folder: Path) -> Path:
    store = folder / "store"
    store.mkdir()
    write_store(store)
    for name, text in case.get("files", {}).items():
        path = store / name
        if text is None:
            path.unlink()
            continue
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    wanted = case.get("git")
    if wanted is None:
        return store
    git(store, "init", "--quiet", "-b", "main")
    if wanted.get("commit", True):
        git(store, "add", ".")
        git(store, "commit", "--quiet", "-m", "Begin")
    if wanted.get("detach"):
        git(store, "checkout", "--quiet", "--detach")
    if "depth" in wanted:
        git(store, "commit", "--quiet", "--allow-empty", "-m", "Go on")
        git(folder, "clone", "--quiet", "--depth", str(wanted["depth"]), store.as_uri(), "clone")
        return folder / "clone"
    return store


def git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


def run_in(store: Path, line: str, home: Path, monkeypatch: pytest.MonkeyPatch, **more: str) -> Ran:
    """The command as a person with this home folder types it in a store."""
    monkeypatch.chdir(store)
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    return run(*shlex.split(line), HOME=str(home), XDG_STATE_HOME="", XDG_CACHE_HOME="", KUBECONFIG="", **more)


@pytest.mark.parametrize("case", SLIPS, ids=lambda case: case["run"])
def test_a_slip_is_told_with_where_and_what_next(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_in(typed(case, tmp_path), case["run"], tmp_path, monkeypatch, **case.get("environment", {}))
    said = f"{done.out}{done.err}"
    assert [words for words in case["says"] if words not in said] == [], said
    assert done.code == case["code"], said
    assert "a fault of the program" not in said


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_mistake_is_told_with_what_where_and_what_to_do(
    case: dict[str, Any], tmp_path: Path, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_in(typed(case, tmp_path), case["run"], tmp_path, monkeypatch)
    said = f"$ reconciler {case['run']}\n{done.out}{done.err}".replace(str(tmp_path), "~")
    said = re.sub(r"dir:[0-9a-f]{12,}", "dir:…", said)
    golden(f"mistakes/{case['name']}.txt", f"{said.rstrip()}\n[exit code {done.code}]\n")
    assert done.code == case["code"]


def test_every_golden_file_is_of_a_mistake() -> None:
    found = {path.stem for path in (FOLDER / "mistakes").glob("*.txt")}
    assert found == {case["name"] for case in CASES}


def test_what_a_check_must_stop_at_does_not_end_well() -> None:
    """Only what is legal, and surely not meant, is told and passes; `--strict` stops at it."""
    passing = {case["name"] for case in CASES if case["code"] == 0}
    assert all(case["run"].split()[0] == "validate" for case in CASES if case["name"] in passing)
