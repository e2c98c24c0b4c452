"""The command line as a process of its own, which ends after its last output."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
from typing import NoReturn

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Until the command handles it, it ends the process without a traceback: the imports take a while.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from reconciler.cli.main import main


def run_process() -> NoReturn:
    """Run the command and end at once: taking its objects apart would take longer than printing them."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        # In a locale of other letters the names of files would be others than Git's.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - ourselves
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding != "utf-8":
        sys.stdout.reconfigure(errors="backslashreplace")
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
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
