"""The surroundings of a tool, and what it cannot do: scripts stand for a helm that a hostile chart has taken over."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.helm.sandbox import USUAL, NotContained, RenderFailed
from reconciler.helm.sandbox import render_twice as render_contained
from reconciler.processes import run_program as processes
from reconciler.processes.run_program import Limits
from tests.real_clusters import wait_until

SMALL = Limits(cpu_s=1, wall_s=20.0, memory_bytes=512 * 2**20, output_bytes=2**20)


def render_twice(
    commands: list[list[str]], folder: Path, *, allow_network: bool = False, limits: Limits = USUAL
) -> list[tuple[bytes, bytes]]:
    """With what the interpreter of the tests needs, and the folder of the test."""
    readable = [Path(sys.base_prefix), Path(sys.prefix), folder.parent]
    return render_contained(commands, folder, allow_network=allow_network, limits=limits, readable=readable)


def script(folder: Path, text: str) -> list[str]:
    """A program that does this, as the interpreter of the tests runs it."""
    path = folder / "tool.py"
    path.write_text(text)
    return [sys.executable, "-I", "-S", str(path)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    made.mkdir()
    return made


def said(tmp_path: Path, folder: Path, text: str) -> tuple[str, str]:
    ((one, other),) = render_twice([script(tmp_path, text)], folder)
    return one.decode(), other.decode()


def test_the_environment_is_empty_but_for_what_is_given(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "canary")
    one, _ = said(tmp_path, folder, "import os; print(sorted(os.environ)); print(os.environ['KUBECONFIG'])")
    names, kubeconfig = one.splitlines()
    assert "CANARY" not in names
    assert "PATH" not in names
    assert kubeconfig == "/dev/null"


def test_home_time_second_and_host_differ_from_run_to_run(tmp_path: Path, folder: Path) -> None:
    text = (
        "import os, time, socket; print(os.environ['HOME']); print(time.strftime('%H')); print(time.strftime('%M'));"
        "print(time.strftime('%d')); print(int(time.time())); print(socket.gethostname())"
    )
    one, other = (found.splitlines() for found in said(tmp_path, folder, text))
    assert not [mine for mine, theirs in zip(one, other, strict=True) if mine == theirs]


@pytest.fixture
def listener() -> Iterator[int]:
    """A server of this machine; it is never reached."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_there_is_no_network(tmp_path: Path, folder: Path, listener: int) -> None:
    text = f"""import socket
try:
    socket.create_connection(("127.0.0.1", {listener}), 5)
    print("reached")
except OSError as error:
    print("nobody there", socket.if_nameindex())
"""
    one, _ = said(tmp_path, folder, text)
    assert one.startswith("nobody there")
    assert "eth" not in one


def test_with_leave_there_is_one(tmp_path: Path, folder: Path, listener: int) -> None:
    text = f'import socket; socket.create_connection(("127.0.0.1", {listener}), 5); print("reached")'
    ((one, other),) = render_twice([script(tmp_path, text)], folder, allow_network=True)
    assert (one, other) == (b"reached\n", b"reached\n")


def test_where_no_namespace_is_allowed_nothing_is_run(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine whose kernel refuses namespaces to users."""
    refusing = tmp_path / "child.py"
    text = processes._HOLDER.read_text()
    assert "_LIBC.unshare(flags)" in text
    refusing.write_text(text.replace("_LIBC.unshare(flags)", "_LIBC.unshare(-1)"))
    monkeypatch.setattr(processes, "_HOLDER", refusing)
    ran = tmp_path / "ran"
    with pytest.raises(NotContained, match="give --allow-network if you trust"):
        render_twice([script(tmp_path, f"open({str(ran)!r}, 'w')")], folder)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("while True: pass", "took more than 1 s of processor time"),
        ("x = bytearray(2**30)", "MemoryError"),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", "wrote more than 1,048,576 bytes"),
        ("import sys; sys.stderr.write('the chart is bad\\n'); sys.exit(3)", "the chart is bad"),
        ("import sys; sys.exit(3)", "it ended with 3"),
    ],
    ids=["processor", "memory", "output", "fault", "silence"],
)
def test_what_goes_beyond_a_limit_is_ended_and_told(tmp_path: Path, folder: Path, text: str, words: str) -> None:
    with pytest.raises(RenderFailed) as caught:
        render_twice([script(tmp_path, text)], folder, limits=SMALL)
    assert words in str(caught.value)


def test_a_tool_that_only_waits_is_ended(tmp_path: Path, folder: Path) -> None:
    text = "import signal; signal.pause()"
    with pytest.raises(RenderFailed, match="did not end within 1 s"):
        render_twice([script(tmp_path, text)], folder, limits=SMALL._replace(wall_s=1.0))


def test_what_a_tool_leaves_running_ends_with_it(tmp_path: Path, folder: Path) -> None:
    """A process that it started holds the other end of a pipe, which closes when it is gone."""
    fifo = folder / "fifo"
    text = f"""import os, signal
told, tell = os.pipe()
if os.fork() == 0:
    held = open({str(fifo)!r}, "w")
    os.write(tell, b"x")
    signal.pause()
os.read(told, 1)
"""
    os.mkfifo(fifo)
    ended = threading.Event()

    def follow() -> None:
        for _ in range(2):
            with fifo.open("rb") as reader:
                reader.read()
        ended.set()

    threading.Thread(target=follow, daemon=True).start()
    said(tmp_path, folder, text)
    assert ended.wait(60)


_WITHOUT_PROC = """
import os, sys, time
from reconciler.processes.run_program import Command, Limits, run
script = "sleep 60 >/dev/null 2>&1 & echo $!"
ended = run(Command(argv=("/bin/sh", "-c", script), environ={}, folder="/", has_network=True), Limits(20.0, 5))
print(ended.code, int(ended.output))
"""


def test_a_program_runs_and_ends_with_its_children_where_there_is_no_proc() -> None:
    mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mounts here")
    done = subprocess.run([*mount, sys.executable, "-c", _WITHOUT_PROC], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code, child = map(int, done.stdout.split())
    assert code == 0
    stat = Path(f"/proc/{child}/stat")
    wait_until(lambda: not stat.exists() or ") Z " in stat.read_text(), "its end")
