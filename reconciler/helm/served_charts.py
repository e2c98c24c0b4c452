"""Charts that others serve, brought into the store: the one step with a network, and nothing is rendered by it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.fleet import UNKNOWN_DIGEST, HelmChart, Render
from reconciler.api.problem import Problem, Severity
from reconciler.helm.files import MAX_BYTES, MAX_FILES, InputRefused, RenderFiles
from reconciler.helm.inputs import digest_of_archive, problem
from reconciler.helm.sandbox import RenderFailed, run_once
from reconciler.helm.tools import Tool
from reconciler.hydration import KustomizeChart, is_below
from reconciler.store.oci.archives import archived_files

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


def fetched(render: Render, tool: Tool, environ: Mapping[str, str]) -> tuple[dict[str, bytes], tuple[Problem, ...]]:
    """The archive of a chart that others serve by its path, when it is the one that the digest names; else why not."""
    chart = render.helm
    assert chart is not None and chart.is_remote, "a chart that others serve"
    try:
        _, data = _pulled(chart.chart, chart.repository, chart.version, tool, environ)
    except RenderFailed as error:
        return {}, (problem(render, "render-failed", f"{chart.chart} {chart.version}: {error}"),)
    if digest_of_archive(data) != chart.digest:
        message = f"{chart.chart} {chart.version} has {digest_of_archive(data)}; write it as spec.helm.digest"
        if chart.digest != UNKNOWN_DIGEST:
            message = (
                f"{chart.chart} {chart.version} has {digest_of_archive(data)}, not the digest that the document names; "
                "write it only if you know why it is another one"
            )
        return {}, (problem(render, "render-refused", message),)
    return {chart.path: data}, ()


class Newest(NamedTuple):
    """The newest version of a chart in the range of its Render, and its digest; or why it is not known."""

    version: str
    digest: str
    problems: tuple[Problem, ...] = ()


def newest(render: Render, tool: Tool, environ: Mapping[str, str]) -> Newest:
    """Return the newest version that is served in the range of `spec.helm.update`."""
    chart = render.helm
    assert chart is not None and chart.update, "a chart with a range"
    try:
        name, data = _pulled(chart.chart, chart.repository, chart.update, tool, environ)
    except RenderFailed as error:
        told = problem(render, "render-failed", f"{chart.chart} {chart.update}: {error}")
        return Newest("", "", (replace(told, severity=Severity.WARNING),))
    prefix = f"{chart.chart.rstrip('/').rpartition('/')[2]}-"
    return Newest(name.removeprefix(prefix).removesuffix(".tgz"), digest_of_archive(data))


def fetched_for_kustomize(
    render: Render, chart: KustomizeChart, tool: Tool, environ: Mapping[str, str]
) -> tuple[dict[str, bytes], tuple[Problem, ...]]:
    """The files of a chart that others serve, where kustomize looks for them in the store; else why not."""
    is_oci = chart.repository.startswith("oci://")
    name = f"{chart.repository.rstrip('/')}/{chart.name}" if is_oci else chart.name
    try:
        _, data = _pulled(name, "" if is_oci else chart.repository, chart.version, tool, environ)
        inside = archived_files(data, bytes_max=MAX_BYTES, entries_max=MAX_FILES)
        above = chart.path.rpartition("/")[0]
        return {f"{above}/{file.path}": file.data for file in inside if is_below(file.path, chart.name)}, ()
    except (RenderFailed, ValueError) as error:
        return {}, (problem(render, "render-failed", f"{name} {chart.version}: {error}"),)


def _pulled(chart: str, repository: str, version: str, tool: Tool, environ: Mapping[str, str]) -> tuple[str, bytes]:
    """The name of an archive and its content. `chart`: as helm names it; `version`: one, or a range.

    Raises:
        RenderFailed: it is not served.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-render-") as made:
        folder = Path(made)
        into = folder / "chart"
        into.mkdir(mode=0o700)
        command = [tool.path, "pull", chart, "--version", version, "--destination", str(into)]
        if repository:
            command += ["--repo", repository]
        elif chart.startswith(_LOCAL):
            command.append("--plain-http")  # As container tools do: a registry of this machine has no certificate.
        passed = {name: environ[name] for name in _PASSED_ON if name in environ}
        run_once(command, folder, environ=passed, allow_network=True)
        found = sorted(into.iterdir())
        if len(found) != 1:
            raise RenderFailed(f"helm brought {len(found)} files, not one")
        return found[0].name, found[0].read_bytes()
