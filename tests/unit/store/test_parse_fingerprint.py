from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.api.demand import DependencyRef
from reconciler.api.fleet import StoreFile
from reconciler.api.refs import Identity
from reconciler.fleet import memo_key, parse_file
from reconciler.kinds import Interpreter
from reconciler.store import ParseCache, parse_cache
from reconciler.store.parse_cache import PARTS, digest_of_source, parse_fingerprint
from reconciler.templates import references_of
from tests.fakes.raising import registry_with, with_rules

PACKAGE = Path(parse_cache.__file__).parents[1]
OF_A_PLUGIN = StoreFile(
    path="w.yaml",
    blob="w",
    data=b"apiVersion: x.io/v1\nkind: Widget\nmetadata: {name: w, namespace: ns}\nspec: {uses: a}\n",
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the parts of the program that make what is kept."""
    for part in PARTS:
        target = tmp_path / part
        target.parent.mkdir(parents=True, exist_ok=True)
        source = PACKAGE / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return tmp_path


@pytest.mark.parametrize(
    "changed",
    [
        "kinds/workloads.py",
        "kinds/body_fields.py",
        "templates/facts.py",
        "yaml/scalars.py",
        "documents/builtin.json",
        "api/demand.py",
        "store/parse_cache_rows.py",
        "regex.py",
    ],
)
def test_another_maker_of_what_is_kept_gives_another_fingerprint(package: Path, changed: str) -> None:
    before = digest_of_source(package, PARTS)
    with (package / changed).open("a") as file:
        file.write("\n# another answer\n")
    assert digest_of_source(package, PARTS) != before


def test_what_comes_goes_or_is_renamed_gives_another_fingerprint(package: Path) -> None:
    seen = {digest_of_source(package, PARTS)}
    new = package / "kinds" / "new.py"
    new.write_text("")
    seen.add(digest_of_source(package, PARTS))
    new.rename(new.with_name("newer.py"))
    seen.add(digest_of_source(package, PARTS))
    assert len(seen) == 3


def test_another_reader_of_yaml_gives_another_fingerprint() -> None:
    assert digest_of_source(PACKAGE, (), ("6.0.2",)) != digest_of_source(PACKAGE, (), ("6.0.3",))


def test_is_the_same_for_the_same_program() -> None:
    script = "from reconciler.store.parse_cache import parse_fingerprint; print(parse_fingerprint())"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert told == parse_fingerprint()


def test_is_not_taken_before_a_cache_is_used() -> None:
    script = (
        "import sys, reconciler.cli.main\n"
        "assert 'reconciler.store.parse_cache' not in sys.modules\n"
        "from pathlib import Path\n"
        "from reconciler.store.parse_cache import ParseCache\n"
        "from reconciler.store.parse_cache import parse_fingerprint\n"
        "ParseCache(Path('nowhere'))\n"
        "assert parse_fingerprint.cache_info().currsize == 0\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_cache_of_another_program_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = StoreFile(path="a.yaml", blob="a", data=b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    cache = ParseCache(tmp_path / "c.db")
    cache.save({memo_key(file): parse_file(file)})
    assert cache.keys() == {memo_key(file)}
    monkeypatch.setattr(parse_cache, "parse_fingerprint", lambda: "ab" * 16)
    assert cache.keys() == frozenset()
    assert cache.load([file]) == {}


def test_source_that_cannot_be_read_leaves_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable() -> str:
        raise OSError("no source here")

    monkeypatch.setattr(parse_cache, "parse_fingerprint", unreadable)
    file = StoreFile(path="a.yaml", blob="a", data=b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    cache = ParseCache(tmp_path / "c.db")
    cache.save({memo_key(file): parse_file(file)})
    assert cache.keys() == frozenset()
    assert cache.load([file]) == {}


def test_facts_of_a_plugin_are_never_kept(tmp_path: Path) -> None:
    """So that another version of it is asked again: its source is no part of the fingerprint."""

    def with_plugin(name: str) -> tuple[str, ...]:
        def refers(body: object) -> tuple[DependencyRef, ...]:
            return (DependencyRef(identity=Identity("", "ConfigMap", "ns", name), path="spec.uses"),)

        plugin = with_rules(Interpreter(("x.io", "Widget")), dependencies=refers)
        kinds = registry_with(("plugin", plugin))
        cache = ParseCache(tmp_path / "c.db")
        kept = cache.load([OF_A_PLUGIN]) or {memo_key(OF_A_PLUGIN): parse_file(OF_A_PLUGIN)}
        (template,) = kept[memo_key(OF_A_PLUGIN)].templates
        found = tuple(ref.identity.name for ref in references_of(template, kinds))
        cache.save(kept)
        return found

    assert with_plugin("old") == ("old",)
    with sqlite3.connect(tmp_path / "c.db") as connection:
        assert connection.execute("SELECT count(*) FROM files").fetchone() == (1,)
    assert with_plugin("new") == ("new",)
