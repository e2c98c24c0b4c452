"""Demand and references of a template, computed once for each body and kept with it between runs.

Only results of this package's interpreters are kept: others may come and go, and differ tomorrow.

Image references, `[registry/]repository[:tag][@digest]`, and the effect of an imageOverrider.

Source: design#images; "PropagationPolicy and OverridePolicy", imageOverrider; Karmada: image parser and imageOverrider,
whose table of components and operators is followed. Three differences: a digest survives unless the tag is replaced, a
value that is no tag is an error instead of being ignored, and a result that is no image reference is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from reconciler.api.content import Content
from reconciler.api.demand import Demand, DependencyRef, MadeObject, TemplateFacts
from reconciler.api.fleet import Template
from reconciler.api.policies import ImageComponent, OverrideOperator
from reconciler.api.problem import dotted
from reconciler.api.refs import Identity
from reconciler.containment import try_call
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.registry import BUILT_IN_KINDS, GENERIC, Registry
from reconciler.regex import regex
from reconciler.templates.hooks import is_run_of_hook

_NOTHING: Final = TemplateFacts(demand=GENERIC.demand({}))
"""Facts without replicas and references, and of kinds without an interpreter."""


def facts_of(template: Template, interpreters: Registry) -> TemplateFacts:
    """Return the facts that the interpreter of its kind reads from a template."""
    interpreter = interpreters.of(*template.identity[:2])
    if interpreter.rules.isdisjoint(("demand", "dependencies")):
        return _NOTHING
    content = _keeper(template, interpreter)
    if content is None:
        return _read(template, interpreter)
    if content.facts is None:
        # All of it is read before any is kept: kept facts never raise.
        _call_other_functions(template, interpreter)
        content.facts = _read(template, interpreter)
    return content.facts


def demand_of(template: Template, interpreters: Registry) -> Demand:
    """Return number and shape of its replicas."""
    return facts_of(template, interpreters).demand


def references_of(template: Template, interpreters: Registry) -> tuple[DependencyRef, ...]:
    """Return its references, which it needs to run."""
    return facts_of(template, interpreters).references


def images_of(template: Template, interpreters: Registry) -> tuple[str, ...] | None:
    """Return the images of its pods; None if one of them is outside of `spec`, and for a kind without interpreter.

    Exceptions of an installed interpreter pass through.
    """
    interpreter = interpreters.of(*template.identity[:2])
    if interpreter is GENERIC:
        return None
    content = _keeper(template, interpreter)
    if content is not None and content.facts is not None:
        return content.facts.images
    return _images(template, interpreter)


def is_built_in(kind: tuple[str, str], interpreters: Registry) -> bool:
    """Return whether this package's own interpreter describes a kind."""
    return interpreters.of(*kind) is BUILT_IN_KINDS.of(*kind)


def check_facts(templates: Iterable[Template], interpreters: Registry) -> None:
    """Read all facts that a schedule needs from interpreters, so that an exception is raised here.

    Nearly all of them have been read before.
    """
    described: dict[tuple[str, str], bool | None] = {}
    for template in templates:
        kind = template.identity[:2]
        keeps = described.get(kind, False)
        if keeps is False and kind not in described:
            keeps = None if interpreters.of(*kind) is GENERIC else is_built_in(kind, interpreters)
            described[kind] = keeps
        if keeps is None or (keeps and template.content.facts is not None):
            continue
        facts_of(template, interpreters)
        _call_other_functions(template, interpreters.of(*kind))


def _keeper(template: Template, interpreter: Interpreter) -> Content | None:
    """Return the content that keeps a template's facts; None: a foreign interpreter's facts are not kept."""
    return template.content if BUILT_IN_KINDS.by_kind.get(template.identity[:2]) is interpreter else None


def _call_other_functions(template: Template, interpreter: Interpreter) -> None:
    """Call the other functions of the interpreter: few kinds have them, and their users call them again."""
    for name in ("scale_target", "makes", "pod_template"):
        if name in interpreter.rules:
            getattr(interpreter, name)(template.body)


def scale_target_of(template: Template, interpreters: Registry) -> Identity | None:
    """The object that it scales; None of one that cannot be read, which `check_facts` refuses."""
    interpreter = interpreters.of(*template.identity[:2])
    # Few kinds scale others, and only their bodies need be looked at.
    return try_call(interpreter.scale_target, template.body).value if "scale_target" in interpreter.rules else None


def made_of(template: Template, interpreters: Registry) -> tuple[MadeObject, ...]:
    """Return the objects that a controller makes of it; none if unreadable, which `check_facts` refuses."""
    interpreter = interpreters.of(*template.identity[:2])
    return (try_call(interpreter.makes, template.body).value if "makes" in interpreter.rules else None) or ()


def _read(template: Template, interpreter: Interpreter) -> TemplateFacts:
    body = template.body
    is_ours = BUILT_IN_KINDS.by_kind.get(template.identity[:2]) is interpreter
    # An exception of a foreign interpreter about images concerns only their overrides.
    images = _images(template, interpreter) if is_ours else None
    # A hook runs once in each cluster of its placement: it is not divided.
    demand = GENERIC.demand({}) if is_run_of_hook(template) else interpreter.demand(body)
    return TemplateFacts(demand, interpreter.dependencies(body), images)


def malformed_images(template: Template) -> tuple[tuple[str, str], ...]:
    """Return the images of a template of a built-in kind that are no references, each with its field path."""
    interpreter = BUILT_IN_KINDS.by_kind.get(template.identity[:2])
    images = interpreter.images(template.body) if interpreter is not None else ()
    return tuple((dotted(steps), image) for steps, image in images if parse_image(image) is None)


