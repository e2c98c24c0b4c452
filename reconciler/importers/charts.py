"""Charts: those that others serve, and those in a checkout."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from reconciler.api.content import Json
from reconciler.api.fleet import UNKNOWN_DIGEST
from reconciler.api.problem import Document
from reconciler.errors import StoreError
from reconciler.hydration import StorePathKind, is_plain_path, missing_dependencies, resolved
from reconciler.importers.app import Inline
from reconciler.importers.checkouts import Checkouts, Place
from reconciler.importers.reading import Notes, Reading, Uncarried, checked_url
from reconciler.yaml import read_yaml

_EXACT: Final = re.compile(r"v?\d+(\.\d+){1,2}([-+][0-9A-Za-z.+-]+)?", re.ASCII)


def remote_chart(url: str, chart: str, version: str, running: str = "") -> dict[str, Any]:
    """Return a remote chart, as `spec.helm` names it. `url`: of a repository, or of a registry.

    `version`: an exact one or a range, which becomes the rule for updates. `running`: the version in the cluster.

    Raises:
        Uncarried: its version is a range, and nothing says which one runs.
    """
    is_exact = _EXACT.fullmatch(version) is not None
    pinned = {"version": version if is_exact else running, "digest": UNKNOWN_DIGEST}
    if not _EXACT.fullmatch(pinned["version"]):
        raise Uncarried(
            f"the chart {chart} has the version {version!r}; export from the cluster, where its status says which one "
            "runs, or write that one (helm list)"
        )
    if not is_exact:
        pinned["update"] = version or "*"
    shown = checked_url(url).rstrip("/")
    if shown.startswith(("http://", "https://")):
        return {"chart": chart, "repository": shown, **pinned}
    return {"chart": f"oci://{shown.removeprefix('oci://')}/{chart}", **pinned}


def local_chart(
    url: str, path: str, checkouts: Checkouts, missing: dict[str, str]
) -> tuple[dict[str, Any], Place | None, dict[str, bytes]]:
    """Return a chart in a repository: as `spec.helm` names it, its checkout, and its files.

    Without a checkout the files to copy are put into `missing`.

    Raises:
        Uncarried: it is no chart, or is not whole.
    """
    folder = plain(path)
    place = checkouts.find(url)
    if place is None:
        at = f"{checkouts.folder(url)}/{folder}" if folder else checkouts.folder(url)
        missing[at] = f"{folder or '.'} of {checked_url(url)}"
        return {"chart": at}, None, {}
    check_chart(place, folder)
    return {"chart": place.at(folder)}, place, place.copied([folder])


def check_chart(place: Place, folder: str) -> None:
    """Check that a folder of a checkout is a chart that can be rendered as it is.

    Raises:
        Uncarried: it is none, or lacks charts that it depends on.
    """
    path = f"{folder}/Chart.yaml".lstrip("/")
    if place.standing(path) is not StorePathKind.FILE:
        raise Uncarried(f"{folder or '.'} in {place.url} is no chart: it has no Chart.yaml")
    try:
        found = read_yaml(path, place.checkout.read(path)).documents
        there = [name.removeprefix(f"{folder}/") for name in place.checkout.listed([f"{folder}/charts".lstrip("/")])]
    except StoreError as error:
        raise Uncarried(f"{place.url}: {error}") from error
    held = {name.removeprefix("charts/").partition("/")[0] for name in there}
    for dependency in missing_dependencies(found[0].body if found else {}, held):
        if not (dependency.conditions or dependency.tags):  # Of these the values decide, when it is rendered.
            raise Uncarried(
                f"the chart {folder} lacks the chart {dependency.name} that it depends on: run helm dependency build "
                "in the checkout"
            )


class Inflated(NamedTuple):
    """The chart of a kustomization: `spec.helm` without values, the values in their order, and the files of both."""

    helm: Mapping[str, Any]
    values: tuple[str | Inline, ...]
    files: Mapping[str, bytes]


def inflated_chart(place: Place, kustomizations: Sequence[Document], notes: Notes, kube_version: str) -> Inflated:
    """Return the chart that kustomize would inflate. `kustomizations`: those with charts, by paths in the checkout.

    Source: kustomize, HelmChart and HelmGlobals (api/types/helmchartargs.go), HelmChartInflationGenerator.

    Raises:
        Uncarried: there are several charts, or something of it has no counterpart that renders the same.
    """
    wholes = [Reading(found, found.body, (), notes) for found in kustomizations]
    charts = [(whole, chart) for whole in wholes for chart in whole.children("helmCharts")]
    if len(charts) != 1:
        named = ", ".join(found.path for found in kustomizations)
        raise Uncarried(
            f"{named} inflates {len(charts)} charts, and a Render has one: write an application and a folder for each"
        )
    whole, chart = charts[0]
    folder = whole.document.path.rpartition("/")[0]
    where, files = _inflated_from(place, folder, whole.child("helmGlobals").text("chartHome", "charts"), chart)
    if not chart.has("releaseName"):
        raise Uncarried(f"{whole.document.path}: {chart.path('releaseName')} is missing, and objects are named by it")
    helm: dict[str, Any] = {
        **where,
        "releaseName": chart.text("releaseName"),
        "namespace": chart.text("namespace", "default"),
        "kubeVersion": chart.text("kubeVersion", kube_version),
        "includeCRDs": chart.flag("includeCRDs"),
    }
    if chart.has("apiVersions"):
        helm["apiVersions"] = list(chart.texts("apiVersions"))
    values = _inflated_values(place, folder, chart)
    files |= place.copied([path for path in values if isinstance(path, str)])
    chart.refuse("nameTemplate", "write the name as releaseName")
    for quiet in ("apiVersions", "digest", "devel", "debug", "skipHooks", "skipTests"):
        chart.value(quiet)
    chart.rest()
    return Inflated(helm, tuple(place.at(found) if isinstance(found, str) else found for found in values), files)


def _inflated_from(place: Place, folder: str, home: str, chart: Reading) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return where a chart is: in the folder where kustomize looks for it first, or with those who serve it."""
    name, version, url = chart.text("name"), chart.text("version"), chart.text("repo")
    local = plain("/".join(filter(None, (folder, home, f"{name}-{version}" if url and version else "", name))))
    if place.standing(local) is StorePathKind.FOLDER:
        check_chart(place, local)
        return {"chart": place.at(local)}, place.copied([local])
    if not url:
        raise Uncarried(f"the chart {name} is not in {local} of {place.url}, and {chart.path('repo')} names no other")
    return remote_chart(url, name, version), {}


