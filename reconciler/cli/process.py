"""The command line as a process of its own, which ends after its last output."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn

from reconciler.cli.main import main


def run_process() -> NoReturn:
    """Run the command and end at once: taking its objects apart would take longer than printing them."""
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
