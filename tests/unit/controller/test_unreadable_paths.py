"""Whatever makes a path unreadable, its last good content stays in force, and the rest of the store goes on.

Source: design#broken-input; ADR 8. Each fault of a path is crossed with each kind of store, and with what is
remembered: by the process, by the journal and the copy after a restart, by the store alone when the journal is lost.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest
import yaml
from pygit2.enums import FileMode

from reconciler.api.fleet import Fleet
from reconciler.api.problem import Severity
from reconciler.controller.store_in_force import StoreInForce
from reconciler.policy import FrozenReaches, hold_new_claims
from reconciler.store import DirectoryPast, StoreCopy, read_directory
from reconciler.store.git.git_past import GitPast, SnapshotReader
from reconciler.store.git.snapshot import GitStore
from tests.fakes.store_trees import commit_all, write_files
from tests.fakes.worlds import FLEET, config_map, policy

VICTIM = "team-a/app.yaml"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


def _replaced(root: Path, content: str | bytes) -> None:
    (root / VICTIM).unlink(missing_ok=True)
    write_files(root, {VICTIM: content})


def _renamed(root: Path) -> None:
    (root / VICTIM).unlink(missing_ok=True)
    (root / "team-a").mkdir(exist_ok=True)
    Path(f"{root}/team-a/app-\udce9.yaml").write_text(yaml.safe_dump(config_map("a", value="2")))


def _folder(root: Path) -> None:
    (root / VICTIM).unlink(missing_ok=True)
    write_files(root, {f"{VICTIM}/README.md": "moved"})


def _repository(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.unlink(missing_ok=True)
    commit_all(write_files(folder, {"app.yaml": yaml.safe_dump(config_map("a", value="2"))}), new=True)


def _file_for_folder(root: Path) -> None:
    shutil.rmtree(root / "team-a", ignore_errors=True)
    write_files(root, {"team-a": "moved"})


def _link_for_folder(root: Path) -> None:
    shutil.rmtree(root / "team-a", ignore_errors=True)
    write_files(root, {"team-a": "-> ../elsewhere"})


FAULTS: dict[str, Callable[[Path], None]] = {
    "a pointer of Git LFS": lambda root: _replaced(root, POINTER),
    "a link to nothing": lambda root: _replaced(root, "-> nowhere.yaml"),
    "a link out of the store": lambda root: _replaced(root, "-> ../../outside.yaml"),
    "a link in a circle": lambda root: _replaced(root, "-> app.yaml"),
    "too large": lambda root: _replaced(root, b"a: b\n" * 2**20),
    "binary": lambda root: _replaced(root, b"\x00\x01\xff\xfe"),
    "no YAML": lambda root: _replaced(root, "kind: ConfigMap\nmetadata: [\n"),
    "a template of a chart": lambda root: _replaced(root, "apiVersion: v1\nkind: {{ .Values.kind }}\n"),
}
OF_WHAT_WAS_THERE = {
    "a name that is not UTF-8": _renamed,
    "a folder in its place": _folder,
    "a file in place of its folder": _file_for_folder,
    "a link in place of its folder": _link_for_folder,
    "a submodule in its place": lambda root: _repository(root / VICTIM),
    "a submodule in place of its folder": lambda root: _repository(root / "team-a"),
}


class Store:
    """A store on a disk that a service follows, and may begin again."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.root, self._state, self._kind = folder / "store", folder / "state", kind
        self._blobs: dict[str, str] = {}
        self.begin_anew(is_journal_lost=False)

    def begin_anew(self, *, is_journal_lost: bool) -> None:
        """Forget what only the process knew; the copy of a directory lies beside the journal."""
        self._copy, self._reader = StoreCopy(self._state, self.root), SnapshotReader()
        self._blobs = {} if is_journal_lost else self._blobs
        is_git = self._kind == "repository"
        past = GitPast(self.root, "") if is_git else DirectoryPast(self.root, self._copy)
        self._in_force = StoreInForce(self._blobs, past)

    def follow(self) -> Fleet:
        """Return what is in force by what lies there now."""
        if self._kind == "repository":
            self._stage_submodules()
            commit = commit_all(self.root, new=not (self.root / ".git").exists())
            with GitStore(self.root) as git:
                snapshot = self._reader.read(git, commit)
        else:
            snapshot = read_directory(self.root)
        fleet = self._in_force.parse(snapshot)
        self._blobs = self._in_force.good_blobs
        if self._kind == "directory":
            self._copy.save(snapshot, self._blobs)
        return fleet

    def _stage_submodules(self) -> None:
        """Let the index have a submodule for each repository below the root, and nothing of what was there before."""
        for inner in self.root.glob("*/**/.git"):
            index, path = pygit2.Repository(str(self.root)).index, str(inner.parent.relative_to(self.root))
            for entry in [entry.path for entry in index if f"{entry.path}/".startswith(f"{path}/")]:
                index.remove(entry)
            head = pygit2.Repository(str(inner.parent)).revparse_single("HEAD").id
            index.add(pygit2.IndexEntry(path, head, FileMode.COMMIT))
            index.write()


