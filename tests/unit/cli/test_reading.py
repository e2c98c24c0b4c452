"""Reading a store a second time gives the same fleet, whatever became of the cache in between."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from pygit2 import hashfile

from reconciler.api.fleet import Fleet
from reconciler.cli import run
from reconciler.cli.store_reading import cache_folder, parse_cache_file, read_fleet
from reconciler.controller.service.serve_fleet import Service
from reconciler.fleet import ParsedFile
from tests.fakes.store_trees import commit_all, write_files
from tests.unit.cli.command_line import run as cli_run
from tests.unit.cli.command_line import write_store

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: demo}}\ndata: {{a: '{value}'}}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: demo}\ndata: {a: Yg==}\n"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits: of three files, one changes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "store"
    texts = {f"{name}.yaml": CONFIG.format(name=name, value="old") for name in "ab"}
    write_files(root, {**texts, "s.yaml": SECRET, "empty.yaml": ""})
    commit_all(root, "first", new=True)
    write_files(root, {"a.yaml": CONFIG.format(name="a", value="new")})
    commit_all(root, "second")
    return root


def database(store: Path) -> Path:
    (found,) = (store.parent / "cache" / "fleet-reconciler").glob("parsed-*.db")
    return found


def values(fleet: Fleet) -> dict[str, str]:
    return {identity.name: template.body["data"]["a"] for identity, template in fleet.templates.items()}


def test_a_second_start_reads_the_same_fleet(store: Path) -> None:
    first = read_fleet(str(store), "HEAD")
    assert values(first) == {"a": "new", "b": "old", "s": "Yg=="}
    assert read_fleet(str(store), "HEAD") == first
    assert read_fleet(str(store), "HEAD~1") != first
    assert read_fleet(str(store), "HEAD") == first


def test_what_was_parsed_is_not_read_again_and_secrets_are_not_kept(store: Path) -> None:
    first = read_fleet(str(store), "HEAD")
    blob = str(hashfile(str(store / "b.yaml")))
    (store / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert read_fleet(str(store), "HEAD") == first
    contents = b"".join(path.read_bytes() for path in database(store).parent.iterdir())
    assert b"b.yaml" in contents
    assert b"s.yaml" not in contents


def test_a_spoilt_row_is_read_again(store: Path) -> None:
    first = read_fleet(str(store), "HEAD")
    with sqlite3.connect(database(store)) as connection:
        connection.execute("UPDATE files SET checksum = x'00' WHERE key LIKE '%a.yaml'")
    connection.close()
    assert read_fleet(str(store), "HEAD") == first


def test_two_revisions_share_the_files_that_are_in_both(store: Path) -> None:
    parsed: dict[str, ParsedFile] = {}
    before, after = (read_fleet(str(store), rev, parsed=parsed) for rev in ("HEAD~1", "HEAD"))
    assert (values(before)["a"], values(after)["a"]) == ("old", "new")
    shared = [identity for identity in before.templates if before.templates[identity] is after.templates[identity]]
    assert sorted(identity.name for identity in shared) == ["b", "s"]
    assert (before, after) == tuple(read_fleet(str(store), rev) for rev in ("HEAD~1", "HEAD"))


def test_a_service_keeps_what_it_parsed_where_systemd_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", f"{tmp_path / 'given'}:{tmp_path / 'other'}")
    assert cache_folder() == tmp_path / "given"
    assert (tmp_path / "given").stat().st_mode & 0o777 == 0o700


def test_a_service_without_a_home_keeps_what_it_parsed_beside_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Service] = []

    async def started_with(service: Service, *_: object) -> None:
        started.append(service)

    monkeypatch.setattr(run, "_run", started_with)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/proc")
    result = CliRunner().invoke(run.command, ["/store", "--journal", str(tmp_path / "journal.db")])
    assert result.exit_code == 0, result.output
    (service,) = started
    assert service.parse_cache == parse_cache_file(tmp_path, "/store")


def test_a_store_without_a_document_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    for command in ("validate", "render", "diff"):
        done = cli_run(command, str(tmp_path))
        assert done.code == (0 if command == "render" else 1)
        assert f"no documents found in {tmp_path}: a document stands in a file that ends with .yaml" in done.err
    (tmp_path / "c.yaml").write_text(CONFIG.format(name="a", value="b"))
    assert "no documents" not in cli_run("validate", str(tmp_path)).err
    into = tmp_path / "new"
    into.mkdir()
    assert "no documents" not in cli_run("init", str(into), "--name", "a").err


@pytest.mark.parametrize("broken", ["a: [\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: demo}\n"])
def test_a_broken_document_hides_no_error_of_an_override(tmp_path: Path, broken: str) -> None:
    override = """apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: o, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  overrideRules: [{overriders: {plaintext: [{path: /data/a/b, operator: replace, value: x}]}}]
"""
    told = cli_run("validate", write_store(tmp_path, override=override, broken=broken)).out
    assert "broken.yaml:" in told
    assert "[override-path-missing]" in told
