"""Folders of a checkout with kustomizations or plain manifests, as a folder of the store that kustomize builds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.content import JsonObject, Step, dig, with_leaf
from reconciler.api.problem import Severity
from reconciler.errors import StoreError
from reconciler.hydration import (
    KUSTOMIZATIONS,
    StorePathKind,
    is_below,
    named_files,
    read_kustomization,
    resolved,
    round_trip,
)
from reconciler.importers.app import Content
from reconciler.importers.checkouts import Place
from reconciler.importers.reading import Uncarried
from reconciler.yaml import SUFFIXES, read_yaml

FILE: Final = "kustomization.yaml"
_DELETE: Final = '{"apiVersion": "any/v1", "kind": "Any", "metadata": {"name": "any"}, "$patch": "delete"}'
_ABOVE: Final = "../.."
"""From a folder `apps/NAME` to the root of the store."""
_OUTSIDE: Final = "outside"
"""The folder of a kustomization for copies of files from outside of it."""
Edit = Callable[[str, bytes], bytes]
"""A change of a file's text, by its path in the store."""


class Overlay(Struct, frozen=True, kw_only=True):
    """Additions to the resources. `fields` are kustomize's own, as they are to be written.

    `without`: removed objects, as kustomize's targets. `kube_version`: the one that charts see that name none.
    `edited`: the folder of the checkout in whose kustomization the other tool writes them.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    kube_version: str = ""
    without: tuple[Mapping[str, str], ...] = ()
    edited: str | None = None


class Manifests(NamedTuple):
    """`folder`: the files of the kustomization by their paths in it; `files`: its bases, in the store.

    `bases`: the bases of the checkout's folders, which identify overlays of one base. `with_charts`: the path of a
    kustomization with charts in the checkout; empty: there is none.
    """

    folder: Mapping[str, Content]
    files: Mapping[str, Content]
    bases: tuple[str, ...]
    with_charts: str = ""


class _Followed(NamedTuple):
    """Kustomizations that others lead to. `references`: by folder; `changed`: those that are not copied as they are.

    `outside`: copies of files from outside of a folder. All files by their paths in the store. `bodies`: by folder.
    """

    references: Mapping[str, tuple[str, ...]]
    changed: Mapping[str, Content]
    outside: Mapping[str, bytes]
    with_charts: str
    bodies: Mapping[str, JsonObject]


def manifests_of(
    place: Place,
    overlay: Overlay,
    *,
    folders: tuple[str, ...] = (),
    components: tuple[str, ...] = (),
    paths: Iterable[str] = (),
    steers: Callable[[JsonObject], Mapping[str, str] | None],
    edit: Edit | None = None,
) -> Manifests:
    """Return a folder that builds kustomizations and plain manifests of a checkout, and copies of all referenced files.

    `folders`, `components`: with kustomizations; `paths`: of plain manifests. `steers`: returns kustomize's selector
    for an object of the other tool itself, so that it is left out. `edit`: the change of each file; then the copies
    are of this folder alone.

    Raises:
        Uncarried: they cannot be read, hold nothing for a cluster, lead out of their repository, or do what no
            rendering may.
    """
    followed = _follow(place, (*folders, *components), edit, overlay.kube_version)
    overlay = _as_edited(overlay, followed.bodies.get(overlay.edited, {}) if overlay.edited is not None else {})
    inputs = {**(place.copied(followed.references) if followed.references else {}), **followed.outside}
    plain = _plain(place, paths, steers, is_alone=not folders)
    # Objects for the other tool alone, by kustomize's selectors.
    manifests = {name: data for name, data in {**inputs, **plain}.items() if _is_manifest(name) and b"kind" in data}
    bodies = (each.body for name, data in manifests.items() for each in read_yaml(name, data).documents)
    without = {tuple(sorted(target.items())) for body in bodies if (target := _target(body, steers)) is not None}
    overlay = replace(overlay, without=tuple(dict(target) for target in sorted(without)))
    at = {name: f"manifests/{name.removeprefix(f'{place.folder}/')}" for name in plain}
    above = "files" if edit is not None else _ABOVE
    change: Edit = edit or (lambda _, data: data)
    copies: dict[str, Content] = {at[name]: change(name, data) for name, data in plain.items()}
    files: dict[str, Content] = {**{name: change(name, data) for name, data in inputs.items()}, **followed.changed}
    if edit is not None:
        copies |= {f"{above}/{name}": data for name, data in files.items()}
        files = {}
    resources = (*sorted(at.values()), *(f"{above}/{place.at(folder)}" for folder in folders))
    parts = tuple(f"{above}/{place.at(component)}" for component in components)
    bases = [base for folder in folders for base in followed.references[folder] or (folder,)]
    return Manifests(
        {**overlay_of(overlay, resources, parts), **copies}, files, (*bases, *sorted(at.values())), followed.with_charts
    )


def _plain(
    place: Place, paths: Iterable[str], steers: Callable[[JsonObject], Mapping[str, str] | None], *, is_alone: bool
) -> dict[str, bytes]:
    """Return the plain manifests that hold something for a cluster, by their paths in the store.

    Raises Uncarried: one cannot be read, or they are alone, and none does.
    """
    chosen, has_objects = list(paths), False
    manifests: dict[str, bytes] = {}
    for name, data in (place.copied(chosen) if chosen else {}).items():
        read = read_yaml(name, data) if _is_manifest(name) else None
        for problem in read.problems if read is not None else ():
            if problem.severity is Severity.ERROR:
                raise Uncarried(f"{name}:{problem.source.line}: {problem.message}")
        bodies = [each.body for each in read.documents if each.body.get("kind")] if read is not None else []
        has_objects |= bool(bodies)
        if not all(_target(body, steers) for body in bodies):
            manifests[name] = data
    if is_alone and not has_objects:
        raise Uncarried(f"no manifest was found for it in {place.url}")
    if is_alone and not manifests:
        raise Uncarried("it brings only documents of the tool itself: give these to this command")
    return manifests


def _follow(place: Place, starts: Iterable[str], edit: Edit | None, kube_version: str) -> _Followed:
    references: dict[str, tuple[str, ...]] = {}
    changed: dict[str, Content] = {}
    outside: dict[str, bytes] = {}
    bodies: dict[str, JsonObject] = {}
    with_charts = ""
    pending = list(starts)
    while pending:
        folder = pending.pop()
        if folder in references:
            continue
        paths = [f"{folder}/{name}".lstrip("/") for name in KUSTOMIZATIONS]
        names = [path for path in paths if place.kind_at(path) is StorePathKind.FILE]
        if len(names) != 1:
            raise Uncarried(f"{folder or '.'} in {place.url} has {len(names)} kustomizations; it must have one")
        data = place.read(names[0])
        read = read_kustomization(names[0], data, place.kind_at, lambda path: _read_if_there(place, path))
        for first in read.problems:
            raise Uncarried(f"{first.source.path}:{first.source.line} {first.path}: {first.message}")
        document = read_yaml(names[0], edit(place.at(names[0]), data) if edit else data).documents[0]
        bodies[folder] = document.body
        body, copies = _with_files_inside(place, folder, document.body)
        outside |= copies
        for chart in read.charts:
            with_charts = names[0]
            if not chart.repository and place.kind_at(chart.path) is not StorePathKind.FOLDER:
                raise Uncarried(f"the chart {chart.name} is not in {chart.path} of {place.url}, and no repo serves it")
        if read.charts and kube_version:
            body = {**body, "helmCharts": [{"kubeVersion": kube_version, **chart} for chart in body["helmCharts"]]}
        if body is not document.body:
            changed[place.at(names[0])] = (body,)
        references[folder] = read.folders
        pending += read.folders
    if round_trip(references):
        raise Uncarried(f"kustomizations of {place.url} lead round in a circle")
    return _Followed(references, changed, outside, with_charts, bodies)


def _as_edited(overlay: Overlay, body: JsonObject) -> Overlay:
    """Return an overlay that says around a kustomization what its fields would say in it: one takes another's place.

    Raises Uncarried: it has a prefix or suffix of names as well.
    """
    for key in ("namePrefix", "nameSuffix"):
        if body.get(key) and key in overlay.fields:
            raise Uncarried(
                f"{key} stands in the kustomization too, where the other one takes its place: drop it there"
            )
    renamed = {
        str(dig(image, "name")): str(dig(image, "newName"))
        for image in body.get("images") or []
        if dig(image, "newName")
    }
    images = [
        {"newName": image["name"], **image, "name": renamed[image["name"]]} if image.get("name") in renamed else image
        for image in overlay.fields.get("images", [])
    ]
    return replace(overlay, fields={**overlay.fields, "images": images}) if images else overlay


def _with_files_inside(place: Place, folder: str, body: JsonObject) -> tuple[JsonObject, dict[str, bytes]]:
    """Return a kustomization that names no file outside of its folder, and copies of such files, by paths in the store.

    Flux builds without this restriction of kustomize, which stays here: what is rendered reads named folders alone.
    """
    copies: dict[str, bytes] = {}
    listed = enumerate(body.get("resources") or [])
    resources = [(text, ("resources", index)) for index, text in listed if isinstance(text, str)]
    for text, steps in (*resources, *named_files(body)):
        path = resolved(folder, text)
        if not folder or path is None or is_below(path, folder) or place.kind_at(path) is not StorePathKind.FILE:
            continue
        copies[place.at(f"{folder}/{_OUTSIDE}/{path}")] = place.read(path)
        key = str(dig(body, *steps)).removesuffix(text)
        body = _with(body, steps, f"{key}{_OUTSIDE}/{path}")
    return body, copies


def _with(body: JsonObject, steps: tuple[Step, ...], text: str) -> JsonObject:
    changed: JsonObject = with_leaf(body, steps, lambda _: text)
    return changed


def overlay_of(
    overlay: Overlay, resources: tuple[str, ...], components: tuple[str, ...] = ()
) -> dict[str, tuple[JsonObject, ...]]:
    """The files of a folder that builds the resources and puts the overlay around them."""
    body: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(resources),
        **overlay.fields,
    }
    if components:
        body["components"] = list(components)
    removals = [{"target": dict(target), "patch": _DELETE} for target in overlay.without]
    if removals:
        body["patches"] = [*removals, *body.get("patches", [])]
    return {FILE: (body,)}


def _read_if_there(place: Place, path: str) -> bytes | None:
    try:
        return place.checkout.read(path)
    except StoreError:
        return None


def _is_manifest(name: str) -> bool:
    return name.endswith((*SUFFIXES, ".json"))


def _target(body: JsonObject, steers: Callable[[JsonObject], Mapping[str, str] | None]) -> Mapping[str, str] | None:
    return steers(body) if isinstance(dig(body, "metadata"), Mapping) else None
