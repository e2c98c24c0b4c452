"""`reconciler demo` as a newcomer runs it: piped, kept running, interrupted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.present import present

PROMISES = """\
shop/web runs 4 : 2, as its static weights 2 : 1 say
inference/embedder fits into the data centre
test/qwen3 needs two GPUs; idc has one, so one replica overflows to beijing
everything else is ready
both replicas of test/qwen3 run
nine replicas run, 6 : 3
all of them have the new image
only beijing has the next image
nothing was written to hangzhou
both copies are still there, and not ours any more
their pods are the same as before
hangzhou has its 8 of 12 replicas, and not one more
twelve replicas run, 8 : 4
the pods that ran in beijing before run there still
"""


class Told(NamedTuple):
    """The result of a demo: its exit code, its output, its duration, and the files left."""

    code: int
    output: str
    errors: str
    took_s: float
    left: list[Path]


def environment(folder: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("RECONCILER_", "CLICOLOR"))}
    return {**own, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A running demo whose output is piped; it never outlives the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler", "demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """Its output up to the line with the text."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    assert process.stderr is not None
    pytest.fail(f"the demo ended without saying {text!r}: {''.join(lines)}{process.stderr.read()}")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """One whole demo, whose tests all run where nothing runs beside it, so that it runs once."""
    folder = tmp_path_factory.mktemp("demo")
    began_s = time.monotonic()
    with demo(folder) as process:
        output, errors = process.communicate(timeout=250)
    return Told(process.returncode, output, errors, time.monotonic() - began_s, list(folder.iterdir()))


@pytest.mark.alone
def test_keeps_every_promise_and_leaves_nothing(told: Told) -> None:
    assert told.code == 0, told.output
    assert told.errors == ""
    assert told.left == []


@pytest.mark.alone
def test_takes_less_than_a_minute(told: Told) -> None:
    assert told.took_s < 60


@pytest.mark.alone
@pytest.mark.parametrize("promise", PROMISES.splitlines())
def test_says_of_each_promise_that_it_is_kept(told: Told, promise: str) -> None:
    assert f"✓ {promise}\n" in told.output


@pytest.mark.alone
def test_says_how_long_a_hand_edit_lasted(told: Told) -> None:
    assert int(present(re.search(r"✓ the edit was undone after (\d+) ms", told.output))[1]) < 5_000


@pytest.mark.alone
def test_makes_no_promise_that_this_test_does_not_know(told: Told) -> None:
    assert told.output.count("✓ ") == len(PROMISES.splitlines()) + 1
    assert "✗" not in told.output
    assert "All 15 promises held." in told.output


@pytest.mark.alone
def test_shows_real_output_before_a_commit_lands(told: Told) -> None:
    before, _, _ = told.output.partition("git merge sell-more")
    assert "spec.replicas                                    4 → 6" in before
    assert "nginx:1.27 → nginx:1.28" in before
    before, _, _ = told.output.partition("git merge let-go")
    assert "becomes UNMANAGED" in before


@pytest.mark.alone
def test_piped_output_is_plain_lines(told: Told) -> None:
    assert "\x1b" not in told.output
    assert "\r" not in told.output


def test_an_interrupted_demo_cleans_up(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        read_until(process, "2/6")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=180)
    assert (process.returncode, errors) == (130, "stopped\n")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A demo at its end that keeps running, and its kubeconfig."""
    with demo(tmp_path_factory.mktemp("kept"), "--keep") as process:
        found = present(re.search(r"export KUBECONFIG=(\S+)", read_until(process, "status page")))
        yield process, Path(found[1])


@pytest.mark.apiserver
def test_a_kept_demo_serves_kubectl_and_heals_on(
    kubernetes_binaries: Path, kept: tuple[subprocess.Popen[str], Path]
) -> None:
    program, kubeconfig = str(kubernetes_binaries / "kubectl"), str(kept[1])
    kubectl = [program, "--kubeconfig", kubeconfig, "--context", "hangzhou", "-n", "shop"]

    def output(*arguments: str) -> str:
        return subprocess.run([*kubectl, *arguments], capture_output=True, text=True, check=True, timeout=180).stdout

    assert output("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "8"
    output("delete", "deployment", "web")
    output("wait", "deployment/web", "--for=create", "--timeout=90s")
    assert output("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "8"


def test_a_kept_demo_ends_well_when_it_is_terminated(kept: tuple[subprocess.Popen[str], Path]) -> None:
    process, kubeconfig = kept
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=180)
    assert (process.returncode, errors) == (0, f"left behind: {kubeconfig.parent}\n")
    assert kubeconfig.is_file()
