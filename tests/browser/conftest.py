"""One browser for each file of tests, and a page that tells whatever is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browsing import LACK, browsing, chromium
from tests.fakes import views
from tests.fakes.page_server import PageServer

expect.set_options(timeout=60_000)  # it only guards against hanging


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Without a browser a test skips; in CI it fails."""
    path = chromium()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(f"{LACK}; CI runs every test", pytrace=False)
        pytest.skip(LACK)
    with browsing(path) as found:
        yield found


@pytest.fixture
def server() -> Iterator[PageServer]:
    """Three clusters with some troubles, on a port of its own."""
    made = PageServer(views.three_clusters())
    yield made
    made.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Cookies, cache and settings of its own."""
    made = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    made.set_default_timeout(60_000)
    yield made
    made.close()


@pytest.fixture
def faults() -> list[str]:
    """Return the faults that a page reports: errors, refusals by its policy, requests to other hosts."""
    return []


@pytest.fixture
def page(context: BrowserContext, server: PageServer, faults: list[str]) -> Iterator[Page]:
    """An empty page. At the end nothing may have been wrong with it but what the test took off the list."""
    made = context.new_page()
    made.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on(
        "request", lambda request: None if urlsplit(request.url).port == server.port else faults.append(request.url)
    )
    made.add_init_script(
        "addEventListener('securitypolicyviolation', (e) => console.error('refused: ' + e.violatedDirective))"
    )
    yield made
    made.close()
    assert not faults
