"""Fetches from real Git servers on loopback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pygit2
import pytest

from reconciler.adapters.git import fetch as git_fetch
from reconciler.adapters.git.fetch import Fetched, FetchRequest, fetch
from reconciler.adapters.git.url import parse_git_url
from reconciler.errors import RevisionNotFound, StoreError
from tests.fakes.git_server import GitServer, self_signed
from tests.fakes.store_trees import AUTHOR, commit_all, write_files

TOKEN = "s3cret-token-of-the-test"
INTO = "refs/fleet/fetched/x"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with two commits on main."""
    root = tmp_path / "served/src"
    commit_all(write_files(root, {"a.yaml": "1"}), "first", new=True)
    write_files(root, {"a.yaml": "2"})
    commit_all(root, "second")
    return root


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    yield self_signed(tmp_path_factory.mktemp("tls"))


def _wanted(url: str, folder: Path, rev: str | None = None) -> FetchRequest:
    return FetchRequest(url=parse_git_url(url), rev=rev, folder=folder, into=INTO)


def _head(work: Path) -> str:
    return str(pygit2.Repository(str(work)).head.target)


async def _refusal(wanted: FetchRequest, environ: dict[str, str] | None = None, deadline_s: float = 30) -> str:
    with pytest.raises(StoreError) as caught:
        await fetch(wanted, environ or {}, deadline_s)
    text = str(caught.value)
    assert TOKEN not in text
    assert text.isprintable()
    assert text.startswith(f"{wanted.url}: ")
    return text.removeprefix(f"{wanted.url}: ")


async def test_fetches_the_default_branch_a_branch_a_tag_and_a_commit(work: Path, tmp_path: Path) -> None:
    repository = pygit2.Repository(str(work))
    head, first = _head(work), str(repository.revparse_single("HEAD~1").id)
    repository.create_tag("v1", pygit2.Oid(hex=first), pygit2.enums.ObjectType.COMMIT, AUTHOR, "one")
    cases = [
        (None, Fetched(head, "refs/heads/main")),
        ("HEAD", Fetched(head, "refs/heads/main")),
        ("main", Fetched(head, "refs/heads/main")),
        ("refs/heads/main", Fetched(head, "refs/heads/main")),
        ("v1", Fetched(first, "refs/tags/v1")),
        (first, Fetched(first, "")),
    ]
    for number, (rev, expected) in enumerate(cases):
        folder = tmp_path / f"clone{number}"
        assert await fetch(_wanted(f"file://{work}", folder, rev), {}) == expected
        clone = pygit2.Repository(str(folder))
        assert str(clone.references[INTO].peel(pygit2.Commit).id) == expected.commit
        assert clone.is_bare


async def test_fetches_what_is_new_into_the_same_clone(work: Path, tmp_path: Path) -> None:
    wanted = _wanted(f"file://{work}", tmp_path / "clone")
    first = await fetch(wanted, {})
    assert await fetch(wanted, {}) == first
    write_files(work, {"a.yaml": "3"})
    head = commit_all(work)
    assert (await fetch(wanted, {})).commit == head
    assert head in pygit2.Repository(str(tmp_path / "clone"))


