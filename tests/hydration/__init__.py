"""A store with what real charts and kustomizations use, and the tools that render it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

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


def lacks(wanted: Any, live: Any, path: str = "") -> list[str]:
    """Return where the live object differs; additions of an API server do not count."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return [fault for key, value in wanted.items() for fault in lacks(value, live.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        pairs = zip(wanted, live, strict=True)
        return [fault for index, pair in enumerate(pairs) for fault in lacks(*pair, f"{path}[{index}]")]
    is_absent = wanted in ([], {}, None) and live is None
    return [] if wanted == live or is_absent else [f"{path}: {live!r}, not {wanted!r}"]
