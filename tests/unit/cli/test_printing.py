"""Output of answers: a file whole or not at all, a device as it is."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reconciler.cli import main as main_module
from reconciler.cli.printing import write_file

FULL = Path("/dev/full")


def test_a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "seen.yaml"
    path.write_text("old")
    write_file(path, "new")
    assert {found.name: found.read_text() for found in tmp_path.iterdir()} == {"seen.yaml": "new"}


def test_a_link_goes_on_leading_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "seen.yaml").write_text("old")
    (tmp_path / "link").symlink_to("seen.yaml")
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "seen.yaml").read_text() == "new"


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "new")
    reader.join(60)
    assert got == ["new"]
    assert pipe.is_fifo()


def test_the_message_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_file(tmp_path / "nowhere" / "seen.yaml", "new")
    assert caught.value.filename == str(tmp_path / "nowhere" / "seen.yaml")


@pytest.mark.skipif(not FULL.is_char_device(), reason="needs /dev/full")
@pytest.mark.parametrize("args", [["schema"], ["--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_no_room_for_the_answer_is_one_line_and_exit_code_1(args: list[str], unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "reconciler", *args]
    with FULL.open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr.strip()) == (1, "error: the output: No space left on device")


def test_a_fault_without_a_file_is_not_told_as_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(main_module.cli, "main", faulty)
    with pytest.raises(FileNotFoundError):
        main_module.main(["validate"])


def test_a_folder_that_is_gone_is_no_fault_of_the_program(tmp_path: Path) -> None:
    (gone := tmp_path / "gone").mkdir()
    command = f'cd "{gone}" && rmdir "{gone}" && exec "{sys.executable}" -m reconciler validate'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env=environment)
    expected = "error: the current folder is gone; change into one that is there"
    assert (done.returncode, done.stderr.strip()) == (1, expected)
