from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.api.problem import Severity
from reconciler.yaml import MAX_BYTES, read_yaml
from reconciler.yaml.yaml_reader import sketch
from tests.unit.yaml_cases import brief, cases, exactly, read_documents


@pytest.mark.parametrize("case", cases("yaml/documents.yaml"))
def test_reads_files_as_kubectl_does(case: dict[str, Any]) -> None:
    file = read_yaml(case.get("path", "f.yaml"), case["text"].encode())
    expected = [(document["line"], exactly(json.loads(document["json"]))) for document in case["documents"]]
    assert read_documents(file) == expected
    assert brief(file.problems) == case.get("problems", [])


@pytest.mark.parametrize("case", cases("badinput/yaml.yaml"))
def test_refuses_bad_files_with_their_line(case: dict[str, Any]) -> None:
    file = read_yaml(case.get("path", "f.yaml"), case["text"].encode())
    assert brief(file.problems) == case["problems"]
    assert [document.line for document in file.documents] == case.get("kept", [])
    errors = [problem for problem in file.problems if problem.severity is Severity.ERROR]
    assert len(file.broken) == len(errors)


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)
_OBJECTS = st.dictionaries(_TEXT, _JSON, max_size=5).filter(lambda body: not str(body.get("kind", "")).endswith("List"))


def _quoted(body: Any) -> str:
    """Every string and key in quotes, so that the dump means the same to every reader."""
    return json.dumps(body, ensure_ascii=False, indent=1)


class _QuotingDumper(yaml.SafeDumper):
    pass


def _in_quotes(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


_QuotingDumper.add_representer(str, _in_quotes)


@given(_OBJECTS)
def test_reads_back_what_was_dumped_as_yaml(body: dict[str, Any]) -> None:
    text = yaml.dump(body, Dumper=_QuotingDumper, allow_unicode=True)
    assert [exactly(document.body) for document in read_yaml("f.yaml", text.encode()).documents] == [exactly(body)]


@given(_OBJECTS)
def test_reads_json_alike_in_both_kinds_of_file(body: dict[str, Any]) -> None:
    data = _quoted(body).encode()
    as_json, as_yaml = read_yaml("f.json", data), read_yaml("f.yaml", data)
    assert not as_json.problems
    assert read_documents(as_json) == read_documents(as_yaml) == [(1, exactly(body))]


_PARTS = st.sampled_from(
    ["a: 1\n", "a: [\n", "b: {x: 'y'}\n", "a: 1\na: 2\n", "\tx\n", "c: |\n  text\n", "'open\n", "- 1\n", "~: 1\n",
     "# x\n", "d: *no\n", "e: \"\\q\"\n", "{\"f\": \"\\ud83d\\ude00\"}\n", "x: &x {y: *x}\n"]
)  # fmt: skip


@given(st.lists(_PARTS, max_size=8))
def test_one_bad_document_never_hides_the_others(parts: list[str]) -> None:
    expected = []
    line = 1
    for part in parts:
        alone = read_yaml("f.yaml", part.encode())
        expected += [(line + number, body) for number, body in read_documents(alone)]
        line += 1 + part.count("\n")
    whole = read_yaml("f.yaml", "".join(f"---\n{part}" for part in parts).encode())
    assert read_documents(whole) == expected


@given(st.binary(max_size=200) | st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,? \n\t<~1e.0").map(str.encode))
@example(b"\xff\xfea\x00:\x00")
@settings(max_examples=300)
def test_never_fails_whatever_the_bytes(data: bytes) -> None:
    for path in ("f.yaml", "f.json"):
        file = read_yaml(path, data)
        for document in file.documents:
            assert document.line >= 1
        for problem in file.problems:
            assert 0 <= problem.source.line <= data.count(b"\n") + data.count(b"\r") + 2


def _bomb(levels: int, width: int) -> bytes:
    lines = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, levels)]
    return "\n".join(["a0: &a0 [x]", *lines]).encode()


