"""Golden files: what a screen looks like, word for word. `--update-golden` rewrites them, to be read in the diff."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Known when pytest is given this folder: `pytest tests/golden --update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files again")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with a file of this folder."""

    def check(name: str, text: str) -> None:
        path = FOLDER / name
        if request.config.getoption("--update-golden", default=False):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{name} is missing; run pytest tests/golden --update-golden"
        assert text == path.read_bytes().decode(), f"{name} differs; see --update-golden"

    return check
