"""The page of policy fields: each field once, and each mapping that several fields share in a section of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from reconciler.documents.field_tables import Field, FieldSupport, FieldType, Shape
from reconciler.fleet.documents import KINDS

GENERATED = "<!-- Made by scripts/make_reference.py from the code. Do not edit. -->"
SAME_FIELDS = {"ClusterPropagationPolicy": "PropagationPolicy", "ClusterOverridePolicy": "OverridePolicy"}
SERVER_SET = "Set by an API server."
LISTS = {FieldType.OBJECTS: "object", FieldType.TEXTS: "string"}
PLAIN_TYPE = "string"
PART_OF_UPSTREAM = "Part of the upstream kind."
NOTE = {FieldSupport.REFUSED: "is refused", FieldSupport.NO_EFFECT: "has no effect"}
INTRODUCTION = """\
Every field that a document of a store may have; others are an error (`unknown-field`). `[]` stands for a list: the
type and the fields are those of an item. A field without a type is a string or a mapping. Mappings that several fields
share stand at the end.

- **No effect**: nothing depends on the field; `validate` says so. That holds for `status` and whatever else an API
  server sets.
- **Refused**: an error with file and line.

Policies are accepted in the API groups `policy.one.alibabacloud.com/v1alpha1`, `one.alibabacloud.com/v1alpha1` and
`policy.karmada.io/v1alpha1`.

Every document has `apiVersion`, `kind` and [metadata](#metadata)."""
TELLING_WORDS = 6
"""A mapping of which the page has no more words than these is known by its fields alone."""

EVERY_DOCUMENT = 3
"""So many fields begin every document and are told of once."""


class Shared:
    """Return the mappings that several fields have alike, by content, each with a name."""

    def __init__(self, roots: Iterable[Shape]) -> None:
        self._times, self._shapes = Counter[str](), dict[str, tuple[str, Shape]]()
        for root in roots:
            self._count(root)

    def _count(self, root: Shape) -> None:
        for field in root.fields:
            if field.shape is not None:
                key = repr(field.shape.fields)
                self._times[key] += 1
                if self._times[key] == 1:
                    self._shapes[key] = field.name, field.shape
                    self._count(field.shape)

    def name(self, found: Shape | None) -> str:
        """The name of a mapping that several fields have; empty for others."""
        key = repr(found.fields) if found is not None else ""
        return self._shapes[key][0] if self._times[key] > 1 else ""

    def shapes(self) -> dict[str, Shape]:
        """Each such mapping by name."""
        return {name: found for key, (name, found) in self._shapes.items() if self._times[key] > 1}

    def leading(self, fields: tuple[Field, ...]) -> tuple[str, int]:
        """The shared mapping whose fields these begin with, and how many they are."""
        for name, found in self.shapes().items():
            count = len(found.fields)
            if 2 < count <= len(fields) and fields[:count] == found.fields:
                return name, count
        return "", 0


def lines(fields: tuple[Field, ...], shared: Shared, prefix: str = "") -> Iterator[str]:
    """Each of the fields and what is below it as an item of a list, parents first."""
    rest = fields
    while rest:
        name, count = shared.leading(rest)
        if name and (count < len(rest) or rest is not fields):
            yield f"- {f'`{prefix}…`: t' if prefix else 'T'}he fields of [{name}](#{name.lower()})."
            rest = rest[count:]
            continue
        field, *others = rest
        rest = tuple(others)
        if field.meaning == SERVER_SET:
            continue
        path = f"{prefix}{field.name}" + ("[]" if field.type in LISTS else "")
        name = shared.name(field.shape)
        line = line_of(path, field, f"[{name}](#{name.lower()})" if name else "")
        if field.shape is None or name or len(line.split()) > TELLING_WORDS:
            yield line
        if field.shape is not None and not name:
            yield from lines(field.shape.fields, shared, f"{path}.")


def merged(items: Iterable[str]) -> Iterator[str]:
    """The items, those in a row that say the same of different fields as one."""
    for text, group in groupby(items, key=lambda item: item.partition("` ")[2]):
        names = [item.partition("` ")[0].removeprefix("- ") + "`" for item in group]
        yield f"- {', '.join(names)} {text}" if text else "\n".join(f"- {name.removesuffix('`')}" for name in names)


def line_of(path: str, field: Field, shared: str) -> str:
    """One field. `shared`: the link to its mapping, where several fields have it."""
    kind = shared if field.shape is not None else LISTS.get(field.type, field.type.value).removeprefix(PLAIN_TYPE)
    default = "required" if field.required else f"default {field.default}" if field.default else ""
    values = dict.fromkeys(value for value in field.values.values() if value)
    is_told = values.keys() <= set(re.findall(r"\w+", field.meaning))
    notes = ", ".join(filter(None, (kind, "" if is_told else f"`{'|'.join(values)}`", default)))
    meaning = [] if field.meaning == PART_OF_UPSTREAM else [field.meaning]
    if field.spellings:
        meaning.append(f"Also spelled {', '.join(f'`{name}`' for name in field.spellings)}.")
    if field.status is not FieldSupport.SUPPORTED:
        status = "Refused" if field.status is FieldSupport.REFUSED else "No effect"
        meaning.append(f"**{status}**: {field.refused or field.no_effect}.")
    for status, texts in ((FieldSupport.REFUSED, field.refused_values), (FieldSupport.NO_EFFECT, field.inert_values)):
        meaning += [f"`{value}` {NOTE[status]}: {why}." for value, why in sorted(texts.items())]
    return f"- `{path}`{f' ({notes})' if notes else ''}: {' '.join(meaning)}"


def set_by_servers(fields: tuple[Field, ...], shared: Shared, prefix: str = "") -> Iterator[str]:
    """The path of each field that an API server sets."""
    for field in fields:
        if field.meaning == SERVER_SET:
            yield f"`{prefix}{field.name}`"
        elif field.shape is not None and not shared.name(field.shape):
            yield from set_by_servers(field.shape.fields, shared, f"{prefix}{field.name}.")


def section(fields: tuple[Field, ...], shared: Shared) -> str:
    """The list of the fields, and in one sentence those that API servers set."""
    found = "\n".join(merged(lines(fields, shared)))
    by_server = ", ".join(set_by_servers(fields, shared))
    return found + (f"\n\nSet by API servers: {by_server}." if by_server not in ("", "`status`") else "")


def policy_fields() -> str:
    """Every field of every kind that steers distribution."""
    kinds = {kind: found for kind, found in KINDS.items() if kind not in SAME_FIELDS}
    shared = Shared(kinds.values())
    same = {first: f"{other} has the same fields, and no namespace." for other, first in SAME_FIELDS.items()}
    heads = {repr(found.fields[:EVERY_DOCUMENT]) for found in kinds.values()}
    if len(heads) != 1:
        raise LookupError("documents no longer begin alike")
    parts = ["# Policy fields", GENERATED, INTRODUCTION]
    for kind, found in kinds.items():
        parts += [f"## {kind}", *filter(None, [same.get(kind)]), section(found.fields[EVERY_DOCUMENT:], shared)]
    for name, found in shared.shapes().items():
        parts += [f"## {name}", section(found.fields, shared)]
    return "\n\n".join(parts)
