"""JSON trees out of libyaml's nodes, typed as kubectl types them. Lines come from the nodes' marks.

PyYAML's own constructors know none of kubectl's types and neither duplicate keys nor lines; this one is twice as fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from yaml import YAMLError
from yaml._yaml import CParser
from yaml.composer import Composer as PythonComposer
from yaml.events import AliasEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.api.content import Json
from reconciler.api.problem import Severity
from reconciler.regex import regex
from reconciler.yaml.scalars import key_text, plain_value, remember, surprise, tagged_value
from reconciler.yaml.yaml_limits import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    YamlRefused,
    check_encoding,
    check_shape,
    refused,
    too_deep,
)

MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_UNKNOWN: Final = object()


class Note(NamedTuple):
    """Something legal that a reader may not expect. `line` 0: its place is not known yet."""

    line: int
    code: str
    message: str
    severity: Severity


def remark_of(text: str, value: Json) -> Note | None:
    """Return the note about a plain scalar that reads unexpectedly as `value`, without its place; None: nothing."""
    remark = surprise(text, is_key=False)
    if not remark:
        return None
    is_lossy = not isinstance(value, bool) and ("8" in text or "9" in text)
    severity = Severity.WARNING if is_lossy else Severity.HINT
    return Note(0, "yaml-surprising-value", f"{remark}; quote it if text is meant", severity)


_plain: dict[str, Json] = {}
"""Plain scalars seen before, without those that deserve a note. Values are immutable, so sharing is safe."""
KEYS: dict[str, str] = {}
"""Plain keys that are read as they are written."""


class _NoResolver:
    """No resolver: an untagged node has the tag None, and `build` finds the type of a plain scalar."""

    def resolve(self, *_: object) -> None:
        """Do nothing: types do not depend on the path."""

    descend_resolver = ascend_resolver = resolve


class Composer(_NoResolver, CParser):
    """libyaml's composer without a resolver."""


