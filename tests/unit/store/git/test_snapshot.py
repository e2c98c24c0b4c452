from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pygit2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pygit2.enums import ConfigLevel

from reconciler.api.fleet import StoreFile
from reconciler.errors import RevisionNotFound, StoreError
from reconciler.fleet import memo_key
from reconciler.store.git import snapshot
from reconciler.store.git.repository import skip_unreadable_settings
from reconciler.store.git.snapshot import GitStore
from reconciler.store.location import is_sparse, locate_store
from tests.fakes.store_trees import AUTHOR, commit_all, problems_of, write_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three commits on main: a.yaml, then sub/b.yaml, then another a.yaml."""
    write_files(tmp_path, {"a.yaml": "1"})
    commit_all(tmp_path, "first\n\nbody", new=True)
    write_files(tmp_path, {"sub/b.yaml": "2", "sub/deep/c.yaml": "3"})
    commit_all(tmp_path, "second")
    write_files(tmp_path, {"a.yaml": "11"})
    commit_all(tmp_path, "third")
    return tmp_path


def _commit(repository: pygit2.Repository, oid: Any) -> pygit2.Commit:
    found: Any = repository[oid]
    return found.peel(pygit2.Commit)  # type: ignore[no-any-return]  # pygit2 types objects too loosely


def _content(store: GitStore, commit: str, subdir: str = "") -> dict[str, str]:
    return {file.path: file.data.decode() for file in store.snapshot(commit, subdir).files}


def test_reads_commits_and_not_the_files_as_they_lie(root: Path) -> None:
    (root / "a.yaml").write_text("edited")
    store = GitStore(root)
    assert _content(store, store.resolve("HEAD")) == {"a.yaml": "11", "sub/b.yaml": "2", "sub/deep/c.yaml": "3"}
    assert _content(store, store.resolve("HEAD~2")) == {"a.yaml": "1"}


def test_names_files_below_a_subfolder_from_there(root: Path) -> None:
    store = GitStore(root)
    assert _content(store, store.resolve("HEAD"), "sub") == {"b.yaml": "2", "deep/c.yaml": "3"}
    for subdir in ("nobody", "a.yaml"):
        with pytest.raises(RevisionNotFound, match=subdir):
            store.snapshot(store.resolve("HEAD"), subdir)


def test_links_never_lead_out_of_the_subfolder(root: Path) -> None:
    write_files(root, {"sub/out.yaml": "-> ../a.yaml"})
    snapshot = GitStore(root).snapshot(commit_all(root), "sub")
    assert [problem.code for problem in problems_of(snapshot)] == ["link-refused"]


def test_resolves_every_exact_name(root: Path) -> None:
    repository = pygit2.Repository(str(root))
    head = repository.head.target
    parent = _commit(repository, head).parent_ids[0]
    repository.create_branch("feature/x", _commit(repository, parent))
    repository.create_reference("refs/tags/light", parent)
    repository.create_tag("v1.0", head, pygit2.enums.ObjectType.COMMIT, AUTHOR, "annotated")
    repository.create_reference("refs/remotes/origin/main", parent)
    store = GitStore(root)
    for name in ("HEAD", "@", "main", "refs/heads/main", "v1.0", "refs/tags/v1.0", str(head), str(head)[:10], "HEAD~0"):
        assert store.resolve(name) == str(head), name
    for name in ("feature/x", "light", "origin/main", "HEAD^", "HEAD~1", "main~", "v1.0^1", str(parent)[:7]):
        assert store.resolve(name) == str(parent), name


@pytest.mark.parametrize(
    "rev",
    ["nobody", "HEAD~9", "HEAD^2", "", "-x", "--all", "a..b", "main@{1}", "@{-1}", ":/third", "HEAD:a.yaml", "main\n",
     "v1^{tree}", "refs/heads/../../x", "/etc/passwd", "main.lock", "a b", "\x00", "é", "x" * 300, "abc", "f" * 40],
)  # fmt: skip
def test_refuses_what_names_no_commit(root: Path, rev: str) -> None:
    with pytest.raises(RevisionNotFound):
        GitStore(root).resolve(rev)


@given(st.text(max_size=30))
@example("HEAD@{0}")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=200)
def test_hostile_revisions_only_ever_are_not_found(root: Path, rev: str) -> None:
    try:
        commit = GitStore(root).resolve(rev)
    except RevisionNotFound as error:
        assert not any(ord(character) < 32 for character in str(error))
    else:
        assert len(commit) == 40


def test_a_name_of_a_branch_and_of_a_tag_is_ambiguous(root: Path) -> None:
    repository = pygit2.Repository(str(root))
    repository.create_reference("refs/tags/main", _commit(repository, repository.head.target).parent_ids[0])
    with pytest.raises(RevisionNotFound, match="refs/heads/main"):
        GitStore(root).resolve("main")


def test_a_tag_of_a_tree_is_no_commit(root: Path) -> None:
    repository = pygit2.Repository(str(root))
    repository.create_reference("refs/tags/tree", _commit(repository, repository.head.target).tree.id)
    with pytest.raises(RevisionNotFound, match="no commit"):
        GitStore(root).resolve("tree")


def test_opens_bare_repositories(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    bare = tmp_path_factory.mktemp("bare")
    pygit2.clone_repository(str(root), str(bare), bare=True)
    store = GitStore(bare)
    assert _content(store, store.resolve("main")) == _content(GitStore(root), GitStore(root).resolve("main"))


def test_a_repository_without_commits_says_so(tmp_path: Path) -> None:
    pygit2.init_repository(str(tmp_path))
    with pytest.raises(RevisionNotFound, match="no commit yet"):
        GitStore(tmp_path).resolve("HEAD")


def test_head_at_a_branch_that_is_gone_says_so_and_not_that_there_is_no_commit(root: Path) -> None:
    (root / ".git/HEAD").write_text("ref: refs/heads/trunk\n")
    with pytest.raises(RevisionNotFound, match=r"HEAD is at the branch trunk, which is gone \(branches here: main\)"):
        GitStore(root).resolve("HEAD")


@pytest.mark.parametrize("file", ["HEAD", "refs/heads/main"])
def test_a_spoiled_head_is_a_fault_of_the_store_and_not_of_the_program(root: Path, file: str) -> None:
    (root / ".git" / file).write_text("spoiled\n")
    with pytest.raises(StoreError, match=r"HEAD in \S+ cannot be read: "):
        GitStore(root).resolve("HEAD")


def test_what_is_no_repository_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a Git repository"):
        GitStore(tmp_path / "nobody")


def test_a_repository_that_may_not_be_read_says_so(as_nobody: Path) -> None:
    commit_all(write_files(as_nobody, {"a.yaml": "1"}), new=True)
    (as_nobody / ".git").chmod(0)
    assert not is_sparse(locate_store(str(as_nobody))), "which is a hint, and stops nobody"
    with pytest.raises(StoreError, match=f"this user may not read {as_nobody}/.git;"):
        GitStore(as_nobody)
    (as_nobody / ".git").chmod(0o700)


def test_a_home_that_may_not_be_read_hides_no_repository(as_nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, store = as_nobody / "home", as_nobody / "store"
    commit = commit_all(write_files(store, {"a.yaml": "1"}), new=True)
    home.mkdir(mode=0)
    levels = (ConfigLevel.GLOBAL, ConfigLevel.XDG)
    before = [pygit2.settings.search_path[level] for level in levels]
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    try:
        for level in levels:  # as a process begins that was given this HOME
            pygit2.settings.search_path[level] = str(home)
        skip_unreadable_settings.cache_clear()
        assert GitStore(store).resolve("HEAD") == commit
    finally:
        for level, path in zip(levels, before, strict=True):
            pygit2.settings.search_path[level] = path
        skip_unreadable_settings.cache_clear()


def test_objects_that_may_not_be_read_may_be_what_is_wrong(as_nobody: Path) -> None:
    commit_all(write_files(as_nobody, {"a.yaml": "1"}), new=True)
    subprocess.run(["git", "-c", f"safe.directory={as_nobody}", "-C", as_nobody, "gc", "-q"], check=True)
    (as_nobody / ".git/objects/pack").chmod(0)
    with pytest.raises(StoreError, match=r"may not be read, or is missing or corrupt: .*Permission denied"):
        GitStore(as_nobody).resolve("HEAD")
    (as_nobody / ".git/objects/pack").chmod(0o700)


def test_a_repository_of_another_user_is_refused_with_what_git_wants(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words are libgit2's; only root could give a folder away."""

    def refuse(path: Path) -> NoReturn:
        raise pygit2.GitError(f"repository path '{path}' is not owned by current user")

    monkeypatch.setattr(snapshot, "open_repository", refuse)
    with pytest.raises(StoreError, match=f"--add safe.directory {root}`"):
        GitStore(root)


