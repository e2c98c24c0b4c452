"""The inputs of a render, taken out of the store: checked before any tool sees them, and written without links."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.api.content import JsonObject
from reconciler.api.fleet import HelmChart, Render
from reconciler.api.problem import Problem
from reconciler.decoding import decompressed
from reconciler.helm.files import MAX_BYTES, MAX_FILES, InputRefused, RenderFiles
from reconciler.hydration import (
    HELM_OUTPUT,
    KUSTOMIZATIONS,
    KustomizeChart,
    StorePathKind,
    inputs_named,
    kustomize_folders,
    merged_values,
    missing_dependencies,
    problem_of,
    read_kustomization,
    round_trip,
)
from reconciler.store.oci.archives import archived_files
from reconciler.yaml import read_yaml

_MAX_UNPACKED_BYTES: Final = 64 * 2**20


ASKED_APIS: Final = re.compile(rb'APIVersions\.Has\s+\(?["`]([A-Za-z0-9./-]{1,200})["`]')
SCHEMA: Final = "values.schema.json"
REMOTE_SCHEMA: Final = re.compile(rb'"\$ref"\s*:\s*"(https?://[^"\s]{1,300})"')
"""Addresses of schemas that one of a chart refers to: no tool here can fetch them."""


class ToolInputs(NamedTuple):
    """Blob ids of the files of a render, or why it is not rendered. `served`: the API versions that its chart sees.

    `helm_output`: the paths where its kustomizations take the output of helm. `charts`: those that kustomize renders.
    """

    ids: dict[str, str]
    problems: tuple[Problem, ...]
    helm_output: frozenset[str] = frozenset()
    served: Mapping[str, tuple[str, ...]] = {}
    charts: tuple[KustomizeChart, ...] = ()


def inputs_of(render: Render, files: RenderFiles) -> ToolInputs:
    """Return the files that a render reads; kustomizations are followed, and forbidden parts refused.

    Raises StoreError: the store cannot be read.
    """
    try:
        folders, problems, helm_output, charts = _folders(render, files)
        if render.helm is not None:
            folders |= inputs_named(render)
        problems = (*problems, *_missing(render, charts, files))
        return ToolInputs({} if problems else files.ids(sorted(folders)), problems, helm_output, charts=charts)
    except InputRefused as error:
        return ToolInputs({}, (problem_of(render, "render-refused", str(error)),))


def _missing(render: Render, charts: Iterable[KustomizeChart], files: RenderFiles) -> tuple[Problem, ...]:
    chart = render.helm
    served = {chart.path} if chart is not None and chart.is_remote else set()
    served |= {each.path for each in charts if each.repository}
    problems = []
    named = inputs_named(render) if chart is not None else ()
    for path in sorted({*named, *(each.path for each in charts)}):
        if files.kind_at(path) is not StorePathKind.NOTHING:
            continue
        advice = "put it there, as an ordinary file or folder"
        if path in served:
            advice = "reconciler hydrate --update brings it into the store"
        problems.append(problem_of(render, "render-refused", f"{path} is not in the store; {advice}"))
    return tuple(problems)


def _folders(
    render: Render, files: RenderFiles
) -> tuple[set[str], tuple[Problem, ...], frozenset[str], tuple[KustomizeChart, ...]]:
    """The folders that kustomizations lead to, their problems, where they take the output of helm, and their charts."""
    references: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    pending = [*kustomize_folders(render)]
    is_patched = render.helm is not None and bool(render.kustomize)
    output = f"{render.kustomize}/{HELM_OUTPUT}"
    if is_patched and files.kind_at(output) is not StorePathKind.NOTHING:
        raise InputRefused(f"{output} stands for the output of helm; give the file another name")
    outputs: set[str] = set()
    charts: set[KustomizeChart] = set()
    while pending:
        folder = pending.pop()
        if folder in references:
            continue
        references[folder] = ()
        names = [name for name in KUSTOMIZATIONS if files.kind_at(f"{folder}/{name}") is StorePathKind.FILE]
        if len(names) != 1:
            message = f"{folder} has {' and '.join(names) or 'no kustomization.yaml'}"
            problems.append(problem_of(render, "render-refused", f"{message}; keep one of them" if names else message))
            continue
        path, output = f"{folder}/{names[0]}", f"{folder}/{HELM_OUTPUT}"
        output = output if is_patched and files.kind_at(output) is StorePathKind.NOTHING else ""
        read = read_kustomization(
            path, files.read(path), functools.partial(_kind_at, files, output), lambda wanted: _read(files, wanted)
        )
        problems += read.problems
        outputs |= {output} & set(read.named)
        charts |= {*read.charts}
        references[folder] = read.folders
        pending += read.folders
    if is_patched and not outputs:
        message = (
            f"{render.kustomize} does not name {HELM_OUTPUT} among its resources: write it there for what helm makes"
        )
        problems.append(problem_of(render, "render-refused", message))
    circle = round_trip(references)
    if circle:
        problems.append(problem_of(render, "render-refused", f"{' → '.join(circle)} lead round in a circle"))
    return set(references), tuple(sorted(set(problems))), frozenset(outputs), tuple(sorted(charts))


def _kind_at(files: RenderFiles, output: str, path: str) -> StorePathKind:
    return StorePathKind.FILE if path == output else files.kind_at(path)


def _read(files: RenderFiles, path: str) -> bytes | None:
    try:
        return files.read(path)
    except InputRefused:
        return None


def export(render: Render, inputs: ToolInputs, files: RenderFiles, folder: Path) -> None:
    """Write the files of a render into an empty folder of our own, without links and executables.

    A schema that refers to an address is left out of the charts of kustomize, which checks values by no other option.
    Raises InputRefused: they are too large, or the archive of the chart is not what it should be.
    """
    total, ids = 0, inputs.ids
    charts = tuple(f"{chart.path}/" for chart in inputs.charts)
    for path in ids:
        data = files.read(path)
        total += len(data)
        if total > MAX_BYTES:
            raise InputRefused(f"what is rendered is larger than {MAX_BYTES:,} bytes together")
        if path.startswith(charts) and path.endswith(SCHEMA) and REMOTE_SCHEMA.search(data):
            continue
        if render.helm is not None and path == render.helm.path:
            _check_archive(render.helm, data)
        target = folder / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.write_bytes(data)
    if render.helm is not None:
        _stand_in_for_missing(render, ids, files, folder)


def _stand_in_for_missing(render: Render, ids: Mapping[str, str], files: RenderFiles, folder: Path) -> None:
    """Write an empty chart for each dependency that is missing and turned off; helm asks for it all the same.

    Raises InputRefused: one is turned on.
    """
    chart = render.helm
    assert chart is not None, "of helm"
    if f"{chart.path}/Chart.yaml" not in ids:
        return
    inside = f"{chart.path}/charts/"
    held = {path.removeprefix(inside).partition("/")[0] for path in ids if path.startswith(inside)}
    missing = list(missing_dependencies(_values(files, f"{chart.path}/Chart.yaml"), held))
    own = [f"{chart.path}/values.yaml"] if f"{chart.path}/values.yaml" in ids else []
    for part in missing:
        for variant in ("", *(each.name for each in render.variants)):
            paths = (*own, *chart.values, *next((each.values for each in render.variants if each.name == variant), ()))
            if part.is_on(functools.reduce(merged_values, (_values(files, path) for path in paths), {})):
                where = f" in the variant {variant}" if variant else ""
                off = f", or set {part.conditions[0]}: false" if part.conditions else ""
                raise InputRefused(
                    f"{chart.path} uses {part}{where}, which is not in {inside}: put it there "
                    f"(helm dependency build){off}"
                )
        stand_in = folder / inside / part.name / "Chart.yaml"
        stand_in.parent.mkdir(parents=True)
        stand_in.write_text(f"{{apiVersion: v2, name: {json.dumps(part.name)}, version: 0.0.0}}\n", encoding="utf-8")


def _values(files: RenderFiles, path: str) -> JsonObject:
    """Return the tree of a YAML file; empty where helm has more to say about it."""
    documents = read_yaml("values.yaml", files.read(path)).documents
    return documents[0].body if documents else {}


def chart_texts(render: Render, ids: Mapping[str, str], files: RenderFiles) -> list[bytes]:
    """Return what helm reads of a render: the files of the chart, those of archives in it too, and of values.

    Raises InputRefused: an archive cannot be unpacked.
    """
    texts = []
    for path in ids:
        try:
            texts += _unpacked(path, files.read(path))
        except ValueError as error:
            raise InputRefused(f"{path} is no archive of a chart: {error}") from error
    return texts


def _unpacked(path: str, data: bytes) -> list[bytes]:
    if not path.endswith((".tgz", ".tar.gz")):
        return [data]
    inside = archived_files(data, bytes_max=_MAX_UNPACKED_BYTES, entries_max=MAX_FILES)
    return [text for file in inside for text in _unpacked(file.path, file.data)]


def found_in(
    pattern: re.Pattern[bytes], chart: str, ids: Mapping[str, str], files: RenderFiles, suffix: str = ""
) -> frozenset[str]:
    """Return what a pattern finds in the files of a chart, or in its whole archive. `suffix`: of the files."""
    if files.kind_at(chart) is StorePathKind.FILE:
        texts = [decompressed(files.read(chart), _MAX_UNPACKED_BYTES, is_gzip=True)]
    else:
        inside = f"{chart}/"
        texts = [files.read(path) for path in ids if path.startswith(inside) and path.endswith(suffix)]
    return frozenset(match.decode(errors="replace") for text in texts for match in pattern.findall(text))


def _check_archive(chart: HelmChart, data: bytes) -> None:
    if chart.is_remote and digest_of_archive(data) != chart.digest:
        raise InputRefused(
            f"{chart.path} is not the archive that digest names: it has {digest_of_archive(data)}; "
            "run reconciler hydrate --update, or correct the digest"
        )
    try:
        for _ in archived_files(data, bytes_max=_MAX_UNPACKED_BYTES, entries_max=MAX_FILES):
            pass
    except ValueError as error:
        raise InputRefused(f"{chart.path} is no archive of a chart: {error}") from error


def digest_of_archive(data: bytes) -> str:
    """As `spec.helm.digest` names an archive."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
