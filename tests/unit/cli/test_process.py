"""The end of a command's process: complete output, its exit code, and nothing taken apart."""

from __future__ import annotations

import os
import subprocess
import sys

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
