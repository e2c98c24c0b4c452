"""The sources that Flux's documents refer to, without their credentials, and the fields that its kinds share.

Source: fluxcd.io/flux/components/source/.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.problem import Document
from reconciler.importers.checkouts import Checkouts
from reconciler.importers.reading import Notes, Reading, Uncarried

GROUP: Final = "toolkit.fluxcd.io"
_KINDS: Final = ("GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart", "ArtifactGenerator")
_QUIET: Final = ("interval", "timeout", "gitImplementation")
_COMMON_QUIET: Final = ("interval", "retryInterval", "timeout", "persistentClient", "maxHistory")
"""Intervals, timeouts and limits: each cluster here has its own pace."""
_WHY: Final = {
    "secretRef": "credentials are those of the person who fetches",
    "certSecretRef": "certificates are those of the person who fetches",
    "ref": "the files of the checkout are taken as they lie; check this revision out there before",
    "verify": "a signature is not looked at; the digest of a chart says what it is",
    "suspend": "nothing fetches it here",
    "ignore": "only .sourceignore leaves files out; write the patterns into it, and import again",
    "include": "copy what it includes into the checkout",
    "recurseSubmodules": "check submodules out before",
    "type": "",
    "provider": "credentials are those of the person who fetches",
    "insecure": "",
    "passCredentials": "the login is that of HELM_REGISTRY_CONFIG",
    "layerSelector": "",
}

_OF_ARTIFACT: Final = {
    "ref": "the files of the artifact are taken as they lie: unpack it before (oras pull), or follow one with the "
    "whole store as oci:// (docs/how-to/oci-artifacts.md)",
    "verify": "no signature is looked at here; one of a store that is an artifact is (RECONCILER_OCI_VERIFY_KEY)",
}


class Reference(NamedTuple):
    """The kind, namespace and name of a source."""

    kind: str
    namespace: str
    name: str


class Sources:
    """The sources and ConfigMaps among the documents of one cluster."""

    def __init__(self, documents: Iterable[Document], notes: Notes) -> None:
        """Know the documents by kind, namespace and name."""
        self._notes = notes
        self._documents: dict[Reference, Document] = {}
        for document in documents:
            body = document.body
            is_source = "fluxcd.io/" in str(body.get("apiVersion", "")) and body.get("kind") in _KINDS
            if is_source or (body.get("apiVersion"), body.get("kind")) == ("v1", "ConfigMap"):
                self._documents[reference_of(body)] = document

    def get(self, wanted: Reference) -> Reading:
        """The spec of a source. Raises Uncarried: it is not among the documents."""
        document = self._documents.get(wanted)
        if document is None:
            raise Uncarried(
                f"its {wanted.kind} {wanted.namespace}/{wanted.name} is not among the documents; give it too"
            )
        return Reading(document, document.body, (), self._notes).child("spec")

    def url(self, wanted: Reference) -> str:
        """Return the address of a source whose files a checkout has; report its other fields as left out.

        Raises Uncarried: it is not among the documents.
        """
        spec = self.get(wanted)
        address = spec.text("url") or f"{spec.text('endpoint')}/{spec.text('bucketName')}"
        at = self.revision(wanted)
        why = _OF_ARTIFACT if wanted.kind == "OCIRepository" else _WHY
        spec.leave("ref", f"{why['ref']}{f': {at} runs' if at else ''}")
        spec.leave("verify", why["verify"])
        source_spoken_for(spec, but=("ref", "verify"))
        return address

    def revision(self, wanted: Reference) -> str:
        """Return the revision that a source was fetched at; empty: its status does not say."""
        document = self._documents.get(wanted)
        value = dig(document.body, "status", "artifact", "revision") if document is not None else None
        return str(value or "")

    def located(self, wanted: Reference, path: str) -> tuple[str, str]:
        """Return the address of a source, and the path there that a path of it is.

        An ExternalArtifact is a copy of paths of other sources, as an ArtifactGenerator says.
        Raises Uncarried: the source is not among the documents, or the path is of several copies or none.
        """
        if wanted.kind != "ExternalArtifact":
            return self.url(wanted), path
        for reference, document in self._documents.items():
            spec = dig(document.body, "spec")
            if reference.kind != "ArtifactGenerator" or reference.namespace != wanted.namespace:
                continue
            for artifact in dig(spec, "artifacts") or []:
                if dig(artifact, "name") == wanted.name:
                    alias, inside = _copied_from(wanted, dig(artifact, "copy") or [], path)
                    source: Json = next((one for one in dig(spec, "sources") or [] if dig(one, "alias") == alias), {})
                    namespace = str(dig(source, "namespace") or reference.namespace)
                    return self.url(Reference(str(dig(source, "kind")), namespace, str(dig(source, "name")))), inside
        raise Uncarried(
            f"no ArtifactGenerator among the documents makes the ExternalArtifact {wanted.namespace}/{wanted.name}; "
            "give it too"
        )

    def data(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The data of a ConfigMap; None when it is not among the documents."""
        document = self._documents.get(Reference("ConfigMap", namespace, name))
        content = dig(document.body, "data") if document is not None else None
        return content if isinstance(content, Mapping) else None


