"""Sources that are no charts: a kustomization with the additions of Argo CD, or a folder of manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from reconciler.api.content import JsonObject, dig
from reconciler.importers.argocd.helm import Names, substituted
from reconciler.importers.charts import plain
from reconciler.importers.checkouts import Place
from reconciler.importers.kustomized import Manifests, Overlay, manifests_of
from reconciler.importers.reading import Reading, Uncarried
from reconciler.yaml import SUFFIXES

_OWN_KINDS: Final = ("Application", "ApplicationSet", "AppProject")
_SKIPPED: Final = b"+argocd:skip-file-rendering"
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_IMAGE: Final = re.compile(
    r"(?:(?P<name>[^=]+)=)?(?P<new>[^=:@]+(?::\d+/[^:@]+)?)(?::(?P<tag>[^@]+))?(?:@(?P<digest>.+))?"
)


def steers(body: JsonObject) -> Mapping[str, str] | None:
    """Return kustomize's selector for an object of Argo CD itself; None: it is for a cluster."""
    is_own = str(body.get("apiVersion", "")).partition("/")[0] == "argoproj.io" and body.get("kind") in _OWN_KINDS
    return {"group": r"argoproj\.io", "kind": str(body["kind"])} if is_own else None


def kustomized(source: Reading, place: Place, names: Names) -> Manifests:
    """Return the kustomization of a source, with the additions of its block.

    Raises Uncarried: it cannot be read, or something of it has no counterpart.
    """
    path, block = plain(source.text("path")), source.child("kustomize")
    fields: dict[str, Any] = {
        key: block.text(key) for key in ("namePrefix", "nameSuffix", "namespace") if block.text(key)
    }
    environment = names.environment
    labels = {key: substituted(str(value), environment) for key, value in block.map("commonLabels").items()}
    annotations = block.map("commonAnnotations")
    if block.flag("commonAnnotationsEnvsubst"):
        annotations = {key: substituted(str(value), environment) for key, value in annotations.items()}
    for key in ("forceCommonLabels", "forceCommonAnnotations"):
        block.leave(key, "labels and annotations of this kind win here in any case")
    without_selectors = block.flag("labelWithoutSelector")
    in_templates = block.flag("labelIncludeTemplates") or not without_selectors
    if labels:
        pairs = {"pairs": labels, "includeSelectors": not without_selectors}
        fields["labels"] = [{**pairs, "includeTemplates": in_templates} if in_templates else pairs]
    if annotations:
        fields["commonAnnotations"] = annotations
    images = [_image(substituted(text, environment)) for text in block.texts("images")]
    if images:
        fields["images"] = images
    for entry in block.children("replicas"):
        name, count = entry.text("name"), entry.text("count")
        if not count.isdecimal():
            raise Uncarried(f"{entry.path('count')} is no number")
        fields.setdefault("replicas", []).append({"name": name, "count": int(count)})
    patches = [dict(entry.body) for entry in block.children("patches")]
    if any("path" in patch for patch in patches):
        raise Uncarried(f"{block.path('patches')}: write a patch that is named by its path into the kustomization")
    if patches:
        fields["patches"] = patches
    components = tuple(plain(f"{path}/{text}") if path else plain(text) for text in block.texts("components"))
    if block.flag("ignoreMissingComponents"):
        components = tuple(filter(place.is_folder, components))
    block.leave("version", "kubectl builds it")
    kube_version = block.text("kubeVersion") or names.kube_version
    block.leave("apiVersions", "only charts that kustomize renders see it: write it into helmCharts")
    block.rest()
    overlay = Overlay(fields=fields, kube_version=kube_version, edited=path)
    return manifests_of(place, overlay, folders=(path,), components=components, steers=steers)


def listed(source: Reading, place: Place) -> Manifests:
    """The manifests of a folder, as Argo CD chooses them.

    Raises Uncarried: they cannot be read, or are made by jsonnet.
    """
    path, block = plain(source.text("path")), source.child("directory")
    block.refuse("jsonnet", "nothing here evaluates jsonnet; commit what it makes")
    recurse, include, exclude = block.flag("recurse"), block.text("include"), block.text("exclude")
    block.rest()
    chosen = []
    for name in place.listed([path]):
        below = name.removeprefix(f"{path}/") if path else name
        is_taken = name.endswith((*SUFFIXES, ".json", ".jsonnet")) and (recurse or "/" not in below)
        if is_taken and (not include or _globbed(below, include)) and not (exclude and _globbed(below, exclude)):
            chosen.append(name)
    if any(name.endswith(".jsonnet") for name in chosen):
        raise Uncarried("nothing here evaluates jsonnet; commit what it makes")
    chosen = [name for name in chosen if _SKIPPED not in place.read(name)]
    return manifests_of(place, Overlay(), paths=chosen, steers=steers)


def _image(text: str) -> dict[str, str]:
    """`old=new:tag@digest`, as `kustomize edit set image` reads it."""
    match = _IMAGE.fullmatch(text)
    if match is None:
        raise Uncarried(f"the image {text!r} is not in the form old=new:tag")
    image = {"name": match["name"] or match["new"]}
    if match["name"]:
        image["newName"] = match["new"]
    if match["tag"]:
        image["newTag"] = match["tag"]
    if match["digest"]:
        image["digest"] = match["digest"]
    return image


def _globbed(name: str, pattern: str) -> bool:
    """Return whether a file matches a pattern, or one of those in braces; `*` passes slashes too."""
    match = _BRACES.search(pattern)
    if match is None:
        return fnmatchcase(name, pattern)
    before, after = pattern[: match.start()], pattern[match.end() :]
    return any(_globbed(name, f"{before}{each}{after}") for each in match[1].split(","))


def is_of(body: JsonObject, *kinds: str) -> bool:
    """Return whether a document is one of Argo CD's, of one of the kinds."""
    return str(body.get("apiVersion", "")).startswith("argoproj.io/") and dig(body, "kind") in kinds
