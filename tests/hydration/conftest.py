from __future__ import annotations

from pathlib import Path

import pytest

from tests.hydration import path_with_helm


@pytest.fixture
def tools_on_path(kubernetes_binaries: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a person's machine: the tools on the PATH, and a cache folder."""
    monkeypatch.setenv("PATH", path_with_helm(kubernetes_binaries))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