def _copied_from(wanted: Reference, copies: Json, path: str) -> tuple[str, str]:
    """Return the alias of the source that a path of an artifact is copied from, and the path there.

    Source: fluxcd.io/flux/components/source/artifactgenerators/: `from: @alias/dir/**`, `to: @artifact/dir/`. A folder
    without a glob is copied into the destination, as by cp (source-watcher, internal/builder).
    """
    folders = []
    for copy in copies if isinstance(copies, list) else []:
        start, end = str(dig(copy, "from") or ""), str(dig(copy, "to") or "").removeprefix("@artifact/").strip("/")
        alias, _, pattern = start.removeprefix("@").partition("/")
        folder = "" if pattern == "**" else pattern.removesuffix("/**").strip("/")
        is_plain = not set(folder) & set("*?[]") and not (dig(copy, "exclude") or dig(copy, "strategy"))
        if is_plain and (not end or path == end or path.startswith(f"{end}/")):
            below = path.removeprefix(end).strip("/")
            first, _, rest = below.partition("/")
            if not pattern.endswith("**") and first == folder.rpartition("/")[2]:
                below = rest
            folders.append((alias, "/".join(part for part in (folder, below) if part)))
    if len(folders) != 1:
        raise Uncarried(
            f"the path {path or '.'} of the ExternalArtifact {wanted.name} is of {len(folders)} copies of folders; "
            "name a folder that is copied as a whole"
        )
    return folders[0]


def source_spoken_for(spec: Reading, *, but: tuple[str, ...] = ()) -> None:
    """Say of each further field of a source why it is not taken; `but`: those that were."""
    for key in _QUIET:
        spec.value(key)
    for key, why in _WHY.items():
        if key in but or not why:
            spec.value(key)
        else:
            spec.leave(key, why)
    spec.rest()


def referred(reference: Reading, namespace: str) -> Reference:
    """Return the target of a reference in a namespace."""
    kind, name = reference.text("kind"), reference.text("name")
    target = Reference(kind, reference.text("namespace", namespace), name)
    reference.text("apiVersion")
    reference.rest()
    return target


def mentions(body: JsonObject) -> Iterator[Reference]:
    """Yield what a document refers to by kind and name."""
    own = reference_of(body)
    pending: list[Json] = [body.get("spec")]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            pending += node.values()
            if isinstance(node.get("kind"), str) and isinstance(node.get("name"), str):
                yield Reference(node["kind"], str(node.get("namespace") or own.namespace), node["name"])


def artifacts_of(body: JsonObject) -> Iterator[Reference]:
    """Yield the artifacts that a generator makes."""
    for artifact in dig(body, "spec", "artifacts") or [] if body.get("kind") == "ArtifactGenerator" else []:
        yield Reference("ExternalArtifact", reference_of(body).namespace, str(dig(artifact, "name")))


def reference_of(body: Mapping[str, Any]) -> Reference:
    """Return the kind, namespace and name of a document."""
    return Reference(
        str(body.get("kind")), str(dig(body, "metadata", "namespace") or "default"), str(dig(body, "metadata", "name"))
    )


class Context(NamedTuple):
    """The inputs for the documents of one cluster. `names`: cluster names by those of Secrets with kubeconfigs."""

    cluster: str
    sources: Sources
    checkouts: Checkouts
    kube_version: str
    names: Mapping[str, str]
    notes: Notes


def cluster_of(spec: Reading, context: Context) -> str:
    """Return the cluster of a document: with a kubeconfig another one than its controller's.

    Raises Uncarried: nobody says which one that is; the message names the option.
    """
    config = spec.child("kubeConfig")
    if not config.body:
        return context.cluster
    name = config.child("secretRef").text("name")
    if name not in context.names:
        wanted = name or "SECRET"
        raise Uncarried(
            f"which cluster the kubeconfig {wanted} leads to, nothing says: give --cluster-name {wanted}=NAME"
        )
    return context.names[name]


def spoken_for(spec: Reading) -> None:
    """Say of the fields that both kinds share why they are not taken."""
    for key in _COMMON_QUIET:
        spec.value(key)
    spec.leave("dependsOn", "the order follows from references and kinds; a Rollout says which clusters come first")
    spec.leave("suspend", "it is not reconciled there now; see docs/how-to/suspend.md")
    spec.leave("serviceAccountName", "there is one identity for each cluster, that of the kubeconfig")
    spec.leave("healthChecks", "health is judged for every object")
    spec.leave("healthCheckExprs", "health is judged as kstatus does; no expression is evaluated")


def with_common_metadata(fields: Mapping[str, Any], spec: Reading) -> dict[str, Any]:
    """Return the fields of a kustomization with `spec.commonMetadata`: of the objects, and not of their pods."""
    common = spec.child("commonMetadata")
    labels, annotations = common.map("labels"), common.map("annotations")
    common.rest()
    result = dict(fields)
    if labels:
        result["labels"] = [{"pairs": labels, "includeSelectors": False}]
    if annotations:
        # commonAnnotations of kustomize are those of pods too.
        patch = {"apiVersion": "any/v1", "kind": "Any", "metadata": {"name": "any", "annotations": annotations}}
        result["patches"] = [*result.get("patches", []), {"target": {"name": ".*"}, "patch": json.dumps(patch)}]
    return result


def reading_of(document: Document, notes: Notes) -> tuple[Reading, str, str]:
    """The spec of a document, and its namespace and name."""
    whole = Reading(document, document.body, (), notes)
    metadata = whole.child("metadata")
    return whole.child("spec"), metadata.text("namespace", "default"), metadata.text("name")
