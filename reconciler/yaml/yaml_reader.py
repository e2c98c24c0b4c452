"""YAML and JSON files of the store as documents, read exactly as kubectl reads them, and refused where it is unsafe.

Lines of fields are found by reading a text once more with marks: only problems and provenance ask for them. Beyond
kubectl, duplicate keys, loops, exploding aliases, deep nesting and characters that YAML forbids are errors with a line,
and one broken document never hides the others of its file.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct, field
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.problem import Document, Problem, Source, warning
from reconciler.regex import regex
from reconciler.yaml.block import read_block
from reconciler.yaml.json_text import json_values
from reconciler.yaml.nodes import Note, bodies, compose, line_of
from reconciler.yaml.scalars import key_text
from reconciler.yaml.yaml_limits import YamlRefused, bidi_line, check_encoding, check_file, parts


class FileMarks:
    """The node trees of one file, composed when the first line is asked for and shared by its documents."""

    __slots__ = ("_data", "_members", "_roots")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._roots: dict[int, tuple[int, Node]] | None = None
        self._members: dict[int, dict[str, tuple[int, Node]]] = {}

    def root(self, line: int) -> tuple[int, Node | None]:
        """Lines before the part that the document at `line` was read in, and its node tree, if there is one."""
        if self._roots is None:
            self._roots = {}
            for before, text in parts(self._data):
                with suppress(YamlRefused):
                    for node in compose(text):
                        self._roots.setdefault(before + line_of(node), (before, node))
        return self._roots.get(line, (0, None))

    def child(self, node: Node, step: Step) -> tuple[int, Node] | None:
        """Return the child and its line; a member has that of its key.

        Members are kept by name: each of a hundred thousand wrong ones is looked for.
        """
        if isinstance(node, SequenceNode):
            if isinstance(step, int) and -len(node.value) <= step < len(node.value):
                item = node.value[step]
                return line_of(item), item
            return None
        if not isinstance(node, MappingNode) or not isinstance(step, str):
            return None
        members = self._members.get(id(node))
        if members is None:
            members = self._members[id(node)] = {
                key_of(key): (line_of(key), value) for key, value in node.value if isinstance(key, ScalarNode)
            }
        return members.get(step)


class Locator(Struct, frozen=True, kw_only=True):
    """`Document.locate`: the line of a field, or of the nearest parent that exists. `below` leads to a List's item."""

    marks: FileMarks
    line: int
    below: tuple[Step, ...] = field(default=())

    def node(self) -> tuple[int, Node | None]:
        """Return the lines before the part that the document was read in, and its node tree, if there is one."""
        before, _, node = self._node_at(self.below)
        return before, node

    def __call__(self, steps: tuple[Step, ...]) -> int:
        """The line of the field, from 1."""
        return self._node_at((*self.below, *steps))[1]

    def _node_at(self, steps: tuple[Step, ...]) -> tuple[int, int, Node | None]:
        before, node = self.marks.root(self.line)
        line = self.line
        for step in steps:
            child = self.marks.child(node, step) if node is not None else None
            if child is None:
                return before, line, None
            line, node = before + child[0], child[1]
        return before, line, node


def key_of(node: ScalarNode) -> str:
    """Return the name of a key as kubectl reads it; of an unusable one its text."""
    text = str(node.value)
    if node.style:
        return text
    try:
        return key_text(text)
    except YamlRefused:
        return text


SUFFIXES: Final = (".yaml", ".yml", ".json")
"""Files that are read; no other name is a document of the store."""

_MAX_LIST_DEPTH: Final = 10
_MAX_SMALL_BYTES: Final = 100_000
"""Usual text of this size has a value far smaller than the largest object: `Document.is_small`."""


class YamlFile(Struct, frozen=True, kw_only=True):
    """The content of a file. Documents without content (comments only) are left out.

    `broken`: unreadable documents, with the recognisable fields of each (`sketch`), and its first line: 0 for the file
    as a whole.
    """

    documents: tuple[Document, ...] = ()
    problems: tuple[Problem, ...] = ()
    broken: tuple[Document, ...] = ()


def read_yaml(path: str, data: bytes) -> YamlFile:
    """The documents of a file. Its suffix decides between JSON and YAML; items of a `List` are documents of their own.

    Types: sigs.k8s.io/yaml, which kubectl reads with.
    """
    reading = _FileReader(path, data)
    try:
        check_file(data)
    except YamlRefused as error:
        reading.refuse(0, error.code, str(error), 0, {})
    else:
        if path.endswith(".json"):
            reading.read_json(0, data)
        else:
            reading.read_stream()
        if line := bidi_line(data):
            message = "a character here reorders text on the screen: reviewers do not see what is read; remove it"
            reading.problems.append(warning(Source(path, line), "", "bidi-control", message))
    return YamlFile(documents=tuple(reading.documents), problems=tuple(reading.problems), broken=tuple(reading.broken))


