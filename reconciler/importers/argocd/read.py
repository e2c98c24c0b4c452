"""Documents of Argo CD as a store: Applications as they are, ApplicationSets with their generated applications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from reconciler.api.content import JsonObject, dig
from reconciler.api.problem import Document
from reconciler.importers.app import App, Membership
from reconciler.importers.argocd.application import Context, read_application
from reconciler.importers.argocd.destinations import SECRET_TYPE, Destinations
from reconciler.importers.argocd.generators import Generating
from reconciler.importers.argocd.manifests import is_of
from reconciler.importers.argocd.rolling import Standing, rollout_of
from reconciler.importers.argocd.templating import Templates, check_filled, patched
from reconciler.importers.checkouts import Checkouts
from reconciler.importers.compose import ImportedStore, compose_store
from reconciler.importers.ignore import Ignored
from reconciler.importers.reading import NOT_ITS_OWN, Failure, Notes, Reading, Uncarried, distinct

_MADE_BY: Final = "ApplicationSet"


def read_argocd(
    documents: Iterable[Document],
    checkouts: Checkouts,
    *,
    fleet: str,
    kube_version: str,
    names: Mapping[str, str],
) -> ImportedStore:
    """Return the store of the Applications and ApplicationSets among the documents.

    `fleet`: its name. `kube_version`: for charts of applications without one. `names`: cluster names by addresses, or
    by the names in Argo CD. An application that cannot be converted is named in `failed`.
    """
    notes = Notes()
    found = distinct(documents, notes)
    secrets = [one for one in found if _is_cluster(one.body)]
    context = Context(Destinations(secrets, names), checkouts, kube_version, dict(map(_synced, found)))
    reading = _Reading(context, notes)
    made = {_place(one.body) for one in found if is_of(one.body, _MADE_BY)}
    for document in found:
        if is_of(document.body, _MADE_BY):
            reading.set(document, [one for one in found if _place(document.body) in _makers(one.body)])
        elif is_of(document.body, "Application") and not _makers(document.body) & made:
            reading.application(document)
        elif is_of(document.body, "AppProject"):
            reading.notes.leave(document, ("kind",), "there are no projects: one identity for each cluster")
        elif dig(document.body, "metadata", "labels", SECRET_TYPE) not in (None, "cluster"):
            reading.notes.leave(document, ("kind",), "credentials are those of the person who fetches")
        elif not _is_cluster(document.body) and not is_of(document.body, "Application"):
            reading.notes.leave(document, ("kind",), NOT_ITS_OWN)
    files, unfit = compose_store(fleet, reading.apps, context.destinations.members, reading.memberships, reading.rules)
    rollouts = reading.rollouts()
    return ImportedStore(
        files={**files, **rollouts},
        left_out=reading.notes.sorted(),
        failed=(*reading.failed, *unfit),
        missing={at: what for app in reading.apps for at, what in app.missing.items()},
    )


def _is_cluster(body: JsonObject) -> bool:
    return body.get("kind") == "Secret" and dig(body, "metadata", "labels", SECRET_TYPE) == "cluster"


def _synced(document: Document) -> tuple[str, tuple[str, ...]]:
    """Return the name of an Application and the revisions of its sources in its status."""
    sync = dig(document.body, "status", "sync") if is_of(document.body, "Application") else None
    found = dig(sync, "revisions") or [dig(sync, "revision") or ""]
    return str(dig(document.body, "metadata", "name")), tuple(map(str, found))


def _place(body: JsonObject) -> tuple[str, str]:
    """Return the namespace and the name of a document."""
    return str(dig(body, "metadata", "namespace") or ""), str(dig(body, "metadata", "name"))


def _makers(body: JsonObject) -> set[tuple[str, str]]:
    """Return the ApplicationSets that made an Application, which are in its namespace."""
    owners = dig(body, "metadata", "ownerReferences") if is_of(body, "Application") else None
    return {(_place(body)[0], str(dig(owner, "name"))) for owner in owners or [] if dig(owner, "kind") == _MADE_BY}


class _Reading:
    """The applications read so far."""

    def __init__(self, context: Context, notes: Notes) -> None:
        self._context = context
        self.notes = notes
        self.apps: list[App] = []
        self.rules: list[Ignored] = []
        self.failed: list[Failure] = []
        self.memberships: list[Membership] = []
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
            made = self._made(document, Reading(document, document.body, (), self.notes).child("spec"), name)
            for one in generated:
                if dig(one.body, "metadata", "name") not in made:
                    why = f"the ApplicationSet {name} makes it no longer of what the input has: check both"
                    self.notes.leave(one, ("metadata", "name"), why)
        except Uncarried as error:
            if not generated:
                self.failed.append(Failure(document.source, f"ApplicationSet {name}", str(error)))
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
        before = len(self.apps)
        names: set[str] = set()
        for own, row in rows:
            try:
                body = patched(templates.filled(own, row), templates.filled(patch, row))
                check_filled(body)
                names.add(str(dig(body, "metadata", "name")))
            except Uncarried as error:
                self.failed.append(Failure(document.source, f"ApplicationSet {name}", str(error)))
            else:
                self._take(document, Reading(document, body, ("spec", "template"), self.notes), name)
        self._strategy(spec, name, self.apps[before:])
        spec.leave("syncPolicy", "nothing is generated later: what is in the store stays there until it is taken out")
        spec.leave("preservedFields", "nothing else writes the documents of a store")
        spec.leave("ignoreApplicationDifferences", "nothing else writes the documents of a store")
        spec.leave("applyNestedSelectors", "selectors are applied where they stand")
        spec.rest()
        self.memberships += _membership(name, generators)
        return frozenset(names)

    def _take(self, document: Document, application: Reading, group: str) -> None:
        found: list[App | Ignored] = []
        try:
            found += read_application(application, group, self._context)
        except Uncarried as error:
            name = dig(application.body, "metadata", "name")
            made = f" of ApplicationSet {group}" if group else ""
            self.failed.append(Failure(document.source, f"Application {name}{made}", str(error)))
            return
        self.apps += [one for one in found if isinstance(one, App)]
        self.rules += [one for one in found if isinstance(one, Ignored)]

    def rollouts(self) -> dict[str, tuple[JsonObject, ...]]:
        """The Rollouts of all sets by their files, when all clusters are known."""
        clusters = {member.name for member in self._context.destinations.members}
        found: dict[str, tuple[JsonObject, ...]] = {}
        taken: set[str] = set()
        for rolling, name, apps in self._rolling:
            document = rollout_of(rolling, name, apps, Standing(clusters, taken))
            if document is not None:
                taken.update(document["spec"]["templates"]["namespaces"])
                found[f"rollouts/{document['metadata']['name']}.yaml"] = (document,)
        return found

    def _strategy(self, spec: Reading, name: str, apps: list[App]) -> None:
        strategy = spec.child("strategy")
        if strategy.text("type") == "RollingSync":
            self._rolling.append((strategy.child("rollingSync"), name, apps))
        strategy.leave("deletionOrder", "deletion follows references in reverse, with guards")
        strategy.rest()


def _membership(group: str, generators: Iterable[Reading]) -> Iterator[Membership]:
    """The label selector of a set with one generator of clusters, so that new clusters follow it."""
    found = list(generators)
    if len(found) != 1 or "clusters" not in found[0].body or "selector" in found[0].body:
        return
    selector = dig(found[0].body, "clusters", "selector")
    keys = set(dig(selector, "matchLabels") or {})
    keys |= {dig(one, "key") for one in dig(selector, "matchExpressions") or []}
    if keys and SECRET_TYPE not in keys:
        yield Membership(group=group, selector={"labelSelector": dict(selector)})
