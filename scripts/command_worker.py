"""Run commands of the reconciler on the path: the half of scripts/compare_versions.py that belongs to one version.

A command comes as a line of JSON (its words) and runs in a child; its answer is a line: exit code, stdout, stderr.
"""

from __future__ import annotations

import json
import os
import pkgutil
import sys
import tempfile
import traceback
from importlib import import_module

UNUSED = ("reconciler.sim", "reconciler.server", "reconciler.cli.demo", "reconciler.__main__")


def main() -> None:
    """Import everything once, and run the commands that come."""
    package = import_module("reconciler")
    for found in pkgutil.walk_packages(package.__path__, "reconciler."):
        if not found.name.startswith(UNUSED):
            import_module(found.name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run_in_child(json.loads(line))) + "\n")
        sys.stdout.flush()


def run_in_child(words: list[str]) -> tuple[int, str, str]:
    """Return the exit code and both outputs of a command."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull) as nothing:  # noqa: PTH123
        child = os.fork()
        if child == 0:
            for file, descriptor in ((nothing, 0), (out, 1), (err, 2)):
                os.dup2(file.fileno(), descriptor)
            os._exit(exit_code(words))
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return os.waitstatus_to_exitcode(status), texts[0], texts[1]


def exit_code(words: list[str]) -> int:
    """Run a command in this process and return its exit code."""
    code: object = 0
    try:
        import_module("reconciler.cli.main").main(words)
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # a bug of that version is what it says
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 0 if code is None else 1


if __name__ == "__main__":
    main()
