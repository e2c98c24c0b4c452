"""One render: from its inputs to the files of its output, or why there are none. Writes nothing into a store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.api.clusters import ClusterObservation
from reconciler.api.content import JsonObject
from reconciler.api.fleet import LOCK_NAME, Fleet, LeftOut, Render, RenderLock, Served
from reconciler.api.problem import Problem, Severity, warning
from reconciler.helm.files import InputRefused, RenderFiles
from reconciler.helm.inputs import (
    ASKED_APIS,
    REMOTE_SCHEMA,
    SCHEMA,
    ToolInputs,
    chart_texts,
    export,
    found_in,
    inputs_of,
)
from reconciler.helm.sandbox import RenderFailed, render_twice
from reconciler.helm.tools import Tool, Tools, encrypted
from reconciler.hydration import (
    Bodies,
    blob_id,
    compile_variants,
    disproofs,
    encrypted_objects,
    lock_text,
    nondeterminism,
    problem_of,
    read_rendered,
    served_apis,
    split_file,
)
from reconciler.kinds.registry import Registry
from reconciler.yaml import MAX_BYTES


class Output(NamedTuple):
    """The files of an output by path, lock and all; None: it is as it should be already, and nothing was run."""

    files: Mapping[str, bytes] | None
    problems: tuple[Problem, ...] = ()


class _Job(NamedTuple):
    """A render with its lock, its inputs, and its tool: of two the one with the versions of both."""

    render: Render
    lock: RenderLock | None
    inputs: ToolInputs
    tool: Tool

    @property
    def variants(self) -> list[str]:
        """Return the names of the variants; the base is first, and has an empty one."""
        return ["", *(variant.name for variant in self.render.variants)]

    @property
    def locked(self) -> Mapping[str, str] | None:
        """Return the blob ids of the outputs in the lock; None: they were made of something else."""
        lock, inputs = self.lock, self.inputs
        made_of = (lock.spec, lock.inputs, lock.tool, lock.served) if lock is not None else None
        is_same = made_of == (self.render.digest, inputs.ids, self.tool.versions, inputs.served)
        return lock.outputs if lock is not None and is_same else None


class ToolRenderer:
    """Renders one after another. `write`: a document as text, the same for the same document.

    `observed`: the clusters whose API versions charts see; None: those that the lock has.
    """

    def __init__(
        self,
        files: RenderFiles,
        tools: Tools,
        interpreters: Registry,
        write: Callable[[JsonObject], str],
        fleet: Fleet,
        observed: Mapping[str, ClusterObservation] | None = None,
    ) -> None:
        self._files, self._tools, self._interpreters, self._write = files, tools, interpreters, write
        self._clusters, self._observed = fleet.clusters, observed
        self._groups = {group for group, _ in fleet.custom_kinds}

    def output(self, render: Render, lock: RenderLock | None, *, always: bool = False) -> Output:
        """The output of a render; `always`: also where the lock says that it is fresh.

        Raises:
            ConfigurationError: the tool is not there.
            NotContained: it cannot be contained.
            StoreError: the store cannot be read.
        """
        inputs = inputs_of(render, self._files)
        if inputs.problems:
            return Output({}, inputs.problems)
        is_used = {"kubectl": render.kustomize, "helm": render.helm or inputs.charts}
        names = [name for name in (("helm", "kubectl") if render.helm else ("kubectl", "helm")) if is_used[name]]
        tools = [self._tools.tool(name) for name in names]
        tool = Tool(tools[0].path, {name: version for tool in tools for name, version in tool.versions.items()})
        try:
            inputs, hints = self._with_served(render, lock, inputs)
            if _has_errors(hints):
                return Output({}, hints)
            job = _Job(render, lock, inputs, tool)
            if not always and (locked := job.locked) is not None:
                outputs = self._files.ids([render.output])
                outputs.pop(f"{render.output}/{LOCK_NAME}", None)
                if outputs == locked:
                    return Output(None, hints)
            result = self._compiled(job, self._run(job))
            return result._replace(problems=(*hints, *result.problems))
        except InputRefused as error:
            return Output({}, (problem_of(render, "render-refused", str(error)),))
        except RenderFailed as error:
            return Output({}, (problem_of(render, "render-failed", str(error)),))

    def _with_served(
        self, render: Render, lock: RenderLock | None, inputs: ToolInputs
    ) -> tuple[ToolInputs, tuple[Problem, ...]]:
        """Return the inputs with the API versions that the chart sees, of the clusters or else of the lock."""
        if render.helm is None or self._observed is None:
            return inputs._replace(served=lock.served if lock is not None else {}), ()
        texts = chart_texts(render, inputs.ids, self._files)

        def is_mentioned(group: str) -> bool:
            return any(group.encode() in text for text in texts)

        served, problems = served_apis(render, self._clusters, self._observed, is_mentioned)
        return inputs._replace(served=served), problems

    def _run(self, job: _Job) -> list[tuple[bytes, bytes]]:
        with tempfile.TemporaryDirectory(prefix="fleet-render-") as temporary:
            folder = Path(temporary)
            store, inputs = folder / "store", job.inputs
            export(job.render, inputs, self._files, store)
            unchecked = bool(self._remote_schemas(job))
            helm = self._tools.tool("helm").path if inputs.charts else ""
            commands = [
                command(job.render, name, job.tool, store, inputs.served, unchecked=unchecked, helm=helm)
                for name in job.variants
            ]
            written = self._run_twice(commands, folder, helm)
            return self._patched(job, written, folder, helm) if inputs.helm_output else written

    def _run_twice(self, commands: Sequence[Sequence[str]], folder: Path, helm: str) -> list[tuple[bytes, bytes]]:
        readable = [Path(helm)] if helm else []
        return render_twice(commands, folder, allow_network=self._tools.network, readable=readable)

    def _patched(
        self, job: _Job, written: Sequence[tuple[bytes, bytes]], folder: Path, helm: str
    ) -> list[tuple[bytes, bytes]]:
        """Return both outputs of helm for each variant, each built by kustomize."""
        overlays = {variant.name: variant.overlay for variant in job.render.variants}
        kubectl, commands, after = self._tools.tool("kubectl"), [], folder / "after"
        after.mkdir(mode=0o700)
        texts = [(name, text) for name, pair in zip(job.variants, written, strict=True) for text in pair]
        for number, (name, text) in enumerate(texts):
            store = after / str(number)
            shutil.copytree(folder / "store", store)
            for path in job.inputs.helm_output:
                (store / path).write_bytes(text)
            commands.append(_building(kubectl.path, store / (overlays.get(name) or job.render.kustomize), helm))
        built = [pair[0] for pair in self._run_twice(commands, after, helm)]
        return list(zip(built[::2], built[1::2], strict=True))

    def _compiled(self, job: _Job, written: Sequence[tuple[bytes, bytes]]) -> Output:
        render = job.render
        bodies_of: dict[str, Bodies] = {}
        problems: list[Problem] = []
        used: set[LeftOut] = set()
        for name, texts in zip(job.variants, written, strict=True):
            one, other = (read_rendered(render, name, text, self._interpreters) for text in texts)
            problems += [*one.problems, *nondeterminism(render, name, one.objects, other.objects)]
            bodies_of[name] = one.objects
            used |= one.used
        unused = f"Render {render.name}: this leaves out nothing; correct it, or take it out"
        unfit = [entry for entry in render.left_out if entry not in used]
        problems += [warning(entry.source, "", "render-leave-out-unused", unused) for entry in unfit]
        problems += self._unnamed_apis(job)
        for address in self._remote_schemas(job):
            message = f"the chart describes its values at {address}, and nothing is fetched: they are not checked"
            problems.append(problem_of(render, "render-schema-remote", message, severity=Severity.HINT))
        if _has_errors(problems):
            return Output({}, tuple(sorted(set(problems))))
        if render.secrets.age:
            committed: Bodies = {}
            if locked := job.locked:
                # What the same inputs made before holds the same, too.
                ids = self._files.ids([render.output])
                same = [path for path, blob in locked.items() if ids.get(path) == blob]
                committed = encrypted_objects({path: self._files.read(path) for path in same})
            bodies_of = encrypted(render, bodies_of, committed, self._tools)
        base = bodies_of.pop("")
        compiled = compile_variants(render, base, bodies_of)
        problems += compiled.problems
        texts_of = {
            f"{render.output}/{name}": text
            for stem, bodies in compiled.files.items()
            for name, text in self._texts(job, stem, bodies).items()
        }
        for path, text in texts_of.items():
            if len(text) > MAX_BYTES:
                message = f"{path} has {len(text):,} bytes, and a file of a store {MAX_BYTES:,} at most"
                problems.append(problem_of(render, "render-too-large", message))
        if _has_errors(problems):
            return Output({}, tuple(sorted(set(problems))))
        wrong = list(disproofs(render, base, bodies_of, texts_of, self._interpreters))
        assert not wrong, f"what was compiled is not what was rendered: {wrong}"
        ids = {path: blob_id(text) for path, text in texts_of.items()}
        text = lock_text(render, job.inputs.ids, job.tool.versions, ids, job.inputs.served)
        return Output({**texts_of, render.lock_path: text}, tuple(sorted(set(problems))))

    def _remote_schemas(self, job: _Job) -> list[str]:
        charts = [chart.path for chart in (job.render.helm, *job.inputs.charts) if chart is not None]
        ids = job.inputs.ids
        return sorted(
            {address for chart in charts for address in found_in(REMOTE_SCHEMA, chart, ids, self._files, SCHEMA)}
        )

    def _unnamed_apis(self, job: _Job) -> Iterator[Problem]:
        """Yield a hint for each API version that a chart asks for, that the store defines, and that no one named."""
        render, inputs = job.render, job.inputs
        if render.helm is None:
            return
        versions = (*render.helm.api_versions, *(api for apis in inputs.served.values() for api in apis))
        named = {text.partition("/")[0] for text in versions}
        for version in sorted(found_in(ASKED_APIS, render.helm.path, inputs.ids, self._files)):
            group = version.partition("/")[0]
            if group in self._groups and group not in named:
                message = (
                    f"the chart asks whether {version} is served, and the store defines kinds of {group}; write it "
                    "into spec.helm.apiVersions if the clusters of the render have them"
                )
                yield problem_of(render, "render-api-not-named", message, severity=Severity.HINT)

    def _texts(self, job: _Job, name: str, bodies: Sequence[JsonObject]) -> dict[str, bytes]:
        made_by = ", ".join(f"{name} {version}" for name, version in sorted(job.tool.versions.items()))
        header = (
            f"# Made by `reconciler hydrate` from {job.render.source.path} with {made_by}.\n"
            "# Change what it is made from and run it again; an edit here would be lost.\n"
        )
        files = split_file(name, ((body, f"---\n{self._write(body)}") for body in bodies))
        return {file: (header + "".join(texts)).encode() for file, texts in files.items()}


def _has_errors(problems: Sequence[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)


def command(
    render: Render, name: str, tool: Tool, store: Path, served: Served, *, unchecked: bool = False, helm: str = ""
) -> list[str]:
    """Return the fixed command line for a variant (empty: the base); `store`: the folder with the exported files.

    `served`: API versions beside those that the document names. `unchecked`: helm does not compare values with the
    schema of the chart. `helm`: the path of the one that kustomize runs; empty: it renders no charts.
    """
    variant = next((one for one in render.variants if one.name == name), None)
    if render.helm is None:
        return _building(tool.path, store / (render.kustomize if variant is None else variant.overlay), helm)
    chart = render.helm
    options = ["--namespace", chart.namespace, "--kube-version", chart.kube_version]
    for path in (*chart.values, *(variant.values if variant is not None else ())):
        options += ["--values", str(store / path)]
    for api in (*_SERVED_BY_ALL, *chart.api_versions, *served.get(name, ())):
        options += ["--api-versions", api]
    if chart.include_crds:
        options.append("--include-crds")
    if unchecked:
        options.append("--skip-schema-validation")
    return [tool.path, "template", chart.release_name, str(store / chart.path), *options]


def _building(kubectl: str, folder: Path, helm: str) -> list[str]:
    return [kubectl, "kustomize", str(folder), *(("--enable-helm", "--helm-command", helm) if helm else ())]


_SERVED_BY_ALL: Final = ("apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1/APIService")
"""Served by every cluster, and unknown to `helm template`, so that charts would write removed versions."""