def _images(template: Template, interpreter: Interpreter) -> tuple[str, ...] | None:
    if "images" not in interpreter.rules:
        return ()
    images = interpreter.images(template.body)
    return tuple([image for _, image in images]) if all(steps[0] == "spec" for steps, _ in images) else None


_DOMAIN_PART: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PATH_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME: Final = regex(rf"(?:{_DOMAIN}/)?{_PATH_PART}(?:/{_PATH_PART})*", re.ASCII)
_DOMAIN_ALONE: Final = regex(_DOMAIN, re.ASCII)
_TAG: Final = regex(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST: Final = regex(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}", re.ASCII)
_MAX_NAME: Final = 255
_MAX_TEXT: Final = 1024
"""Longer texts are refused before a pattern sees them."""


class ImageReference(NamedTuple):
    """The parts of a reference; empty where it has none. No default registry or tag is invented."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """Registry and repository."""
        return f"{self.registry}/{self.repository}" if self.registry else self.repository

    def __str__(self) -> str:
        """The reference as it is written in a container."""
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.name}{tag}{digest}"


def _parts(text: str) -> tuple[str, str, str]:
    rest, _, digest = text.partition("@")
    name, colon, tag = rest.rpartition(":")
    return (name, tag, digest) if colon and "/" not in tag else (rest, "", digest)


def _is_name(text: str) -> bool:
    return len(text) <= _MAX_NAME and bool(_NAME.fullmatch(text))


def _is_reference(text: str) -> bool:
    if len(text) > _MAX_TEXT:
        return False
    name, tag, digest = _parts(text)
    has_bad_tag = not _TAG.fullmatch(tag) if tag else text[len(name) : len(name) + 1] == ":"
    has_bad_digest = "@" in text and not _DIGEST.fullmatch(digest)
    return not has_bad_tag and not has_bad_digest and _is_name(name)


# A workload has the same image in every region, and another registry in each.
@lru_cache(maxsize=16384)
def parse_image(text: str) -> ImageReference | None:
    """Return the parts of a reference; None when it is none.

    The text before the first slash is a registry when it has a dot or a colon or is `localhost`.
    """
    if not _is_reference(text):
        return None
    name, tag, digest = _parts(text)
    first, slash, repository = name.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return ImageReference(first, repository, tag, digest)
    return ImageReference("", name, tag, digest)


class ImageFault(NamedTuple):
    """The reason why an image cannot be overridden. The message quotes the image."""

    message: str


def override_image(image: str, component: ImageComponent, operator: OverrideOperator, value: str) -> str | ImageFault:
    """The image with one component changed, as text.

    >>> override_image("nginx:latest", ImageComponent.REGISTRY, OverrideOperator.ADD, "registry.example.com")
    'registry.example.com/nginx:latest'
    """
    reference = parse_image(image)
    if reference is None:
        return ImageFault(f"{image!r} is no image reference")
    if component is ImageComponent.TAG:
        changed = _with_tag(reference, operator, value)
        if isinstance(changed, ImageFault):
            return changed
    elif component is ImageComponent.REGISTRY:
        registry, repository, tag, digest = reference
        changed = ImageReference(_changed(registry, operator, value), repository, tag, digest)
    else:
        changed = reference._replace(repository=_changed(reference.repository, operator, value))
    if not changed.repository:
        return ImageFault(f"{image!r} would be left without a repository")
    text = str(changed)
    if component is ImageComponent.REGISTRY and _makes_a_name(reference, changed.registry, len(image)):
        return text
    # Tag and digest are good already, so that a good name makes a reference; another one may all the same.
    if not (_is_name(changed.name) and len(text) <= _MAX_TEXT) and not _is_reference(text):
        return ImageFault(f"{image!r} would become {text!r}, which is no image reference")
    return text


def replaces_registry(image: str, registry: str) -> bool | None:
    """Return whether `override_image` with replace would change an image's registry; None: unknown."""
    reference = parse_image(image)
    if reference is None or not _makes_a_name(reference, registry, len(image)):
        return None
    return reference.registry != registry


def _makes_a_name(reference: ImageReference, registry: str, length: int) -> bool:
    """Return whether another registry surely makes a valid name, without matching it.

    A host name does in front of a repository that had one before. `length`: of the reference as it was written.
    """
    return bool(reference.registry) and length + len(registry) < _MAX_NAME and _is_domain(registry)


# Thousands of images get the same few registries.
@lru_cache(maxsize=1024)
def _is_domain(text: str) -> bool:
    return bool(_DOMAIN_ALONE.fullmatch(text))


def _changed(current: str, operator: OverrideOperator, value: str) -> str:
    match operator:
        case OverrideOperator.ADD:
            return current + value
        case OverrideOperator.REPLACE:
            return value
        case OverrideOperator.REMOVE:
            return ""


def _with_tag(reference: ImageReference, operator: OverrideOperator, value: str) -> ImageReference | ImageFault:
    """A new tag drops the digest, which would still name the old content; removing the tag keeps it.

    Nothing is added to a digest, unlike in Karmada: a longer one names no content.
    """
    if operator is OverrideOperator.REMOVE:
        return reference._replace(tag="") if reference.tag else reference._replace(digest="")
    if operator is OverrideOperator.ADD and not reference.tag and reference.digest:
        return ImageFault(
            f"'{reference}' has a digest and no tag that {value!r} could be added to; replace puts a tag in its place"
        )
    text = reference.tag + value if operator is OverrideOperator.ADD else value
    if _TAG.fullmatch(text):
        return reference._replace(tag=text, digest="")
    if _DIGEST.fullmatch(text):
        return reference._replace(tag="", digest=text)
    return ImageFault(f"{text!r} is neither a tag nor a digest")