class ReanchoringComposer(_NoResolver, PythonComposer):
    """A composer for a document that gives one anchor to several nodes: an alias is the one before it that came last.

    Source: YAML 1.2.2, 3.2.2.2 (1.1 likewise); libyaml's own composer takes a second one for an error.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__()
        events = CParser(data)
        self.check_event, self.peek_event, self.get_event = events.check_event, events.peek_event, events.get_event
        self._depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """The next node, after which its anchor means no other.

        Raises YamlRefused: it is nested too deep, which would end the recursion of Python sooner than that of libyaml.
        """
        event: Any = self.peek_event()
        if not isinstance(event, AliasEvent):
            self.anchors.pop(event.anchor, None)
        if self._depth > MAX_DEPTH:
            raise too_deep(int(event.start_mark.line) + 1)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


_ALIAS: Final = regex(rb"(?:\A|(?<=[ \t\r\n\[{,:?]))\*[0-9A-Za-z_-]")
_ANCHOR: Final = regex(rb"(?:\A|(?<=[ \t\r\n\[{,:?]))&[0-9A-Za-z_-]+")
_NON_SPECIFIC: Final = regex(r"(?:&\S+\s+)?!\s")


def bodies(text: bytes) -> Iterator[tuple[int, Json, list[Note]]]:
    """Yield line, body and notes of each document, lines from 1 within the text.

    Raises YamlRefused: the text is no YAML from here on, or is unsafe.
    """
    # Most files have no asterisk, and that check is much quicker than a search. A false alarm costs time only.
    has_aliases = b"*" in text and b"&" in text and bool(_ALIAS.search(text) and _ANCHOR.search(text))
    for root in compose(text):
        notes: list[Note] = []
        if has_aliases:
            _weigh(root, 1, {})
        yield line_of(root), _value(root, 1, notes), notes


def compose(data: bytes) -> Iterator[Node]:
    """The root node of each document, one after another.

    Raises YamlRefused: the text is no YAML from here on, too deep or too large.
    """
    check_encoding(data)
    check_shape(data)
    text = data.decode("utf-8").removeprefix("\ufeff") if b"! " in data or b"!\n" in data else None
    anchors = _ANCHOR.findall(data) if b"&" in data else []
    try:
        parser = (ReanchoringComposer if len(set(anchors)) < len(anchors) else Composer)(data)
        while parser.check_node():
            node = parser.get_node()
            if node is not None:
                yield node if text is None else _with_non_specific_tags(node, text)
    except YAMLError as error:
        raise refused(error, data) from error


def _with_non_specific_tags(root: Node, text: str) -> Node:
    """The tree in which the tag `!`, that libyaml swallows, makes its scalar a string."""
    pending, visited = [root], set[int]()
    while pending:
        node = pending.pop()
        if isinstance(node, ScalarNode):
            if not node.style and _NON_SPECIFIC.match(text, node.start_mark.index):
                node.style = "'"
        elif id(node) not in visited:
            visited.add(id(node))
            pending.extend(_children(node))
    return root


def _value(node: Node, depth: int, notes: list[Note]) -> Json:
    if isinstance(node, ScalarNode):
        return _scalar(node, notes)
    if depth > MAX_DEPTH:
        raise too_deep(line_of(node))
    if node.__class__ is MappingNode:
        return _mapping(node, depth, notes)
    return [_value(item, depth + 1, notes) for item in node.value]


def _scalar(node: ScalarNode, notes: list[Note]) -> Json:
    tag: Any = node.tag
    text: str = node.value
    if tag is not None:
        return _guarded(tagged_value, node, tag, text)
    if node.style:
        return text
    value = _plain.get(text, _UNKNOWN)
    if value is _UNKNOWN:
        value = _guarded(plain_value, node, text)
        remark = remark_of(text, value)
        if remark is not None:
            notes.append(remark._replace(line=line_of(node)))
        else:
            remember(_plain, text, value)
    return value


def _mapping(node: Node, depth: int, notes: list[Note]) -> dict[str, Json]:
    out: dict[str, Json] = {}
    merged: set[str] | None = None
    below = depth + 1
    for key_node, value_node in node.value:
        key = KEYS.get(key_node.value) if key_node.tag is None and key_node.__class__ is ScalarNode else None
        if key is None:
            tag: Any = key_node.tag
            is_scalar = isinstance(key_node, ScalarNode)
            # An unquoted `<<`, as kubectl's parser recognises it.
            if is_scalar and key_node.value == "<<" and (tag == MERGE_TAG if tag else not key_node.style):
                # An alias comes before its key: it was written elsewhere.
                is_alias = value_node.start_mark.index < key_node.start_mark.index
                if is_alias and value_node.__class__ is SequenceNode:
                    raise YamlRefused("yaml-merge", "<< takes an alias of a mapping, not of a list", line_of(key_node))
                merged = set() if merged is None else merged
                _merge(value_node, out, merged, below, notes)
                continue
            key = _new_key(key_node, notes)
        if key in out:
            if merged is None or key not in merged:
                tip = "a line --- begins a new document" if key in ("apiVersion", "kind") else "keep one of them"
                if None in (out.get("metadata", key), out.get("spec", key)):
                    tip = "indent what belongs to metadata and spec"
                message = f"the key {key!r} is already in this mapping; {tip}"
                raise YamlRefused("duplicate-key", message, line_of(key_node))
            merged.discard(key)
        if value_node.__class__ is ScalarNode:
            out[key] = _scalar(value_node, notes)
        else:
            out[key] = _value(value_node, below, notes)
    return out


def _new_key(node: Node, notes: list[Note]) -> str:
    if not isinstance(node, ScalarNode):
        message = "a key is a list or a mapping; quote it, and render templates ({{ }}) first"
        raise YamlRefused("yaml-key-not-a-string", message, line_of(node))
    tag: Any = node.tag
    text: str = node.value
    if tag is not None:
        value = _guarded(tagged_value, node, tag, text)
        return value if isinstance(value, str) else str(_guarded(key_text, node, text))
    if node.style:
        return text
    key: str = _guarded(key_text, node, text)
    if remark := surprise(text, is_key=True):
        notes.append(Note(line_of(node), "yaml-surprising-key", f"{remark}; quote it", Severity.WARNING))
    elif key != text:
        remark = f'the key {text} is read as "{key}"; quote it'
        notes.append(Note(line_of(node), "yaml-surprising-key", remark, Severity.WARNING))
    else:
        remember(KEYS, text, text)
    return key


def _merge(node: Node, out: dict[str, Json], merged: set[str], depth: int, notes: list[Note]) -> None:
    """Write the merged mappings into `out`. As in kubectl later ones win, also over keys written before."""
    for source in reversed(node.value) if node.__class__ is SequenceNode else [node]:
        if source.__class__ is not MappingNode:
            raise YamlRefused("yaml-merge", "<< needs a mapping, or a list of mappings", line_of(source))
        for key, value in _value(source, depth, notes).items():
            if key not in out or key in merged:
                merged.add(key)
            elif out[key] != value:
                remark = f"<< replaces {key!r}, which stands before it; write << first"
                notes.append(Note(line_of(node), "yaml-merge-replaces", remark, Severity.WARNING))
            out[key] = value


_Weight = tuple[int, int, int]
"""Nodes, characters of text, and height of a tree."""


def _weigh(node: Node, depth: int, known: dict[int, _Weight | None]) -> _Weight:
    """Size of the tree with aliases written out. `known` holds None for a node that is being weighed."""
    if node.__class__ is ScalarNode:
        return 1, len(node.value), 1
    key = id(node)
    if key in known:
        weight = known[key]
        if weight is None:
            raise YamlRefused("yaml-alias-loop", "an anchor's value contains itself", line_of(node))
        if depth + weight[2] > MAX_DEPTH + 1:
            raise too_deep(line_of(node))
        return weight
    if depth > MAX_DEPTH:
        raise too_deep(line_of(node))
    known[key] = None
    nodes = text = height = 0
    for child in _children(node):
        below = _weigh(child, depth + 1, known)
        nodes, text, height = nodes + below[0], text + below[1], max(height, below[2])
    if nodes > MAX_NODES or text > MAX_BYTES:
        limit = f"more than {MAX_NODES:,} values or {MAX_BYTES:,} bytes with its aliases written out"
        raise YamlRefused("yaml-alias-explosion", limit, line_of(node))
    weight = known[key] = (nodes + 1, text, height + 1)
    return weight


def _children(node: Node) -> Iterator[Node]:
    if node.__class__ is MappingNode:
        for key, value in node.value:
            yield key
            yield value
    else:
        yield from node.value


def _guarded(function: Any, node: Node, *arguments: str) -> Any:
    try:
        return function(*arguments)
    except YamlRefused as error:
        raise YamlRefused(error.code, str(error), line_of(node)) from error


def line_of(node: Node) -> int:
    """Return the line on which a node begins, from 1."""
    return int(node.start_mark.line) + 1