def _inflated_values(place: Place, folder: str, chart: Reading) -> list[str | Inline]:
    """Return paths in the checkout and values of the kustomization itself, the later ones win."""
    inline, merge = chart.map("valuesInline"), chart.text("valuesMerge", "override")
    named, *more = (
        plain("/".join(filter(None, (folder, text)))) if text else ""
        for text in (chart.text("valuesFile"), *chart.texts("additionalValuesFiles"))
    )
    for path in filter(None, (named, *more)):
        if place.standing(path) is not StorePathKind.FILE:
            raise Uncarried(f"the file with values {path} is not in {place.url}")
    if _has_null(inline):
        raise Uncarried(f"{chart.path('valuesInline')} has a null, which means another thing to helm; take it out")
    if inline and merge == "merge" and not named:
        raise Uncarried(f"{chart.path('valuesMerge')}: values of the chart itself would win; write 'override'")
    own: list[str | Inline] = [named] if named and not (inline and merge == "replace") else []
    if inline:
        own.insert(0 if merge == "merge" else len(own), Inline(inline))
    return [*own, *more]


def _has_null(values: Json) -> bool:
    below = values.values() if isinstance(values, Mapping) else values if isinstance(values, list) else ()
    return any(value is None or _has_null(value) for value in below)


def plain(path: str) -> str:
    """A path below the root of a repository in its one form; "" is the root.

    Raises:
        Uncarried: it leads out of the repository, or is no path.
    """
    found = resolved("", path)
    if found is None or (found and not is_plain_path(found)):
        raise Uncarried(f"the path {path!r} leads out of its repository, or is no plain path")
    return found
