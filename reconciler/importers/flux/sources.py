"""The sources that Flux's documents refer to. Their credentials are never read.

Source: fluxcd.io/flux/components/source/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.content import dig
from reconciler.api.problem import Document
from reconciler.importers.reading import Notes, Reading, Uncarried

GROUP: Final = "toolkit.fluxcd.io"
_KINDS: Final = ("GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart")
_QUIET: Final = ("interval", "timeout", "gitImplementation")
_WHY: Final = {
    "secretRef": "credentials are those of the person who fetches",
    "certSecretRef": "certificates are those of the person who fetches",
    "ref": "the files of the checkout are taken as they lie; check this revision out there before",
    "verify": "a signature is not looked at; the digest of a chart says what it is",
    "suspend": "nothing fetches it here",
    "ignore": "all files of a folder are copied",
    "include": "copy what it includes into the checkout",
    "recurseSubmodules": "check submodules out before",
    "type": "",
    "provider": "credentials are those of the person who fetches",
    "insecure": "",
    "passCredentials": "the login is that of HELM_REGISTRY_CONFIG",
    "layerSelector": "",
}


class Reference(NamedTuple):
    """Which source is meant."""

    kind: str
    namespace: str
    name: str


class Sources:
    """The sources and ConfigMaps among the documents of one cluster."""

    def __init__(self, documents: Iterable[Document], notes: Notes) -> None:
        """Know the documents by kind, namespace and name."""
        self._notes = notes
        self._found: dict[Reference, Document] = {}
        for document in documents:
            body = document.body
            is_source = GROUP in str(body.get("apiVersion", "")) and body.get("kind") in _KINDS
            if is_source or (body.get("apiVersion"), body.get("kind")) == ("v1", "ConfigMap"):
                self._found[_reference(body)] = document

    def get(self, wanted: Reference) -> Reading:
        """The spec of a source.

        Raises:
            Uncarried: it is not among the documents.
        """
        document = self._found.get(wanted)
        if document is None:
            raise Uncarried(
                f"its {wanted.kind} {wanted.namespace}/{wanted.name} is not among the documents; give it too"
            )
        return Reading(document, document.body, (), self._notes).child("spec")

    def url(self, wanted: Reference) -> str:
        """Return the address of a source whose files a checkout has; report its other fields as left out.

        Raises:
            Uncarried: it is not among the documents.
        """
        spec = self.get(wanted)
        found = spec.text("url") or f"{spec.text('endpoint')}/{spec.text('bucketName')}"
        spoken_for(spec)
        return found

    def data(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The data of a ConfigMap; None when it is not among the documents."""
        document = self._found.get(Reference("ConfigMap", namespace, name))
        found = dig(document.body, "data") if document is not None else None
        return found if isinstance(found, Mapping) else None


def spoken_for(spec: Reading, *, but: tuple[str, ...] = ()) -> None:
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
    found = Reference(kind, reference.text("namespace", namespace), name)
    reference.text("apiVersion")
    reference.rest()
    return found


def _reference(body: Mapping[str, Any]) -> Reference:
    return Reference(
        str(body.get("kind")), str(dig(body, "metadata", "namespace") or "default"), str(dig(body, "metadata", "name"))
    )
