"""The YAML reader against kubectl itself: `kubectl label --local` prints any object as JSON, without a server."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.problem import Severity
from reconciler.documents import BUILT_IN
from reconciler.yaml import read_yaml
from tests.real_clusters import RealCluster
from tests.unit.yaml_cases import cases, exactly

pytestmark = pytest.mark.apiserver

_HEAD = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n"


def _as_kubectl_reads(kubectl: Path, folder: Path, texts: list[str]) -> list[Any]:
    """Return what kubectl makes of the body `value: TEXT`, one result a text; None where it refuses the document."""
    results: list[Any] = []
    for start in range(0, len(texts), 200):
        results += _read_chunk(kubectl, folder, texts[start : start + 200])
    return results


def _read_chunk(kubectl: Path, folder: Path, texts: list[str]) -> list[Any]:
    """One run for many documents; where one is refused, halves find which."""
    file = folder / "objects.yaml"
    file.write_text("".join(f"---\n{_HEAD}value: {text}\n" for text in texts))
    command = [str(kubectl), "label", "--local", "--dry-run=client", "-o", "json", "-f", str(file), "seen=yes"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode == 0:
        return [body["value"] for body in _json_stream(done.stdout)]
    if len(texts) == 1:
        return [None]
    middle = len(texts) // 2
    return _read_chunk(kubectl, folder, texts[:middle]) + _read_chunk(kubectl, folder, texts[middle:])


def _json_stream(text: str) -> list[Any]:
    decoder, position, values = json.JSONDecoder(), 0, []
    while position < len(text.rstrip()):
        value, position = decoder.raw_decode(text, position)
        values.append(value)
        position += len(text[position:]) - len(text[position:].lstrip())
    return values


def _as_we_read(text: str) -> Any:
    """The value, or None where it is refused."""
    file = read_yaml("f.yaml", f"{_HEAD}value: {text}\n".encode())
    if any(problem.severity is Severity.ERROR for problem in file.problems):
        return None
    (document,) = file.documents
    return document.body["value"]


def _same(ours: Any, theirs: Any) -> bool:
    """Equal to the last type; kubectl prints a float beyond 64 bits without a point."""
    if isinstance(ours, float) and isinstance(theirs, int):
        return ours == float(theirs) and not -(2**63) <= theirs < 2**63
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    return exactly(ours) == exactly(theirs)


_SEEDS = [
    "y", "Yes", "no", "ON", "off", "TRUE", "null", "~", ".inf", "-.INF", ".nan", "2024-01-02", "2024-1-2 10:00:00",
    "12:30:45", "1e3", "1.e3", ".5", "0x1F", "0o17", "017", "089", "0b11", "-0b11", "+12", "1_000", "_1", "1e400",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "0xffffffffffffffff",
    "1234567890123456789.0", "1e21", "5e20", "-0.0", "1.10", "1.2.3", "100m", "1Gi", "<<", "=", ".1_0", "nan", "0x1p3",
]  # fmt: skip


def _scalars(count: int, seed: int) -> list[str]:
    """Scalars that look like numbers, words and dates, by mutation of those with a history."""
    source = random.Random(seed)
    alphabet = "00112345678901.eE+-_xobXBaFyYnN~:TZ"
    found = set(_SEEDS)
    while len(found) < count:
        text = source.choice(_SEEDS)
        for _ in range(source.randint(1, 3)):
            at = source.randint(0, len(text))
            text = text[:at] + source.choice(alphabet) + text[at + source.randint(0, 1) :]
        if text.strip("-?:. ") and not text.startswith(("- ", ": ", "...", "---")) and not text.endswith(":"):
            found.add(text)
    return sorted(found)


_LEAVES = [
    "on", "'on'", "1.5", "0o17", "~", "''", '"\\x41\\u00e9"', "!!str 1", "!!int '0x10'", "!!float 3", "!Foo 1", "! 12",
    "!!binary aGk=", "!!null ''", "!!bool 'yes'", "*m", "*l", "x", "2024-01-02", "!!set {a: 1}", "!!omap [a: 1]",
]  # fmt: skip
_KEYS = [
    "a",
    "b",
    "c",
    "on",
    "'on'",
    "1",
    "1.5",
    "1e6",
    "1.10",
    "!!str 1",
    "<<",
    "!!binary aGk=",
    "089",
    "12:30",
    "0x1",
]


def _tree(source: random.Random, depth: int) -> str:
    choice = source.random()
    if depth > 3 or choice < 0.4:
        return source.choice(_LEAVES)
    if choice < 0.7:
        keys = source.sample(_KEYS, source.randint(0, 4))
        merged = {key: "*m" if key == "<<" else _tree(source, depth + 1) for key in keys}
        return "{" + ", ".join(f"{key}: {value}" for key, value in merged.items()) + "}"
    return "[" + ", ".join(_tree(source, depth + 1) for _ in range(source.randint(0, 3))) + "]"


def _structures(count: int, seed: int) -> list[str]:
    """Nested flow collections with anchors, aliases, merges and tags."""
    source = random.Random(seed)
    return [f"[&m {{a: 1, b: [on]}}, &l [0644, x], {_tree(source, 0)}]" for _ in range(count)]


def test_reads_the_tables_as_kubectl_does(kubernetes_binaries: Path, tmp_path: Path) -> None:
    rows = [row.values[0] for row in cases("yaml/scalars.yaml")]
    texts = [row["text"] for row in rows if isinstance(row, dict)]
    theirs = _as_kubectl_reads(kubernetes_binaries / "kubectl", tmp_path, texts)
    for text, value in zip(texts, theirs, strict=True):
        assert _same(_as_we_read(text), value), text


@pytest.mark.parametrize("seed", [1, 2])
def test_types_generated_scalars_as_kubectl_does(kubernetes_binaries: Path, tmp_path: Path, seed: int) -> None:
    texts = _scalars(800, seed)
    theirs = _as_kubectl_reads(kubernetes_binaries / "kubectl", tmp_path, texts)
    different = [(text, _as_we_read(text), value) for text, value in zip(texts, theirs, strict=True)
                 if not _same(_as_we_read(text), value)]  # fmt: skip
    assert different == []


def test_builds_generated_structures_as_kubectl_does(kubernetes_binaries: Path, tmp_path: Path) -> None:
    texts = _structures(600, 3)
    theirs = _as_kubectl_reads(kubernetes_binaries / "kubectl", tmp_path, texts)
    # Beyond kubectl, two spellings of one key are refused.
    stricter = {text for text in texts if _codes(text) == {"duplicate-key"}}
    different = [(text, _as_we_read(text), value) for text, value in zip(texts, theirs, strict=True)
                 if text not in stricter and not _same(_as_we_read(text), value)]  # fmt: skip
    assert different == []
    assert len(stricter) < len(texts) / 2


def _codes(text: str) -> set[str]:
    problems = read_yaml("f.yaml", f"{_HEAD}value: {text}\n".encode()).problems
    return {problem.code for problem in problems if problem.severity is Severity.ERROR}


def test_scopes_are_those_of_a_real_api_server(real_cluster: RealCluster) -> None:
    lines = real_cluster.kubectl("api-resources", "--no-headers").splitlines()
    served = {}
    for line in lines:
        *_, api_version, namespaced, kind = line.split()
        group = api_version.rpartition("/")[0]
        # Other tests leave definitions of their own behind.
        if "." not in group or group.endswith(".k8s.io"):
            served[group, kind] = namespaced == "true"
    known = {group_kind: BUILT_IN.get(group_kind) for group_kind in served}
    assert known == served
    assert len(served) > 60
