"""The command line as a process of its own, which ends after its last output."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn

from reconciler.cli.main import main


def run_process() -> NoReturn:
    """Run the process's command, and end the process with its exit code.

    A plan of thousands of objects takes longer to be taken apart, object by object, than to be printed, and all of it
    goes with the process anyway. Files, journals and connections are closed by then: whoever opens one closes it.
    """
    try:
        main()
    except SystemExit as ended:
        if not isinstance(ended.code, int | None) or threading.active_count() > 1 or not _is_all_printed():
            raise
        os._exit(ended.code or 0)
    sys.exit(0)


def _is_all_printed() -> bool:
    """Run the exit handlers, flush the outputs, and return whether that worked."""
    atexit._run_exitfuncs()
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        # The interpreter itself reports an output that is closed.
        return False
    return True
