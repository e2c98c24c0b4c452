"""The Helm block of a source: a chart with its values, in the order in which Argo CD gives them to Helm.

Source: argo-cd.readthedocs.io/en/stable/user-guide/helm/: parameters over valuesObject over values over valueFiles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from reconciler.api.content import digest_of
from reconciler.hydration import StorePathKind, merged_values
from reconciler.importers.app import Inline
from reconciler.importers.charts import local_chart, plain, remote_chart, values_at
from reconciler.importers.checkouts import Checkouts, Place
from reconciler.importers.reading import Reading, Uncarried
from reconciler.importers.settings import Settings, of_settings, values_of

_VARIABLE: Final = re.compile(r"\$(?:\{([^{}]*)\}|([A-Za-z0-9_]+)|(\$))", re.ASCII)
_OF_A_SYNC: Final = ("ARGOCD_APP_REVISION", "KUBE_VERSION", "KUBE_API_VERSIONS")
"""Source: argo-cd.readthedocs.io/en/stable/user-guide/build-environment/; pkg/apis/application/v1alpha1, Envsubst."""


class Names(NamedTuple):
    """Defaults for the release. `running`: the revision that was synced last; empty: nobody says.

    `environment`: the variables of the build.
    """

    release: str
    namespace: str
    kube_version: str
    running: str
    environment: Mapping[str, str]


def charted(source: Reading, references: Mapping[str, str], names: Names, checkouts: Checkouts) -> dict[str, Any]:
    """Return the fields of an application about the chart of a source.

    `references`: repositories by the names that `$name/path` of values files uses.
    Raises Uncarried: something of it has no counterpart that renders the same.
    """
    block = source.child("helm")
    url, path, chart = source.text("repoURL"), source.text("path"), source.text("chart")
    missing: dict[str, str] = {}
    files: dict[str, bytes] = {}
    if chart:
        where = remote_chart(url, chart, source.text("targetRevision"), names.running)
        place = None
    else:
        where, place, files = local_chart(url, path, checkouts, missing)
    helm: dict[str, Any] = {
        **where,
        "releaseName": block.text("releaseName") or names.release,
        "namespace": block.text("namespace") or names.namespace or "default",
        "kubeVersion": block.text("kubeVersion") or names.kube_version,
        "includeCRDs": not block.flag("skipCrds"),
    }
    if block.has("apiVersions"):
        helm["apiVersions"] = list(block.texts("apiVersions"))
    reading = _Values(block, place, path, references, checkouts, names.environment)
    values: list[str | Inline] = [*reading.of_files(), *reading.inline()]
    values += reading.of_parameters(values, {**files, **reading.files})
    block.leave("version", "Helm 4 renders all of it")
    block.leave("passCredentials", "the login is that of HELM_REGISTRY_CONFIG")
    block.leave("skipTests", "tests of a chart are never taken")
    block.leave("skipSchemaValidation", "hydrate checks values by the schema of the chart; fix them if it refuses")
    block.texts("apiVersions")
    block.rest()
    return {
        "helm": helm,
        "values": tuple(values),
        "files": {**files, **reading.files},
        "missing": {**missing, **reading.missing},
        "kinship": digest_of(helm),
    }


class _Values:
    def __init__(
        self,
        block: Reading,
        place: Place | None,
        path: str,
        references: Mapping[str, str],
        checkouts: Checkouts,
        environment: Mapping[str, str],
    ) -> None:
        self._block, self._place, self._path, self._environment = block, place, path, environment
        self._references, self._checkouts = references, checkouts
        self.files: dict[str, bytes] = {}
        self.missing: dict[str, str] = {}

    def of_files(self) -> list[str]:
        """The files with values, as paths in the store; they are copied there."""
        may_lack = self._block.flag("ignoreMissingValueFiles")
        files = []
        for text in self._block.texts("valueFiles"):
            place, path, url = self._located(text)
            files += values_at(place, path, url, self._checkouts, self.files, self.missing, may_lack=may_lack)
        return files

    def _located(self, text: str) -> tuple[Place | None, str, str]:
        """Return the place of a values file: its checkout, its path there, and the address of its repository."""
        if "://" in text:
            raise Uncarried("a file with values is fetched from an address; copy it into the repository")
        if text.startswith("$"):
            name, _, rest = text[1:].partition("/")
            if name not in self._references and (filled := substituted(text, self._environment)) != text:
                return self._located(filled)
            if name not in self._references:
                raise Uncarried(f"no source of the application has the ref {name}")
            url, rest = self._references[name], substituted(rest, self._environment)
            return self._checkouts.find(url), plain(rest.lstrip("/")), url
        text = substituted(text, self._environment)
        if self._place is None and self._path == "":
            raise Uncarried(
                f"the file with values {text!r} is inside the chart that others serve; copy it out of there"
            )
        url = self._place.url if self._place is not None else self._references[""]
        return self._place, plain(text.lstrip("/") if text.startswith("/") else f"{self._path}/{text}"), url

    def inline(self) -> list[Inline]:
        """Return the values in the document itself."""
        layers: list[Inline] = []
        block = self._block
        values_object, values = block.map("valuesObject"), block.text("values")
        if values_object:
            layers.append(Inline(values_object))
        elif values.strip():
            layers.append(Inline(self._parsed(values, block.path("values"))))
        return layers

    @staticmethod
    def _parsed(text: str, path: str) -> dict[str, Any]:
        try:
            return values_of(text)
        except Uncarried as error:
            left = re.search(r"\{\{.*?\}\}", text)
            why = f"the template {left[0]} names no parameter of the generator, and" if left else ""
            raise Uncarried(f"{path}: {f'{why} ' if why else ''}{error}") from error

    def of_parameters(self, values: Sequence[str | Inline], files: Mapping[str, bytes]) -> list[Inline]:
        """Return the parameters as values over others: as Helm takes them, texts after the rest, and files last."""
        settings: list[Settings] = []
        for parameter in self._block.children("parameters"):
            text = _cleaned(substituted(parameter.text("value"), self._environment))
            settings.append(Settings(parameter.text("name"), text, parameter.flag("forceString")))
            parameter.rest()
        settings = [*sorted(settings, key=lambda setting: setting.is_text), *self._of_file_parameters()]
        if not settings:
            return []
        base: dict[str, Any] = {}
        if any("[" in setting.name for setting in settings):
            for value in values:
                base = merged_values(base, value.values if isinstance(value, Inline) else self._read(value, files))
        return [Inline(of_settings(settings, base))]

    @staticmethod
    def _read(path: str, files: Mapping[str, bytes]) -> dict[str, Any]:
        if path not in files:
            raise Uncarried(f"a parameter leads into a list that {path} may have; give --source for its repository")
        try:
            return values_of(files[path].decode())
        except UnicodeDecodeError as error:
            raise Uncarried(f"{path} is no text") from error

    def _of_file_parameters(self) -> list[Settings]:
        settings = []
        for parameter in self._block.children("fileParameters"):
            name = parameter.text("name")
            place, path, _ = self._located(parameter.text("path"))
            if place is None or place.kind_at(path) is not StorePathKind.FILE:
                raise Uncarried(f"the file of the parameter {name} is not there; give --source for its repository")
            data = next(iter(place.copied([path]).values()))
            try:
                settings.append(Settings(name, data.decode(), is_literal=True))
            except UnicodeDecodeError as error:
                raise Uncarried(f"the file of the parameter {name} is no text") from error
            parameter.rest()
        return settings


def _cleaned(text: str) -> str:
    """Return a value as Argo CD gives it to Helm: commas escaped, but for a list in braces."""
    is_list = text.startswith("{") and text.endswith("}")
    return text if is_list else re.sub(r"(?<!\\),", r"\\,", text)


def environment_of(source: Reading, name: str, namespace: str, project: str) -> dict[str, str]:
    """Return the variables of a source of an application that are known without a sync."""
    return {
        "ARGOCD_APP_NAME": name,
        "ARGOCD_APP_NAMESPACE": namespace,
        "ARGOCD_APP_PROJECT_NAME": project,
        "ARGOCD_APP_SOURCE_REPO_URL": source.text("repoURL"),
        "ARGOCD_APP_SOURCE_PATH": source.text("path"),
        "ARGOCD_APP_SOURCE_TARGET_REVISION": source.text("targetRevision"),
    }


def substituted(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with its variables; an unknown one is empty, as there.

    Raises Uncarried: one is known when it is synced alone.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or ""
        if name.startswith(_OF_A_SYNC):
            raise Uncarried(f"the variable {name} is known when it is synced alone; write it out")
        return "$" if match[3] else environment.get(name, "")

    return _VARIABLE.sub(value, text)