@pytest.mark.parametrize("lacks", ["blob:none", "tree:0"])
def test_a_partial_clone_says_how_to_fetch_the_rest(
    root: Path, tmp_path_factory: pytest.TempPathFactory, lacks: str
) -> None:
    clone = tmp_path_factory.mktemp("clone") / "partial"
    subprocess.run(["git", "-C", root, "config", "uploadpack.allowFilter", "true"], check=True)
    subprocess.run(["git", "clone", "-q", "--no-checkout", f"--filter={lacks}", f"file://{root}", clone], check=True)
    with GitStore(clone) as store, pytest.raises(StoreError, match="git fetch --refetch --no-filter"):
        store.snapshot(store.resolve("HEAD"))
    subprocess.run(["git", "-C", clone, "fetch", "-q", "--refetch", "--no-filter"], check=True)
    with GitStore(clone) as store:
        assert _content(store, store.resolve("HEAD")).keys() == {"a.yaml", "sub/b.yaml", "sub/deep/c.yaml"}


def test_a_clone_that_borrows_objects_of_a_folder_that_is_gone_says_so(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    clone = tmp_path_factory.mktemp("clone") / "shared"
    subprocess.run(["git", "clone", "-q", "--shared", root, clone], check=True)
    root.rename(root.with_name("elsewhere"))
    with (
        GitStore(clone) as store,
        pytest.raises(StoreError, match=r"it borrows objects .* clone again without --shared"),
    ):
        store.resolve("HEAD")


def test_names_of_sha_256_are_told_as_what_they_are(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--object-format=sha256", tmp_path], check=True)
    with pytest.raises(StoreError, match=r"objects have SHA-256 names, .*; push the store to .* or read .* with --dir"):
        GitStore(tmp_path)


def test_a_missing_object_fails_the_whole_reading(root: Path) -> None:
    store = GitStore(root)
    commit = store.resolve("HEAD")
    blob = str(pygit2.hash(b"2"))
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(StoreError, match="missing or corrupt"):
        GitStore(root).snapshot(commit)


def test_reads_a_blob_that_an_older_commit_held(root: Path) -> None:
    store = GitStore(root)
    (old,) = store.snapshot(store.resolve("HEAD~2")).files
    assert store.read_blob(old.blob) == b"1"
    for other in ("0" * 40, "b2:" + "0" * 40, store.resolve("HEAD"), "HEAD", ""):
        assert store.read_blob(other) is None


def test_submodules_are_told_of(root: Path) -> None:
    repository = pygit2.Repository(str(root))
    head = repository.head.target
    builder = repository.TreeBuilder(_commit(repository, head).tree)
    builder.insert("vendor", head, pygit2.enums.FileMode.COMMIT)
    commit = repository.create_commit("HEAD", AUTHOR, AUTHOR, "add", builder.write(), [head])
    snapshot = GitStore(root).snapshot(str(commit))
    assert [(str(problem.source), problem.code) for problem in snapshot.problems] == [("vendor", "submodule-skipped")]
    assert len(snapshot.files) == 3


def test_changed_paths_are_those_that_differ(root: Path) -> None:
    store = GitStore(root)
    first, second, third = (store.resolve(f"HEAD~{n}") for n in (2, 1, 0))
    assert store.changed_paths(first, third) == ("a.yaml", "sub/b.yaml", "sub/deep/c.yaml")
    assert store.changed_paths(third, second) == ("a.yaml",)
    assert store.changed_paths(second, third, "sub") == ()
    assert store.changed_paths(third, third) == ()


def test_changed_paths_tell_a_file_that_became_a_folder(root: Path) -> None:
    store = GitStore(root)
    before = store.resolve("HEAD")
    (root / "a.yaml").unlink()
    write_files(root, {"a.yaml/x.yaml": "1"})
    assert store.changed_paths(before, commit_all(root)) == ("a.yaml", "a.yaml/x.yaml")


def test_tells_who_wrote_a_commit(root: Path) -> None:
    store = GitStore(root)
    info = store.words(store.resolve("HEAD~2"))
    assert (info.author, info.time, info.subject) == ("Ann", "2023-11-14T22:13:20Z", "first")


def test_texts_of_commits_cannot_steer_a_terminal(root: Path) -> None:
    repository = pygit2.Repository(str(root))
    head = repository.head.target
    author = pygit2.Signature("A\x1b[31mnn", "a@example.com", 1, 0)
    message = "\x1b]0;owned\x07::set-output\u202e x\nsecond"
    commit = repository.create_commit("HEAD", author, AUTHOR, message, _commit(repository, head).tree.id, [head])
    info = GitStore(root).words(str(commit))
    for text in (info.author, info.subject):
        assert not any(ord(character) < 32 or character == "\u202e" for character in text)
    assert "second" not in info.subject


def test_a_time_that_no_calendar_has_hides_no_commit(root: Path) -> None:
    repository = pygit2.Repository(str(root))
    who = "Ann <a@example.com> 1000000000000 +0000"
    text = f"tree {repository.head.peel().tree.id}\nauthor {who}\ncommitter {who}\n\nfar\n"
    commit = repository.write(pygit2.enums.ObjectType.COMMIT, text.encode())
    assert GitStore(root).words(str(commit)) == ("Ann", "far", "")


def test_does_not_read_what_the_caller_knows(root: Path) -> None:
    store = GitStore(root)
    head = store.resolve("HEAD")
    files = {file.path: file for file in store.snapshot(head).files}
    moved = memo_key(StoreFile(path="elsewhere.yaml", blob=files["sub/deep/c.yaml"].blob, data=b""))
    found = store.snapshot(head, known={memo_key(files["sub/b.yaml"]), moved})
    assert [(file.path, file.blob) for file in found.files] == [(path, file.blob) for path, file in files.items()]
    assert [file.data for file in found.files] == [b"11", b"", b"3"]


def test_a_shallow_clone_says_why_it_lacks_a_revision(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    clone = tmp_path_factory.mktemp("clone")
    command = ["git", "clone", "--quiet", "--depth", "1", root.as_uri(), str(clone)]
    subprocess.run(command, check=True, capture_output=True)
    store = GitStore(clone)
    for missing in ("HEAD~1", GitStore(root).resolve("HEAD~1"), "no-such-branch"):
        with pytest.raises(RevisionNotFound, match=r"this clone is shallow .* fetch-depth: 0"):
            store.resolve(missing)
    with pytest.raises(RevisionNotFound) as error:
        GitStore(root).resolve("no-such-branch")
    assert "shallow" not in str(error.value)
