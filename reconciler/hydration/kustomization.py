"""References of a kustomization, and parts of it that are refused before kustomize runs.

Nothing is fetched and nothing is run: remote bases and plugins of any kind are refused by name. kustomize would refuse
some of them itself; it is not asked. Charts are rendered where they stand below the folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.problem import Document, Problem, Severity, Source
from reconciler.documents import is_dns_subdomain
from reconciler.hydration.lock import KUSTOMIZATIONS
from reconciler.hydration.render_document import is_below
from reconciler.regex import regex
from reconciler.yaml import read_yaml

_FOLDERS: Final = ("resources", "components", "bases")
_CHARTS: Final = "helmCharts"
_FILES: Final = ("crds", "configurations", "patchesStrategicMerge")
_WITH_PATH: Final = ("patches", "patchesJson6902", "replacements")
_GENERATORS: Final = ("configMapGenerator", "secretGenerator")
HELM_OUTPUT: Final = "helm.yaml"
"""The name under which a kustomization of a Render finds the output of helm, where the store has no such file."""
_CHART_KIND: Final = "HelmChart"
_OLD_CHARTS: Final = "helmChartInflationGenerator"
_CHART_NAME: Final = regex(r"[0-9A-Za-z][0-9A-Za-z._-]*", re.ASCII)
_PLUGINS: Final = ("generators", "transformers", "validators")
_FUNCTIONS: Final = ("config.kubernetes.io/function", "config.k8s.io/function")


class StorePathKind(Enum):
    """The kind of entry at a path of the store."""

    FILE = auto()
    FOLDER = auto()
    NOTHING = auto()


class KustomizeChart(NamedTuple):
    """A chart that kustomize renders. `path`: its folder in the store; `repository`: who serves it, or empty."""

    name: str
    path: str
    repository: str
    version: str


class Kustomization(NamedTuple):
    """Folders, files and charts that a kustomization builds upon, and why it is not rendered."""

    folders: tuple[str, ...]
    problems: tuple[Problem, ...]
    named: tuple[str, ...] = ()
    charts: tuple[KustomizeChart, ...] = ()


def is_kustomization(path: str) -> bool:
    """Return whether a file makes its folder one of kustomize."""
    return path.rpartition("/")[2] in KUSTOMIZATIONS


def builds_on(document: Document) -> tuple[str, ...]:
    """Paths of the store that a kustomization names as resources, components or bases, sorted."""
    folder = document.path.rpartition("/")[0]
    named = (text for key in _FOLDERS for text in _list(document.body.get(key)) if isinstance(text, str))
    return tuple(sorted({path for path in (resolved(folder, text) for text in named) if path}))


def resolved(folder: str, text: str) -> str | None:
    """The path of the store that a text means in a folder; None when it leads out of it, or is no path.

    >>> resolved("apps/web", "../base"), resolved("web", "../../x"), resolved("a", "https://h/x")
    ('apps/base', None, None)
    """
    if set(text) & set(":?\\") or text.startswith(("/", "~")) or not text.isprintable():
        return None
    parts = folder.split("/") if folder else []
    for part in text.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def chart_homes(path: str, data: bytes) -> tuple[str, ...]:
    """Return the folder with the charts of a kustomization, as a path of the store; empty: it names none."""
    folder = path.rpartition("/")[0]
    bodies = [document.body for document in read_yaml(path, data).documents]
    homes = (resolved(folder, _chart_home(body)) for body in bodies if body.get(_CHARTS))
    return tuple(home for home in homes if home)


def _chart_home(body: JsonObject) -> str:
    return str(dig(body, "helmGlobals", "chartHome") or "charts")


def read_kustomization(
    path: str, data: bytes, standing: Callable[[str], StorePathKind], read: Callable[[str], bytes | None]
) -> Kustomization:
    """Return the references and the problems of a kustomization. `standing` and `read` look up paths of the store."""
    if path.endswith("Kustomization"):
        message = "a file without suffix is not seen as a kustomization by the store; name it kustomization.yaml"
        return Kustomization((), (_problem(Source(path), "", message),))
    file = read_yaml(path, data)
    errors = tuple(problem for problem in file.problems if problem.severity is Severity.ERROR)
    if errors or len(file.documents) != 1:
        return Kustomization((), errors or (_problem(Source(path), "", "a kustomization is one document"),))
    return _KustomizationReader(file.documents[0], standing, read).result()


class _KustomizationReader:
    def __init__(
        self, document: Document, standing: Callable[[str], StorePathKind], read: Callable[[str], bytes | None]
    ) -> None:
        self._document, self._standing, self._read = document, standing, read
        self._folder = document.path.rpartition("/")[0]
        self._problems: list[Problem] = []

    def result(self) -> Kustomization:
        body = self._document.body
        if _OLD_CHARTS in body:
            self._refuse("write helmCharts: 'kustomize edit fix' makes it of this", _OLD_CHARTS)
        charts = tuple(self._charts())
        for key in _PLUGINS:
            for index, entry in enumerate(_list(body.get(key))):
                self._plugin(entry, key, index)
        folders = [path for key in _FOLDERS for path in self._folders(key)]
        for path, steps in named_files(body):
            if resolved(self._folder, path) is None:
                self._refuse("this leads out of the store, and nothing is fetched; copy it into the store", *steps)
        problems = tuple(sorted(set(self._problems)))
        return Kustomization(tuple(sorted(set(folders))), problems, builds_on(self._document), charts)

    def _charts(self) -> Iterator[KustomizeChart]:
        """Yield the charts. Source: kustomize, HelmChartInflationGenerator (absChartHome, AsHelmArgs)."""
        home = _chart_home(self._document.body)
        for index, entry in enumerate(_list(self._document.body.get(_CHARTS))):
            name, version, url = (str(dig(entry, key) or "") for key in ("name", "version", "repo"))
            path = resolved(self._folder, f"{home}/{f'{name}-{version}/' if version and url else ''}{name}")
            if not _CHART_NAME.fullmatch(name):
                self._refuse("this names no chart", _CHARTS, index, "name")
            elif path is None or (self._folder and not is_below(path, self._folder)):
                self._refuse(
                    "kustomize takes charts from below its folder: move them there, as chartHome", _CHARTS, index
                )
            elif not is_dns_subdomain(str(dig(entry, "releaseName") or "")):
                self._refuse("write a name, by which the objects are named", _CHARTS, index, "releaseName")
            elif url and not version:
                self._refuse("a chart that others serve needs its version", _CHARTS, index, "version")
            else:
                yield KustomizeChart(name, path, url, version)

    def _folders(self, key: str) -> Iterator[str]:
        for index, text in enumerate(_list(self._document.body.get(key))):
            path = resolved(self._folder, text) if isinstance(text, str) else None
            standing = StorePathKind.NOTHING if path is None else self._standing(path)
            if path is None or standing is StorePathKind.NOTHING:
                message = "this is no file or folder of the store, and nothing is fetched; copy it into the store"
                self._refuse(message, key, index)
            elif standing is StorePathKind.FOLDER:
                yield path

    def _plugin(self, entry: Json, key: str, index: int) -> None:
        """A builtin transformer is configuration; anything else is a program."""
        text = entry if isinstance(entry, str) else ""
        data: bytes | None = text.encode()
        if "\n" not in text:
            path = resolved(self._folder, text)
            data = self._read(path) if path else None
        documents = read_yaml("plugin.yaml", data or b"").documents
        if any(str(document.body.get("kind", "")).startswith(_CHART_KIND) for document in documents):
            self._refuse("write helmCharts in place of a HelmChartInflationGenerator", key, index)
        elif not documents or any(
            document.body.get("apiVersion") != "builtin"
            or any(name in (dig(document.body, "metadata", "annotations") or {}) for name in _FUNCTIONS)
            for document in documents
        ):
            self._refuse("this would run a program; only files with builtin transformers are taken", key, index)

    def _refuse(self, message: str, *steps: Step) -> None:
        self._problems.append(self._document.problem("render-refused", message, *steps))


def named_files(body: JsonObject) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """Yield every path of a file that a kustomization names, its resources apart, and its place."""
    for key in _FILES:
        for index, text in enumerate(_list(body.get(key))):
            if isinstance(text, str) and "\n" not in text:
                yield text, (key, index)
    for key in _WITH_PATH:
        for index, entry in enumerate(_list(body.get(key))):
            path = dig(entry, "path")
            if isinstance(path, str):
                yield path, (key, index, "path")
    schema = dig(body, "openapi", "path")
    if isinstance(schema, str):
        yield schema, ("openapi", "path")
    for key in (*_GENERATORS, _CHARTS):
        for index, entry in enumerate(_list(body.get(key))):
            yield from _files_of(entry, (key, index))


def _files_of(entry: Json, steps: tuple[Step, ...]) -> Iterator[tuple[str, tuple[Step, ...]]]:
    for name in ("files", "envs", "additionalValuesFiles"):
        for number, text in enumerate(_list(dig(entry, name))):
            if isinstance(text, str):
                yield text.rpartition("=")[2], (*steps, name, number)
    for name in ("env", "valuesFile"):
        text = dig(entry, name)
        if isinstance(text, str):
            yield text, (*steps, name)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _problem(source: Source, path: str, message: str) -> Problem:
    return Problem(source=source, path=path, code="render-refused", message=message)


def round_trip(references: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return folders that lead to one another in a circle, in order; empty if none."""
    done: set[str] = set()
    for start in sorted(references):
        path: list[str] = []
        pending: list[tuple[str, bool]] = [(start, False)]
        while pending:
            folder, is_left = pending.pop()
            if is_left:
                path.pop()
                done.add(folder)
            elif folder in path:
                return (*path[path.index(folder) :], folder)
            elif folder not in done:
                path.append(folder)
                pending.append((folder, True))
                pending.extend((below, False) for below in references.get(folder, ()))
    return ()
