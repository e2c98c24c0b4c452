"""`reconciler ARGUMENT…` in a process of its own, without the half a second of processor time that its imports take.

A server that has imported the program forks for each process; a worker of tests has one server. What is checked of
the start of the interpreter itself starts `python -m reconciler`.
"""

from __future__ import annotations

import atexit
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["__main__", "tests.preloaded"])
NOWHERE = Path(os.devnull)

Command = Callable[[list[str]], None]


class Program:
    """A process. The environment is all that it sees of ours; its outputs are added to files, which may be one."""

    def __init__(
        self,
        arguments: Sequence[str | Path],
        environment: Mapping[str, str],
        *,
        out: Path,
        err: Path,
        stdin: Path = NOWHERE,
        folder: Path | None = None,
        command: Command | None = None,
    ) -> None:
        """Start it. `command`: what runs in it, a function of a module; None: the command line."""
        words, streams = [str(word) for word in arguments], (str(stdin), str(out), str(err))
        given = (words, dict(environment), streams, str(folder or Path.cwd()), command)
        self._process = FORKS.Process(target=_become, args=given, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, negative: the signal; None: it runs."""
        return self._process.exitcode

    def wait(self, timeout_s: float = 180) -> int:
        """The exit code once it has ended."""
        self._process.join(timeout_s)
        assert self.code is not None, f"process {self.pid} runs for more than {timeout_s:g} s"
        return self.code

    def send(self, number: int) -> None:
        if self.code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it without a word."""
        self.send(signal.SIGKILL)
        self.wait()


def run(
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    text: str = "",
    command: Command | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """The ended process, with what it printed. `text`: its standard input."""
    with tempfile.TemporaryDirectory() as kept:
        stdin, out, err = (Path(kept, name) for name in ("in", "out", "err"))
        stdin.write_text(text)
        program = Program(arguments, os.environ if environment is None else environment,
                          out=out, err=err, stdin=stdin, folder=folder, command=command)  # fmt: skip
        code = program.wait()
        return subprocess.CompletedProcess(
            ["reconciler", *map(str, arguments)], code, out.read_bytes(), err.read_bytes()
        )


def run_text(
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    code: int | None = 0,
) -> subprocess.CompletedProcess[str]:
    """As `run`, with texts. It has to end with this code; None: with any."""
    ran = run(*arguments, environment=environment, folder=folder)
    texts = subprocess.CompletedProcess(ran.args, ran.returncode, ran.stdout.decode(), ran.stderr.decode())
    assert code in (None, texts.returncode), texts.stdout + texts.stderr
    return texts


def _become(
    arguments: list[str], environment: dict[str, str], streams: tuple[str, ...], folder: str, command: Command | None
) -> None:
    """Be a process that was just started, and run the command."""
    from reconciler import fail_points  # noqa: PLC0415 - the server has imported it, tests need not

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    time.tzset()
    importlib.reload(fail_points)
    for number, (name, flags) in enumerate(zip(streams, (os.O_RDONLY, _APPEND, _APPEND), strict=True)):
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, encoding="utf-8")  # that of the server is closed
    sys.argv = ["reconciler", *arguments]
    try:
        (command or _command_line)(arguments)
    except SystemExit:
        raise
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)
    finally:
        atexit._run_exitfuncs()


_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def _command_line(arguments: list[str]) -> None:
    from reconciler.cli.process import run_process  # noqa: PLC0415 - see above

    run_process()
