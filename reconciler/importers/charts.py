"""Charts: those that others serve, and those in a checkout."""

from __future__ import annotations

import re
from typing import Any, Final

from reconciler.api.fleet import UNKNOWN_DIGEST
from reconciler.hydration import StorePathKind, is_plain_path, missing_dependencies, resolved
from reconciler.importers.checkouts import Checkouts, Place
from reconciler.importers.reading import Uncarried, checked_url
from reconciler.yaml import read_yaml

_EXACT: Final = re.compile(r"v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?", re.ASCII)
_VERSION: Final = re.compile(r"v?\d+(\.\d+){1,2}([-+][0-9A-Za-z.+-]+)?", re.ASCII)
"""One of two numbers is a range, unless it runs."""


def remote_chart(url: str, chart: str, version: str, running: str = "") -> dict[str, Any]:
    """Return a remote chart, as `spec.helm` names it. `url`: of a repository, or of a registry.

    `version`: an exact one or a range, which becomes the rule for updates. `running`: the version in the cluster.
    Raises Uncarried: its version is a range, and nothing says which one runs.
    """
    is_exact = _EXACT.fullmatch(version) is not None or (_VERSION.fullmatch(version) is not None and version == running)
    pinned = {"version": version if is_exact else running, "digest": UNKNOWN_DIGEST}
    if not _VERSION.fullmatch(pinned["version"]):
        raise Uncarried(
            f"the chart {chart} has the version {version!r}; export from the cluster, where its status says which one "
            "runs, or write that one (helm list)"
        )
    if not is_exact:
        pinned["update"] = version or "*"
    address = checked_url(url).rstrip("/")
    if address.startswith(("http://", "https://")):
        return {"chart": chart, "repository": address, **pinned}
    return {"chart": f"oci://{address.removeprefix('oci://')}/{chart}", **pinned}


def local_chart(
    url: str, path: str, checkouts: Checkouts, missing: dict[str, str]
) -> tuple[dict[str, Any], Place | None, dict[str, bytes]]:
    """Return a chart in a repository: as `spec.helm` names it, its checkout, and its files.

    Without a checkout the files to copy are put into `missing`.
    Raises Uncarried: it is no chart, or is not whole.
    """
    folder = plain(path)
    place = checkouts.find(url)
    if place is None:
        at = f"{checkouts.folder(url)}/{folder}" if folder else checkouts.folder(url)
        missing[at] = f"{folder or '.'} of {checked_url(url)}"
        return {"chart": at}, None, {}
    check_chart(place, folder)
    return {"chart": place.at(folder)}, place, place.copied([folder])


def values_at(
    place: Place | None,
    path: str,
    url: str,
    checkouts: Checkouts,
    files: dict[str, bytes],
    missing: dict[str, str],
    *,
    may_lack: bool,
) -> list[str]:
    """Return the path in the store of a file with values, which is put into `files`; nothing: it may lack, and does.

    Without a checkout it is put into `missing`, as a file to copy.
    Raises Uncarried: it is not in the checkout, or cannot be read.
    """
    if place is None:
        at = f"{checkouts.folder(url)}/{path}"
        missing[at] = f"{path} of {checked_url(url)}"
        return [at]
    if place.kind_at(path) is StorePathKind.FILE:
        files |= place.copied([path])
        return [place.at(path)]
    if not may_lack:
        raise Uncarried(f"the file with values {path} is not in {place.url}")
    return []


def check_chart(place: Place, folder: str) -> None:
    """Check that a folder of a checkout is a chart that can be rendered as it is.

    Raises Uncarried: it is none, or lacks charts that it depends on.
    """
    path = f"{folder}/Chart.yaml".lstrip("/")
    if place.kind_at(path) is not StorePathKind.FILE:
        raise Uncarried(f"{folder or '.'} in {place.url} is no chart: it has no Chart.yaml")
    documents = read_yaml(path, place.read(path)).documents
    there = [name.removeprefix(f"{folder}/") for name in place.listed([f"{folder}/charts".lstrip("/")])]
    held = {name.removeprefix("charts/").partition("/")[0] for name in there}
    for dependency in missing_dependencies(documents[0].body if documents else {}, held):
        if not (dependency.conditions or dependency.tags):  # Of these the values decide, when it is rendered.
            raise Uncarried(
                f"the chart {folder} lacks the chart {dependency.name} that it depends on: run helm dependency build "
                "in the checkout"
            )


def plain(path: str) -> str:
    """A path below the root of a repository in its one form; "" is the root.

    Raises Uncarried: it leads out of the repository, or is no path.
    """
    target = resolved("", path)
    if target is None or (target and not is_plain_path(target)):
        raise Uncarried(f"the path {path!r} leads out of its repository, or is no plain path")
    return target
