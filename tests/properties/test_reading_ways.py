"""A file says the same, its problems with their lines included, whichever way it is read.

By lines, by nodes, and out of the cache; on files as real stores have them, and on ones in which somebody slipped.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from bench import unkind
from reconciler.api.content import digest_of_bytes
from reconciler.api.fleet import StoreFile
from reconciler.fleet import memo_key, parse_file
from reconciler.store import ParseCache
from reconciler.yaml import yaml_reader as reader
from tests.examples import examples

FILES = [data for path, data in unkind.store_files(20) if not path.startswith("definitions/")]
LINES = sorted({line for data in FILES for line in data.split(b"\n")})
SLIPS = [
    b"  defaultMode: 0644", b"      x: on", b"    y: 0899", b"  a: [0644, {b: no}]", b"\t", b"# \xc3\xa9", b"---",
    b"  z: *x", b"  z: &x 1", b"kind: Secret", b"      value: 'a", b"  - name: x", b"stringData: {a: 1}", b"spec:", b"",
]  # fmt: skip
EDITS = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from(["put", "drop", "twice"]), st.sampled_from([*SLIPS, *LINES])),
    max_size=3,
)


def edited(data: bytes, edits: list[tuple[int, str, bytes]]) -> bytes:
    """The file after some edits of its lines."""
    lines = data.split(b"\n")
    for at, what, line in edits:
        place = at % len(lines)
        lines[place : place + 1] = {"put": [lines[place], line], "drop": [], "twice": [lines[place]] * 2}[what]
    return b"\n".join(lines)


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(FILES), EDITS, st.sampled_from([b"\n", b"\r\n"]))
def test_a_file_says_the_same_by_lines_by_nodes_and_from_the_cache(
    data: bytes, edits: list[tuple[int, str, bytes]], end: bytes
) -> None:
    text = edited(data, edits).replace(b"\r\n", b"\n").replace(b"\n", end)
    file = StoreFile(path="apps/a.yaml", blob=digest_of_bytes(text), data=text)
    parsed = parse_file(file)
    with patch.object(reader, "read_block", lambda _: None):
        assert parse_file(file) == parsed
    with TemporaryDirectory() as folder:
        ParseCache(Path(folder) / "parsed.db").save({memo_key(file): parsed})
        kept = ParseCache(Path(folder) / "parsed.db").load([file])
    assert kept in ({}, {memo_key(file): parsed})
