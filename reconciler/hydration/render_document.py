"""Documents of kind `Render`: renderer, clusters and output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from reconciler.api.content import dig, digest_of
from reconciler.api.fleet import HelmChart, ImageRule, LeftOut, Render, RenderPlacement, RenderSecrets, RenderVariant
from reconciler.api.policies import ClusterAffinity, LabelSelector
from reconciler.api.problem import NOWHERE, Document, Problem, Severity, Source
from reconciler.documents import (
    AFFINITY_SHAPE,
    LABEL_SELECTOR_SHAPE,
    Fields,
    document_shape,
    exactly,
    flag_field,
    is_api_version,
    is_dns_label,
    is_dns_subdomain,
    object_field,
    objects_field,
    own_document,
    shape,
    text_field,
    texts_field,
)
from reconciler.hydration.version_range import is_range
from reconciler.policy import read_affinity, read_label_selector
from reconciler.regex import regex
from reconciler.templates import parse_image

_NAME_MAX: Final = 53
"""Helm's own limit of the name of a release: with a chart's suffix it must still be a label."""
_VERSION: Final = regex(r"v?\d+(\.\d+){1,2}([-+][0-9A-Za-z.+-]+)?", re.ASCII)
_DIGEST: Final = regex(r"sha256:[0-9a-f]{64}", re.ASCII)
_REPOSITORY: Final = regex(r"https?://[0-9A-Za-z._~:/\[\]-]+", re.ASCII)
_REMOTE_CHART: Final = regex(r"oci://[0-9A-Za-z._:/-]*[0-9a-z]", re.ASCII)
_CHART_NAME: Final = regex(r"[0-9A-Za-z][0-9A-Za-z._-]*", re.ASCII)

_NO_RANGE: Final = "{} is no range of versions; write 1.x or >=1.2, <2"
_NO_PATH: Final = "{} is no path in the store; write one as apps/web, from its root, without . and .."
_RECIPIENT: Final = regex(r"age1[0-9a-z]{50,2000}", re.ASCII)

_HELM: Final = shape(
    text_field(
        "chart",
        "The chart: an archive or a folder in the store, an `oci://` reference, or its name in `repository`.",
        required=True,
    ),
    text_field("repository", "The address of a chart repository that serves the chart."),
    text_field("version", "The version of a chart that is served; required there."),
    text_field("digest", "`sha256:` and the digest of the archive of a chart that is served; required there."),
    text_field("update", "A range of versions as helm reads it: `hydrate --update` writes the newest served one."),
    text_field("releaseName", "The name of the release.", default="the name of the document"),
    text_field("namespace", "The namespace of the release.", required=True),
    texts_field("values", "Files with values, the later ones win."),
    text_field("kubeVersion", "The version that the chart sees, since no cluster is asked.", required=True),
    texts_field("apiVersions", "Further API versions that the chart sees as served."),
    flag_field(
        "includeCRDs", "Whether the definitions of the chart's own kinds are among the output.", default="false"
    ),
)
_VARIANT: Final = shape(
    text_field("name", "What the variant is called.", required=True),
    object_field("clusters", "The clusters that it is for.", shape=AFFINITY_SHAPE, required=True),
    texts_field("values", "Helm: files with values that come after those of the base."),
    text_field("overlay", "Kustomize: the folder that is built in place of the base's."),
)
_PLACEMENT: Final = shape(
    object_field("clusters", "The clusters that the objects of the base go to.", shape=AFFINITY_SHAPE, required=True),
    text_field(
        "conflictResolution",
        "As in a policy: what to do where an object exists already.",
        values=exactly("Abort", "Overwrite"),
        default="Abort",
    ),
    flag_field(
        "preserveResourcesOnDeletion",
        "As in a policy: whether what leaves the output is released instead of deleted.",
        default="false",
    ),
    text_field("takeOver", "The tool that holds the objects now, written on each as `fleet.reconciler/take-over`."),
)
RENDER_SHAPE: Final = document_shape(
    object_field(
        "spec",
        "What is rendered, and where it is written.",
        object_field("helm", "A Helm chart.", shape=_HELM),
        object_field(
            "kustomize",
            "A folder with a kustomization; with helm as well, `helm.yaml` among the resources is the output of helm.",
            text_field("path", "The folder.", required=True),
            text_field("namespace", "The namespace of objects that say none; with helm it is that of the release."),
        ),
        objects_field("variants", "Other values or overlays for some clusters.", shape=_VARIANT),
        object_field(
            "placement",
            "Where the objects go: a policy is written beside them. Without it policies of your own place them.",
            shape=_PLACEMENT,
        ),
        objects_field(
            "leaveOut",
            "Objects that are left out of the output.",
            text_field("kind", "Their kind.", required=True),
            text_field("group", "Their API group; empty text: the core group.", default="any"),
            text_field("namespace", "Their namespace.", default="any"),
            text_field("name", "Their name.", default="any"),
            object_field("labelSelector", "Their labels.", shape=LABEL_SELECTOR_SHAPE),
        ),
        objects_field(
            "images",
            "Images of values files and kustomizations: `hydrate --update` writes their newest tags, and digests.",
            text_field("name", "The image, as it is written there: `registry.example.com/web`.", required=True),
            text_field("update", "The range that tags may be of: `1.x`, `~1.2`, `>=1.2, <2`.", required=True),
        ),
        object_field(
            "secrets",
            "Secrets with content: one of both, or they are refused. Empty ones are kept, for what fills them.",
            text_field("leaveOut", "They are left out; what makes them instead, in words."),
            texts_field("age", "They are encrypted by sops for these recipients of age."),
        ),
        text_field("output", "The folder that the command writes, and nobody else.", required=True),
        required=True,
    )
)


def parse_render(document: Document) -> tuple[Render | None, tuple[Problem, ...]]:
    """The render that a document describes and every problem of it; None when one is an error.

    Paths are relative to the root of the store. Source: docs/adr/0019-variants-as-overrides.md.
    """
    rule = f"a Render: small letters, digits and dashes, at most {_NAME_MAX}"
    fields, name = own_document(document, RENDER_SHAPE, "Render", _is_name, rule)
    assert fields.text("kind") == "Render", "the kind says that it is one"
    spec = fields.child("spec")
    return fields.result(_render(fields, spec, name) if spec else None)


def _is_name(text: str) -> bool:
    return is_dns_label(text) and len(text) <= _NAME_MAX


def _render(document: Fields, spec: Fields, name: str) -> Render:
    helm, kustomize = spec.child("helm"), spec.child("kustomize")
    if spec.is_empty("helm") and spec.is_empty("kustomize"):
        spec.error("render-source", "write helm, kustomize or both")
    if helm and kustomize and kustomize.has("namespace"):
        kustomize.error("render-source", "with helm it is helm.namespace", "namespace")
    path, chart = _path(kustomize, "path") if kustomize else "", _helm(helm, name) if helm else None
    render = Render(
        name=name,
        helm=chart,
        kustomize=path,
        namespace=chart.namespace if chart else _namespace(kustomize) if kustomize else "",
        variants=tuple(_variants(spec, is_helm=helm is not None, is_kustomize=kustomize is not None)),
        placement=_placement(spec),
        left_out=tuple(_left_out(fields) for fields in spec.children("leaveOut")),
        secrets=_secrets(spec),
        images=tuple(_images(spec)),
        output=_path(spec, "output"),
        digest=digest_of({"name": name, "spec": document.report.document.body.get("spec")}),
        source=document.source(),
    )
    _check_output(spec, render)
    return render


def _helm(fields: Fields, name: str) -> HelmChart:
    chart = HelmChart(
        chart=fields.text("chart"),
        repository=fields.text("repository"),
        version=fields.text("version"),
        digest=fields.text("digest"),
        update=fields.text("update"),
        release_name=fields.text("releaseName", name),
        namespace=_namespace(fields),
        values=_paths(fields, "values"),
        kube_version=fields.text("kubeVersion"),
        api_versions=fields.texts("apiVersions"),
        include_crds=bool(fields.flag("includeCRDs")),
    )
    if chart.is_remote:
        _check_remote(fields, chart)
    elif fields.has("chart"):
        _path(fields, "chart")
        for field in ("version", "digest", "update"):
            if fields.has(field):
                message = f"{field} is of a chart that others serve; the lock names what stands in the store"
                fields.error("render-chart", message, field)
    if not (is_dns_subdomain(chart.release_name) and len(chart.release_name) <= _NAME_MAX):
        fields.error("name-illegal", f"{chart.release_name!r} names no release", "releaseName")
    fields.check("kubeVersion", _VERSION.fullmatch, "render-version", "{} is no version; write one as 1.36")
    message = "{} is no API version; write one as policy/v1, or policy/v1/PodDisruptionBudget"
    fields.check("apiVersions", _is_served, "render-version", message)
    return chart


def _is_served(text: str) -> bool:
    group_version, _, kind = text.rpartition("/")
    return is_api_version(text) or (is_api_version(group_version) and kind.isalnum())


def _namespace(fields: Fields) -> str:
    fields.check("namespace", is_dns_label, "name-illegal", "{} names no namespace")
    return fields.text("namespace")


def _check_remote(fields: Fields, chart: HelmChart) -> None:
    if chart.repository:
        if not _REPOSITORY.fullmatch(chart.repository):
            message = "write the address as https://charts.example.com, without user, password and question"
            fields.error("render-chart", message, "repository")
        if not _CHART_NAME.fullmatch(chart.chart):
            fields.error("render-chart", "write the chart's name in the repository", "chart")
    elif not _REMOTE_CHART.fullmatch(chart.chart):
        message = "write the reference as oci://registry.example.com/charts/web; the version is a field of its own"
        fields.error("render-chart", message, "chart")
    if not _VERSION.fullmatch(chart.version):
        fields.error("render-chart", "a chart that others serve needs its exact version", "version")
    fields.check("update", is_range, "render-version", _NO_RANGE)
    if not _DIGEST.fullmatch(chart.digest):
        message = "a chart that others serve needs the digest of its archive: sha256: and 64 digits"
        fields.error("render-chart", message, "digest")


def _variants(spec: Fields, *, is_helm: bool, is_kustomize: bool) -> Iterator[RenderVariant]:
    fit = [name for name, is_fit in (("values", is_helm), ("overlay", is_kustomize)) if is_fit]
    names: set[str] = set()
    by_affinity: dict[ClusterAffinity, str] = {}
    for fields in spec.children("variants"):
        name, clusters = fields.text("name"), fields.child("clusters")
        fields.check("name", _is_name, "name-illegal", "{} cannot name a variant")
        if name in names:
            fields.error("render-variant", f"the name {name} is taken by an earlier one", "name")
        names.add(name)
        unfit = [name for name in ("values", "overlay") if fields.has(name) and name not in fit]
        for name in unfit:
            fields.error("render-variant", f"this render has {fit[0] if fit else 'no source'} and no {name}", name)
        if not unfit and all(fields.is_empty(name) for name in fit):
            fields.error("render-variant", f"a variant says how it differs: write {' or '.join(fit)}")
        if clusters is None:
            continue
        affinity = read_affinity(clusters)
        of = replace(affinity, source=NOWHERE)
        twin = by_affinity.get(of, "")
        by_affinity.setdefault(of, name)
        if twin:
            clusters.error("render-variant", f"the variant {twin} is for the same clusters")
        yield RenderVariant(
            name=name,
            clusters=affinity,
            written=dig(spec.report.document.body, *clusters.steps),
            values=_paths(fields, "values") if is_helm else (),
            overlay=_path(fields, "overlay") if is_kustomize else "",
            source=fields.source(),
        )


def _placement(spec: Fields) -> RenderPlacement | None:
    fields = spec.child("placement")
    clusters = fields.child("clusters") if fields else None
    if fields is None or clusters is None:
        return None
    written = dig(spec.report.document.body, *fields.steps)
    terms = {name: written[name] for name in ("conflictResolution", "preserveResourcesOnDeletion") if name in written}
    return RenderPlacement(
        clusters=read_affinity(clusters), written=written["clusters"], terms=terms, take_over=fields.text("takeOver")
    )


def _left_out(fields: Fields) -> LeftOut:
    labels = fields.child("labelSelector")
    return LeftOut(
        kind=fields.text("kind"),
        group=fields.text("group") if fields.has("group") else None,
        namespace=fields.text("namespace"),
        name=fields.text("name"),
        labels=read_label_selector(labels) if labels else LabelSelector(),
        source=fields.source(),
    )


def _secrets(spec: Fields) -> RenderSecrets:
    fields = spec.child("secrets")
    if fields is None:
        return RenderSecrets()
    if fields.is_empty("leaveOut") == fields.is_empty("age"):
        fields.error("render-secret", "write one of leaveOut (what makes them) and age (recipients)")
    fields.check("age", _RECIPIENT.fullmatch, "render-secret", "{} is no recipient of age; write age1…")
    return RenderSecrets(made_by=fields.text("leaveOut"), age=fields.texts("age"))


def _images(spec: Fields) -> Iterator[ImageRule]:
    for fields in spec.children("images"):
        rule = ImageRule(name=fields.text("name"), update=fields.text("update"))
        image = parse_image(rule.name)
        if fields.has("name") and (image is None or image.tag or image.digest):
            fields.error("render-version", f"{rule.name!r} is no image; write it without tag and digest", "name")
        fields.check("update", is_range, "render-version", _NO_RANGE)
        yield rule


def _paths(fields: Fields, name: str) -> tuple[str, ...]:
    fields.check(name, is_plain_path, "render-path", _NO_PATH)
    return fields.texts(name)


def _path(fields: Fields, name: str) -> str:
    fields.check(name, is_plain_path, "render-path", _NO_PATH)
    return fields.text(name)


def is_plain_path(path: str) -> bool:
    """Return whether a path is in its one form: from the root of the store, without parts that lead elsewhere.

    >>> is_plain_path("apps/web"), is_plain_path("../web"), is_plain_path("/etc"), is_plain_path("https://x/y")
    (True, False, False, False)
    """
    parts = path.split("/")
    is_text = path.isprintable() and not set(path) & set(":,\\")
    return is_text and not any(part in ("", ".", "..", ".git") or part.startswith("-") for part in parts)


def _check_output(spec: Fields, render: Render) -> None:
    """Report a misplaced output: its folder is rewritten, so it may hold nothing else, and be in no input."""
    if not spec.has("output"):
        return
    for path in sorted(filter(None, inputs_named(render))):
        if is_below(path, render.output) or is_below(render.output, path):
            message = f"{render.output} and {path}, which it is made from, are one in the other; write it elsewhere"
            spec.error("render-output", message, "output")
    if is_below(spec.report.document.path, render.output):
        spec.error("render-output", "this document stands in its own output", "output")


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or in it."""
    return path == folder or path.startswith(f"{folder}/")


def kustomize_folders(render: Render) -> tuple[str, ...]:
    """Return the folders that kustomize is run in."""
    return tuple(filter(None, (render.kustomize, *(variant.overlay for variant in render.variants))))


def inputs_named(render: Render) -> frozenset[str]:
    """Return files and folders that a render reads, as far as the document shows."""
    helm, values = render.helm, (path for variant in render.variants for path in variant.values)
    return frozenset((*kustomize_folders(render), *((helm.path, *helm.values, *values) if helm is not None else ())))


def problem_of(
    render: Render, code: str, message: str, source: Source | None = None, *, variant: str = "",
    severity: Severity = Severity.ERROR,
) -> Problem:  # fmt: skip
    """Return a problem of a render as a whole, or at a place of its own."""
    text = f"Render {render.name}{f', variant {variant}' if variant else ''}: {message}"
    return Problem(source=source or render.source, code=code, message=text, severity=severity)
