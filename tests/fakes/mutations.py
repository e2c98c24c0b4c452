"""Stores that nobody would write: sound ones with a few values, keys, lines or bytes in the wrong place."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from tests.yaml_text import load_documents

ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**70),
    1.5,
    float("inf"),
    float("nan"),
    "",
    " ",
    "x",
    "0",
    "-1",
    "a/b/c",
    "true",
    "~",
    "10%",
    "1e9",
    "9" * 400,
    "x" * 300,
    "\u202e",
    "\x85",
    "é",
    "🙂",
    "*",
    "..",
    "/",
    "{{ .Values.x }}",
    "2m",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": ""},
    {"a": None},
    {"a": {"b": {"c": []}}},
    [1, "a", None, {"a": 1}],
    {"name": {"a": "b"}},
    [{"name": "a"}, {"name": "a"}],
    ["a", "a"],
    "metadata",
    "spec",
    "v1",
    "apps/v1",
    "Deployment",
    "Secret",
    "m1",
    "demo",
)
BYTES: Final = (
    b"\xe9",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"! ",
    b"&a ",
    b"*a",
    b"- ",
    b"? ",
    b": ",
    b"---\n",
    b"...\n",
    b"{",
    b"[",
    b"}",
    b"]",
    b"%YAML 1.1\n",
    b"<<: ",
    b"# ",
    b"'",
    b'"',
    b"|\n",
    b"\r\n",
    b"\t",
    b"!!binary x",
    b"  ",
)

SOUND: Final = Path(__file__).with_name("sound_store.yaml").read_text()
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_DOCUMENTS: Final[list[Any]] = load_documents(SOUND)


def documents() -> list[Any]:
    """The documents of the sound store, to be changed at will."""
    return copy.deepcopy(_DOCUMENTS)


def _places(tree: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every container with each of its keys or indexes."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        found.append((tree, key))
        if isinstance(tree[key], dict | list):
            _places(tree[key], found)
    return found


def _replace(random: Random, tree: Any, key: Any, every: list[tuple[Any, Any]]) -> None:
    tree[key] = copy.deepcopy(random.choice(ODD))


def _remove(random: Random, tree: Any, key: Any, every: list[tuple[Any, Any]]) -> None:
    del tree[key]


def _wrap(random: Random, tree: Any, key: Any, every: list[tuple[Any, Any]]) -> None:
    tree[key] = random.choice(([tree[key]], {"a": tree[key]}, [tree[key], tree[key]], str(tree[key])))


def _add(random: Random, tree: Any, key: Any, every: list[tuple[Any, Any]]) -> None:
    value = copy.deepcopy(random.choice(ODD))
    if isinstance(tree, list):
        tree.insert(key, value)
    else:
        tree[random.choice(("name", "status", "x", "", "namespace", "items", "sops", "data", "generateName"))] = value


def _swap(random: Random, tree: Any, key: Any, every: list[tuple[Any, Any]]) -> None:
    other, at = random.choice(every)
    try:
        tree[key] = copy.deepcopy(other[at])
    except (KeyError, IndexError):  # gone by an earlier mutation
        tree[key] = None


_CHANGES: Final[tuple[Callable[..., None], ...]] = (_replace, _replace, _replace, _remove, _wrap, _add, _swap)


def mutated_documents(random: Random, times: int) -> bytes:
    """The sound store with so many values in the wrong place."""
    found = documents()
    for _ in range(times):
        every = _places(found, [])
        tree, key = random.choice(every)
        random.choice(_CHANGES)(random, tree, key, every)
    text: str = yaml.dump_all(found, Dumper=_DUMPER, allow_unicode=True, sort_keys=False)
    return text.encode("utf-8", errors="replace")


def mutated_text(random: Random, times: int, text: bytes = SOUND.encode()) -> bytes:
    """The sound store with so many bytes, tokens or lines in the wrong place."""
    for _ in range(times):
        at, to = sorted((random.randrange(len(text) + 1), random.randrange(len(text) + 1)))
        match random.randrange(4):
            case 0:
                text = text[:at] + random.choice(BYTES) + text[at:]
            case 1:
                text = text[:at] + text[min(to, at + random.randrange(1, 40)) :]
            case 2:
                text = text[:at] + bytes((random.randrange(256),)) + text[at + 1 :]
            case _:
                text = text[:at] + text[to : to + random.randrange(80)] + text[at:]
    return text
