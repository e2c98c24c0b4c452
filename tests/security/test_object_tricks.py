"""Tricks of a pull request's author on objects: hooks, directives, powers, keys, long values, files; none is hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.store_trees import commit_all, write_files
from tests.security.tricks import STORE, reviewed


def config(data: str, annotation: str = "", field: str = "data") -> str:
    meta = f", annotations: {{a: {annotation}}}" if annotation else ""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: shop{meta}}}\n{field}: {{{data}}}\n"


def pod(field: str, items: list[str]) -> str:
    spec = f"containers: [{{name: x, image: r/x, {field}: [{', '.join(items)}]}}]"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: shop}}\nspec: {{{spec}}}\n"


def keys(count: int, value: str, odd: int = -1) -> str:
    return ", ".join(f"k{place}: {'evil' if place == odd else value}" for place in range(count))


LONG, ONES = "x" * 45_000, "1, " * 3_000
VARIABLES = [f"{{name: V{place}, value: a}}" for place in range(300)]
ODD = "{name: V150, value: evil}"
ROWS: list[dict[str, Any]] = [
    *yaml.safe_load(Path(__file__).with_name("object_tricks.yaml").read_text()),
    {"trick": "the middle of a long word", "said": "evil",
     "base": config("a: b", f"{LONG}good{LONG}"), "head": config("a: b", f"{LONG}evil{LONG}")},
    {"trick": "one byte of binaryData", "said": "binaryData", "base": config(f"a: {'A' * 8_000}", field="binaryData"),
     "head": config(f"a: {'A' * 4_000}B{'A' * 3_999}", field="binaryData")},
    {"trick": "one number of many in JSON", "said": "2,", "base": config(f"a: '[{ONES}1]'"),
     "head": config(f"a: '[{ONES}2, 1]'")},
    {"trick": "one variable of 300", "said": "evil", "base": pod("env", VARIABLES),
     "head": pod("env", [*VARIABLES[:150], ODD, *VARIABLES[151:]])},
    {"trick": "one argument of 200", "said": "evil", "base": pod("args", ["a"] * 200),
     "head": pod("args", [*["a"] * 100, "evil", *["a"] * 100])},
    {"trick": "one key of 400 that change", "said": "evil", "base": config(keys(400, "a")),
     "head": config(keys(400, "b", 200))},
    {"trick": "one key of 1,500 that come", "said": "evil", "base": config("z: a"),
     "head": config(keys(1_500, "b", 900))},
    {"trick": "the last letter of a long key", "said": "kb", "base": config(f"{'k' * 250}a: x"),
     "head": config(f"{'k' * 250}b: x")},
]  # fmt: skip


def files(side: str | dict[str, str]) -> dict[str, str]:
    return side if isinstance(side, dict) else {"o.yaml": side}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["trick"])
def test_a_trick_is_not_hidden(row: dict[str, Any], tmp_path: Path) -> None:
    base, head = files(row["base"]), files(row["head"])
    write_files(tmp_path, {"store.yaml": STORE, **base})
    before = commit_all(tmp_path, new=True)
    for path in base.keys() - head.keys():
        (tmp_path / path).unlink()
    write_files(tmp_path, head)
    commit_all(tmp_path)
    code, texts = reviewed(tmp_path, before, tmp_path / "comment.md")
    assert (code == 0) is (row.get("code") == 0), texts[0]
    for text in texts:
        assert row["said"] in text, text[:3000]
        assert not [word for word in row.get("never", ()) if word in text], text[:3000]
