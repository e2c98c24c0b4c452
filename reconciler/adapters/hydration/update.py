"""Bringing charts that others serve into the store: the one step with a network, and nothing is rendered by it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconciler.adapters.hydration.contained import RenderFailed, run_once
from reconciler.adapters.hydration.files import InputRefused, RenderFiles
from reconciler.adapters.hydration.inputs import digest_of_archive, problem
from reconciler.adapters.hydration.tools import Tool
from reconciler.errors import StoreError
from reconciler.model.fleet import UNKNOWN_DIGEST, HelmChart, Render
from reconciler.model.problem import Problem

_PASSED_ON: Final = (
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "HELM_REGISTRY_CONFIG",
)  # fmt: skip
"""Variables that the person's machine needs to reach a registry, and to sign in."""
_LOCAL: Final = ("oci://127.0.0.1", "oci://localhost", "oci://[::1]")


def is_there(chart: HelmChart, files: RenderFiles) -> bool:
    """Return whether the store has the archive that the digest names."""
    try:
        return digest_of_archive(files.read(chart.path)) == chart.digest
    except InputRefused:
        return False


def fetched(render: Render, tool: Tool, environ: Mapping[str, str]) -> tuple[bytes, tuple[Problem, ...]]:
    """The archive of a chart that others serve, when it is the one that the digest names; else why not."""
    chart = render.helm
    assert chart is not None and chart.is_remote, "a chart that others serve"
    with tempfile.TemporaryDirectory(prefix="fleet-render-") as made:
        folder = Path(made)
        into = folder / "chart"
        into.mkdir(mode=0o700)
        command = [tool.path, "pull", chart.chart, "--version", chart.version, "--destination", str(into)]
        if chart.repository:
            command += ["--repo", chart.repository]
        elif chart.chart.startswith(_LOCAL):
            command.append("--plain-http")  # As container tools do: a registry of this machine has no certificate.
        passed = {name: environ[name] for name in _PASSED_ON if name in environ}
        try:
            run_once(command, folder, environ=passed, allow_network=True)
        except RenderFailed as error:
            return b"", (problem(render, "render-failed", f"{chart.chart} {chart.version}: {error}"),)
        found = sorted(into.iterdir())
        if len(found) != 1:
            return b"", (problem(render, "render-failed", f"{chart.chart}: helm brought {len(found)} files, not one"),)
        data = found[0].read_bytes()
    if digest_of_archive(data) != chart.digest:
        message = f"{chart.chart} {chart.version} has {digest_of_archive(data)}; write it as spec.helm.digest"
        if chart.digest != UNKNOWN_DIGEST:
            message = (
                f"{chart.chart} {chart.version} has {digest_of_archive(data)}, not the digest that the document names; "
                "write it only if you know why it is another one"
            )
        return b"", (problem(render, "render-refused", message),)
    return data, ()


def write_file(root: Path, name: str, data: bytes) -> None:
    """Put a file into a store at once, so that nobody reads half of it.

    Raises:
        StoreError: a link is on the way, so that it would be written elsewhere.
    """
    path = root / name
    for folder in list(path.relative_to(root).parents)[:-1]:
        if (root / folder).is_symlink():
            raise StoreError(f"{folder} is a link, and nothing is written through one; use an ordinary folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}~")
    part.write_bytes(data)
    part.replace(path)