class _FileReader:
    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.marks = FileMarks(data)
        self.documents: list[Document] = []
        self.problems: list[Problem] = []
        self.broken: list[Document] = []
        self.is_small = False

    def read_stream(self) -> None:
        """Read all documents at once; when one is broken, read each by itself."""
        documents: list[tuple[int, Any, list[Note]]] | None = read_block(self.data)
        self.is_small = documents is not None and len(self.data) <= _MAX_SMALL_BYTES
        try:
            documents = list(bodies(self.data)) if documents is None else documents
        except YamlRefused:
            for before, text in parts(self.data):
                self.read_part(before, text)
            return
        for line, body, notes in documents:
            self.accept(line, body, notes, 0)

    def read_part(self, before: int, text: bytes) -> None:
        """Read one document of a stream in which something is broken."""
        try:
            documents = list(bodies(text))
        except YamlRefused as error:
            bare = b"   " + text[3:] if text.startswith(b"---") else text
            if not (bare.lstrip().startswith(b"{") and self.read_json(before, bare, silently=True)):
                self.refuse_part(error, before, text)
            return
        for line, body, notes in documents:
            self.accept(before + line, body, notes, before)

    def read_json(self, before: int, text: bytes, *, silently: bool = False) -> bool:
        """Read JSON values; return whether it was JSON. kubectl takes JSON in YAML files, also if it is no YAML."""
        try:
            check_encoding(text)
            values = list(json_values(text))
        except YamlRefused as error:
            if not silently:
                self.refuse_part(_with_line(error, text), before, text)
            return False
        for line, body in values:
            self.accept(before + line, body, (), before)
        return True

    def accept(self, line: int, body: Json, notes: tuple[Note, ...] | list[Note], before: int) -> None:
        for note in dict.fromkeys(notes):
            source = Source(self.path, before + note.line)
            self.problems.append(Problem(source=source, code=note.code, message=note.message, severity=note.severity))
        if body is not None:
            self.flatten(line, line, body, (), 0)

    def flatten(self, root_line: int, line: int, body: Json, below: tuple[Step, ...], depth: int) -> None:
        """Add the document, or every item of a list as kubectl does, each with its own line."""
        if not isinstance(body, dict):
            what = "a list" if isinstance(body, list) else "a single value"
            message = f"{what} where an object is expected; an object has apiVersion, kind and metadata"
            return self.refuse(line, "not-an-object", message, line, {})
        locate = Locator(marks=self.marks, line=root_line, below=below)
        items, kind = body.get("items"), str(body.get("kind"))
        is_list = kind.endswith("List")
        is_meant = "items" in body and not dig(body, "metadata", "name")
        if is_meant and items is None:
            items = []  # Go writes an empty list so.
        if is_list and not isinstance(items, list) and (is_meant or (kind, body.get("apiVersion")) == ("List", "v1")):
            message = f"a {kind} has its objects under items, as a list; write items: [] for one without objects"
            return self.refuse(line, "not-an-object", message, line, {})
        if not is_list or not isinstance(items, list):
            self.documents.append(Document(path=self.path, line=line, body=body, locate=locate, is_small=self.is_small))
            return None
        if depth >= _MAX_LIST_DEPTH:
            return self.refuse(line, "too-deep", f"lists nested deeper than {_MAX_LIST_DEPTH}", line, {})
        for index, item in enumerate(items):
            if isinstance(item, dict) and kind != "List" and "kind" not in item:
                # An item of a typed list (`DeploymentList`) may leave its type to the list.
                item = {"apiVersion": body.get("apiVersion"), "kind": kind.removesuffix("List"), **item}  # noqa: PLW2901
            steps = (*below, "items", index)
            self.flatten(root_line, locate(("items", index)), item, steps, depth + 1)
        return None

    def refuse_part(self, error: YamlRefused, before: int, text: bytes) -> None:
        self.refuse(before + error.line, error.code, str(error), before + _first_line(text), sketch(text))

    def refuse(self, at: int, code: str, message: str, begins: int, body: JsonObject) -> None:
        """Add a problem, and the document that begins at a line as a broken one."""
        self.problems.append(Problem(source=Source(self.path, at), code=code, message=message))
        locate = Locator(marks=self.marks, line=begins)
        self.broken.append(Document(path=self.path, line=begins, body=body, locate=locate))


def _with_line(error: YamlRefused, text: bytes) -> YamlRefused:
    """A duplicate key of a JSON text with its line, which the JSON decoder does not know."""
    if error.code != "duplicate-key":
        return error
    try:
        list(bodies(text))
    except YamlRefused as found:
        return found
    return error


_FIELD: Final = regex(rb"^(apiVersion|kind|metadata):[ \t]*(?:([\"']?)([A-Za-z0-9./-]*)\2)?[ \t]*(?:#.*)?\r?$", re.M)
_NAME: Final = regex(rb"^( +)(name|namespace):[ \t]+([\"']?)([A-Za-z0-9.:-]+)\3[ \t]*(?:#.*)?\r?$")


def sketch(text: bytes) -> JsonObject:
    """Return the recognisable fields of a broken document: apiVersion, kind, name, namespace; empty: too few.

    A value counts only if it is unique, so that a guess never names the wrong object.
    """
    fields = [(match[1].decode(), match[3] or b"", match.end()) for match in _FIELD.finditer(text)]
    names = [name for name, _, _ in fields]
    if names.count("apiVersion") != 1 or names.count("kind") != 1:
        return {}
    values = {name: value.decode() for name, value, _ in fields}
    body: dict[str, Json] = {"apiVersion": values["apiVersion"], "kind": values["kind"]}
    if names.count("metadata") == 1:
        start = next(end for name, _, end in fields if name == "metadata")
        body["metadata"] = _sketch_metadata(text[start:])
    return body


def _sketch_metadata(text: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    indent = -1
    for line in text.split(b"\n")[1:]:
        content = line.lstrip(b" ")
        if not content.strip() or content.startswith(b"#"):
            continue
        width = len(line) - len(content)
        if width == 0:
            break
        indent = width if indent < 0 else indent
        match = _NAME.match(line) if width == indent else None
        if match is not None:
            key, value = match[2].decode(), match[4].decode()
            if key in fields:
                return {}
            fields[key] = value
    return fields


def _first_line(text: bytes) -> int:
    for number, line in enumerate(text.split(b"\n"), start=1):
        content = line.strip()
        if content and not content.startswith((b"#", b"---", b"%")):
            return number
    return 1
