"""One Application as the renders of one cluster.

Source: argo-cd.readthedocs.io/en/stable/user-guide/application-specification/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.content import digest_of
from reconciler.hydration import KUSTOMIZATIONS, StorePathKind
from reconciler.importers.app import App, Ignored, check_namespace, ignored, safe_name
from reconciler.importers.argocd.destinations import Destinations
from reconciler.importers.argocd.helm import Names, charted, environment_of
from reconciler.importers.argocd.manifests import kustomized, listed
from reconciler.importers.charts import plain
from reconciler.importers.checkouts import Checkouts
from reconciler.importers.reading import PRUNE, Reading, Uncarried

TOOL: Final = "Argo CD"
_AS_IT_LIES: Final = "the files of the checkout are taken as they lie; check this revision out there before"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OPTIONS: Final = {
    "CreateNamespace": "",
    "ServerSideApply": "",
    "ApplyOutOfSyncOnly": "",
    "PruneLast": "",
    "RespectIgnoreDifferences": "",
    "Replace": "write the annotation fleet.reconciler/replace: allowed on the templates that need it",
    "Force": "write the annotation fleet.reconciler/replace: allowed on the templates that need it",
    "PrunePropagationPolicy": "deletion is in the background, with guards",
    "Validate": "the API server always validates",
    "SkipDryRunOnMissingResource": "objects of a kind wait for its definition",
    "FailOnSharedResource": "an object that another tool holds is always refused unless it is named in takeOver",
    "Prune": "set preserveResourcesOnDeletion in the placement of the Render",
    "Delete": "set preserveResourcesOnDeletion in the placement of the Render",
    "ClientSideApplyMigration": "nothing is applied on the client's side",
    "ManagedNamespaceMetadata": "write the Namespace into the store",
}
"""Options of a sync, with the remedy; empty: it is always so here."""
_DEFAULTS: Final = (
    "Replace=false", "Force=false", "Validate=true", "Prune=true", "Delete=true", "FailOnSharedResource=false",
    "SkipDryRunOnMissingResource=false", "SkipDryRunOnMissingResource=true",
)  # fmt: skip
"""Options that change nothing there, or say what is so here."""


class Context(NamedTuple):
    """Common inputs of all applications."""

    destinations: Destinations
    checkouts: Checkouts
    kube_version: str
    revisions: Mapping[str, tuple[str, ...]]
    """Revisions of the sources that were synced last, by Application: those of a live export."""


def read_application(application: Reading, group: str, context: Context) -> Iterator[App | Ignored]:
    """Yield a render for each source of an Application, and its ignored fields.

    Raises Uncarried: it cannot be carried over as it is.
    """
    metadata, spec = application.child("metadata"), application.child("spec")
    name = metadata.text("name")
    _annotations(metadata)
    destination = spec.child("destination")
    cluster, namespace = context.destinations.cluster(destination), destination.text("namespace")
    destination.rest()
    check_namespace(namespace)
    project = spec.text("project")
    spec.leave("project", "there are no projects: one identity for each cluster, that of the kubeconfig")
    spec.leave("revisionHistoryLimit", "the history is that of Git")
    spec.leave("info", "write it as a comment")
    _sync(spec)
    yield from _ignored(spec)
    sources = _sources(spec)
    references = {source.text("ref"): source.text("repoURL") for source in sources if source.has("ref")}
    rendered = [source for source in sources if source.has("path") or source.has("chart") or not source.has("ref")]
    if not rendered:
        raise Uncarried("no source of it has a path or a chart")
    for source in sources:
        if source not in rendered:
            source.leave("targetRevision", _AS_IT_LIES)
            source.rest()
    for number, source in enumerate(rendered):
        synced = context.revisions.get(name, ())
        running = synced[sources.index(source)] if len(synced) == len(sources) else ""
        environment = environment_of(source, name, namespace, project)
        names = Names(name, namespace, context.kube_version, running, environment)
        content = _rendered(source, references, names, context)
        suffix = f"-{number + 1}" if number else ""
        yield App(
            name=safe_name(f"{name}{suffix}"),
            group=f"{group}{suffix}" if group else "",
            source=application.document.source,
            cluster=cluster,
            namespace=namespace,
            tool=TOOL,
            labels={key: str(value) for key, value in metadata.map("labels").items()},
            **content,
        )
    spec.rest()


def _sources(spec: Reading) -> tuple[Reading, ...]:
    spec.refuse("sourceHydrator", "name the dry source as spec.source")
    return spec.children("sources") or (spec.child("source"),)


def _rendered(source: Reading, references: Mapping[str, str], names: Names, context: Context) -> dict[str, Any]:
    source.refuse("plugin", "a plugin is a program that nothing here runs; commit what it makes")
    url = source.text("repoURL")
    if not source.has("chart"):
        source.leave("targetRevision", _AS_IT_LIES)
    source.leave("name", "sources are told apart by their order")
    source.text("ref")
    kind = _kind(source, context.checkouts)
    if kind == "helm":
        content = charted(source, {**references, "": url}, names, context.checkouts)
        source.rest()
        return content
    place = context.checkouts.get(url)
    manifests = kustomized(source, place, names) if kind == "kustomize" else listed(source, place)
    block = source.map("kustomize")
    same: list[Any] = [kind, place.folder, names.namespace]
    same += [block.get(key) for key in ("namePrefix", "nameSuffix", "namespace")]
    source.rest()
    return {"folder": manifests.folder, "files": manifests.files, "kinship": digest_of([*same, manifests.bases])}


def _kind(source: Reading, checkouts: Checkouts) -> str:
    for kind in ("helm", "kustomize", "directory"):
        if isinstance(source.body.get(kind), Mapping):
            return kind
    if source.has("chart"):
        return "helm"
    place, path = checkouts.get(source.text("repoURL")), plain(source.text("path"))
    if place.kind_at(f"{path}/Chart.yaml".lstrip("/")) is StorePathKind.FILE:
        return "helm"
    names = [f"{path}/{name}".lstrip("/") for name in KUSTOMIZATIONS]
    return "kustomize" if any(place.kind_at(name) is StorePathKind.FILE for name in names) else "directory"


def _sync(spec: Reading) -> None:
    policy = spec.child("syncPolicy")
    automated = policy.child("automated")
    automated.leave("prune", PRUNE)
    heals, is_on = automated.flag("selfHeal"), automated.flag("enabled", default=True)
    if "automated" in policy.body and is_on and not heals:
        automated.notes.leave(
            automated.document,
            automated.below,
            "drift is put back; spec.drift.selfHeal: false of the Fleet document shows it only",
        )
    automated.leave("allowEmpty", "an empty store deletes nothing beyond the guards")
    automated.rest()
    for option in policy.texts("syncOptions"):
        why = "" if option in _DEFAULTS else _OPTIONS.get(option.partition("=")[0], "nothing here has this meaning")
        if why:
            policy.leave("syncOptions", f"{option}: {why}")
    policy.leave("retry", "what fails is tried again, with growing pauses")
    policy.leave("managedNamespaceMetadata", "write the Namespace with its labels into the store")
    policy.rest()


def _annotations(metadata: Reading) -> None:
    names = sorted(metadata.map("annotations").keys() - {_LAST_APPLIED})
    if names:
        why = f"{', '.join(names)}: an application is no object here; the order follows from references and kinds"
        metadata.leave("annotations", why)


def _ignored(spec: Reading) -> Iterator[Ignored]:
    for rule in spec.children("ignoreDifferences"):
        paths, refused = ignored(rule.texts("jsonPointers"), rule.texts("jqPathExpressions"))
        if refused:
            rule.notes.leave(
                rule.document,
                (*rule.below, "jqPathExpressions"),
                f"{', '.join(refused)}: no plain path; write spec.ignore of the Fleet document",
            )
        rule.leave("managedFieldsManagers", "name the fields in spec.ignore of the Fleet document")
        if paths:
            yield Ignored(rule.text("group"), rule.text("kind"), rule.text("namespace"), rule.text("name"), paths)
        for key in ("group", "kind", "namespace", "name"):
            rule.text(key)
        rule.rest()
