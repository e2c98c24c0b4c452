"""Documents of Flux as a store: for each cluster those of its controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from reconciler.api.content import dig
from reconciler.api.problem import Document
from reconciler.importers.app import App, Member
from reconciler.importers.checkouts import Checkouts
from reconciler.importers.compose import ImportedStore, compose_store
from reconciler.importers.flux.kustomization import read_kustomization_of_flux
from reconciler.importers.flux.release import read_release
from reconciler.importers.flux.shared_fields import Context
from reconciler.importers.flux.sources import GROUP, Sources
from reconciler.importers.ignore import Ignored
from reconciler.importers.reading import Failure, Notes, Uncarried

_SOURCES: Final = f"source.{GROUP}"


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
    apps: list[App] = []
    rules: list[Ignored] = []
    failed: list[Failure] = []
    for cluster, found in documents.items():
        listed = list(found)
        context = Context(cluster, Sources(listed, notes), checkouts, kube_version, names, notes)
        for document in listed:
            one = _read(document, context, failed)
            apps += [each for each in one if isinstance(each, App)]
            rules += [each for each in one if isinstance(each, Ignored)]
    members = [Member(name=name) for name in sorted({app.cluster for app in apps})]
    files, unfit = compose_store(fleet, apps, members, (), rules)
    return ImportedStore(
        files=files,
        left_out=notes.sorted(),
        failed=(*failed, *unfit),
        missing={at: what for app in apps for at, what in app.missing.items()},
    )


def _read(document: Document, context: Context, failed: list[Failure]) -> list[App | Ignored]:
    """Return the renders of a document; the reason of a failure is added to `failed`."""
    group, kind = str(document.body.get("apiVersion", "")).partition("/")[0], document.body.get("kind")
    if not group.endswith(GROUP) or group == _SOURCES:
        return []
    try:
        if kind == "HelmRelease":
            return list(read_release(document, context))
        if kind == "Kustomization":
            return list(read_kustomization_of_flux(document, context))
    except Uncarried as error:
        name = f"{dig(document.body, 'metadata', 'namespace') or 'default'}/{dig(document.body, 'metadata', 'name')}"
        failed.append(Failure(document.source, f"{kind} {name}", str(error)))
        return []
    why = "nothing here has its meaning; see docs/how-to/notify.md for notifications"
    context.notes.leave(document, ("kind",), f"{kind}: {why}")
    return []
