"""The changelog has its form, and tells what commits change: scripts/check_changelog.py over small repositories."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pygit2
import pytest

from scripts.check_changelog import faults, main, new_entries

ROOT = Path(__file__).parents[2]
SOMEBODY = pygit2.Signature("A", "a@example.com", 1_767_225_600, 0)
TITLE = "# Changelog\n\nThe form.\n\n"
EMPTY = f"{TITLE}## Unreleased\n"
TOLD = f"{TITLE}## Unreleased\n\n### Added\n\n- A line\n  that goes on.\n"
RELEASED = f"{TITLE}## Unreleased\n\n## 0.1.0 - 2026-11-22\n\n### Added\n\n- A line\n  that goes on.\n"
SAID = f"{TITLE}## Unreleased\n\nA word about it.\n\n### Fixed\n\n- A line.\n\n[1]: https://example.com\n"


class History:
    """A small repository; each commit writes a few files."""

    def __init__(self, folder: Path, **files: str) -> None:
        self.folder = folder
        self.repository = pygit2.init_repository(str(folder), initial_head="main")
        self.commit("Begin", {"pyproject.toml": '[project]\nversion = "0.1.0"\n', "CHANGELOG.md": EMPTY, **files})

    def commit(self, message: str, files: dict[str, str]) -> str:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        index = self.repository.index
        index.add_all()
        index.write()
        parents = [] if self.repository.head_is_unborn else [self.repository.head.target]
        made = self.repository.create_commit("HEAD", SOMEBODY, SOMEBODY, message, index.write_tree(), parents)
        return str(made)

    def introduce_the_check(self) -> None:
        self.commit("Check the changelog", {"scripts/check_changelog.py": ""})

    def tag(self, name: str) -> None:
        self.repository.references.create(f"refs/tags/{name}", self.repository.head.target)


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.delenv("CHANGELOG_BASE", raising=False)
    made = History(tmp_path / "clone")
    made.commit("Make it", {"reconciler/a.py": "a = 1\n"})
    made.introduce_the_check()
    return made


def test_the_changelog_of_this_project_has_its_form() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert faults((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version) == []


@pytest.mark.parametrize("text", [EMPTY, TOLD, RELEASED, RELEASED.replace("## 0.1.0", "## [0.1.0]"), SAID])
def test_the_form_is_that_of_keep_a_changelog(text: str) -> None:
    assert faults(text, "0.1.0") == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (EMPTY[2:], "the title is"),
        (TITLE, "stands above the releases"),
        (EMPTY + "\n## Unreleased\n", "stands above the releases, once"),
        (EMPTY + "\n## 0.1.0\n", "has no day"),
        (EMPTY + "\n## 0.1.0 - 2026-13-01\n", "has no day"),
        (EMPTY + "\n## Version one\n", "is neither Unreleased nor VERSION"),
        (EMPTY + "\n### New\n\n- A.\n", "New is not one of"),
        (EMPTY + "\n### Added\n", "section Added is empty"),
        (EMPTY + "\n### Added\n\n- A.\n\n### Added\n\n- B.\n", "has Added twice"),
        (EMPTY + "\n### Fixed\n\n- A.\n\n### Added\n\n- B.\n", "the order of sections"),
        (EMPTY + "\n### Added\n\nA.\n", "neither a heading nor an entry"),
        (EMPTY + "\n- A.\n", "neither a heading nor an entry"),
        (EMPTY + "\n#### Added\n", "neither a heading nor an entry"),
        (RELEASED + "\n## 0.2.0 - 2026-12-01\n", "the newest release comes first"),
        (RELEASED + "\n## 0.0.9 - 2026-12-01\n", "the newest release comes first"),
        (RELEASED.replace("0.1.0", "0.2.0"), "the version in pyproject.toml is 0.1.0"),
    ],
)
def test_what_leaves_the_form_is_told(text: str, fault: str) -> None:
    assert [found for found in faults(text, "0.1.0") if fault in found]


def test_an_entry_that_moves_into_a_release_is_not_new() -> None:
    assert new_entries(EMPTY, RELEASED) == {"A line that goes on."}
    assert not new_entries(TOLD, RELEASED)


def test_an_entry_that_an_old_release_gets_later_counts_for_nothing() -> None:
    assert not new_entries(RELEASED, RELEASED + "- Another.\n")


def test_a_change_of_the_program_without_a_line_is_told(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    made = history.commit("Do it otherwise\n\nSince.\n", {"reconciler/a.py": "a = 2\n"})
    assert main([], history.folder) == 1
    assert f"{made[:12]} Do it otherwise\n" in capsys.readouterr().out


def test_a_line_in_the_same_commit_or_a_later_one_is_enough(history: History) -> None:
    history.commit("Do it otherwise", {"reconciler/a.py": "a = 2\n"})
    history.commit("Tell of it", {"CHANGELOG.md": TOLD})
    assert main([], history.folder) == 0


def test_a_line_that_was_there_before_is_not_enough(history: History) -> None:
    history.commit("Tell of something", {"CHANGELOG.md": TOLD})
    history.commit("Do it otherwise", {"reconciler/a.py": "a = 2\n"})
    assert main(["--base", "HEAD~1"], history.folder) == 1


@pytest.mark.parametrize("ending", ["Changelog: none", "changelog: None", "Changelog: none\nReviewed-by: A <a@b.c>"])
def test_a_commit_that_says_that_users_notice_nothing_needs_no_line(history: History, ending: str) -> None:
    history.commit(f"Name it better\n\nIt was hard to read.\n\n{ending}\n", {"reconciler/a.py": "b = 1\n"})
    assert main([], history.folder) == 0


@pytest.mark.parametrize("message", ["Changelog: none", "Do it\n\nChangelog: none of it\n", "Do it\n\nnone\n"])
def test_only_the_trailer_says_so(history: History, message: str) -> None:
    history.commit(message, {"reconciler/a.py": "b = 1\n"})
    assert main([], history.folder) == 1


def test_what_is_not_the_program_needs_no_line(history: History) -> None:
    history.commit("Test it", {"tests/a.py": "a = 2\n", "docs/a.md": "A\n"})
    assert main([], history.folder) == 0


def test_history_before_the_check_is_left_alone(tmp_path: Path, history: History) -> None:
    assert main([], history.folder) == 0
    older = History(tmp_path / "older")
    older.commit("Do it otherwise", {"reconciler/a.py": "a = 2\n"})
    assert main(["--base", "HEAD~1"], older.folder) == 0


def test_what_a_branch_from_before_the_check_brings_is_left_alone(history: History) -> None:
    repository, main_branch = history.repository, history.repository.head.target
    before = repository[main_branch].peel(pygit2.Commit).parents[0]
    blob = repository.create_blob(b"a = 3\n")
    folder = repository.TreeBuilder()
    folder.insert("a.py", blob, pygit2.enums.FileMode.BLOB)
    tree = repository.TreeBuilder(before.tree)
    tree.insert("reconciler", folder.write(), pygit2.enums.FileMode.TREE)
    aside = repository.create_commit(None, SOMEBODY, SOMEBODY, "Aside", tree.write(), [before.id])
    merged = repository.merge_commits(main_branch, aside).write_tree(repository)
    repository.create_commit("HEAD", SOMEBODY, SOMEBODY, "Merge", merged, [main_branch, aside])
    assert main(["--base", str(main_branch)], history.folder) == 0


def test_a_release_begins_anew(history: History) -> None:
    history.commit("Do it otherwise", {"reconciler/a.py": "a = 2\n"})
    history.commit("Release 0.1.0", {"CHANGELOG.md": RELEASED})
    assert main([], history.folder) == 0
    history.commit("Do it again", {"reconciler/a.py": "a = 3\n"})
    assert main([], history.folder) == 1
    history.commit(
        "Tell of it", {"CHANGELOG.md": RELEASED.replace("Unreleased\n", "Unreleased\n\n### Fixed\n\n- B.\n")}
    )
    assert main([], history.folder) == 0


def test_until_a_release_says_what_it_has_commits_may_be_told_in_it(history: History) -> None:
    history.commit("Make 0.1.0 one", {"CHANGELOG.md": RELEASED})
    history.commit("Do it otherwise", {"reconciler/a.py": "a = 2\n"})
    history.commit("Release 0.1.0", {"CHANGELOG.md": RELEASED + "- Another.\n"})
    history.commit("Test it", {"tests/a.py": "a = 2\n"})
    assert main([], history.folder) == 0


def test_a_clone_without_tags_is_judged_as_one_with_them(tmp_path: Path, history: History) -> None:
    history.commit("Release 0.1.0", {"CHANGELOG.md": RELEASED})
    history.tag("v0.1.0")
    for change, verdict in (({"tests/a.py": "a = 2\n"}, 0), ({"reconciler/a.py": "a = 3\n"}, 1)):
        history.commit("Do it", change)
        bare = tmp_path / str(verdict)
        subprocess.run(["git", "clone", "-q", "--no-tags", str(history.folder), str(bare)], check=True)
        assert (main([], history.folder), main([], bare)) == (verdict, verdict)


def test_what_the_other_branch_did_since_the_fork_counts_for_nothing(history: History) -> None:
    history.commit("Tell of something", {"CHANGELOG.md": TOLD})
    fork = history.repository.head.target
    history.commit("Take the line back", {"CHANGELOG.md": EMPTY})
    history.repository.branches.local.create("other", history.repository.head.peel(pygit2.Commit))
    history.repository.reset(fork, pygit2.enums.ResetMode.HARD)
    history.commit("Do it here", {"reconciler/a.py": "a = 3\n"})
    assert main(["--base", "other"], history.folder) == 1


def test_a_shallow_clone_and_an_archive_are_passed_with_the_reason(
    tmp_path: Path, history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history.commit("Do it otherwise", {"reconciler/a.py": "a = 2\n"})
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{history.folder}", str(shallow)], check=True)
    assert main([], shallow) == 0
    assert "not compared with commits: the clone is shallow" in capsys.readouterr().out
    (tmp_path / "archive").mkdir()
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (tmp_path / "archive" / name).write_text((history.folder / name).read_text())
    assert main([], tmp_path / "archive") == 0
    assert "not compared with commits: this is no clone" in capsys.readouterr().out
    assert main(["--base", made], tmp_path / "archive") == 2


def test_a_base_that_is_not_there_is_an_error_and_no_pass(
    history: History, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHANGELOG_BASE", "0123456789" * 4)
    assert main([], history.folder) == 2
    assert "is no commit of this clone" in capsys.readouterr().out


def test_a_changelog_that_left_its_form_fails_whatever_commits_do(history: History) -> None:
    (history.folder / "CHANGELOG.md").write_text(EMPTY + "\n### New\n\n- A.\n")
    assert main([], history.folder) == 1
