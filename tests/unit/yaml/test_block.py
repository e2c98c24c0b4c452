from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yaml.nodes import ScalarNode

from bench import corpus, unkind
from reconciler.api.content import Json, canonical_bytes
from reconciler.templates.rules import MAX_OBJECT_BYTES
from reconciler.yaml import YamlRefused, block, compose, read_yaml
from reconciler.yaml.block import read_block
from reconciler.yaml.nodes import Note, bodies
from reconciler.yaml.yaml_limits import check_file
from tests.present import present
from tests.unit.yaml_cases import CASES, cases

ROOT = Path(__file__).parents[3]


def long_way(data: bytes) -> list[tuple[int, Json, list[Note]]] | None:
    """Through libyaml's nodes; None when the file is refused."""
    found: list[tuple[int, Json, list[Note]]] = []
    try:
        check_file(data)
        found += [each for each in bodies(data) if each[1] is not None]
    except YamlRefused:
        return None
    return found


def in_order(found: Sequence[tuple[int, Json, list[Note]]] | None) -> Any:
    """Text that tells 1 from 1.0 and true, and keeps the order of keys."""
    return json.dumps(found)


def assert_reads_as_the_long_way(data: bytes) -> None:
    found = read_block(data)
    if found is not None:
        assert in_order(found) == in_order(long_way(data))


USUAL = {
    "mapping": "a: 1\nb: x y\nc: 2.5\nd: true\ne: null\nf:\n",
    "nested": "a:\n  b:\n    c: 1\n  d: 2\ne: 3\n",
    "list at the key": "a:\n- b\n- c: 1\n  d: 2\n-   e: 3\n    f: 4\ng: 5\n",
    "list below the key": "a:\n  - b\n  - c:\n    - d\n  - 7\nh: 8\n",
    "null in a list": "a:\n- b:\n- c:\n  - d\n- e:\n  f: 1\n",
    "quoted": 'a: "x: y # z"\nb: \'x "y"\'  # why\nc: ""\nd: \'\'\ne:\n- "no"\n',
    "comments": "# a\na: b # c\n\n  # d\nb: # e\n  c: 1\n",
    "plain": "a: http://x.y:80/z#q\nb: -c\nc: a#b\nd: x, y [z] {w}\ne: <<\nf: a'b\"c\ng: --- x\n",
    "documents": "---\n\n---\na: 1\n---\n# nothing\n---\n\nb:\n- 2\n",
    "literal": "a: |\n  x\n\n    y\n  z \n\n\nb: |-\n    x\n\n\nc: |\n  last\n",
    "literal in a list": "a:\n- b: |\n    x\n  c: 1\n",
    "in brackets": "a: [x, \"y, z\", 'w', 1, true, /a/b.c] # ]\nb: []\nc: [ ]\nd: {}\n",
    "in braces": "a: {b: c, d: [e, {f: 'g, h'}], i:  {}}\nj:\n- {k: l, m: 2} # n\n- [o, {p: q}]\n- []\n",
    "not ASCII": "a: \u00e9\u4e2d\U0001f600 \u00a0x\nb: '\u00e9'\nc: |\n  \u00e9\n# \u00e9\n",
    "nothing": "# a comment\n\n",
    "carriage returns": "a: b\r\nc: |\r\n  d\r\n\r\n  e\r\n---\r\nf: 'g'\r\n# h\r\n",
    "one carriage return": "a: b\r\nc: d\n",
    "surprising values": "a: on\nb:\n- 0644\n- c: 0799 # d\ne: 0644\n---\nf: 0644\n",
    "surprises in flow style": "a: [on, {b: 0644}, 0644]\nb: {c: 12345678901234567890123}\n",
}


@pytest.mark.parametrize("text", USUAL.values(), ids=USUAL)
def test_reads_what_is_usual(text: str) -> None:
    assert in_order(present(read_block(text.encode()))) == in_order(long_way(text.encode()))