@pytest.fixture(params=["directory", "repository"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    _write(tmp_path)
    return Store(tmp_path, request.param)


def _write(folder: Path) -> None:
    write_files(
        folder / "store",
        {
            "fleet.yaml": yaml.safe_dump(FLEET),
            "policy.yaml": yaml.safe_dump(policy("ConfigMap", "m1")),
            VICTIM: yaml.safe_dump(config_map("a", value="1")),
            "team-b/app.yaml": yaml.safe_dump(config_map("b", value="1")),
        },
    )


@pytest.fixture(params=["running", "begun again", "begun again without its journal"])
def memory(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _edit(store: Store) -> None:
    write_files(store.root, {"team-b/app.yaml": yaml.safe_dump(config_map("b", value="2"))})


def _look_again(store: Store, memory: str) -> Fleet:
    if memory != "running":
        store.begin_anew(is_journal_lost=memory != "begun again")
    return store.follow()


def _values(fleet: Fleet) -> dict[str, object]:
    return {identity.name: template.body["data"]["value"] for identity, template in fleet.templates.items()}


def _going_on(fleet: Fleet, *placed: str) -> set[str]:
    """The templates that go on when these are placed."""
    held = FrozenReaches(hold_new_claims(fleet, lambda identity: identity.name in placed).frozen)
    return {template.identity.name for template in fleet.templates.values() if held.by(template) is None}


def _errors(fleet: Fleet) -> set[str]:
    return {problem.source.path for problem in fleet.problems if problem.severity is Severity.ERROR}


@pytest.mark.parametrize("fault", [*FAULTS, *OF_WHAT_WAS_THERE])
def test_the_last_good_content_stays_and_others_are_edited(store: Store, memory: str, fault: str) -> None:
    store.follow()
    (FAULTS | OF_WHAT_WAS_THERE)[fault](store.root)
    _edit(store)
    fleet = _look_again(store, memory)
    assert _values(fleet) == {"a": "1", "b": "2"}
    assert _going_on(fleet, "a", "b") == {"a", "b"}
    assert not fleet.is_complete
    assert any(path.startswith("team-a") for path in _errors(fleet))


@pytest.mark.parametrize("fault", [*FAULTS, *OF_WHAT_WAS_THERE])
def test_it_stays_over_further_commits_and_goes_once_it_is_mended(store: Store, fault: str) -> None:
    store.follow()
    (FAULTS | OF_WHAT_WAS_THERE)[fault](store.root)
    store.follow()
    _edit(store)
    store.follow()
    store.begin_anew(is_journal_lost=False)
    write_files(store.root, {"more.yaml": "# nothing\n"})
    assert _values(store.follow()) == {"a": "1", "b": "2"}
    shutil.rmtree(store.root / "team-a") if not (store.root / "team-a").is_symlink() and (
        store.root / "team-a"
    ).is_dir() else (store.root / "team-a").unlink()
    fleet = store.follow()
    assert _values(fleet) == {"b": "2"}
    assert fleet.is_complete


@pytest.mark.parametrize("fault", [*FAULTS, "a name that is not UTF-8"])
def test_a_new_one_holds_back_what_is_placed_nowhere_alone(store: Store, memory: str, fault: str) -> None:
    shutil.rmtree(store.root / "team-a")
    write_files(store.root, {"gone.yaml": yaml.safe_dump(config_map("gone", value="1"))})
    store.follow()
    (FAULTS | OF_WHAT_WAS_THERE)[fault](store.root)
    _edit(store)
    (store.root / "gone.yaml").unlink()
    write_files(store.root, {"new.yaml": yaml.safe_dump(config_map("new", value="1"))})
    fleet = _look_again(store, memory)
    for _ in range(1 if memory.endswith("journal") else 2):  # What is gone is told by the commit that took it alone.
        assert _values(fleet) == {"b": "2", "gone": "1", "new": "1"}
        assert _going_on(fleet, "b", "gone") >= {"b", "gone"}
        # One that tells its kind and name concerns that object alone, and an unreadable one may say anything.
        assert ("new" in _going_on(fleet, "b", "gone")) is False
        assert not fleet.is_complete
        assert any(path.startswith("team-a") for path in _errors(fleet))
        write_files(store.root, {"more.yaml": "# nothing\n"})
        fleet = _look_again(store, memory)


def test_what_moved_to_a_good_file_is_not_there_twice(store: Store, memory: str) -> None:
    both = yaml.safe_dump_all([config_map("a", value="1"), config_map("c", value="1")])
    write_files(store.root, {VICTIM: both})
    store.follow()
    _replaced(store.root, POINTER)
    write_files(store.root, {"team-a/c.yaml": yaml.safe_dump(config_map("c", value="2"))})
    fleet = _look_again(store, memory)
    assert _values(fleet) == {"a": "1", "b": "1", "c": "2"}
    assert _going_on(fleet, "a", "b", "c") == {"a", "b", "c"}


def test_a_file_that_moves_as_it_breaks_is_not_told_as_being_there_twice(store: Store, memory: str) -> None:
    write_files(store.root, {VICTIM: yaml.safe_dump_all([config_map("a", value="1"), config_map("c", value="1")])})
    store.follow()
    (store.root / VICTIM).unlink()
    write_files(store.root, {"moved.yaml": f"{yaml.safe_dump(config_map('a', value='2'))}---\nkind: [\n"})
    fleet = _look_again(store, memory)
    assert _values(fleet) == {"a": "1", "b": "1", "c": "1"}
    assert "duplicate-identity" not in {problem.code for problem in fleet.problems}


def test_what_an_ignore_file_left_out_stays_out_when_it_cannot_be_read(store: Store, memory: str) -> None:
    write_files(
        store.root, {".reconcilerignore": "draft*\n", "draft.yaml": yaml.safe_dump(config_map("draft", value="1"))}
    )
    store.follow()
    (store.root / ".reconcilerignore").write_text("x" * 300 + "\n")
    _edit(store)
    fleet = _look_again(store, memory)
    assert _values(fleet) == {"a": "1", "b": "2"}
    assert _going_on(fleet, "a", "b") == {"a", "b"}
    store.begin_anew(is_journal_lost=False)
    write_files(store.root, {"more.yaml": "# nothing\n"})
    assert _values(store.follow()) == {"a": "1", "b": "2"}
    (store.root / ".reconcilerignore").unlink()
    fleet = store.follow()
    assert _values(fleet) == {"a": "1", "b": "2", "draft": "1"}
    assert fleet.is_complete


def test_of_what_nothing_is_remembered_everything_waits(tmp_path: Path) -> None:
    """Unknown is not new: it may be an override without which others are not to be written."""
    write_files(
        tmp_path / "store",
        {"fleet.yaml": yaml.safe_dump(FLEET), "team-b/app.yaml": yaml.safe_dump(config_map("b", value="1"))},
    )
    _replaced(tmp_path / "store", POINTER)
    store = Store(tmp_path, "directory")
    assert _going_on(store.follow(), "b") == set()
    store.begin_anew(is_journal_lost=False)
    assert _going_on(store.follow(), "b") == set()


@pytest.mark.parametrize("forbidden", [VICTIM, "team-a"])
def test_what_may_not_be_read_keeps_its_last_good_content(as_nobody: Path, forbidden: str) -> None:
    _write(as_nobody)
    store = Store(as_nobody, "directory")
    store.follow()
    (store.root / forbidden).chmod(0)
    _edit(store)
    try:
        for is_lost in (False, True):
            fleet = store.follow()
            assert _values(fleet) == {"a": "1", "b": "2"}
            assert _going_on(fleet, "a", "b") == {"a", "b"}
            assert forbidden in _errors(fleet)
            store.begin_anew(is_journal_lost=is_lost)
    finally:
        (store.root / forbidden).chmod(0o700)
    assert store.follow().is_complete


SECOND = {
    "a template": config_map("b", value="3"),
    "a policy": policy("ConfigMap", "m1", "m2"),
    "the Fleet": {**FLEET, "spec": {"drift": {"resync": "1h"}}},
}


@pytest.mark.parametrize("is_lost", [False, True], ids=["with its journal", "without"])
@pytest.mark.parametrize("what", SECOND)
def test_what_a_file_said_before_counts_when_another_one_says_it_as_well(
    store: Store, what: str, is_lost: bool
) -> None:
    fleet = store.follow()
    settings, policies = fleet.settings, [found.digest for found in fleet.propagation]
    write_files(store.root, {"again.yaml": yaml.safe_dump_all([SECOND[what], config_map("more", value="1")])})
    write_files(store.root, {VICTIM: yaml.safe_dump(config_map("a", value="2"))})
    for _ in range(3):
        fleet = store.follow()
        assert _values(fleet) == {"a": "2", "b": "1", "more": "1"}
        assert _going_on(fleet, "a", "b", "more") == {"a", "b", "more"}
        assert (fleet.settings.resync_s, [found.digest for found in fleet.propagation]) == (settings.resync_s, policies)
        assert _errors(fleet) == {"again.yaml"}
        assert all(problem.source.line for problem in fleet.problems)
        assert not fleet.is_complete
        store.begin_anew(is_journal_lost=is_lost)
        write_files(store.root, {"note.yaml": "# nothing\n"})
    (store.root / "team-b/app.yaml").unlink()
    (store.root / "policy.yaml").unlink()
    (store.root / "fleet.yaml").unlink() if what == "the Fleet" else None
    fleet = store.follow()
    assert fleet.is_complete
    assert _values(fleet).get("b") == ("3" if what == "a template" else None)
    write_files(store.root, {"note.yaml": "# nothing more\n"})
    store.begin_anew(is_journal_lost=is_lost)
    assert store.follow().is_complete
