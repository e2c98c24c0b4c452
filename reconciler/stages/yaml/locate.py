"""Lines of fields, found by reading a file's text once more with marks. Only problems and provenance ask for them."""

from __future__ import annotations

from msgspec import Struct, field
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.model.tree import Step
from reconciler.stages.yaml.limits import YamlRefused, check_encoding, check_shape, parts
from reconciler.stages.yaml.nodes import compose
from reconciler.stages.yaml.scalars import ScalarRefused, key_text


class FileMarks:
    """The node trees of one file, composed when the first line is asked for and shared by its documents."""

    __slots__ = ("_data", "_roots")

    def __init__(self, data: bytes) -> None:
        """Keep the text; nothing is read yet."""
        self._data = data
        self._roots: dict[int, tuple[int, Node]] | None = None

    def root(self, line: int) -> tuple[int, Node | None]:
        """Lines before the part that the document at `line` was read in, and its node tree, if there is one."""
        if self._roots is None:
            self._roots = _roots(self._data)
        return self._roots.get(line, (0, None))


def _roots(data: bytes) -> dict[int, tuple[int, Node]]:
    found: dict[int, tuple[int, Node]] = {}
    for before, text in parts(data):
        try:
            check_encoding(text)
            check_shape(text)
            for node in compose(text):
                found.setdefault(before + _line(node), (before, node))
        except YamlRefused:
            continue
    return found


class Locator(Struct, frozen=True, kw_only=True):
    """`Document.locate`: the line of a field, or of the nearest parent that exists. `below` leads to a List's item."""

    marks: FileMarks
    line: int
    below: tuple[Step, ...] = field(default=())

    def __call__(self, steps: tuple[Step, ...]) -> int:
        """The line of the field, from 1."""
        before, node = self.marks.root(self.line)
        line = self.line
        for step in (*self.below, *steps):
            found = _child(node, step) if node is not None else None
            if found is None:
                break
            line, node = before + found[0], found[1]
        return line


def _child(node: Node, step: Step) -> tuple[int, Node] | None:
    """Return the child and its line; a member has that of its key."""
    if isinstance(node, SequenceNode):
        if isinstance(step, int) and -len(node.value) <= step < len(node.value):
            item = node.value[step]
            return _line(item), item
        return None
    if not isinstance(node, MappingNode):
        return None
    for key, value in reversed(node.value):
        if isinstance(key, ScalarNode) and _key(key) == step:
            return _line(key), value
    return None


def _key(node: ScalarNode) -> str:
    text = str(node.value)
    if node.style:
        return text
    try:
        return key_text(text)
    except ScalarRefused:
        return text


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
