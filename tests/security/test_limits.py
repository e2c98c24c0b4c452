"""Each limit of docs/reference/security.md, at it and one step beyond it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pygit2
import pytest

from reconciler.api.fleet import StoreFile
from reconciler.errors import StoreError
from reconciler.fleet import parse_file
from reconciler.store.file_walk import (
    MAX_ENTRIES,
    MAX_FILES,
    MAX_FOLDER_DEPTH,
    MAX_FOLDERS,
    MAX_TOTAL_BYTES,
    EntryKind,
    FolderEntry,
    read_tree,
)
from reconciler.store.git.git_past import SnapshotReader
from reconciler.store.git.repository import MAX_OBJECT_BYTES
from reconciler.store.git.snapshot import GitStore
from reconciler.store.ignore import MAX_IGNORE_BYTES, MAX_PATTERN, MAX_PATTERNS, MAX_STARS
from reconciler.yaml import MAX_BYTES
from tests.fakes.packs import BLOB, BY_OFFSET, COMMIT, TAG, TREE, Entry, cut_to, loose, number, object_name, write_pack
from tests.fakes.store_trees import AUTHOR
from tests.yaml_text import load_yaml

HEAD: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: demo}\n"
WIDGET: Final = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: demo}\n"
OVERRIDES: Final = (
    "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: o, namespace: demo}\nspec:\n"
    "  overrideRules:\n  - overriders:\n      plaintext:\n"
)
PATCH: Final = "      - {path: %s, operator: add, value: x}\n"


def _laughs(count: int) -> str:
    """A document of `count` values and a few, most of them by aliases."""
    return HEAD + "x: &x [" + ",".join(["a"] * 999) + "]\ny: [" + ",".join(["*x"] * (count // 1_000)) + "]\n"


def _patches(count: int, path: str = "/data/a") -> str:
    return OVERRIDES + PATCH % path * count


def _object(size: int) -> str:
    bare = len(json.dumps(load_yaml(WIDGET + "a: ''\n"), separators=(",", ":")))
    return WIDGET + 'a: "' + "x" * (size - bare) + '"\n'


FILES: Final[dict[str, tuple[Callable[[int], str], int]]] = {
    "file-too-large": (lambda size: HEAD + "#" + "x" * (size - len(HEAD) - 1), MAX_BYTES),
    "too-many-documents": (lambda count: "a: 1\n" + "---\n{}\n" * count, 10_000),
    "too-many-directives": (lambda count: "#\n" + "%X y\n" * count + "---\n" + HEAD, 16),
    "too-deep": (lambda levels: HEAD + "data: " + "[" * (levels - 1) + "]" * (levels - 1) + "\n", 100),
    "object-too-large": (_object, 1_500_000),
    "too-many-overriders": (_patches, 1_000),
}  # fmt: skip


def _codes(text: str) -> set[str]:
    return {problem.code for problem in parse_file(StoreFile(path="a.yaml", blob="1", data=text.encode())).problems}


@pytest.mark.parametrize("code", FILES)
def test_a_file_at_its_limit_is_read_and_one_beyond_it_is_refused(code: str) -> None:
    make, limit = FILES[code]
    assert code not in _codes(make(limit))
    assert code in _codes(make(limit + 1))


def test_values_are_counted_with_their_aliases_written_out() -> None:
    assert "yaml-alias-explosion" not in _codes(_laughs(290_000))
    assert "yaml-alias-explosion" in _codes(_laughs(310_000))


class _Tree:
    """A store in memory: `folders` folders, each with these names."""

    def __init__(
        self, folders: int = 0, files: int = 0, others: int = 0, data: bytes = b"", ignore: bytes = b""
    ) -> None:
        self._root = [FolderEntry(f"f{index}", EntryKind.FOLDER) for index in range(folders)]
        self._root += [FolderEntry(f"{index}.yaml", EntryKind.FILE) for index in range(files)]
        self._root += [FolderEntry(f"{index}.txt", EntryKind.FILE) for index in range(others)]
        self._root += [FolderEntry(".reconcilerignore", EntryKind.FILE)] if ignore else []
        self._data, self._ignore = data, ignore

    def children(self, folder: str) -> Iterable[FolderEntry]:
        return () if folder else self._root

    def entry(self, path: str) -> FolderEntry | None:
        return None

    def blob(self, entry: FolderEntry) -> str | None:
        return None

    def read(self, path: str, entry: FolderEntry, limit: int) -> tuple[str, bytes]:
        return "b", self._ignore if path.endswith("ignore") else self._data

    def target(self, path: str, entry: FolderEntry) -> str:
        return ""


def _read(tree: _Tree) -> tuple[int, list[str]]:
    """Count the files that were read, with what is said of the others and of the store."""
    snapshot = read_tree("", tree)
    files, problems = snapshot.files, snapshot.problems
    faults = [fault for file in files for fault in file.faults]
    return sum(not file.faults for file in files), [problem.code for problem in (*faults, *problems)]


LARGE: Final = bytes(4 * 2**20)
STORES: Final[dict[str, tuple[Callable[[int], _Tree], int]]] = {
    "files": (lambda count: _Tree(files=count), MAX_FILES),
    "folders": (lambda count: _Tree(folders=count - 1), MAX_FOLDERS),
    "names": (lambda count: _Tree(others=count), MAX_ENTRIES),
    "bytes": (lambda count: _Tree(files=count, data=LARGE), MAX_TOTAL_BYTES // len(LARGE)),
}  # fmt: skip


@pytest.mark.parametrize("what", STORES)
def test_a_store_at_its_limit_is_read_and_one_beyond_it_is_refused(what: str) -> None:
    make, limit = STORES[what]
    _read(make(limit))
    with pytest.raises(StoreError, match=what):
        _read(make(limit + 1))


def _ignoring(pattern: str, times: int) -> bytes:
    return (pattern + "\n").encode() * times


IGNORES: Final = {
    "lines": (_ignoring("x", MAX_PATTERNS), _ignoring("x", MAX_PATTERNS + 1)),
    "characters": (b"x" * MAX_PATTERN, b"x" * (MAX_PATTERN + 1)),
    "stars": (b"*a" * MAX_STARS, b"*a" * (MAX_STARS + 1)),
    "bytes": (b"#" * MAX_IGNORE_BYTES, b"#" * (MAX_IGNORE_BYTES + 1)),
}  # fmt: skip


@pytest.mark.parametrize("what", IGNORES)
def test_an_ignore_file_at_its_limit_is_obeyed_and_one_beyond_it_is_a_problem(what: str) -> None:
    below, beyond = IGNORES[what]
    if what == "bytes":
        below, beyond = (b"\n".join([text[:250]] * (len(text) // 251)) for text in (below, beyond + b"#" * 251))
        below, beyond = below.ljust(MAX_IGNORE_BYTES, b"#"), beyond.ljust(MAX_IGNORE_BYTES + 1, b"#")
    assert [code for code in _read(_Tree(files=1, ignore=below))[1] if what != "bytes"] == []
    assert len(_read(_Tree(files=1, ignore=beyond))[1]) == 1


def test_patterns_and_names_are_bounded_together() -> None:
    started_s = time.process_time()
    with pytest.raises(StoreError, match="patterns"):
        _read(_Tree(others=20_000, ignore=_ignoring("*" + "0" * 100 + "*1", 500)))
    assert time.process_time() - started_s < 30
    assert _read(_Tree(files=10_000, ignore=_ignoring("*.draft.yaml", 100)))[0] == 10_000


def _repository(root: Path) -> pygit2.Repository:
    return pygit2.init_repository(str(root), bare=True)


def _commit(repository: pygit2.Repository, tree: pygit2.Oid) -> str:
    return str(repository.create_commit(None, AUTHOR, AUTHOR, "x", tree, []))


def _nested(repository: pygit2.Repository, levels: int, width: int, *, suffix: str = "") -> pygit2.Oid:
    below = repository.create_blob(b"a: 1\n")
    mode = 0o100644
    for level in range(levels):
        builder = repository.TreeBuilder()
        for index in range(width):
            builder.insert(f"n{index}{suffix or ('.yaml' if level == 0 else '')}", below, mode)
        below, mode = builder.write(), 0o040000
    return below


def test_a_tree_that_holds_itself_many_times_is_refused(tmp_path: Path) -> None:
    repository = _repository(tmp_path)
    small, bomb = _commit(repository, _nested(repository, 1, 1)), _commit(repository, _nested(repository, 10, 10))
    store, reader = GitStore(tmp_path), SnapshotReader()
    started_s = time.process_time()
    with pytest.raises(StoreError, match="the store holds more"):
        store.snapshot(bomb)
    assert len(reader.read(store, small).files) == 1
    with pytest.raises(StoreError, match="the commits differ in more than"):
        store.changed_paths(small, bomb, most=20_000)
    # It is read as a whole at once, instead of after two million names were compared.
    with pytest.raises(StoreError, match="the store holds more"):
        reader.read(store, bomb)
    assert time.process_time() - started_s < 60


def test_a_tree_of_many_levels_is_read_down_to_the_limit(tmp_path: Path) -> None:
    repository = _repository(tmp_path)
    store = GitStore(tmp_path)
    at_limit = store.snapshot(_commit(repository, _nested(repository, MAX_FOLDER_DEPTH + 1, 1)))
    assert len(at_limit.files) == 1
    assert not at_limit.problems
    beyond = store.snapshot(_commit(repository, _nested(repository, MAX_FOLDER_DEPTH + 2, 1)))
    assert [fault.code for file in beyond.files for fault in file.faults] == ["folder-unreadable"]
    deep = _commit(repository, _nested(repository, 3_000, 1))
    store.snapshot(deep)
    assert len(store.changed_paths(_commit(repository, _nested(repository, 1, 1)), deep)) == 2


def test_a_blob_of_blanks_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    repository = _repository(tmp_path)
    builder = repository.TreeBuilder()
    for name in ("a.yaml", "b.yaml", ".reconcilerignore"):
        builder.insert(name, pygit2.Oid(hex=loose(tmp_path, "blob", 100 * 2**20)), 0o100644)
    builder.insert("at.yaml", repository.create_blob(b"#".ljust(MAX_BYTES, b"#")), 0o100644)
    builder.insert("link.yaml", pygit2.Oid(hex=loose(tmp_path, "blob", 20 * 2**20)), 0o120000)
    commit = _commit(repository, builder.write())
    before_kb = _peak_kb()
    snapshot = GitStore(tmp_path).snapshot(commit)
    assert _peak_kb() - before_kb < 60_000
    codes = {file.path: [p.code for p in parse_file(file).problems] for file in snapshot.files}
    assert codes == {
        ".reconcilerignore": ["ignore-file-unreadable"],
        "a.yaml": ["file-too-large"],
        "at.yaml": [],
        "b.yaml": ["file-too-large"],
        "link.yaml": ["link-refused"],
    }
    assert not snapshot.problems


def _chained(root: Path, size: int, deltas: int) -> str:
    """A comment of so many bytes, the last of a chain of deltas that alter 8 of them each."""
    entries = [Entry(BLOB, b" " * size)]
    rest = b"\xf1\x08" + (size - 8).to_bytes(3, "little")
    head = number(size, 7) * 2 + b"\x08"
    entries += [Entry(BY_OFFSET, head + b"#%07d" % place + rest, place) for place in range(deltas)]
    name = object_name("blob", b"#%07d" % (deltas - 1) + b" " * (size - 8))
    entries[-1] = entries[-1]._replace(name=name)
    write_pack(root, entries)
    return name


@pytest.mark.parametrize(("size", "codes"), [(MAX_BYTES, []), (MAX_BYTES + 1, ["file-too-large"])])
def test_a_blob_at_the_end_of_the_longest_chain_of_deltas_is_read_in_time(
    size: int, codes: list[str], tmp_path: Path
) -> None:
    """git makes chains of at most 4,095 deltas."""
    repository = _repository(tmp_path)
    blob = _chained(tmp_path, size, 4_095)
    builder = repository.TreeBuilder()
    builder.insert("a.yaml", pygit2.Oid(hex=blob), 0o100644)
    commit = _commit(repository, builder.write())
    started_s, before_kb = time.process_time(), _peak_kb()
    snapshot = GitStore(tmp_path).snapshot(commit)
    # Measured on an idle machine: 1 s.
    assert time.process_time() - started_s < (4 if not codes else 1)
    assert _peak_kb() - before_kb < 60_000
    assert [problem.code for problem in parse_file(snapshot.files[0]).problems] == codes


def test_a_tree_or_commit_of_blanks_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    _repository(tmp_path)
    before_kb = _peak_kb()
    for kind in ("commit", "tag"):
        with pytest.raises(StoreError, match="bytes"):
            GitStore(tmp_path).resolve(loose(tmp_path, kind, 100 * 2**20))
    assert _peak_kb() - before_kb < 60_000


BASE: Final = MAX_OBJECT_BYTES
SMALL: Final = b" " * 1000
CHAINS: dict[str, tuple[bool, Callable[[], list[Entry]]]] = {
    "a base at the limit": (True, lambda: [Entry(BLOB, b" " * BASE), Entry(BY_OFFSET, cut_to(BASE, 1000), 0)]),
    "a base above it": (False, lambda: [Entry(BLOB, b" " * (BASE + 1)), Entry(BY_OFFSET, cut_to(BASE + 1, 1000), 0)]),
    "a delta that makes a large base": (
        False,
        lambda: [
            Entry(BLOB, b" " * 0x10000),
            Entry(BY_OFFSET, number(0x10000, 7) + number(BASE * 2, 7) + b"\x80" * (BASE * 2 // 0x10000), 0),
            Entry(BY_OFFSET, cut_to(BASE * 2, 1000), 1),
        ],
    ),
    "a delta of that size": (
        False, lambda: [Entry(BLOB, SMALL), Entry(BY_OFFSET, number(1000, 7) * 2 + b"\0" * (BASE + 1), 0)],
    ),
    "many large bases": (
        False,
        lambda: [
            Entry(BLOB, b" " * BASE),
            *(Entry(BY_OFFSET, cut_to(BASE, BASE), place) for place in range(16)),
            Entry(BY_OFFSET, cut_to(BASE, 1000), 16),
        ],
    ),
    "a longer chain than git makes": (
        False, lambda: [Entry(BLOB, SMALL), *(Entry(BY_OFFSET, cut_to(1000, 1000), place) for place in range(4_096))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_a_blob_is_refused_before_large_bases_are_unpacked(name: str, tmp_path: Path) -> None:
    is_read, entries = CHAINS[name]
    repository, blob = _repository(tmp_path), object_name("blob", SMALL)
    made = entries()
    write_pack(tmp_path, [*made[:-1], made[-1]._replace(name=blob)])
    del made
    builder = repository.TreeBuilder()
    builder.insert("a.yaml", pygit2.Oid(hex=blob), 0o100644)
    commit = _commit(repository, builder.write())
    started_s, before_kb = time.process_time(), _peak_kb()
    with GitStore(tmp_path) as store:
        if is_read:
            assert store.snapshot(commit).files[0].data == SMALL
        else:
            assert store.snapshot(commit).files[0].faults[0].code == "file-unreadable"
            with pytest.raises(StoreError, match="git repack"):
                store.read_blob(blob)
    assert time.process_time() - started_s < 1
    # What made the pack was larger: the peak tells only of what is larger still.
    assert _peak_kb() - before_kb < 150_000


@pytest.mark.parametrize("kind", ["commit", "tree", "tag"])
def test_a_commit_tree_or_tag_with_a_large_base_is_refused(kind: str, tmp_path: Path) -> None:
    repository = _repository(tmp_path)
    tree = repository.TreeBuilder().write()
    head = f"tree {tree}\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\n"
    contents = {"commit": head, "tag": f"object {'1' * 40}\ntype commit\ntag x\ntagger a <a> 0 +0000\n\n", "tree": ""}
    content = contents[kind].encode() or b"100644 a.yaml\0" + bytes(20)
    name, size = object_name(kind, content), BASE + 1
    number_of = {"commit": COMMIT, "tree": TREE, "tag": TAG}[kind]
    large = content.ljust(size, b" ")
    write_pack(tmp_path, [Entry(number_of, large), Entry(BY_OFFSET, cut_to(size, len(content)), 0, name)])
    asked = str(_commit(repository, pygit2.Oid(hex=name))) if kind == "tree" else name
    with GitStore(tmp_path) as store, pytest.raises(StoreError, match="git repack"):
        store.changed_paths(asked, asked)


def _peak_kb() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])