_HOSTILE = {
    "100 KB of brackets": (b"[" * 100_000, "too-deep"),
    "100 KB of braces": (b'{"a":' * 20_000, "too-deep"),
    "brackets after harmless lines": (b"a: 1\nb: " + b"[" * 50_000, "too-deep"),
    "dashes and indentation": (b"\n".join(b" " * n + b"-" for n in range(2_850)), "too-deep"),
    "compact dashes": (b"- " * 50_000 + b"x", "too-deep"),
    "question marks": (b"? " * 50_000 + b"x", "too-deep"),
    "growing indentation": (b"\n".join(b" " * n + b"k:" for n in range(2_850)), "too-deep"),
    "an alias bomb": (_bomb(9, 9), "yaml-alias-explosion"),
    "an alias bomb of text": (
        b"t: &t " + b"x" * 100_000 + b"\nu: [" + b",".join([b"*t"] * 100) + b"]", "yaml-alias-explosion"),
    "a chain of aliases that is deep": (
        b"\n".join([b"a0: &a0 [x]"] + [b"a%d: &a%d [*a%d]" % (n, n, n - 1) for n in range(1, 200)]), "too-deep"),
    "five megabytes": (b"a: " + b"x" * (MAX_BYTES + 1), "file-too-large"),
    "a million documents": (b"---\n" * 1_000_000, "too-many-documents"),
    "a million values": (b"[" + b"1," * 1_000_000 + b"1]", "too-many-nodes"),
    "a million items": (b"- 1\n" * 1_000_000, "too-many-nodes"),
    "many directives": (b"%TAG !a! tag:a\n" * 100_000 + b"--- 1", "too-many-directives"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "code"), _HOSTILE.values(), ids=_HOSTILE.keys())
def test_answers_hostile_files_at_once(data: bytes, code: str) -> None:
    began = time.process_time()
    file = read_yaml("f.yaml", data)
    assert [problem.code for problem in file.problems] == [code]
    assert time.process_time() - began < 2


def test_claims_no_size_of_a_file_that_was_read_up_to_the_limit() -> None:
    (problem,) = read_yaml("f.yaml", b"a: " + b"x" * MAX_BYTES).problems
    assert problem.message == "more than 4,194,304 bytes; split the file"


def test_answers_deep_json_at_once() -> None:
    for depth in (101, 5_000, 100_000):
        file = read_yaml("f.json", b'{"a":' * depth + b"1" + b"}" * depth)
        assert [problem.code for problem in file.problems] == ["too-deep"]


def test_accepts_the_deepest_document() -> None:
    depth = 100
    assert len(read_yaml("f.yaml", b"{a: " * depth + b"1" + b"}" * depth).documents) == 1
    assert len(read_yaml("f.json", b'{"a":' * depth + b"1" + b"}" * depth).documents) == 1
    assert not read_yaml("f.yaml", b"{a: " * (depth + 1) + b"1" + b"}" * (depth + 1)).documents


def test_reads_a_large_config_map_of_many_lines() -> None:
    text = "data:\n  x: |\n" + "    - line, with: colons\n" * 120_000
    (document,) = read_yaml("f.yaml", text.encode()).documents
    assert len(document.body["data"]["x"]) == 120_000 * len("- line, with: colons\n")


def test_names_the_line_of_a_byte_that_is_not_utf8() -> None:
    file = read_yaml("f.yaml", "a: 1\n---\nb: café\n".encode("cp1252"))
    assert brief(file.problems) == ["error 3 not-utf-8"]
    assert [document.line for document in file.documents] == [1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("apiVersion: v1\nkind: A\nmetadata:\n  name: n\n  namespace: s\nx: [",
         {"apiVersion": "v1", "kind": "A", "metadata": {"name": "n", "namespace": "s"}}),
        ("kind: A # c\napiVersion: 'apps/v1'\nmetadata:\n  labels:\n    name: no\n  name: \"n\"\nx: [",
         {"apiVersion": "apps/v1", "kind": "A", "metadata": {"name": "n"}}),
        ("apiVersion: v1\nkind: A\nx: [", {"apiVersion": "v1", "kind": "A"}),
        ("apiVersion: v1\nkind: A\nmetadata:\n  name: n\n  name: m\n",
         {"apiVersion": "v1", "kind": "A", "metadata": {}}),
        ("kind: A\nx: [", {}),
        ("apiVersion: v1\nkind: A\nkind: B\n", {}),
        ("{apiVersion: v1, kind: A", {}),
    ],
)  # fmt: skip
def test_tells_what_a_broken_document_is_when_its_lines_say_so(text: str, told: dict[str, Any]) -> None:
    assert sketch(text.encode()) == told
