"""One file of the parse cache as bytes. Bodies of templates stay packed until somebody asks for them."""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec import Raw, Struct

from reconciler.model.cluster import Cluster
from reconciler.model.content import Content
from reconciler.model.fleet import FleetSettings, Template
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Source
from reconciler.model.refs import GVK, Identity
from reconciler.stages.parsed_file import ParsedFile


class KeptTemplate(Struct, frozen=True, array_like=True):
    """A template. Its group and kind are those of its identity, its path is that of its file."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str
    line: int
    digest: str
    labels: dict[str, str]
    body: Raw


class KeptFile(Struct, frozen=True, array_like=True):
    """A file without a fault."""

    path: str
    blob: str
    templates: tuple[KeptTemplate, ...]
    propagation: tuple[PropagationPolicy, ...]
    clusters: tuple[Cluster, ...]
    settings: tuple[FleetSettings, ...]
    skipped: tuple[Source, ...]


class Unpacker:
    """Makes files of bytes whose checksum was right. Texts that are the same are one object: comparing is quicker."""

    def __init__(self) -> None:
        """Begin with no text known."""
        self._texts: dict[str, str] = {}
        self._gvks: dict[tuple[str, str, str], GVK] = {}

    def file(self, packed: bytes) -> ParsedFile | None:
        """The file as it was packed; None when it is none of ours."""
        try:
            kept = _decoder().decode(packed)
        except msgspec.MsgspecError:
            return None
        path = kept.path
        return ParsedFile(
            path=path,
            blob=kept.blob,
            templates=tuple([self._template(template, path) for template in kept.templates]),
            propagation=kept.propagation,
            clusters=kept.clusters,
            settings=kept.settings,
            skipped=kept.skipped,
        )

    def _template(self, kept: KeptTemplate, path: str) -> Template:
        written = (kept.group, kept.version, kept.kind)
        gvk = self._gvks.get(written)
        if gvk is None:
            gvk = self._gvks[written] = GVK(*written)
        share = self._texts.setdefault
        name, namespace = kept.name, kept.namespace
        return Template(
            gvk=gvk,
            identity=Identity(gvk.group, gvk.kind, share(namespace, namespace), share(name, name)),
            body=Content(packed=kept.body, known_labels=kept.labels, known_digest=kept.digest),
            source=Source(path, kept.line),
        )


_decoder = cache(lambda: msgspec.msgpack.Decoder(KeptFile))


def packed_file(file: ParsedFile) -> bytes | None:
    """A file without a fault and without overrides as bytes; None when it would come back as another one."""
    try:
        kept = KeptFile(
            path=file.path,
            blob=file.blob,
            templates=tuple(_kept(template) for template in file.templates),
            propagation=file.propagation,
            clusters=file.clusters,
            settings=file.settings,
            skipped=file.skipped,
        )
        packed = msgspec.msgpack.encode(kept)
    except (OverflowError, UnicodeEncodeError):
        return None  # An integer beyond 64 bits, or half a surrogate pair.
    is_plain = not (file.propagation or file.clusters or file.settings)
    return packed if is_plain or Unpacker().file(packed) == file else None


def _kept(template: Template) -> KeptTemplate:
    gvk, identity = template.gvk, template.identity
    assert (gvk.group, gvk.kind) == identity[:2], "a template is what its document says"
    return KeptTemplate(
        group=gvk.group,
        version=gvk.version,
        kind=gvk.kind,
        namespace=identity.namespace,
        name=identity.name,
        line=template.source.line,
        digest=template.digest,
        labels=dict(template.labels),
        body=Raw(msgspec.msgpack.encode(template.body)),
    )
