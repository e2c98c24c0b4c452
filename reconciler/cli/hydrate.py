"""`reconciler hydrate`: render the store's Render documents with helm and kustomize, and write the output into it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.cli.printing import answer_commit, has_errors, prose, remark, show_problems
from reconciler.cli.store_reading import cache_folder, read_fleet, read_observations
from reconciler.errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from reconciler.api.clusters import ClusterObservation
    from reconciler.api.content import JsonObject
    from reconciler.api.fleet import Fleet, Render, Snapshot
    from reconciler.api.problem import Problem
    from reconciler.fleet import ParsedFile
    from reconciler.helm.files import RenderFiles
    from reconciler.helm.run_render import Output
    from reconciler.helm.tools import Tools
    from reconciler.store.location import StoreLocation


@click.command(context_settings=options.SETTINGS)
@options.store_argument
@options.as_directory
@options.option("--only", multiple=True, metavar="NAME", help="Only this Render (repeatable).")
@options.option(
    "--check", is_flag=True, help="Render everything and compare; write nothing. Exit code 1 on a difference."
)
@options.option("--update", is_flag=True, help="First fetch served charts, and write newer versions in their ranges.")
@options.option("--branch", default="", metavar="NAME", help="Commit on this branch; files of the store stay.")
@options.file_option("--observations", metavar="FILE",
                     help="Let charts see the API versions that clusters serve, as `observe` wrote them. Default: "
                          "those in the locks.")  # fmt: skip
@options.option("--allow-network", is_flag=True, help="Render where no process without network can be started.")
@options.option("--helm", default="", metavar="PATH", help="The helm to use, by absolute path. Default: on the PATH.")
@options.option("--helm-sha256", default="", metavar="DIGEST", help="What --helm must be.")
@options.option("--kubectl", default="", metavar="PATH", help="The kubectl to use for kustomize, by absolute path.")
@options.option("--kubectl-sha256", default="", metavar="DIGEST", help="What --kubectl must be.")
def command(
    *,
    store: str,
    as_directory: bool,
    only: tuple[str, ...],
    check: bool,
    update: bool,
    branch: str,
    observations: Path | None,
    allow_network: bool,
    helm: str,
    helm_sha256: str,
    kubectl: str,
    kubectl_sha256: str,
) -> None:
    """Render the charts and kustomizations that documents of kind Render in STORE name, and write their outputs.

    Example, in CI: reconciler hydrate --update --branch updates

    What is fresh is left alone, and no program is started for it. Commit what it writes: output that `validate` would
    refuse is not written.
    """
    from reconciler.helm.tools import Tools, Wanted
    from reconciler.store.location import StoreKind, locate_store

    if branch and check:
        raise ConfigurationError("--branch commits, and --check writes nothing; give one of them")
    location = locate_store(store, as_directory=as_directory)
    if location.kind is StoreKind.BARE_REPOSITORY:
        raise StoreError(f"{location}: hydrate writes files, and a bare repository has none; name a work tree")
    wanted = {"helm": Wanted(helm, helm_sha256), "kubectl": Wanted(kubectl, kubectl_sha256)}
    observed = read_observations(observations).clusters if observations is not None else None

    def hydrate(place: StoreLocation) -> tuple[bool, bool]:
        kept_out = place.repository or place.path
        tools = Tools(kept_out, wanted, os.environ, cache_folder(), network=allow_network)
        is_current = _updated(place, only, tools) if update and not check else True
        return is_current, _hydrate(place, only, tools, observed, check=check, update=update)

    subject = "Update charts, images and what is rendered of them" if update else "Render what changed"
    sys.exit(0 if all(_on_branch(location, branch, subject, hydrate) if branch else hydrate(location)) else 1)


def _updated(location: StoreLocation, only: tuple[str, ...], tools: Tools) -> bool:
    """Write newer versions of charts and images into the store; whether all registries could be asked."""
    from reconciler.cli.hydrate_updates import update_charts, update_images

    fleet = _read(location)
    renders = _chosen(fleet, only, is_silent=True)
    return update_charts(renders, location.path, tools) & update_images(renders, location.path)


def _read(
    location: StoreLocation, parsed: dict[str, ParsedFile] | None = None, snapshots: list[Snapshot] | None = None
) -> Fleet:
    is_directory = location.repository is None
    return read_fleet(str(location.path), as_directory=is_directory, parsed=parsed, snapshots=snapshots)


def _on_branch(
    location: StoreLocation, branch: str, subject: str, hydrate: Callable[[StoreLocation], tuple[bool, bool]]
) -> tuple[bool, bool]:
    """Hydrate a copy of the newest commit, and commit sound changes; as `hydrate`. Raises StoreError."""
    from reconciler.store.git.branches import base_of, commit_on, copied, edits_of
    from reconciler.store.location import locate_store

    if location.repository is None:
        raise ConfigurationError(f"{location}: it is in no Git repository, so it has no branches; leave --branch out")
    base = base_of(location.repository, branch)
    with copied(location.repository, base) as copy:
        ran = hydrate(locate_store(str(copy / location.subdir)))
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


def _hydrate(
    location: StoreLocation,
    only: tuple[str, ...],
    tools: Tools,
    observed: Mapping[str, ClusterObservation] | None,
    *,
    check: bool,
    update: bool,
) -> bool:
    """Render, and write or compare the outputs; whether all is well."""
    from reconciler.api.problem import Severity
    from reconciler.helm.files import RenderFiles, tree_of
    from reconciler.helm.run_render import ToolRenderer
    from reconciler.hydration import is_below, overlaps
    from reconciler.plugins import with_plugins
    from reconciler.processes.run_program import hides_files

    parsed: dict[str, ParsedFile] = {}
    snapshots: list[Snapshot] = []
    fleet = _read(location, parsed, snapshots)
    renders = _chosen(fleet, only)
    errors = (problem for problem in fleet.problems if problem.severity is Severity.ERROR)
    outputs = [render.output for render in fleet.renders]  # They are about to be written.
    problems = [problem for problem in errors if not any(is_below(problem.source.path, output) for output in outputs)]
    is_good = not _tell([*problems, *overlaps(fleet.renders, fleet.clusters)])
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


def _tell(problems: list[Problem] | tuple[Problem, ...]) -> bool:
    """Show problems; whether there is an error among them."""
    show_problems(problems)
    return has_errors(problems)


def _fetched(render: Render, files: RenderFiles, tools: Tools, root: Path) -> bool:
    """Bring the charts that others serve into the store; whether they are there."""
    from reconciler.helm.files import write_file
    from reconciler.helm.inputs import inputs_of
    from reconciler.helm.tools import fetched, fetched_for_kustomize, is_there
    from reconciler.hydration import StorePathKind

    is_good = True

    def take(chart: str, brought: Mapping[str, bytes], problems: tuple[Problem, ...]) -> bool:
        for path, data in brought.items():
            write_file(root, path, data)
        if brought:
            prose(f"{render.name}: fetched {chart}\n")
        return not _tell(problems)

    if render.helm is not None and render.helm.is_remote and not is_there(render.helm, files):
        is_good &= take(render.helm.path, *fetched(render, tools.tool("helm"), os.environ))
    for chart in inputs_of(render, files).charts:
        if chart.repository and files.kind_at(chart.path) is StorePathKind.NOTHING:
            is_good &= take(chart.path, *fetched_for_kustomize(render, chart, tools.tool("helm"), os.environ))
    return is_good


def _checked(
    rendered: list[tuple[Render, Output]], snapshot: Snapshot, parsed: dict[str, ParsedFile]
) -> list[tuple[Render, Output]]:
    """Return the outputs with the errors that `validate` would report of their files."""
    from reconciler.api.problem import Severity
    from reconciler.cli.store_reading import problems_of, with_files
    from reconciler.hydration import is_below

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
    import json

    from reconciler.report.render_json import dump_yaml

    return f"{json.dumps(body, indent=2)}\n" if "sops" in body else dump_yaml(body)


def _finish(fleet: Fleet, render: Render, files: RenderFiles, output: Output, root: Path, *, check: bool) -> bool:
    """Write an output, or compare it; whether all is well."""
    from reconciler.helm.files import write_file
    from reconciler.hydration import blob_id

    if _tell(output.problems):
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
