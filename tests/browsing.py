"""Debian's Chromium, or another one that is installed, without what it would fetch for itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
LACK = "no Chromium is installed (apt-get install chromium)"
_QUIET = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--font-render-hinting=none",
    "--disable-lcd-text",
)


def chromium() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browsing(path: str) -> Iterator[Browser]:
    """A browser without windows, ended with the block. No event loop may run in this thread meanwhile."""
    # Its sandbox refuses to be used by root, whom containers of CI run as.
    arguments = [*_QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
