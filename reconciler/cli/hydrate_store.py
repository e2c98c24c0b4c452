"""Render the charts and kustomizations of a store into its files, and newer charts and images before (`--update`)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from reconciler.api.clusters import ClusterObservation
from reconciler.api.content import JsonObject
from reconciler.api.fleet import Fleet, Render, Snapshot
from reconciler.api.problem import Problem, Severity
from reconciler.cli.printing import answer_commit, has_errors, prose, remark, run, show_problems
from reconciler.cli.store_reading import problems_of, read_fleet, with_files
from reconciler.errors import ConfigurationError, StoreError
from reconciler.fleet import ParsedFile
from reconciler.helm.files import RenderFiles, tree_of, write_file
from reconciler.helm.inputs import inputs_of
from reconciler.helm.run_render import Output, ToolRenderer
from reconciler.helm.tools import Tools, fetched, fetched_for_kustomize, is_there
from reconciler.helm.tools import newest as newest_chart
from reconciler.hydration import (
    ImageVersion,
    StorePathKind,
    blob_id,
    image_versions,
    is_below,
    is_newer,
    newest,
    overlaps,
    with_newer,
)
from reconciler.plugins import with_plugins
from reconciler.processes.run_program import hides_files
from reconciler.report.render_json import dump_yaml
from reconciler.store.git.branches import base_of, commit_on, copied, edits_of
from reconciler.store.location import StoreLocation, locate_store
from reconciler.store.oci.artifact import digest_of_tag, tags_of
from reconciler.store.oci.registry_client import registry_access
from reconciler.yaml import edited, read_yaml

_SHOWN_CHARS = 19


def updated(location: StoreLocation, only: tuple[str, ...], tools: Tools) -> bool:
    """Write newer versions of charts and images into the store; whether all registries could be asked."""
    fleet = _read(location)
    renders = _chosen(fleet, only, is_silent=True)
    return _update_charts(renders, location.path, tools) & _update_images(renders, location.path)


def _read(
    location: StoreLocation, parsed: dict[str, ParsedFile] | None = None, snapshots: list[Snapshot] | None = None
) -> Fleet:
    is_directory = location.repository is None
    return read_fleet(str(location.path), as_directory=is_directory, parsed=parsed, snapshots=snapshots)


def on_branch(
    location: StoreLocation, branch: str, subject: str, hydrated: Callable[[StoreLocation], tuple[bool, bool]]
) -> tuple[bool, bool]:
    """Hydrate a copy of the newest commit, and commit sound changes; as `hydrate`. Raises StoreError."""
    if location.repository is None:
        raise ConfigurationError(f"{location}: it is in no Git repository, so it has no branches; leave --branch out")
    base = base_of(location.repository, branch)
    with copied(location.repository, base) as copy:
        ran = hydrated(locate_store(str(copy / location.subdir)))
        if not ran[1]:
            prose("nothing is committed\n")
            return ran
        edits = edits_of(location.repository, base, copy)
    names = "".join(f"{edit.path}\n" for edit in edits)
    done = commit_on(location.repository, branch, base, edits, f"{subject}\n\n{names}", os.environ) if edits else None
    if done is None:
        remark("there is nothing to commit")
    else:
        answer_commit(*done)
    return ran


def hydrate(
    location: StoreLocation,
    only: tuple[str, ...],
    tools: Tools,
    observed: Mapping[str, ClusterObservation] | None,
    *,
    check: bool,
    update: bool,
) -> bool:
    """Render, and write or compare the outputs; whether all is well."""
    parsed: dict[str, ParsedFile] = {}
    snapshots: list[Snapshot] = []
    fleet = _read(location, parsed, snapshots)
    renders = _chosen(fleet, only)
    errors = (problem for problem in fleet.problems if problem.severity is Severity.ERROR)
    outputs = [render.output for render in fleet.renders]  # They are about to be written.
    problems = [problem for problem in errors if not any(is_below(problem.source.path, output) for output in outputs)]
    is_good = not _print_problems([*problems, *overlaps(fleet.renders, fleet.clusters)])
    rendered: list[tuple[Render, Output]] = []
    with tree_of(location, None, as_files=True) as tree:
        files = RenderFiles(tree)
        renderer = ToolRenderer(files, tools, with_plugins(), _text, fleet, observed)
        for render in renders:
            if update:
                is_good &= _fetched(render, files, tools, location.path)
            rendered.append((render, renderer.output(render, fleet.locks.get(render.lock_path), always=check)))
        rendered = _checked(rendered, snapshots[0], parsed)
        for render, output in rendered:
            is_good &= _finish(fleet, render, files, output, location.path, check=check)
    is_run = any(output.files is not None for _, output in rendered)
    if is_run and not hides_files():
        remark(
            "this kernel cannot hide files from helm and kustomize (Landlock, Linux 5.13): they saw what you may see"
        )
    return is_good


def _chosen(fleet: Fleet, only: tuple[str, ...], *, is_silent: bool = False) -> tuple[Render, ...]:
    unknown = sorted(set(only) - {render.name for render in fleet.renders})
    if unknown:
        names = ", ".join(render.name for render in fleet.renders) or "none"
        raise ConfigurationError(f"the store has no Render {', '.join(unknown)}; it has {names}")
    if not fleet.renders and not is_silent:
        prose("no document of kind Render in the store: there is nothing to do\n")
    return tuple(render for render in fleet.renders if not only or render.name in only)


def _print_problems(problems: list[Problem] | tuple[Problem, ...]) -> bool:
    """Show problems; whether there is an error among them."""
    show_problems(problems)
    return has_errors(problems)


def _fetched(render: Render, files: RenderFiles, tools: Tools, root: Path) -> bool:
    """Bring the charts that others serve into the store; whether they are there."""
    is_good = True

    def write_chart(chart: str, brought: Mapping[str, bytes], problems: tuple[Problem, ...]) -> bool:
        for path, data in brought.items():
            write_file(root, path, data)
        if brought:
            prose(f"{render.name}: fetched {chart}\n")
        return not _print_problems(problems)

    if render.helm is not None and render.helm.is_remote and not is_there(render.helm, files):
        is_good &= write_chart(render.helm.path, *fetched(render, tools.tool("helm"), os.environ))
    for chart in inputs_of(render, files).charts:
        if chart.repository and files.kind_at(chart.path) is StorePathKind.NOTHING:
            is_good &= write_chart(chart.path, *fetched_for_kustomize(render, chart, tools.tool("helm"), os.environ))
    return is_good


def _checked(
    rendered: list[tuple[Render, Output]], snapshot: Snapshot, parsed: dict[str, ParsedFile]
) -> list[tuple[Render, Output]]:
    """Return the outputs with the errors that `validate` would report of their files."""
    files = {path: data for _, output in rendered for path, data in (output.files or {}).items()}
    if not files:
        return rendered
    folders = [render.output for render, output in rendered if output.files]
    fleet = with_files(snapshot, parsed, folders, files)
    errors = [problem for problem in problems_of(fleet) if problem.severity is Severity.ERROR]
    return [
        (
            render,
            output._replace(
                problems=(*output.problems, *(each for each in errors if is_below(each.source.path, render.output)))
            ),
        )
        for render, output in rendered
    ]


def _text(body: JsonObject) -> str:
    """Return a document as committed: sorted, unless encrypted, as its checksum depends on the order."""
    return f"{json.dumps(body, indent=2)}\n" if "sops" in body else dump_yaml(body)


def _finish(fleet: Fleet, render: Render, files: RenderFiles, output: Output, root: Path, *, check: bool) -> bool:
    """Write an output, or compare it; whether all is well."""
    if _print_problems(output.problems):
        prose(f"{render.name}: {render.output} is not written\n")
        return False
    if output.files is None:
        prose(f"{render.name}: fresh\n")
        return True
    there = files.ids([render.output])
    changed = {path: data for path, data in output.files.items() if there.get(path) != blob_id(data)}
    lock = fleet.locks.get(render.lock_path)
    ours = {render.lock_path, *(lock.outputs if lock is not None else ())}
    gone = sorted(there.keys() - output.files.keys())
    strange = [path for path in gone if path not in ours]
    for path in strange:
        prose(f"{render.name}: {path} is not of hydrate; move it out of {render.output}\n")
    if check:
        for path in sorted({*changed, *gone}):
            prose(f"{render.name}: {path} is not what the inputs make; run reconciler hydrate\n")
        if not (changed or gone):
            prose(f"{render.name}: as committed\n")
        return not (changed or gone)
    for path, data in sorted(changed.items()):
        write_file(root, path, data)
    for path in gone:
        if path in ours:
            (root / path).unlink()
    prose(f"{render.name}: wrote {', '.join(sorted(changed)) or 'nothing'}\n")
    return not strange


def _update_charts(renders: tuple[Render, ...], root: Path, tools: Tools) -> bool:
    """Write the newest version that the range of each Render allows, with its digest; whether all could be asked."""
    is_good = True
    for render in renders:
        chart = render.helm
        if chart is None or not chart.is_remote or not chart.update:
            continue
        release = newest_chart(render, tools.tool("helm"), os.environ)
        show_problems(release.problems)
        is_good &= not release.problems
        if not is_newer(release.version, chart.version):
            continue
        chosen = partial(_with_chart, name=render.name, version=release.version, digest=release.digest)
        _edit(root, render.source.path, chosen)
        prose(f"{render.name}: chart {chart.version} → {release.version} ({render.source.path})\n")
        used = {other.helm.path for other in renders if other.helm is not None and other is not render}
        if chart.path not in used:
            (root / chart.path).unlink(missing_ok=True)
    return is_good


def _with_chart(body: Mapping[str, Any], *, name: str, version: str, digest: str) -> Mapping[str, Any]:
    if body.get("kind") != "Render" or body["metadata"]["name"] != name:
        return body
    spec = body["spec"]
    return {**body, "spec": {**spec, "helm": {**spec["helm"], "version": version, "digest": digest}}}


def _update_images(renders: tuple[Render, ...], root: Path) -> bool:
    """Write the newest allowed tags, and digests of pinned ones; whether all registries could be asked."""
    is_good = True
    for render in renders:
        for rule in render.images:
            try:
                is_good &= _update_image(render, rule.name, rule.update, root)
            except StoreError as error:
                prose(f"{render.name}: {rule.name}: {error}\n")
                is_good = False
    return is_good


def _update_image(render: Render, name: str, allowed: str, root: Path) -> bool:
    files = [path for path in _files(render) if (root / path).is_file()]
    known = {each for path in files for body in _bodies(root, path) for each in image_versions(body, name)}
    if not known:
        prose(f"{render.name}: {name} is in none of its values files and kustomizations with a tag\n")
        return False
    access = registry_access(os.environ)
    tags = run(tags_of(name, access))
    newer: dict[ImageVersion, ImageVersion] = {}
    for now in known:
        tag = newest(tags, allowed, now.tag)
        if tag:
            newer[now] = now._replace(tag=tag, digest=run(digest_of_tag(name, tag, access)) if now.digest else "")

    def chosen(version: ImageVersion) -> ImageVersion:
        return newer.get(version, version)

    for path in files:
        if any(each in newer for body in _bodies(root, path) for each in image_versions(body, name)):
            _edit(root, path, lambda body: with_newer(body, name, chosen))
            for old, new in sorted(newer.items()):
                prose(f"{render.name}: {name} {_tag_and_digest(old)} → {_tag_and_digest(new)} ({path})\n")
    return True


def _tag_and_digest(version: ImageVersion) -> str:
    return f"{version.tag}@{version.digest[:_SHOWN_CHARS]}" if version.digest else version.tag


def _files(render: Render) -> list[str]:
    values = [*(render.helm.values if render.helm is not None else ())]
    folders = [render.kustomize] if render.kustomize else []
    for variant in render.variants:
        values += variant.values
        folders += [variant.overlay] if variant.overlay else []
    names = ("kustomization.yaml", "kustomization.yml", "Kustomization")
    return list(dict.fromkeys([*values, *(f"{folder}/{name}" for folder in folders for name in names)]))


def _bodies(root: Path, path: str) -> list[Mapping[str, Any]]:
    return [document.body for document in read_yaml(_as_yaml(path), (root / path).read_bytes()).documents]


def _edit(root: Path, path: str, changed: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """Change the documents of a file; comments and layout stay. Raises NotEdited: its layout does not allow it."""
    bodies = [changed(body) for body in _bodies(root, path)]
    write_file(root, path, edited(_as_yaml(path), (root / path).read_bytes(), bodies, dump_yaml))


def _as_yaml(path: str) -> str:
    return path if path.endswith((".yaml", ".yml", ".json")) else f"{path}.yaml"
