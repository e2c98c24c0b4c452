from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hydration import folder_of_helm


@pytest.fixture(scope="session")
def path_of_tools(kubernetes_binaries: Path) -> str:
    """A PATH with helm and kubectl. Without them a test skips; in CI it fails."""
    helm = folder_of_helm()
    if helm is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("there is no helm in RENDER_TOOLS or on the PATH")
    return f"{helm}:{kubernetes_binaries}"


@pytest.fixture
def tools_on_path(path_of_tools: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """As a person's machine: the tools on the PATH, and a cache folder."""
    monkeypatch.setenv("PATH", f"{path_of_tools}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return
