"""One HelmRelease as the render of its cluster. Source: fluxcd.io/flux/components/helm/helmreleases/."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.api.content import JsonObject, dig, digest_of
from reconciler.api.problem import Document
from reconciler.hydration import HELM_OUTPUT, merged_values
from reconciler.importers.app import App, Ignored, Inline, check_namespace, ignored, safe_name
from reconciler.importers.charts import local_chart, plain, remote_chart, values_at
from reconciler.importers.flux.sources import (
    Context,
    Reference,
    cluster_of,
    reading_of,
    referred,
    source_spoken_for,
    spoken_for,
    with_common_metadata,
)
from reconciler.importers.reading import Reading, Uncarried
from reconciler.importers.settings import Settings, of_settings, values_of

_NAME_MAX: Final = 53
_KEPT: Final = 40
_DIGITS: Final = 12
_CREATE: Final = ("", "Create", "CreateReplace")


def read_release(document: Document, context: Context) -> Iterator[App | Ignored]:
    """Yield the render of a HelmRelease, and its ignored fields.

    Raises Uncarried: it cannot be carried over as it is.
    """
    spec, namespace, name = reading_of(document, context.notes)
    cluster = cluster_of(spec, context)
    target = check_namespace(spec.text("targetNamespace") or namespace)
    spec.leave("storageNamespace", "no state of releases is kept")
    after = _after(spec)
    release, prefix = spec.text("releaseName"), spec.text("targetNamespace")
    if not release:  # As Flux composes and shortens it.
        release = f"{prefix}-{name}" if prefix else name
        if len(release) > _NAME_MAX:
            release = f"{release[:_KEPT]}-{hashlib.sha256(release.encode()).hexdigest()[:_DIGITS]}"
    chart = _Chart(spec, namespace, context, _running(document))
    helm = {
        **chart.where,
        "releaseName": release,
        "namespace": target,
        "kubeVersion": context.kube_version,
        "includeCRDs": _with_crds(spec),
    }
    values = [*chart.values, *_values_from(spec, namespace, context)]
    if spec.map("values"):
        values.append(Inline(spec.map("values")))
    yield from _ignored(spec)
    spoken_for(spec)
    for key in ("test", "rollback", "uninstall"):
        spec.leave(key, "nothing is installed by helm, and hooks and tests are left out")
    spec.rest()
    yield App(
        name=safe_name(name),
        group=f"HelmRelease/{namespace}/{name}",
        kinship=digest_of([helm, after]),
        source=document.source,
        cluster=cluster,
        tool="Flux",
        helm=helm,
        folder={"kustomization.yaml": (after,)} if after else {},
        values=tuple(values),
        files=chart.files,
        missing=chart.missing,
    )


def _after(spec: Reading) -> JsonObject:
    """Return the kustomization that patches what helm makes; empty: there is none.

    Raises Uncarried: one of several patches what an earlier one gave another image, or a program makes the change.
    """
    fields: dict[str, Any] = {}
    for renderer in spec.children("postRenderers"):
        block = renderer.child("kustomize")
        for key in ("patchesStrategicMerge", "patchesJson6902"):
            block.refuse(key, "write them as patches, which Flux takes too")
        for key in ("patches", "images"):
            entries = [dict(each.body) for each in block.children(key)]
            if entries and key == "patches" and "images" in fields:
                raise Uncarried("spec.postRenderers: patches after images of an earlier one; write them as one")
            if entries:
                fields[key] = [*fields.get(key, []), *entries]
        block.rest()
        renderer.rest()
    fields = with_common_metadata(fields, spec)
    kind = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [HELM_OUTPUT]}
    return {**kind, **fields} if fields else {}


def _running(document: Document) -> str:
    """Return the version of the chart that Flux installed last; empty: its status does not say."""
    history = dig(document.body, "status", "history") or []
    deployed = [one for one in history if dig(one, "status") == "deployed"] or history
    version = dig(deployed[0], "chartVersion") if deployed else dig(document.body, "status", "lastAppliedRevision")
    return str(version or "")


def _with_crds(spec: Reading) -> bool:
    policies = []
    for key in ("install", "upgrade"):
        block = spec.child(key)
        policies.append(block.text("crds"))
        block.flag("createNamespace")
        block.leave("skipCRDs", "crds: Skip says the same")
        block.leave("remediation", "what fails is tried again; a Rollout stops where a change is not healthy")
        block.leave("disableHooks", "hooks are left out in any case")
        for quiet in ("timeout", "disableWait", "replace", "cleanupOnFail", "disableWaitForJobs"):
            block.value(quiet)
        block.rest()
    return policies[0] in _CREATE and not spec.child("install").flag("skipCRDs")


class _Chart:
    """The chart of a release: as `spec.helm` names it, with the files that it needs."""

    def __init__(self, spec: Reading, namespace: str, context: Context, running: str) -> None:
        self._running = running
        self.values: list[str | Inline] = []
        self.missing: dict[str, str] = {}
        self.files: dict[str, bytes] = {}
        self._context = context
        reference = spec.child("chartRef")
        if reference.body:
            self.where = self._referred(referred(reference, namespace))
            return
        chart = spec.child("chart")
        chart.leave("metadata", "no object of the chart is kept")
        self.where = self._of_template(chart.child("spec"), namespace)
        chart.rest()

    def _referred(self, wanted: Reference) -> dict[str, Any]:
        if wanted.kind == "HelmChart":
            return self._of_template(self._context.sources.get(wanted), wanted.namespace)
        if wanted.kind != "OCIRepository":
            raise Uncarried(f"a chart of a {wanted.kind} is not known")
        spec = self._context.sources.get(wanted)
        url, ref = spec.text("url"), spec.child("ref")
        version = ref.text("semver") or ref.text("tag")
        ref.leave("digest", "it is that of the manifest, and a Render names the archive; hydrate --update says which")
        ref.rest()
        source_spoken_for(spec, but=("ref",))
        registry, _, chart = url.rstrip("/").rpartition("/")
        fetched = self._context.sources.revision(wanted).partition("@")[0]
        # Flux writes the digest of the manifest behind the version, as build metadata.
        return remote_chart(registry, chart, version, self._running.partition("+")[0] or fetched)

    def _of_template(self, spec: Reading, namespace: str) -> dict[str, Any]:
        name, version = spec.text("chart"), spec.text("version")
        wanted = referred(spec.child("sourceRef"), namespace)
        listed, may_lack = spec.texts("valuesFiles"), spec.flag("ignoreMissingValuesFiles")
        for key in ("interval", "reconcileStrategy"):
            spec.value(key)
        spec.leave("verify", "a signature is not looked at; the digest of a chart says what it is")
        spec.rest()
        if wanted.kind == "HelmRepository":
            if listed:
                raise Uncarried("spec.chart.spec.valuesFiles are inside a chart that others serve; copy them out of it")
            source = self._context.sources.get(wanted)
            url = source.text("url")
            source_spoken_for(source)
            return remote_chart(url, name, version, self._running)
        url = self._context.sources.url(wanted)
        checkouts = self._context.checkouts
        where, place, self.files = local_chart(url, name, checkouts, self.missing)
        own, paths = f"{plain(name)}/values.yaml", [plain(text) for text in listed]
        if paths and own not in paths:
            raise Uncarried(f"spec.chart.spec.valuesFiles lacks {own}, whose values a chart has here in any case")
        for path in paths:
            self.values += values_at(place, path, url, checkouts, self.files, self.missing, may_lack=may_lack)
        return where


def _values_from(spec: Reading, namespace: str, context: Context) -> list[Inline]:
    layers: list[Inline] = []
    below: dict[str, Any] = {}
    for reference in spec.children("valuesFrom"):
        kind, name, key = reference.text("kind"), reference.text("name"), reference.text("valuesKey", "values.yaml")
        target, may_lack = reference.text("targetPath"), reference.flag("optional")
        is_literal = reference.flag("literal")
        reference.rest()
        if kind != "ConfigMap":
            raise Uncarried(
                f"{reference.path('kind')}: values of the {kind} {name} would be committed as they are; let the chart "
                "refer to a Secret that exists"
            )
        data = context.sources.data(namespace, name)
        text = data.get(key) if data is not None else None
        if not isinstance(text, str):
            if may_lack:
                reference.leave("name", f"the ConfigMap {name} has no {key} among the documents, and may lack it")
                continue
            raise Uncarried(f"the ConfigMap {namespace}/{name} with {key} is not among the documents; give it too")
        values = _at(text, target, below, is_literal=is_literal) if target else values_of(text)
        below = merged_values(below, values)
        layers.append(Inline(values))
    return layers


def _at(text: str, target: str, below: Mapping[str, Any], *, is_literal: bool) -> dict[str, Any]:
    """Return a text as the value at a path, as Flux gives it to Helm. `below`: the values before it."""
    is_quoted = not is_literal and len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return of_settings([Settings(target, text[1:-1] if is_quoted else text, is_quoted, is_literal)], below)


def _ignored(spec: Reading) -> Iterator[Ignored]:
    detection = spec.child("driftDetection")
    if detection.text("mode") in ("", "disabled", "warn") and detection.body:
        detection.leave("mode", "drift is put back; spec.drift.selfHeal: false of the Fleet document shows it only")
    for rule in detection.children("ignore"):
        paths, refused = ignored(rule.texts("paths"))
        target = rule.child("target")
        names = {key: target.text(key) for key in ("kind", "namespace", "name")}
        for key in ("labelSelector", "annotationSelector", "version"):
            target.leave(key, "a rule names objects by kind, namespace and name; it is for all of them")
        if refused:
            rule.leave("paths", f"{', '.join(refused)}: no plain path; write spec.ignore of the Fleet document")
        if paths:
            yield Ignored(target.body.get("group"), names["kind"], names["namespace"], names["name"], paths)
        target.value("group")
        target.rest()
        rule.rest()
    detection.rest()
