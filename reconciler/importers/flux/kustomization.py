"""One Kustomization of Flux as the render of its cluster.

Source: fluxcd.io/flux/components/kustomize/kustomizations/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from reconciler.api.content import JsonObject, digest_of
from reconciler.api.problem import Document
from reconciler.hydration import is_below, is_kustomization
from reconciler.importers.app import App, check_namespace, safe_name
from reconciler.importers.charts import plain
from reconciler.importers.checkouts import Place
from reconciler.importers.flux.sources import (
    GROUP,
    Context,
    cluster_of,
    reading_of,
    referred,
    spoken_for,
    with_common_metadata,
)
from reconciler.importers.flux.substitution import Substitution
from reconciler.importers.kustomized import Manifests, Overlay, manifests_of
from reconciler.importers.reading import PRUNE, Reading, Uncarried

_MANIFESTS: Final = (".yaml", ".yml")


def steers(body: JsonObject) -> Mapping[str, str] | None:
    """Return kustomize's selector for an object of Flux itself; None: it is for a cluster."""
    group = str(body.get("apiVersion", "")).partition("/")[0]
    if not group.endswith(GROUP):
        return None
    return {"group": group.replace(".", r"\."), "kind": str(body.get("kind"))}


def read_kustomization_of_flux(document: Document, context: Context) -> Iterator[App]:
    """Yield the render of a Kustomization. Raises Uncarried: it cannot be carried over as it is."""
    spec, namespace, name = reading_of(document, context.notes)
    cluster = cluster_of(spec, context)
    url, path = context.sources.located(referred(spec.child("sourceRef"), namespace), plain(spec.text("path")))
    place = context.checkouts.get(url)
    overlay = _overlay(spec, path)
    components = tuple(plain(f"{path}/{text}" if path else text) for text in spec.texts("components"))
    if spec.flag("ignoreMissingComponents"):
        components = tuple(filter(place.is_folder, components))
    manifests = _manifests(place, path, overlay, components, _edit(spec, namespace, context))
    spoken_for(spec)
    _left(spec)
    yield App(
        name=safe_name(name),
        group=f"Kustomization/{namespace}/{name}",
        kinship=digest_of([place.folder, list(manifests.bases), overlay.fields.get("namespace", "")]),
        source=document.source,
        cluster=cluster,
        namespace=str(overlay.fields.get("namespace", "")),
        tool="Flux",
        folder=manifests.folder,
        files=manifests.files,
    )


def _left(spec: Reading) -> None:
    spec.leave("prune", PRUNE)
    spec.leave("deletionPolicy", PRUNE)
    spec.leave("force", "write the annotation fleet.reconciler/replace: allowed on the templates that need it")
    spec.leave(
        "decryption",
        "what sops encrypted stays as it is; give the key to the service (docs/how-to/encrypted-secrets.md)",
    )
    spec.value("wait")
    spec.rest()


def _overlay(spec: Reading, path: str) -> Overlay:
    fields: dict[str, Any] = {key: spec.text(key) for key in ("namePrefix", "nameSuffix") if spec.text(key)}
    target = spec.text("targetNamespace")
    if target:
        fields["namespace"] = check_namespace(target)
    for key in ("images", "patches"):
        entries = [dict(each.body) for each in spec.children(key)]
        if entries:
            fields[key] = entries
    for key in ("patchesStrategicMerge", "patchesJson6902"):
        spec.refuse(key, "write them as patches, which Flux takes too")
    return Overlay(fields=with_common_metadata(fields, spec), edited=path)


def _edit(spec: Reading, namespace: str, context: Context) -> Callable[[str, bytes], bytes] | None:
    """Return the substitution of variables, of which later ones win and inline ones last; None: there is none."""
    if not spec.has("postBuild"):
        spec.value("postBuild")
        return None
    build = spec.child("postBuild")
    variables: dict[str, str] = {}
    for reference in build.children("substituteFrom"):
        kind, name, may_lack = reference.text("kind"), reference.text("name"), reference.flag("optional")
        reference.rest()
        data = context.sources.data(namespace, name) if kind == "ConfigMap" else None
        if data is not None:
            variables |= {key: str(value) for key, value in data.items()}
        elif kind == "ConfigMap" and may_lack:
            reference.leave("name", f"the ConfigMap {name} is not among the documents, and may lack")
        elif kind == "ConfigMap":
            raise Uncarried(f"its ConfigMap {namespace}/{name} with variables is not among the documents; give it too")
        else:
            raise Uncarried(
                f"{reference.path('kind')}: values of the {kind} {name} would be committed as they are; write them "
                "into Secrets that sops encrypts"
            )
    variables |= {key: str(value) for key, value in build.map("substitute").items()}
    build.rest()
    return Substitution(variables)


def _manifests(
    place: Place, path: str, overlay: Overlay, components: tuple[str, ...], edit: Callable[[str, bytes], bytes] | None
) -> Manifests:
    """The kustomization of a folder; without one, the one that Flux generates.

    It lists all manifests at and below the folder; a folder below with a kustomization is one entry.
    Source: fluxcd.io/flux/components/kustomize/kustomizations/#generating-a-kustomizationyaml-file.
    """
    names = place.listed([path])
    folders: list[str] = []
    for folder in sorted(name.rpartition("/")[0] for name in names if is_kustomization(name)):
        if not any(_is_in(folder, above) for above in folders):
            folders.append(folder)
    manifests = [
        name for name in names if name.endswith(_MANIFESTS) and not any(_is_in(name, above) for above in folders)
    ]
    result = manifests_of(
        place, overlay, folders=tuple(folders), components=components, paths=manifests, steers=steers, edit=edit
    )
    if result.with_charts:
        raise Uncarried(f"{result.with_charts} has charts, which Flux does not render; write a HelmRelease")
    return result


def _is_in(path: str, folder: str) -> bool:
    return not folder or is_below(path, folder)
