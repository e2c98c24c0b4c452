"""Output of a tool as objects of a store, and their differences as operations of an override.

Values are compared with their types: `true` is not `1`, and `1` is not `1.0`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from reconciler.api.content import Json, JsonObject, Step, dig, is_same, mapping_in_metadata, with_value
from reconciler.api.fleet import LeftOut, Render, Template
from reconciler.api.problem import Document, Problem, Severity, dotted
from reconciler.api.refs import GVK, Identity
from reconciler.documents import is_namespaced, is_policy, pointer_text
from reconciler.hydration.charts import RUNS, hook_ends, hook_times, with_hooks
from reconciler.kinds.registry import Registry
from reconciler.ownership import TAKE_OVER, DirectiveEffect, directives_of, strip_marks
from reconciler.secrets import is_secret_kind
from reconciler.templates import read_template
from reconciler.yaml import read_yaml

Operation = dict[str, Any]
"""An entry of `plaintext`: operator, path and value."""


def operations(before: JsonObject, after: JsonObject) -> list[Operation]:
    """Return the operations of JSON Patch that turn one tree into the other, applied in order.

    Lists of equal length are compared by index, one that only grows or shrinks at its end is extended or cut, and any
    other is replaced: an insertion in the middle would shift all indexes after it.
    """
    return list(_of_maps(before, after, ()))


def _of_maps(before: JsonObject, after: JsonObject, steps: tuple[Step, ...]) -> Iterator[Operation]:
    for key in sorted(before.keys() | after.keys()):
        here = (*steps, key)
        if key not in after:
            yield {"operator": "remove", "path": _pointer(here)}
        elif key not in before:
            yield _put("add", here, after[key])
        else:
            yield from _of_values(before[key], after[key], here)


def _of_values(before: Json, after: Json, steps: tuple[Step, ...]) -> Iterator[Operation]:
    if is_same(before, after):
        return
    # An operation with null as its value is ambiguous in some dialects, so its parent is replaced.
    are_maps = isinstance(before, Mapping) and isinstance(after, Mapping)
    if are_maps and None not in (*before.values(), *after.values()):
        yield from _of_maps(before, after, steps)
    elif isinstance(before, list) and isinstance(after, list) and None not in before and None not in after:
        yield from _of_lists(before, after, steps)
    else:
        yield _put("replace", steps, after)


def _of_lists(before: list[Json], after: list[Json], steps: tuple[Step, ...]) -> Iterator[Operation]:
    common = min(len(before), len(after))
    is_prefix = all(is_same(one, other) for one, other in zip(before[:common], after[:common], strict=True))
    if not after or not (is_prefix or len(before) == len(after)):
        yield _put("replace", steps, after)
        return
    for index in range(common):
        yield from _of_values(before[index], after[index], (*steps, index))
    for index in range(len(before) - 1, common - 1, -1):
        yield {"operator": "remove", "path": _pointer((*steps, index))}
    for item in after[common:]:
        yield _put("add", (*steps, "-"), item)


def _put(operator: str, steps: tuple[Step, ...], value: Json) -> Operation:
    return {"operator": operator, "path": _pointer(steps), "value": value}


def _pointer(steps: tuple[Step, ...]) -> str:
    return pointer_text(map(str, steps))


def first_difference(one: Json, other: Json) -> tuple[Step, ...]:
    """The steps to the first place where two trees differ; empty when they are of different types, or equal."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted(one.keys() | other.keys()):
            if key not in one or key not in other:
                return (key,)
            if not is_same(one[key], other[key]):
                return (key, *first_difference(one[key], other[key]))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            if not is_same(left, right):
                return (index, *first_difference(left, right))
    return ()


def without_nulls(tree: Json) -> Json:
    """The tree without fields that are null, which are absent fields for kubectl; items of lists stay."""
    if isinstance(tree, Mapping):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}
    return [without_nulls(item) for item in tree] if isinstance(tree, list) else tree


_STEERING: Final = ("fleet.reconciler", "cluster.karmada.io", "cluster.open-cluster-management.io")
"""Groups whose documents configure the fleet: rendered objects are distributed, and may not configure it."""

_MARK: Final = re.compile(rb"^---(?=\s|$)", re.MULTILINE)
_OF_ALL: Final = frozenset({"render-hook-dropped", "render-scope-unknown"})
"""Codes that are reported once, and not for each variant."""

Bodies = Mapping[Identity, JsonObject]
"""Objects by identity, pruned as a store's templates are before overrides."""


