"""Documents of Argo CD as a store: Applications as they are, ApplicationSets with their generated applications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

from msgspec.structs import replace

from reconciler.api.content import JsonObject, dig
from reconciler.api.problem import Document
from reconciler.importers.app import App, Ignored, safe_name
from reconciler.importers.argocd.application import Context, read_application
from reconciler.importers.argocd.destinations import SECRET_TYPE, Destinations
from reconciler.importers.argocd.generators import Generating
from reconciler.importers.argocd.manifests import is_of
from reconciler.importers.argocd.templating import Templates, check_filled, patched
from reconciler.importers.checkouts import Checkouts
from reconciler.importers.compose import ImportedStore, compose_store
from reconciler.importers.reading import FAILED, NOT_ITS_OWN, Notes, Reading, Remark, Uncarried, distinct

_MADE_BY: Final = "ApplicationSet"


def read_argocd(
    documents: Iterable[Document], checkouts: Checkouts, *, fleet: str, kube_version: str, names: Mapping[str, str]
) -> ImportedStore:
    """Return the store of the Applications and ApplicationSets among the documents.

    `fleet`: its name. `kube_version`: for charts of applications without one. `names`: cluster names by addresses, or
    by the names in Argo CD. An application that cannot be converted is named in `failed`.
    """
    notes = Notes()
    unique = distinct(documents, notes)
    secrets = [one for one in unique if _is_cluster(one.body)]
    context = Context(Destinations(secrets, names), checkouts, kube_version, dict(map(_synced, unique)))
    reading = _Reading(context, notes)
    generators = {_place(one.body) for one in unique if is_of(one.body, _MADE_BY)}
    for document in unique:
        if is_of(document.body, _MADE_BY):
            reading.set(document, [one for one in unique if _place(document.body) in _makers(one.body)])
        elif is_of(document.body, "Application") and not _makers(document.body) & generators:
            reading.application(document)
        elif is_of(document.body, "AppProject"):
            reading.notes.leave(document, ("kind",), "there are no projects: one identity for each cluster")
        elif dig(document.body, "metadata", "labels", SECRET_TYPE) not in (None, "cluster"):
            reading.notes.leave(document, ("kind",), "credentials are those of the person who fetches")
        elif not _is_cluster(document.body) and not is_of(document.body, "Application"):
            reading.notes.leave(document, ("kind",), NOT_ITS_OWN)
    rollouts, members = reading.rollouts(), context.destinations.members
    store = compose_store(fleet, reading.parts, members, notes.sorted(), reading.failed, reading.selectors)
    return replace(store, files={**store.files, **rollouts})


def _is_cluster(body: JsonObject) -> bool:
    return body.get("kind") == "Secret" and dig(body, "metadata", "labels", SECRET_TYPE) == "cluster"


def _synced(document: Document) -> tuple[str, tuple[str, ...]]:
    """Return the name of an Application and the revisions of its sources in its status."""
    sync = dig(document.body, "status", "sync") if is_of(document.body, "Application") else None
    revisions = dig(sync, "revisions") or [dig(sync, "revision") or ""]
    return str(dig(document.body, "metadata", "name")), tuple(map(str, revisions))


def _place(body: JsonObject) -> tuple[str, str]:
    return str(dig(body, "metadata", "namespace") or ""), str(dig(body, "metadata", "name"))


def _makers(body: JsonObject) -> set[tuple[str, str]]:
    """Return the ApplicationSets that made an Application, which are in its namespace."""
    owners = dig(body, "metadata", "ownerReferences") if is_of(body, "Application") else None
    return {(_place(body)[0], str(dig(owner, "name"))) for owner in owners or [] if dig(owner, "kind") == _MADE_BY}


class _Reading:
    def __init__(self, context: Context, notes: Notes) -> None:
        self._context = context
        self.notes = notes
        self.parts: list[App | Ignored] = []
        self.failed: list[Remark] = []
        self.selectors: dict[str, JsonObject] = {}
        """By the name of a set."""
        self._rolling: list[tuple[Reading, str, list[App]]] = []

    def application(self, document: Document) -> None:
        """Take an Application, or report why not."""
        self._take(document, Reading(document, document.body, (), self.notes), "")

    def set(self, document: Document, generated: list[Document]) -> None:
        """Take all applications of an ApplicationSet, or report why not.

        `generated`: Applications that Argo CD made of it; they are taken where its generators cannot be evaluated.
        """
        name = str(dig(document.body, "metadata", "name"))
        try:
            expected = self._made(document, Reading(document, document.body, (), self.notes).child("spec"), name)
            for one in generated:
                if dig(one.body, "metadata", "name") not in expected:
                    why = f"the ApplicationSet {name} makes it no longer of what the input has: check both"
                    self.notes.leave(one, ("metadata", "name"), why)
        except Uncarried as error:
            if not generated:
                self.failed.append(Remark(document.source, f"ApplicationSet {name}", str(error), FAILED))
                return
            why = f"the {len(generated)} Applications that it made are taken as they are; {error}"
            self.notes.leave(document, ("spec", "generators"), why)
            for one in generated:
                self._take(one, Reading(one, one.body, (), self.notes), name)

    def _made(self, document: Document, spec: Reading, name: str) -> frozenset[str]:
        """Take the applications of a set; return their names."""
        go, options = spec.flag("goTemplate"), spec.texts("goTemplateOptions")
        templates = Templates(go, is_strict=go and "missingkey=error" in options)
        generating = Generating(self._context.destinations, self._context.checkouts, templates)
        generators = spec.children("generators")
        template, patch = spec.map("template"), spec.text("templatePatch")
        rows = [row for generator in generators for row in generating.templated(generator, template)]
        if not rows:
            self.notes.leave(document, ("spec", "generators"), "they make no application of what the input has")
        before = len(self.parts)
        names: set[str] = set()
        for own, row in rows:
            try:
                body = patched(templates.filled(own, row), templates.filled(patch, row))
                check_filled(body)
                names.add(str(dig(body, "metadata", "name")))
            except Uncarried as error:
                self.failed.append(Remark(document.source, f"ApplicationSet {name}", str(error), FAILED))
            else:
                self._take(document, Reading(document, body, ("spec", "template"), self.notes), name)
        strategy = spec.child("strategy")
        if strategy.text("type") == "RollingSync":
            apps = [one for one in self.parts[before:] if isinstance(one, App)]
            self._rolling.append((strategy.child("rollingSync"), name, apps))
        strategy.leave("deletionOrder", "deletion follows references in reverse, with guards")
        strategy.rest()
        spec.leave("syncPolicy", "nothing is generated later: what is in the store stays there until it is taken out")
        spec.leave("preservedFields", "nothing else writes the documents of a store")
        spec.leave("ignoreApplicationDifferences", "nothing else writes the documents of a store")
        spec.leave("applyNestedSelectors", "selectors are applied where they stand")
        spec.rest()
        if selector := _selector(generators):
            self.selectors[name] = selector
        return frozenset(names)

    def _take(self, document: Document, application: Reading, group: str) -> None:
        try:
            self.parts += list(read_application(application, group, self._context))
        except Uncarried as error:
            name = dig(application.body, "metadata", "name")
            origin = f" of ApplicationSet {group}" if group else ""
            self.failed.append(Remark(document.source, f"Application {name}{origin}", str(error), FAILED))

    def rollouts(self) -> dict[str, tuple[JsonObject, ...]]:
        """The Rollouts of all sets by their files, when all clusters are known."""
        clusters = {member.name for member in self._context.destinations.members}
        documents: dict[str, tuple[JsonObject, ...]] = {}
        staged: set[str] = set()
        for rolling, name, apps in self._rolling:
            document = _rollout(rolling, name, apps, clusters, staged)
            if document is not None:
                staged.update(document["spec"]["templates"]["namespaces"])
                documents[f"rollouts/{document['metadata']['name']}.yaml"] = (document,)
        return documents


def _selector(generators: Sequence[Reading]) -> dict[str, Any]:
    """Return the selector of a set with one generator of clusters, so that new ones follow it; empty: it has none."""
    body = generators[0].body if len(generators) == 1 else {}
    selector = dig(body, "clusters", "selector") if "selector" not in body else None
    keys = set(dig(selector, "matchLabels") or {})
    keys |= {dig(one, "key") for one in dig(selector, "matchExpressions") or []}
    return {"labelSelector": dict(selector or {})} if keys and SECRET_TYPE not in keys else {}


_WHY_NOT = "its steps share clusters, or another set is in its namespaces; write a Rollout (docs/how-to/rollouts.md)"


def _rollout(
    rolling: Reading, name: str, apps: Sequence[App], clusters: Set[str], others: Set[str]
) -> JsonObject | None:
    """Return the Rollout of a RollingSync, for the namespaces of the set; None, with a remark, if there is none.

    Its steps select applications, a stage selects their clusters. `clusters`: of the fleet. `others`: namespaces of
    other Rollouts. Source: argo-cd.readthedocs.io/en/stable/operator-manual/applicationset/Progressive-Syncs/.
    """
    stages: list[dict[str, Any]] = []
    staged: set[str] = set()
    namespaces = {app.namespace for app in apps}
    for number, step in enumerate(rolling.children("steps")):
        chosen = {app.cluster for app in apps if _selects(step, app)}
        most = step.text("maxUpdate")
        if chosen & staged or not chosen or most in ("0", "0%"):
            rolling.notes.leave(rolling.document, (*rolling.below, "steps", number), _WHY_NOT)
            return None
        staged |= chosen
        stage: dict[str, Any] = {"name": f"step-{number + 1}", "clusters": {"clusterNames": sorted(chosen)}}
        if most:
            stage["maxConcurrency"] = int(most) if most.isdecimal() else most
        stages.append(stage)
    left = {app.cluster for app in apps} - staged
    if not stages or left or "" in namespaces or namespaces & others:
        rolling.notes.leave(rolling.document, rolling.below, _WHY_NOT)
        return None
    if clusters - staged:  # A Rollout has a stage for each cluster; what is in no step is not of this set.
        stages.append({"name": "others", "clusters": {}})
    return {
        "apiVersion": "fleet.reconciler/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": safe_name(name)},
        "spec": {"templates": {"namespaces": sorted(namespaces)}, "stages": stages},
    }


def _selects(step: Reading, app: App) -> bool:
    for wanted in step.children("matchExpressions"):
        value, values = app.labels.get(wanted.text("key")), wanted.texts("values")
        if (value in values) != (wanted.text("operator") == "In"):
            return False
    return True
