"""Realistic pull requests through the command `diff`, as a comment and on a terminal, word for word."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.store_trees import commit_all, write_files
from tests.golden.real_pulls import REAL_PULLS
from tests.unit.cli.command_line import run


@pytest.mark.parametrize("name", REAL_PULLS)
def test_a_realistic_pull_request(golden: Callable[[str, str], None], name: str, tmp_path: Path) -> None:
    pull, store = REAL_PULLS[name], tmp_path / "store"
    write_files(store, pull.base)
    base = commit_all(store, new=True)
    write_files(store, {path: text for path, text in pull.head.items() if text})
    for path in (path for path, text in pull.head.items() if not text):
        (store / path).unlink()
    commit_all(store)
    comment = tmp_path / "comment.md"
    ran = run("diff", str(store), "--base", base, "--head", "HEAD", "--also", f"markdown={comment}")
    for form, text in (("txt", ran.out), ("md.txt", comment.read_text())):
        golden(f"pulls_recorded/{name}.{form}", re.sub(r"\b[0-9a-f]{12}\b", "REVISION", text))
