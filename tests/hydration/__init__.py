"""A store with what real charts and kustomizations use, and the tools that render it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

STORE = Path(__file__).parent / "store"


def copied_store(folder: Path) -> Path:
    return Path(shutil.copytree(STORE, folder / "store"))


def folder_of_helm() -> Path | None:
    """Return the folder of helm: in RENDER_TOOLS, or on the PATH."""
    found = shutil.which("helm", path=os.environ.get("RENDER_TOOLS") or os.environ.get("PATH"))
    return Path(found).parent if found else None


def path_with_helm(binaries: Path) -> str:
    """A PATH with helm, and with kubectl from those binaries. Without helm a test skips; in CI it fails."""
    helm = folder_of_helm()
    if helm is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("there is no helm in RENDER_TOOLS or on the PATH")
    return f"{binaries}:{helm}:{os.environ['PATH']}"