def read_rendered(render: Render, variant: str, data: bytes, interpreters: Registry) -> ToolObjects:
    """Return the objects that a tool wrote for a variant (empty: the base), in the order of their identities.

    Bodies are as the engine has them before overrides: without server-written fields and nulls.
    """
    reading = ToolObjects(render, variant, interpreters)
    documents: list[Document] = []
    for first, piece in _pieces(data):
        file = read_yaml("rendered.yaml", piece)
        for problem in file.problems:
            if problem.severity is Severity.ERROR:
                line = first + problem.source.line
                reading.refuse("render-object", f"line {line} of what it wrote: {problem.message}")
        documents += (document for document in file.documents if document.body)
    reading.scopes.update(_scopes(documents))
    for document in documents:
        reading.take(document)
    reading.objects, reading.problems = dict(sorted(reading.objects.items())), sorted(set(reading.problems))
    return reading


def _pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each document with the number of lines before it: together they may be more than a file of a store has."""
    starts = [0, *(mark.start() for mark in _MARK.finditer(data)), len(data)]
    line = 0
    for start, end in itertools.pairwise(starts):
        piece = data[start:end]
        if piece.strip():
            yield line, piece
        line += piece.count(b"\n")


class ToolObjects:
    """The objects of one run of a tool, their problems, and the entries of `leaveOut` that left something out.

    With recipients, Secrets are in plain text: `is_in_clear` tells which.
    """

    def __init__(self, render: Render, variant: str, interpreters: Registry) -> None:
        """Nothing is read yet."""
        self._render, self._variant, self._interpreters = render, variant, interpreters
        self.scopes: dict[tuple[str, str], bool] = {}
        self.objects: dict[Identity, JsonObject] = {}
        self.problems: list[Problem] = []
        self.used: set[LeftOut] = set()

    def refuse(self, code: str, message: str, severity: Severity = Severity.ERROR) -> None:
        """Add a problem, an error unless another severity is given."""
        part = f", variant {self._variant}" if self._variant else ", base"
        message = f"Render {self._render.name}{'' if code in _OF_ALL else part}: {message}"
        self.problems.append(Problem(source=self._render.source, code=code, message=message, severity=severity))

    def take(self, document: Document) -> None:
        """Add the objects of a document that are not left out."""
        if not self._is_left_out(document.body):
            for hook in self._as_hooks(document.body, _subject(document.body)):
                self._take(replace(document, body=hook))

    def _take(self, document: Document) -> None:
        body = document.body
        subject = _subject(body)
        encrypted = isinstance(body.get("sops"), dict)
        if is_in_clear(body) and not self._takes_secret(body, subject):
            return
        api_version, kind = str(body.get("apiVersion", "")), str(body.get("kind", ""))
        if is_policy(api_version, kind) or api_version.partition("/")[0] in _STEERING:
            self.refuse("render-object", f"{subject} steers the fleet; write it into the store yourself")
            return
        placed = self._in_namespace(body, subject)
        if encrypted and placed is not body:
            self.refuse(
                "render-object", f"{subject} is encrypted and says no namespace; a seal allows none to be added"
            )
            return
        document = replace(document, body=placed)
        template, problems = read_template(replace(document, body=plain(document.body)))
        for problem in problems:
            if problem.severity is Severity.ERROR:
                self.refuse("render-object", f"{subject} {problem.path}: {problem.message}")
        if template is not None:
            if template.identity in self.objects:
                self.refuse("render-object", f"{template.identity} is there twice")
            self.objects[template.identity] = document.body if encrypted else self._pruned(template)

    def _as_hooks(self, body: JsonObject, subject: str) -> tuple[JsonObject, ...]:
        """Return an object as hooks of a store if it is one, else itself; empty: it is left out, and named."""
        directives = tuple(directives_of(dig(body, "metadata") or {}))
        times = hook_times(directives)
        for one in directives:
            if one.effect is DirectiveEffect.LEFT_OUT and (not times or one.value.lower() == "skip"):
                why = f"{subject} says {one} and is left out: {one.here}"
                self.refuse("render-hook-dropped", why, Severity.WARNING)
                return ()
        if not times:
            return (body,)
        ends = hook_ends(directives)
        hooks = with_hooks(body, times, ends)
        if is_namespaced(*_gvk(body).group_kind) is None:
            why = f"{_subject(hooks[0])} is a hook of a kind that does not run here: it comes in its turn, and once"
            self.refuse("render-hook-dropped", why, Severity.WARNING)
        if ends and body.get("kind") not in RUNS:
            why = "what hooks need is not deleted after them, and stays for the next ones"
            self.refuse("render-hook-dropped", why, Severity.WARNING)
        return hooks

    def _is_left_out(self, body: JsonObject) -> bool:
        """Return whether an entry of `leaveOut` matches an object, in the namespace of the release if it has none."""
        gvk = _gvk(body)
        namespace = dig(body, "metadata", "namespace") or self._render.namespace
        if is_namespaced(*gvk.group_kind) is False:
            namespace = ""
        identity = Identity(gvk.group, gvk.kind, str(namespace), str(dig(body, "metadata", "name")))
        labels = mapping_in_metadata(body, "labels")
        entries = [entry for entry in self._render.left_out if entry.matches(identity, labels)]
        self.used.update(entries)
        return bool(entries)

    def _takes_secret(self, body: JsonObject, subject: str) -> bool:
        secrets = self._render.secrets
        if secrets.age and body.get("kind") == "Secret" and body.get("apiVersion") == "v1":
            return True
        if not secrets.made_by:
            message = (
                f"{subject} would be committed as it is; let the chart refer to one, or write spec.secrets: "
                "age encrypts it, leaveOut names what makes it"
            )
            self.refuse("render-secret", message)
        return False

    def _pruned(self, template: Template) -> JsonObject:
        interpreter = self._interpreters.of(*template.gvk.group_kind)
        pruned: JsonObject = without_nulls(strip_marks(interpreter.sanitize(template.body)))
        placement = self._render.placement
        if placement is None or not placement.take_over:
            return pruned
        return with_value(pruned, ("metadata", "annotations", TAKE_OVER), placement.take_over)

    def _in_namespace(self, body: JsonObject, subject: str) -> JsonObject:
        """Return the body as Helm installs it: a namespaced object without a namespace is in that of the release.

        Of kustomize too, which takes a kind that it does not know for a namespaced one.
        """
        namespace = self._render.namespace
        if not namespace or dig(body, "metadata", "namespace") or not isinstance(body.get("metadata"), dict):
            return body
        kind = _gvk(body).group_kind
        namespaced = is_namespaced(*kind)
        if namespaced is None:
            namespaced = self.scopes.get(kind)
        if namespaced is None and self._render.helm is None:
            namespaced = True
        if namespaced is None:
            message = f"{subject} says no namespace, and nothing tells whether its kind has any; it is left without"
            self.refuse("render-scope-unknown", message, Severity.WARNING)
        return with_value(body, ("metadata", "namespace"), namespace) if namespaced else body


def is_in_clear(body: JsonObject) -> bool:
    """Return whether an object is a Secret, or may mean one, with content that nothing encrypts."""
    if isinstance(body.get("sops"), dict) or not is_secret_kind(str(body.get("kind", ""))):
        return False
    parts = (body.get("data"), body.get("stringData"))
    return body.get("kind") != "Secret" or any(any(one.values()) if isinstance(one, Mapping) else one for one in parts)


def plain(body: JsonObject) -> JsonObject:
    """Return only type and name of an encrypted object, since its values are no values; any other as it is."""
    if "sops" not in body:
        return body
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if key in ("name", "namespace")}
    return {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "metadata": metadata}


def _gvk(body: JsonObject) -> GVK:
    return GVK.parse(str(body.get("apiVersion", "")), str(body.get("kind", "")))


def _subject(body: JsonObject) -> str:
    namespace, name = dig(body, "metadata", "namespace"), dig(body, "metadata", "name")
    full = f"{namespace}/{name}" if namespace else str(name)
    return f"{body.get('kind')} {full}"


def _scopes(documents: list[Document]) -> Iterator[tuple[tuple[str, str], bool]]:
    for document in documents:
        spec = document.body.get("spec")
        if document.body.get("kind") == "CustomResourceDefinition":
            kind = (str(dig(spec, "group")), str(dig(spec, "names", "kind")))
            yield kind, dig(spec, "scope") == "Namespaced"


def nondeterminism(render: Render, variant: str, one: Bodies, other: Bodies) -> tuple[Problem, ...]:
    """Return the differences of two runs on the same inputs: the first field of each object, without values."""
    where = f"variant {variant}" if variant else "base"
    problems = []
    for identity in sorted(one.keys() | other.keys()):
        left, right = one.get(identity), other.get(identity)
        if left is None or right is None:
            path, what = "", f"{identity} is in one of two runs"
        elif not is_same(left, right):
            path = dotted(first_difference(left, right))
            what = f"{identity} {path} differs from one run to the next"
        else:
            continue
        message = f"Render {render.name}, {where}: {what}; set the value, so that it is the same each time"
        problems.append(Problem(source=render.source, path=path, code="render-not-deterministic", message=message))
    return tuple(problems)