LEFT = {
    "carriage return alone": "a: b\rc: d\n",
    "carriage return at the end": "a: b\n\r",
    "tab": "a:\tb\n",
    "no line end": "a: b",
    "byte order mark": "\ufeffa: b\n",
    "line separator": "a: b\u2028\n",
    "next line": "a: b\u0085\n",
    "control character": "a: b\x07\n",
    "root that is a list": "- a\n",
    "root that is a scalar": "a\n",
    "root that is indented": " a: b\n",
    "anchor": "a: &x b\n",
    "alias": "a: &x b\nc: *x\n",
    "tag": "a: !!str b\n",
    "merge": "<<: b\n",
    "directive": "%YAML 1.1\n---\na: b\n",
    "end of a document": "a: b\n...\n",
    "content beside a separator": "--- # x\na: b\n",
    "explicit key": "? a\n: b\n",
    "quoted key": '"a": b\n',
    "key that is another text": "on: a\n",
    "key that is a number": "0644: a\n",
    "null key": "null: a\n",
    "duplicate key": "a: 1\na: 2\n",
    "duplicate key in a list": "a:\n- b: 1\n  b: 2\n",
    "not finite": "a: .inf\n",
    "escape": 'a: "b\\n"\n',
    "doubled quote": "a: 'b''c'\n",
    "quoted text of two lines": "a: 'b\n  c'\n",
    "plain text of two lines": "a: b\n  c\n",
    "plain text of two lines in a list": "a:\n- b\n  c\n",
    "text after a quoted one": "a: 'b' c\n",
    "comment without a blank": "a: 'b'#c\n",
    "folded": "a: >\n  b\n",
    "literal that keeps": "a: |+\n  b\n",
    "literal of a width": "a: |2\n  b\n",
    "literal without text": "a: |\nb: 1\n",
    "literal that begins with a blank line": "a: |\n\n  b\n",
    "literal in a list": "a:\n- |\n  b\n",
    "literal at the end": "a: |\n",
    "flow mapping with a quoted key": "a: {'b': c}\n",
    "flow mapping without a blank": "a: {b:c}\n",
    "flow mapping without a value": "a: {b: }\n",
    "set in flow style": "a: {b}\n",
    "duplicate key in flow style": "a: {b: 1, b: 2}\n",
    "surprising key in flow style": "a: {on: 1}\n",
    "flow mapping as a key": "{a: b}: c\n",
    "list in flow style as a key": "a:\n- [b]: c\n",
    "deep in flow style": "a: " + "[" * 12 + "]" * 12 + "\n",
    "wrong bracket": "a: [b}\n",
    "text after a bracket": "a: [b] c\n",
    "comment at a bracket": "a: [b]#c\n",
    "two words in flow style": "a: [b c]\n",
    "two commas": "a: [b,,c]\n",
    "comma alone": "a: [,]\n",
    "brackets of two lines": "a: [b,\n  c]\n",
    "comma at the end": "a: [b,]\n",
    "colon in brackets": "a: [b: c]\n",
    "list in a list": "a:\n- - b\n",
    "item without a value": "a:\n-\n  b: c\n",
    "two values": "a: b: c\n",
    "value that ends with a colon": "a: b:\n",
    "list beside its key": "a: - b\n",
    "list where a key is": "a: 1\n- b\n",
    "list after a mapping": "a:\n  b: 1\n  - c\n",
    "key where an item is": "a:\n  - b\n  c: 1\n",
    "indented too far": "a: 1\n  b: 2\n",
    "indented between": "a:\n    b: 1\n  c: 2\n",
    "key without a blank": "a:b\n",
    "reserved": "a: @b\n",
    "deep": "".join(f"{' ' * depth}a:\n" for depth in range(101)),
    "not UTF-8": b"a: \xff\n".decode("latin-1"),
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_leaves_everything_else_to_the_other_reader(text: str) -> None:
    data = text.encode("latin-1") if text.endswith("\xff\n") else text.encode()
    assert read_block(data) is None


def test_reads_large_files_as_the_long_way() -> None:
    text = "".join(f"field{number}:\n- name: x{number}\n  mode: 0644\n" for number in range(5_000))
    assert len(text) > 150_000
    assert in_order(present(read_block(text.encode()))) == in_order(long_way(text.encode()))


def test_leaves_files_to_the_other_reader_that_may_hold_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts what it is asked to read, and refuses what it counts."""
    monkeypatch.setattr(block, "_SMALL_BYTES", 100)
    monkeypatch.setattr(block, "MAX_NODES", 200)
    assert read_block(b"a: b\n" * 20) is None, "a key that stands twice"
    texts = ["".join(f"a{number}: [b, {{c: d}}]\n" for number in range(size)).encode() for size in (15, 50)]
    assert [read_block(data) is None for data in texts] == [False, True]
    assert _counted(texts[0]) < 200 < _counted(texts[1])


def _counted(data: bytes) -> int:
    (root,) = compose(data)
    pending, count = [root], 0
    while pending:
        node = pending.pop()
        count += 1
        for child in node.value if not isinstance(node, ScalarNode) else ():
            pending.extend(child if isinstance(child, tuple) else (child,))
    return count


def test_remembers_lines_that_return_among_many_that_do_not() -> None:
    """Lines of one file only must not push out those that stand in all of them."""
    usual = "".join(f"usual{number}: {number}\n" for number in range(50))
    for round_ in range(60):
        read_block((usual + "".join(f"x{number}: {round_}-{number}\n" for number in range(500))).encode())
        assert all(line in block._lines or line in block._earlier_lines for line in usual.splitlines())


def test_makes_mappings_and_lists_anew_for_each_file() -> None:
    data = b"a: [b]\nc: {d: {}}\n"
    one, other = read_block(data), read_block(data)
    assert one is not None and other is not None
    assert one[0][1]["a"] is not other[0][1]["a"]
    assert one[0][1]["c"]["d"] is not other[0][1]["c"]["d"]


@pytest.mark.parametrize("table", sorted(path.relative_to(CASES).as_posix() for path in CASES.rglob("*yaml*.yaml")))
def test_never_reads_a_case_otherwise(table: str) -> None:
    for parameters in cases(table):
        case: Any = parameters.values[0]
        assert_reads_as_the_long_way(str(case["text"]).encode() + b"\n")


@pytest.mark.parametrize("folder", ["examples", "tests", "docs"])
def test_never_reads_a_file_of_this_repository_otherwise(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.yaml"):
        assert_reads_as_the_long_way(path.read_bytes())


def test_reads_nearly_all_of_the_examples() -> None:
    files = [path.read_bytes() for path in (ROOT / "examples").rglob("*.yaml")]
    assert sum(read_block(data) is None for data in files) <= len(files) // 8


def test_reads_nearly_all_of_the_measured_fleet() -> None:
    files = [data for _, data in islice(corpus.store_files(100), 100)]
    assert sum(read_block(data) is None for data in files) < 10


def test_reads_the_unkind_fleet_as_the_long_way() -> None:
    """A tenth of it has anchors, which are left to the other reader."""
    files = [data for _, data in unkind.store_files(200)]
    for data in files:
        assert_reads_as_the_long_way(data)
    assert sum(read_block(data) is None for data in files) <= 200 // 10


_VALUES = st.sampled_from(
    ["", "", "", "x", "1", "1.5", "0644", "on", "~", "x y", "x # y", "x #", "#x", "# x", "x:", "x: y", "x:y", "-",
     "- x", "-x", "--- x", "'x'", '"x"', "'x' # y", "'x", "'x''y'",
     '"x\\n"', "[]", "[x, y]", "[x,y] # ]", "['x, y', \"z\"]",
     "[x", "[x: y]", "{}", "{x: y}", "{x: [y, {z: 1}], w: 'v'}", "[[x], {}]", "{x: y, x: z}", "{x:y}", "{x}",
     "[{x: y}", "{x: y} # z", "[x] y", "|", "|", "|-", "|+", ">", "| # x", "&x y", "*x", "!x y", "? x", ", x",
     "%x", "@x",
     "<<", "=", "x ", " x", "\u00e9", "x\u00a0", "...", "---", ".5", "1e3", "0x1F", "22:22", "2024-01-02", "null", "y"]
)  # fmt: skip
_KEYS = st.sampled_from(["a: ", "b: ", "c: ", "a:", "b:", "c:", "a.b/c-d: ", "a:  ", "", "on: ", "1: ", "'a': ", "x"])
_DASHES = st.sampled_from(["", "", "", "- ", "-   ", "- - ", "-"])
_INDENTS = st.integers(0, 6).map(lambda width: " " * width)
_LINES = st.tuples(_INDENTS, _DASHES, _KEYS, _VALUES).map("".join) | st.sampled_from(
    ["", "  ", "      ", "---", "--- ", "...", "# x", "  # x", "a:\tb", "%YAML 1.1"]
)


@given(st.lists(_LINES, max_size=8))
@example(["a:", "- b: |", "    x", "  # y", "   z", "- c"])
@example(["a: |", "   x", " # y", "b: 1"])
@example(["a: |-", "  x", "", "      ", "b:", "- 1"])
def test_never_reads_lines_otherwise_than_the_long_way(lines: list[str]) -> None:
    assert_reads_as_the_long_way("".join(f"{line}\n" for line in lines).encode())


@given(st.lists(st.tuples(_LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=6))
def test_reads_line_ends_as_the_long_way(lines: list[tuple[str, str]]) -> None:
    assert_reads_as_the_long_way("".join(map("".join, lines)).encode())


_WORDS = st.sampled_from(
    ["x", "x y", "1", "0644", "on", "[yes, {k: 010}]", "null", "'q'", '"q: r"', "[a, b]", "{}", "", "|\n@  t\n\n@   u"]
)


@st.composite
def _usual_texts(draw: st.DrawFn, indent: int = 0, depth: int = 0) -> str:
    """Well-formed block style."""
    blanks = " " * indent
    lines = []
    for key in draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)):
        form = draw(st.integers(0, 3)) if depth < 4 else 0
        if form == 0:
            lines.append(f"{blanks}{key}: " + draw(_WORDS).replace("@", blanks))
        elif form == 1:
            lines.append(f"{blanks}{key}:\n" + draw(_usual_texts(indent + draw(st.integers(1, 4)), depth + 1)))
        else:
            lines.append(f"{blanks}{key}:")
            at = indent + draw(st.integers(0, 2))
            for _ in range(draw(st.integers(1, 3))):
                if form == 2:
                    lines.append(" " * at + "- " + draw(st.sampled_from(["x", "1", "'q'", "a#b", "x # y"])))
                else:
                    item = draw(_usual_texts(at + 2, depth + 1))
                    lines.append(" " * at + "- " + item[at + 2 :])
    return "\n".join(lines)


@given(_usual_texts())
def test_never_counts_fewer_values_than_there_are(text: str) -> None:
    data = text.encode() + b"\n"
    assert block._most_nodes(data) >= _counted(data)


@given(_usual_texts())
def test_reads_block_style_as_the_long_way(text: str) -> None:
    assert_reads_as_the_long_way(text.encode() + b"\n")


@pytest.mark.parametrize("item", ["9e18", "''", "a", "~", "'\"'", "'\\'", "{a: 9e18}", "[]"])
def test_what_is_small_as_text_is_small_as_an_object(item: str) -> None:
    """The promise of `Document.is_small`, on which the check of an object's size relies."""
    text = f"a: [{', '.join([item] * (99_000 // (len(item) + 2)))}]\n"
    (document,) = read_yaml("a.yaml", text.encode()).documents
    assert len(canonical_bytes(document.body)) < MAX_OBJECT_BYTES // 2


def test_says_which_documents_are_small() -> None:
    usual, other = b"a: b\n", b"a: &b c\nd: *b\n"
    assert [read_yaml("a.yaml", data).documents[0].is_small for data in (usual, other)] == [True, False]
