"""Documents of Flux as a store: for each cluster those of its controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from reconciler.api.content import JsonObject, dig
from reconciler.api.problem import Document
from reconciler.importers.app import App, Ignored, Member
from reconciler.importers.checkouts import Checkouts
from reconciler.importers.compose import ImportedStore, compose_store
from reconciler.importers.flux.kustomization import read_kustomization_of_flux
from reconciler.importers.flux.release import read_release
from reconciler.importers.flux.sources import Context, Sources, artifacts_of, mentions, reference_of
from reconciler.importers.reading import FAILED, NO_COUNTERPART, NOT_ITS_OWN, Notes, Remark, Uncarried, distinct

_OWN: Final = ("fluxcd.io", "fluxcd.controlplane.io")
"""Ends of the groups of Flux and of its operator."""
_WHY: Final = {
    "source": "no Kustomization or HelmRelease among the documents refers to it",
    "image": "newer images are found by spec.images of a Render and hydrate --update; see docs/how-to/hydrate.md",
    "notification": "nothing here has its meaning; see docs/how-to/notify.md for notifications",
    "fluxcd": "it is of Flux itself, or read by a ResourceSet alone",
}
"""Reasons for kinds of Flux, by the first part of their group."""
_MADE: Final = "resourceset.fluxcd.controlplane.io"


def read_flux(
    documents: Mapping[str, Iterable[Document]],
    checkouts: Checkouts,
    *,
    fleet: str,
    kube_version: str,
    names: Mapping[str, str],
) -> ImportedStore:
    """Return the store of the Kustomizations and HelmReleases of each cluster.

    `documents`: those of each cluster, by its name. `names`: cluster names by Secrets with kubeconfigs. The same
    application in several clusters becomes one Render. An application that cannot be converted is named in `failed`.
    """
    notes = Notes()
    apps: list[App | Ignored] = []
    failed: list[Remark] = []
    for cluster, exported in documents.items():
        listed = distinct(exported, notes)
        context = Context(cluster, Sources(listed, notes), checkouts, kube_version, names, notes)
        for document in listed:
            apps += _read(document, context, failed, listed)
        mentioned = {reference for document in listed if _kind(document.body) for reference in mentions(document.body)}
        for document in listed:
            if not mentioned & {reference_of(document.body), *artifacts_of(document.body)}:
                _note_unread(document, context)
    members = [Member(name=name) for name in sorted({app.cluster for app in apps if isinstance(app, App)})]
    return compose_store(fleet, apps, members, notes.sorted(), failed)


def _read(document: Document, context: Context, failed: list[Remark], beside: list[Document]) -> list[App | Ignored]:
    """Return the renders of a document; the reason of a failure is added to `failed`. `beside`: all documents."""
    kind = _kind(document.body)
    try:
        if kind == "HelmRelease":
            return list(read_release(document, context))
        if kind == "Kustomization":
            return list(read_kustomization_of_flux(document, context))
        if kind == "ResourceSet":
            _check_resource_set(document, context, beside)
    except Uncarried as error:
        name = f"{dig(document.body, 'metadata', 'namespace') or 'default'}/{dig(document.body, 'metadata', 'name')}"
        failed.append(Remark(document.source, f"{kind} {name}", str(error), FAILED))
    return []


def _kind(body: JsonObject) -> str:
    """Return the kind of a document of Flux or of its operator; empty: it is neither's."""
    return str(body.get("kind")) if str(body.get("apiVersion", "")).partition("/")[0].endswith(_OWN) else ""


def _check_resource_set(document: Document, context: Context, beside: list[Document]) -> None:
    """Say of a ResourceSet that the releases and Kustomizations that it made are taken.

    Raises Uncarried: none of them is among the documents.
    """
    metadata = document.body.get("metadata")
    apps = [
        one
        for one in beside
        if _kind(one.body) in ("HelmRelease", "Kustomization")
        and dig(one.body, "metadata", "labels", f"{_MADE}/name") == dig(metadata, "name")
        and dig(one.body, "metadata", "labels", f"{_MADE}/namespace") == dig(metadata, "namespace")
    ]
    if not apps:
        raise Uncarried("its templates are not evaluated; export from the cluster, with what it made")
    why = (
        f"the {len(apps)} Kustomizations and releases that it made are taken as they are; write the rest into the store"
    )
    context.notes.leave(document, ("kind",), f"ResourceSet: {why}")


def _note_unread(document: Document, context: Context) -> None:
    """Say why nothing was made of a document that no other one refers to."""
    kind = _kind(document.body)
    if kind in ("HelmRelease", "Kustomization", "ResourceSet"):
        return
    group = str(document.body.get("apiVersion", "")).partition(".")[0]
    context.notes.leave(document, ("kind",), f"{kind}: {_WHY.get(group, NO_COUNTERPART)}" if kind else NOT_ITS_OWN)
