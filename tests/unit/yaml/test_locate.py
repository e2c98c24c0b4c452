from __future__ import annotations

import pytest

from reconciler.yaml import read_yaml

TEXT = """\
# a comment
apiVersion: v1
kind: List
items:
- kind: A
  spec:
    ports:
    - name: x
    -
      name: y
    on: 1
    "quoted": 2
- kind: B
  spec: {a: 1,
    b: 2}
---
broken: [
---
kind: C
spec:
  deep: true
"""


@pytest.mark.parametrize(
    ("document", "steps", "line"),
    [
        (0, (), 5),
        (0, ("spec",), 6),
        (0, ("spec", "ports", 0, "name"), 8),
        (0, ("spec", "ports", 1), 10),
        (0, ("spec", "ports", 7), 7),
        (0, ("spec", "true"), 11),
        (0, ("spec", "quoted"), 12),
        (0, ("spec", "nobody", "x"), 6),
        (1, ("kind",), 13),
        (1, ("spec", "b"), 15),
        (2, ("spec", "deep"), 21),
    ],
)
def test_locates_a_field_or_its_nearest_parent(document: int, steps: tuple[str | int, ...], line: int) -> None:
    file = read_yaml("f.yaml", TEXT.encode())
    assert file.documents[document].locate(steps) == line


def test_locates_fields_of_json_files() -> None:
    file = read_yaml("f.json", b'{"kind": "A",\n"spec": {\n"x": 1}}\n{"kind": "B",\n "y": 2}')
    first, second = file.documents
    assert first.locate(("spec", "x")) == 3
    assert second.line == 4
    assert second.locate(("y",)) >= 4


def test_gives_the_first_line_of_what_cannot_be_marked() -> None:
    (document,) = read_yaml("f.json", b'\n{"a": "\\ud83d\\ude00",\n"b": 1}').documents
    assert document.locate(("b",)) == 2
