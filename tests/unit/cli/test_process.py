"""The end of a command's process: complete output, its exit code, and nothing taken apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

HEAD = """
import atexit, sys, threading, time
from reconciler.cli import process

def ends(act):
    process.main = act
    process.run_process()
"""
LEAVES = "atexit.register(print, 'leaves')"


def ended(body: str) -> tuple[int, list[str], str]:
    """Exit code, lines of stdout, and stderr."""
    done = subprocess.run([sys.executable, "-c", f"{HEAD}\n{body}"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_all_is_said_and_the_code_is_kept_and_nothing_is_taken_apart() -> None:
    body = (
        "class Held:\n    def __del__(self): print('taken apart', flush=True)\n"
        f"held = Held()\n{LEAVES}\n"
        "def act():\n    print('x' * 300_000)\n    sys.exit(3)\nends(act)"
    )
    code, lines, errors = ended(body)
    assert (code, lines, errors) == (3, ["x" * 300_000, "leaves"], "")


def test_a_command_that_says_nothing_of_its_end_went_well() -> None:
    assert ended("ends(lambda: None)") == (0, [], "")
    assert ended("ends(sys.exit)") == (0, [], "")


def test_a_thread_is_waited_for() -> None:
    body = (
        f"{LEAVES}\n"
        "def late():\n    time.sleep(0.2)\n    print('late')\n"
        "def act():\n    threading.Thread(target=late).start()\n    sys.exit(4)\nends(act)"
    )
    assert ended(body) == (4, ["late", "leaves"], "")


def test_a_fault_of_ours_is_told_as_ever() -> None:
    code, lines, errors = ended(f"{LEAVES}\ndef act(): raise KeyError('x')\nends(act)")
    assert (code, lines) == (1, ["leaves"])
    assert errors.rstrip().endswith("KeyError: 'x'")


def test_words_as_the_end_are_told_as_ever() -> None:
    assert ended("ends(lambda: sys.exit('why'))") == (1, [], "why\n")


def test_a_reader_that_went_away_is_met_as_without_it() -> None:
    def met(*command: str) -> tuple[int, str]:
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = subprocess.run([sys.executable, *command], stdout=writing, stderr=subprocess.PIPE, check=False)
        finally:
            os.close(writing)
        return done.returncode, done.stderr.decode()

    without = met("-c", "from reconciler.cli.main import main\nmain(['--help'])")
    assert met("-m", "reconciler", "--help") == without
    assert "Traceback" not in without[1]


def test_an_interrupt_while_it_begins_ends_it_without_a_traceback() -> None:
    body = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in the background without it
class Interrupts:
    def find_spec(self, name, *more):
        if name == "reconciler.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
import reconciler.cli.process
"""
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_letters_that_an_output_does_not_have_are_written_as_escapes() -> None:
    body = f"{HEAD}\nends(lambda: print('3 \u2192 5'))"
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, check=False, env=environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"3 \\u2192 5\n", b"")


def test_names_of_files_are_utf8_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "größe.yaml").write_text("kind: [")
    environ = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "reconciler", "validate", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=False, env=environ)
    assert (done.returncode, "größe.yaml:2" in done.stdout.decode()) == (1, True), done