async def test_many_packs_become_one_and_nothing_is_lost(work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    wanted = _wanted(f"file://{work}", folder)
    await fetch(wanted, {})
    packs = folder / "objects/pack"
    for number in range(64):
        (packs / f"pack-{number:040d}.pack").write_bytes(next(packs.glob("*.pack")).read_bytes())
    commits = [_head(work)]
    for number in range(2):
        write_files(work, {"a.yaml": f"more {number}"})
        commits.append(commit_all(work))
        await fetch(wanted, {})
    assert len(list(packs.glob("*.pack"))) < 4
    clone = pygit2.Repository(str(folder))
    for commit in commits:
        assert len(list(clone.walk(pygit2.Oid(hex=commit)))) >= 2


async def test_an_empty_repository_and_a_missing_revision_say_so(work: Path, tmp_path: Path) -> None:
    pygit2.init_repository(str(tmp_path / "empty.git"), bare=True)
    with pytest.raises(RevisionNotFound, match="no commit yet"):
        await fetch(_wanted(f"file://{tmp_path}/empty.git", tmp_path / "a"), {})
    with pytest.raises(RevisionNotFound, match=r"no branch or tag gone any more.*\(branches: main\)"):
        await fetch(_wanted(f"file://{work}", tmp_path / "b", "gone"), {})
    with pytest.raises(RevisionNotFound, match="leads to a commit ffff"):
        await fetch(_wanted(f"file://{work}", tmp_path / "b", "f" * 40), {})
    repository = pygit2.Repository(str(work))
    repository.create_reference("refs/tags/main", repository.revparse_single("HEAD~1").id)
    with pytest.raises(RevisionNotFound, match="refs/heads/main"):
        await fetch(_wanted(f"file://{work}", tmp_path / "b", "main"), {})


async def test_says_when_there_is_no_repository_or_nobody_answers(tmp_path: Path) -> None:
    assert "no repository there" in await _refusal(_wanted(f"file://{tmp_path}/nobody", tmp_path / "c"))
    assert "Connection refused" in await _refusal(_wanted("https://127.0.0.1:1/x", tmp_path / "c"))
    assert "Connection refused" in await _refusal(_wanted("ssh://git@127.0.0.1:1/x", tmp_path / "c"))


async def test_signs_in_with_a_token_over_tls(work: Path, tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    token, folder = tmp_path / "git-token", tmp_path / "clone"
    token.write_text(f"{TOKEN}\n")
    async with GitServer(work.parent, token=TOKEN, certificate=certificate) as server:
        wanted = _wanted(f"{server.url}/src/.git", folder)
        trusted = {"RECONCILER_GIT_CA": str(certificate[0])}
        assert "no known authority" in await _refusal(wanted, {"RECONCILER_GIT_TOKEN_FILE": str(token)})
        assert all(not sent for _, sent in server.asked), "a token went to a server that nobody vouched for"
        assert "none was given (git-token)" in await _refusal(wanted, trusted)
        for environ in (
            {"CREDENTIALS_DIRECTORY": str(tmp_path)},
            {"RECONCILER_GIT_TOKEN_FILE": str(token)},
        ):
            assert (await fetch(wanted, {**trusted, **environ})).commit == _head(work)
        token.write_text("another")
        assert "does not accept the token (401)" in await _refusal(
            wanted, {**trusted, "CREDENTIALS_DIRECTORY": str(tmp_path)}
        )
        in_url = _wanted(server.url.replace("//", f"//ann:{TOKEN}@") + "/src/.git", tmp_path / "other")
        assert (await fetch(in_url, trusted)).commit == _head(work)


@pytest.mark.parametrize(
    ("status", "text"),
    [(403, "forbids access (403)"), (404, "no repository there"), (500, "500"), (200, "content-type")],
)
async def test_names_what_a_server_answers(work: Path, tmp_path: Path, status: int, text: str) -> None:
    async with GitServer(work.parent) as server:
        server.status = status
        assert text in await _refusal(_wanted(f"{server.url}/src/.git", tmp_path / "clone"))


async def test_credentials_never_follow_a_redirect_to_another_host(work: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    async with GitServer(work.parent) as server, GitServer(work.parent, token="x") as thief:
        server.status = 302
        server.location = f"{thief.url}/src/.git/info/refs?service=git-upload-pack"
        wanted = _wanted(f"{server.url}/src/.git", tmp_path / "clone")
        text = await _refusal(wanted, {"RECONCILER_GIT_TOKEN_FILE": str(token)})
        assert f"sends to another one ({thief.url})" in text
        assert all(not sent for _, sent in thief.asked)


async def test_a_server_that_falls_silent_is_left_and_the_loop_stays_free(work: Path, tmp_path: Path) -> None:
    async with GitServer(work.parent) as server:
        server.is_silent = True
        text = await _refusal(_wanted(f"{server.url}/src/.git", tmp_path / "clone"), deadline_s=1)
        assert "did not end within 1 s" in text
        assert len(server.asked) == 1


async def test_cancelling_ends_the_process(work: Path, tmp_path: Path) -> None:
    async with GitServer(work.parent) as server:
        server.is_silent = True
        task = asyncio.create_task(fetch(_wanted(f"{server.url}/src/.git", tmp_path / "clone"), {}))
        while not server.asked:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    names = [
        Path(f"/proc/{child}/cmdline").read_bytes() for child in children if Path(f"/proc/{child}/cmdline").exists()
    ]
    assert not [name for name in names if b"fetch_child" in name]


async def test_https_goes_through_the_proxy_unless_the_host_is_exempt(work: Path, tmp_path: Path) -> None:
    async with GitServer(work.parent) as proxy:
        environ = {"https_proxy": f"http://ann:{TOKEN}@127.0.0.1:{proxy.port}"}
        wanted = _wanted("https://git.example.invalid/x", tmp_path / "clone")
        assert "proxy" in await _refusal(wanted, environ)
        assert "resolve address" in await _refusal(wanted, {**environ, "no_proxy": "localhost,.example.invalid"})


async def test_a_file_that_was_named_but_is_not_there_is_named(work: Path, tmp_path: Path) -> None:
    for variable, url in (
        ("RECONCILER_GIT_TOKEN_FILE", "https://example.invalid/x"),
        ("RECONCILER_GIT_CA", "https://example.invalid/x"),
        ("RECONCILER_GIT_SSH_KEY", "ssh://example.invalid/x"),
        ("RECONCILER_GIT_KNOWN_HOSTS", "ssh://example.invalid/x"),
    ):
        with pytest.raises(StoreError, match="nobody: No such file"):
            await fetch(_wanted(url, tmp_path / "clone"), {variable: str(tmp_path / "nobody")})


async def test_configuration_of_the_user_redirects_nothing(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text(f'[url "file://{tmp_path}/evil"]\n\tinsteadOf = file://\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    assert (await fetch(_wanted(f"file://{work}", tmp_path / "clone"), {})).commit == _head(work)


async def test_a_corrupt_clone_says_so_rather_than_crashing(work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    await fetch(_wanted(f"file://{work}", folder), {})
    (folder / "HEAD").write_text("")
    (folder / "config").write_text("[[[")
    assert await _refusal(_wanted(f"file://{work}", folder))


async def test_a_crash_of_the_process_is_a_failed_fetch_with_advice(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child.py"
    monkeypatch.setattr(git_fetch, "_CHILD", child)
    for ending, text in (("os.abort()", "crashed (signal 6"), ("print('{'); sys.exit(3)", "exit code 3")):
        child.write_text(f"import os, sys\n{ending}\n")
        assert text in await _refusal(_wanted(f"file://{work}", tmp_path / "clone"))
    child.write_text("import os\nos.abort()\n")
    assert "take an Ed25519 one" in await _refusal(_wanted("ssh://git@example.invalid/x", tmp_path / "clone"))
