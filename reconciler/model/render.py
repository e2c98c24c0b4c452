"""What is rendered by a person's command and committed: `Render` documents and their locks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from reconciler.model.policy import ClusterAffinity
from reconciler.model.problem import NOWHERE, Source


class HelmChart(Struct, frozen=True, kw_only=True):
    """`spec.helm`. `chart`: a path in the store, or with `version` the name of a chart that others serve."""

    chart: str
    repository: str = ""
    version: str = ""
    digest: str = ""
    """`sha256:` and 64 hex digits of the archive; only of a chart that others serve."""
    release_name: str
    namespace: str
    values: tuple[str, ...] = ()
    kube_version: str
    api_versions: tuple[str, ...] = ()
    include_crds: bool = False

    @property
    def is_remote(self) -> bool:
        """Whether others serve the chart, so that `--update` brings its archive into the store."""
        return bool(self.repository) or self.chart.startswith("oci://")

    @property
    def path(self) -> str:
        """Where the chart stands in the store: an archive or a folder."""
        if not self.is_remote:
            return self.chart
        return f"vendor/{self.chart.rstrip('/').rpartition('/')[2]}-{self.version}.tgz"


class RenderVariant(Struct, frozen=True, kw_only=True):
    """One of `spec.variants`. `written` are its clusters as a policy says them."""

    name: str
    clusters: ClusterAffinity
    written: Mapping[str, Any]
    values: tuple[str, ...] = ()
    overlay: str = ""
    """Of kustomize: the folder in place of the base's."""
    source: Source = NOWHERE


class Render(Struct, frozen=True, kw_only=True):
    """A document of kind `Render`: of `helm` and `kustomize` one is given. Paths are from the root of the store."""

    name: str
    helm: HelmChart | None = None
    kustomize: str = ""
    """The folder of the base's kustomization."""
    variants: tuple[RenderVariant, ...] = ()
    output: str
    digest: str
    """Of the name and the spec: what else than files the output depends on."""
    source: Source = NOWHERE

    @property
    def tool(self) -> str:
        """What renders it: `helm` or `kustomize`."""
        return "helm" if self.helm is not None else "kustomize"

    @property
    def lock_path(self) -> str:
        """Where its lock stands."""
        return f"{self.output}/{LOCK_NAME}"


LOCK_NAME = "render.lock.json"
"""The file beside the output that says what it was made from."""


class RenderLock(Struct, frozen=True, kw_only=True):
    """What an output was made from and by. Files are named by Git blob ids, whatever holds the store."""

    path: str
    inputs: Mapping[str, str]
    tool: Mapping[str, str]
    spec: str
    outputs: Mapping[str, str]
