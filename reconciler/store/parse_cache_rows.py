"""One file of the parse cache as bytes, and content that may not be kept on a disk: Secrets, and quotes of them.

Source: design#promise-10: no secret value leaves the process except to the cluster it is for.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict

from reconciler.api.content import Content, Json
from reconciler.api.fleet import Template
from reconciler.api.policies import ResourceSelector
from reconciler.api.problem import Problem, Severity, Source
from reconciler.api.refs import GVK, Identity
from reconciler.containment import INTERNAL_ERROR
from reconciler.decoding import prepared
from reconciler.documents import OVERRIDE_KINDS
from reconciler.fleet import ParsedFile
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.secrets import holds_credential, is_secret_kind, may_hold_credentials
from reconciler.templates import facts_of

_NEVER: Final = (b"PRIVATE KEY", b"last-applied-configuration", b"stringData")
_MARK: Final = b"Secret"
_HARMLESS: Final = b"imagePullSecrets"
"""A field of most pods of private registries; it names Secrets and holds nothing of them."""


def is_cacheable(file: ParsedFile) -> bool:
    """Return whether a file holds no Secret, no value for or quote of one, and no fault of the program.

    A broken document may be kept if it is certainly no Secret.
    """
    if any(is_secret_kind(template.gvk.kind) for template in file.templates):
        return False
    if any(problem.code == INTERNAL_ERROR for problem in file.problems):
        return False  # Another run may not meet it.
    for reach in file.frozen:
        # The problems of a broken document may quote a value of a Secret, or a value for one.
        if reach.policy is not None:
            may_quote = reach.policy.kind in OVERRIDE_KINDS and _may_select_secrets(reach.selectors)
        else:
            may_quote = not reach.identities or any(is_secret_kind(identity.kind) for identity in reach.identities)
        if may_quote:
            return False
    return not any(_may_select_secrets(override.selectors) for override in file.overrides)


def _may_select_secrets(selectors: Iterable[ResourceSelector]) -> bool:
    kinds = [selector.kind for selector in selectors]
    return not kinds or not all(kinds) or any(map(is_secret_kind, kinds))


def holds_secrets(document: Json, packed: bytes) -> bool:
    """Return whether another kind, an override, or their problems may hold a secret.

    `packed`: the same as bytes, which rule out most.
    """
    if may_hold_keys(packed) or (_MARK in packed and _MARK in packed.replace(_HARMLESS, b"")):
        return True
    return may_hold_credentials(packed) and holds_credential(document)


def may_hold_keys(packed: bytes) -> bool:
    """Return the same for a document that only names Secrets, such as a policy that selects them."""
    return any(mark in packed for mark in _NEVER)


class CachedTemplate(Struct, frozen=True, array_like=True):
    """A template. Its group and kind are those of its identity, its path is that of its file."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str
    line: int
    content: Content


class CachedProblem(Struct, frozen=True, array_like=True):
    """A problem of a file. Its path is that of the file."""

    line: int
    path: str
    code: str
    message: str
    severity: Severity
    cluster: str


@prepared
class CachedFile(ParsedFile, frozen=True, kw_only=True, array_like=True):
    """A parsed file whose templates and problems are kept in short."""

    templates: tuple[CachedTemplate, ...] = ()  # type: ignore[assignment]  # Never taken for a parsed file.
    problems: tuple[CachedProblem, ...] = ()  # type: ignore[assignment]  # Likewise.


class Unpacker:
    """Makes files of bytes whose checksum was right. Types and namespaces that are equal are one object."""

    def __init__(self) -> None:
        self._gvks: dict[tuple[str, str, str], GVK] = {}
        self._namespaces: dict[str, str] = {}
        self._places: dict[tuple[str, str, str, str], tuple[GVK, str]] = {}
        self._texts: dict[str, str] = {}

    def file(self, packed: bytes) -> ParsedFile | None:
        """Return the file as it was packed; None if it is not ours."""
        try:
            cached = _decoder().decode(packed)
        except msgspec.MsgspecError:
            return None
        path, fields = cached.path, asdict(cached)
        fields["templates"] = tuple([self._template(template, path) for template in cached.templates])
        fields["problems"] = tuple([self._problem(problem, path) for problem in cached.problems])
        return ParsedFile(**fields)

    def _problem(self, cached: CachedProblem, path: str) -> Problem:
        """Thousands of files may deserve the same hint."""
        return Problem(
            source=Source(path, cached.line),
            path=self._texts.setdefault(cached.path, cached.path),
            code=self._texts.setdefault(cached.code, cached.code),
            message=self._texts.setdefault(cached.message, cached.message),
            severity=cached.severity,
            cluster=cached.cluster,
        )

    def _template(self, cached: CachedTemplate, path: str) -> Template:
        place = (cached.group, cached.version, cached.kind, cached.namespace)
        shared = self._places.get(place)
        if shared is None:
            gvk = self._gvks.setdefault(place[:3], GVK(*place[:3]))
            shared = self._places[place] = (gvk, self._namespaces.setdefault(cached.namespace, cached.namespace))
        gvk, namespace = shared
        return Template(
            gvk=gvk,
            identity=Identity(gvk.group, gvk.kind, namespace, cached.name),
            content=cached.content,
            source=Source(path, cached.line),
        )


_decoder = cache(lambda: msgspec.msgpack.Decoder(CachedFile))


def packed_file(file: ParsedFile) -> bytes | None:
    """Return a file as bytes. None if it may hold a secret, or would be read back differently."""
    try:
        if any(template.sealed is not None for template in file.templates):
            return None  # It would have to be kept as a whole, since that is what sops authenticates.
        bodies = [msgspec.msgpack.encode(template.body) for template in file.templates]
        problems = tuple(
            CachedProblem(one.source.line, one.path, one.code, one.message, one.severity, one.cluster)
            for one in file.problems
        )
        parts = [part for part in (problems, file.overrides) if part]
        if any(holds_secrets(template.body, body) for template, body in zip(file.templates, bodies, strict=True)):
            return None
        if any(holds_secrets(msgspec.to_builtins(part), msgspec.msgpack.encode(part)) for part in parts):
            return None
        templates = tuple(map(_cached_template, file.templates, bodies))
        packed = msgspec.msgpack.encode(CachedFile(**{**asdict(file), "templates": templates, "problems": problems}))
    except (OverflowError, UnicodeEncodeError):
        return None  # An integer beyond 64 bits, or half a surrogate pair.
    # Other values than templates may change when read back; hints of the file's own lines do not.
    own = file.settings or file.rollouts or file.renders or file.promotions
    may_change = file.propagation or file.overrides or file.clusters or own or file.frozen
    if may_change or any(problem.source.path != file.path or problem.trace for problem in file.problems):
        return None if may_hold_keys(packed) or Unpacker().file(packed) != file else packed
    return packed


def _cached_template(template: Template, body: bytes) -> CachedTemplate:
    gvk, identity = template.gvk, template.identity
    assert (gvk.group, gvk.kind) == identity[:2], "a template is what its document says"
    facts_of(template, BUILT_IN_KINDS)
    return CachedTemplate(
        group=gvk.group,
        version=gvk.version,
        kind=gvk.kind,
        namespace=identity.namespace,
        name=identity.name,
        line=template.source.line,
        content=Content(
            packed=Raw(body),
            known_labels=template.labels,
            known_annotations=template.annotations,
            known_digest=template.digest,
            facts=template.content.facts,
        ),
    )
