"""Folders of a checkout with a kustomization or plain manifests, as a folder of the store that kustomize builds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.content import JsonObject, dig
from reconciler.api.problem import Severity
from reconciler.errors import StoreError
from reconciler.hydration import KUSTOMIZATIONS, StorePathKind, read_kustomization, round_trip
from reconciler.importers.checkouts import Place
from reconciler.importers.kustomization import Overlay, overlay_of
from reconciler.importers.reading import Uncarried
from reconciler.yaml import SUFFIXES, read_yaml

_ABOVE: Final = "../.."
"""From a folder `apps/NAME` to the root of the store."""
Edit = Callable[[str, bytes], bytes]
"""A change of a file's text, by its path in the checkout."""


class Manifests(NamedTuple):
    """`folder`: the files of the kustomization by their paths in it; `files`: its bases, in the store.

    `bases`: the bases of the checkout's folder, which identify overlays of one base.
    """

    folder: Mapping[str, bytes | tuple[JsonObject, ...]]
    files: Mapping[str, bytes]
    bases: tuple[str, ...]


def folder_of_kustomization(
    place: Place,
    path: str,
    overlay: Overlay,
    *,
    components: tuple[str, ...] = (),
    steers: Callable[[JsonObject], Mapping[str, str] | None],
    edit: Edit | None = None,
) -> Manifests:
    """Return a folder that builds the kustomization of a checkout, and copies of all referenced files.

    `steers`: returns kustomize's selector for an object of the other tool itself, so that it is left out. `edit`: the
    change of each file; then the copies are of this folder alone.

    Raises:
        Uncarried: it cannot be read, leads out of its repository, or does what no rendering may.
    """
    references = _references(place, (path, *components))
    files = place.copied(references)
    bases = references[path] or (path,)
    without = {tuple(sorted(target.items())) for _, target in _steering(files, steers)}
    overlay = replace(overlay, without=tuple(dict(target) for target in sorted(without)))
    if edit is None:
        above, copies = _ABOVE, {}
    else:
        above, copies = "files", {f"files/{name}": edit(name, data) for name, data in files.items()}
        files = {}
    resources = (f"{above}/{place.at(path)}",)
    parts = tuple(f"{above}/{place.at(component)}" for component in components)
    return Manifests({**overlay_of(overlay, resources, parts), **copies}, files, bases)


def folder_of_manifests(
    place: Place,
    paths: Iterable[str],
    overlay: Overlay,
    *,
    steers: Callable[[JsonObject], Mapping[str, str] | None],
    edit: Edit | None = None,
) -> Manifests:
    """A folder with copies of plain manifests and a kustomization that lists them.

    Raises:
        Uncarried: they cannot be read, or none of them holds anything for a cluster.
    """
    found = place.copied(paths)
    copies = {name.removeprefix(f"{place.folder}/"): data for name, data in found.items() if _has_objects(name, data)}
    if not copies:
        raise Uncarried(f"no manifest was found for it in {place.url}")
    mine = {name: [target for _, target in _steering({name: data}, steers)] for name, data in copies.items()}
    kept = {name: data for name, data in copies.items() if len(mine[name]) < _count(name, data)}
    if not kept:
        raise Uncarried("it brings only documents of the tool itself: give these to this command")
    without = sorted({tuple(sorted(target.items())) for name in kept for target in mine[name]})
    overlay = replace(overlay, without=tuple(dict(target) for target in without))
    folder = {f"manifests/{name}": edit(name, data) if edit else data for name, data in kept.items()}
    return Manifests({**overlay_of(overlay, tuple(sorted(folder))), **folder}, {}, tuple(sorted(kept)))


def _references(place: Place, starts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The folders that kustomizations lead to, by folder."""
    references: dict[str, tuple[str, ...]] = {}
    pending = list(starts)
    while pending:
        folder = pending.pop()
        if folder in references:
            continue
        paths = [f"{folder}/{name}".lstrip("/") for name in KUSTOMIZATIONS]
        names = [path for path in paths if place.standing(path) is StorePathKind.FILE]
        if len(names) != 1:
            raise Uncarried(f"{folder or '.'} in {place.url} has {len(names)} kustomizations; it must have one")
        try:
            data = place.checkout.read(names[0])
        except StoreError as error:
            raise Uncarried(f"{place.url}: {error}") from error
        read = read_kustomization(names[0], data, place.standing, lambda path: _read(place, path))
        if read.problems:
            first = read.problems[0]
            raise Uncarried(f"{first.source.path}:{first.source.line} {first.path}: {first.message}")
        references[folder] = read.folders
        pending += read.folders
    if round_trip(references):
        raise Uncarried(f"kustomizations of {place.url} lead round in a circle")
    return references


def _read(place: Place, path: str) -> bytes | None:
    try:
        return place.checkout.read(path)
    except StoreError:
        return None


def _is_manifest(name: str) -> bool:
    return name.endswith((*SUFFIXES, ".json"))


def _has_objects(name: str, data: bytes) -> bool:
    if not _is_manifest(name):
        return False
    read = read_yaml(name, data)
    broken = next((problem for problem in read.problems if problem.severity is Severity.ERROR), None)
    if broken is not None:
        raise Uncarried(f"{name}:{broken.source.line}: {broken.message}")
    return any(document.body.get("kind") for document in read.documents)


def _count(name: str, data: bytes) -> int:
    return sum(1 for document in read_yaml(name, data).documents if document.body.get("kind"))


def _steering(
    files: Mapping[str, bytes], steers: Callable[[JsonObject], Mapping[str, str] | None]
) -> list[tuple[str, Mapping[str, str]]]:
    """Objects for the other tool alone, with how kustomize selects them."""
    found = []
    for name, data in files.items():
        if not _is_manifest(name) or b"kind" not in data:
            continue
        for document in read_yaml(name, data).documents:
            target = steers(document.body) if isinstance(dig(document.body, "metadata"), Mapping) else None
            if target is not None:
                found.append((name, target))
    return found
