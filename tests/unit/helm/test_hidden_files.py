"""A tool sees its inputs, its home and what it needs to run, and no other file of the machine.

Scripts stand for a tool that a hostile chart has taken over.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from reconciler.helm.sandbox import render_twice
from reconciler.processes import run_program as processes
from reconciler.processes.run_program import hides_files

NEEDED = (Path(sys.base_prefix), Path(sys.prefix), Path(sys.executable))
CANARY = "canary-of-this-person"

pytestmark = pytest.mark.skipif(not hides_files(), reason="this kernel has no Landlock")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the person, beside the folder of the run."""
    path = tmp_path / "person" / "token"
    path.parent.mkdir()
    path.write_text(CANARY)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    made.mkdir()
    (made / "store").mkdir()
    (made / "store/input.txt").write_text("input")
    return made


def said(tmp_path: Path, folder: Path, text: str, *, allow_network: bool = False) -> list[str]:
    tool = tmp_path / "tool.py"
    tool.write_text(text)
    command = [sys.executable, "-I", "-S", str(tool)]
    found = render_twice([command], folder, allow_network=allow_network, readable=[*NEEDED, tool])
    return found[0][0].decode().splitlines()


@pytest.mark.parametrize("allow_network", [False, True])
def test_a_tool_that_was_taken_over_reads_and_writes_nothing_else(
    tmp_path: Path, folder: Path, secret: Path, allow_network: bool
) -> None:
    (folder / "store/link").symlink_to(secret)
    link, home = folder / "store/link", Path.home() / ".bashrc"
    tries = [*map(str, (secret, link, home)), "/etc/passwd", "/etc/hostname", "/proc/1/environ", "/proc/self/environ"]
    text = f"""
import os
def attempt(what, path):
    try:
        what(path)
        print("DONE", path)
    except OSError as error:
        print("no", type(error).__name__)
for path in {tries!r} + ["../" * 20 + {str(secret)!r}]:
    attempt(lambda path: open(path).read(), path)
attempt(lambda path: os.listdir(path), {str(secret.parent)!r})
attempt(lambda path: os.listdir(path), "/")
attempt(lambda path: open(path, "w"), {str(secret)!r})
attempt(lambda path: os.truncate(path, 0), {str(secret)!r})
attempt(os.unlink, {str(secret)!r})
attempt(lambda path: os.link(path, "here"), {str(secret)!r})
attempt(lambda path: open(path, "w"), {str(tmp_path / "new")!r})
attempt(lambda path: os.kill({os.getpid()}, 0), "signal")
print(open({str(folder / "store/input.txt")!r}).read())
print(open("mine", "w").write("x"), open("/dev/null").read())
"""
    lines = said(tmp_path, folder, text, allow_network=allow_network)
    assert lines[-2:] == ["input", "1 "]
    assert [line for line in lines if line.startswith("DONE")] == []
    assert secret.read_text() == CANARY


def test_where_the_kernel_hides_nothing_the_run_goes_on(
    tmp_path: Path, folder: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As before Linux 5.13, or where it was left out."""
    without = tmp_path / "child.py"
    text = processes._HOLDER.read_text()
    assert "_CREATE_RULESET = 444" in text
    without.write_text(text.replace("_CREATE_RULESET = 444", "_CREATE_RULESET = 4444"))
    monkeypatch.setattr(processes, "_HOLDER", without)
    assert said(tmp_path, folder, f"print(open({str(secret)!r}).read())") == [CANARY]
