"""Fetches from real Git servers on loopback."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pygit2
import pytest

from reconciler.errors import RevisionNotFound, StoreError
from reconciler.processes import run_program as processes
from reconciler.store.git import parse_git_url
from reconciler.store.git import remote_git as remote
from reconciler.store.git.fetch import Fetched, FetchRequest, fetch
from reconciler.store.git.remote_git import FetchProgress, FetchTimeouts
from tests.fakes.git_server import GitServer, needed, self_signed
from tests.fakes.store_trees import AUTHOR, commit_all, write_files
from tests.fakes.waiting import until

TOKEN = "s3cret-token-of-the-test"
INTO = "refs/fleet/fetched/x"
SHORT = FetchTimeouts(60, 120)


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


async def _refusal(wanted: FetchRequest, environ: dict[str, str] | None = None, patience: FetchTimeouts = SHORT) -> str:
    with pytest.raises(StoreError) as caught:
        await fetch(wanted, environ or {}, patience=patience)
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


async def test_many_packs_become_few_and_nothing_is_lost(work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    wanted = _wanted(f"file://{work}", folder)
    await fetch(wanted, {})
    for number in range(64):
        beside = pygit2.init_repository(str(tmp_path / f"beside{number}"), bare=True)
        builder = pygit2.PackBuilder(beside)
        builder.add(beside.create_blob(b"%d" % number))
        builder.write(str(folder / "objects/pack"))
    commits = [_head(work)]
    for number in range(2):
        write_files(work, {"a.yaml": f"more {number}"})
        commits.append(commit_all(work))
        await fetch(wanted, {})
    assert len(list((folder / "objects/pack").glob("*.pack"))) < 20
    clone = pygit2.Repository(str(folder))
    for commit in commits:
        assert len(list(clone.walk(pygit2.Oid(hex=commit)))) >= 2


async def test_a_server_whose_copy_became_shallow_is_refused_and_its_former_commit_is_not_passed_off_as_new(
    work: Path, tmp_path: Path
) -> None:
    wanted = _wanted(f"file://{tmp_path}/served.git", tmp_path / "clone")
    pygit2.clone_repository(str(work), str(tmp_path / "served.git"), bare=True)
    await fetch(wanted, {})
    for text in ("3", "4"):
        write_files(work, {"a.yaml": text})
        commit_all(work)
    shutil.rmtree(tmp_path / "served.git")
    shallow = ["git", "clone", "--quiet", "--bare", "--depth=1", f"file://{work}", str(tmp_path / "served.git")]
    subprocess.run(shallow, check=True, capture_output=True)
    assert "the repository there is shallow" in await _refusal(wanted)


async def test_an_empty_repository_and_a_missing_revision_say_so(work: Path, tmp_path: Path) -> None:
    pygit2.init_repository(str(tmp_path / "empty.git"), bare=True)
    with pytest.raises(RevisionNotFound, match="no commit yet"):
        await fetch(_wanted(f"file://{tmp_path}/empty.git", tmp_path / "a"), {})
    (tmp_path / "long").mkdir()
    for words in (["init", "-q", "--object-format=sha256"], ["commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run(
            ["git", "-C", str(tmp_path / "long"), "-c", "user.name=a", "-c", "user.email=a@b.c", *words], check=True
        )
    with pytest.raises(StoreError, match="its objects have SHA-256 names"):
        await fetch(_wanted(f"file://{tmp_path}/long", tmp_path / "c"), {})
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
    [(403, "forbids access (403)"), (404, "no repository there"), (500, "500"), (200, "no Git repository at this")],
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


async def test_a_server_that_falls_silent_is_left(work: Path, tmp_path: Path) -> None:
    async with GitServer(work.parent) as server:
        server.is_silent = True
        wanted = _wanted(f"{server.url}/src/.git", tmp_path / "clone")
        assert "nothing more came for 1 s" in await _refusal(wanted, patience=FetchTimeouts(1, 60))
        assert "did not end within 1 s" in await _refusal(wanted, patience=FetchTimeouts(60, 1))


async def test_a_server_that_breaks_off_says_so_and_the_next_fetch_brings_it(work: Path, tmp_path: Path) -> None:
    write_files(work, {"big.bin": os.urandom(300_000)})
    head = commit_all(work)
    async with GitServer(work.parent) as server:
        wanted = _wanted(f"{server.url}/src/.git", tmp_path / "clone")
        server.stops_after, server.breaks_off = 200_000, True
        assert "the connection broke off" in await _refusal(wanted)
        server.stops_after = None
        assert (await fetch(wanted, {})).commit == head


async def test_a_pack_that_no_store_can_have_is_given_up_while_it_comes(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(work, {"big.bin": os.urandom(300_000)})
    commit_all(work)
    monkeypatch.setattr(remote, "_PACK_BYTES", 100_000)
    async with GitServer(work.parent) as server:
        for url in (f"{server.url}/src/.git", f"file://{work}"):
            assert await _refusal(_wanted(url, tmp_path / "clone")) == "the repository is bigger than 100,000 bytes"


def test_progress_is_what_comes_and_not_that_something_is_said() -> None:
    told: list[str] = []
    progress = FetchProgress(told.append).has_moved
    assert progress(b"remote: Counting objects: 5, done.\n")
    assert progress(b"Receiving objects:  10% (1/10), 1.00 MiB | 1.00 MiB/s\r")
    assert not progress(b"Receiving objects:  10% (1/10), 1.00 MiB | 3.00 KiB/s\r")
    assert not progress(b"Receiving objects:  10% (1/10), 1.01 MiB | 1.00 KiB/s\r"), "next to nothing"
    assert progress(b"Receiving objects:  10% (1/10), 1.10 MiB | 1.00 KiB/s\r")
    assert progress(b"Receiving objects:  20% (2/10), 1.10 MiB | 1.00 KiB/s\r")
    assert told == ["0.0 MB have come"], "about each second"


async def test_what_a_killed_fetch_has_left_is_taken_away(work: Path, tmp_path: Path) -> None:
    write_files(work, {"big.bin": os.urandom(300_000)})
    head = commit_all(work)
    folder = tmp_path / "clone"
    packs = folder / "objects/pack"
    async with GitServer(work.parent) as server:
        wanted = _wanted(f"{server.url}/src/.git", folder)
        server.stops_after = 200_000
        for _ in range(2):
            await _end_when(lambda: any(packs.glob("tmp_pack_*")), wanted)
        assert len(list(packs.glob("tmp_pack_*"))) == 1, "of the last try alone"
        server.stops_after = None
        assert (await fetch(wanted, {})).commit == head
    assert {file.suffix for file in packs.iterdir()} == {".pack", ".idx"}


async def _end_when(is_time: Callable[[], bool], wanted: FetchRequest, environ: dict[str, str] | None = None) -> None:
    task = asyncio.create_task(fetch(wanted, environ or {}))
    await until(is_time)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


ORPHAN = """
import asyncio, sys
from pathlib import Path
from reconciler.store.git.fetch import FetchRequest, fetch
from reconciler.store.git import parse_git_url
wanted = FetchRequest(url=parse_git_url(sys.argv[1]), rev=None, folder=Path(sys.argv[2]), into="refs/fleet/fetched/x")
asyncio.run(fetch(wanted, {}))
"""


async def test_a_fetch_ends_with_the_process_that_began_it(work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    async with GitServer(work.parent) as server:
        server.is_silent = True
        parent = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ORPHAN, f"{server.url}/src/.git", str(folder)
        )
        while not server.asked:
            assert parent.returncode is None
            await asyncio.sleep(0.01)  # another process asks
        parent.kill()
        await parent.wait()
        # Given back when the last orphan has ended.
        with (tmp_path / "clone.lock").open() as lock:
            await asyncio.wait_for(asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX), 60)


async def test_cancelling_ends_the_process(work: Path, tmp_path: Path) -> None:
    async with GitServer(work.parent) as server:
        server.is_silent = True
        task = asyncio.create_task(fetch(_wanted(f"{server.url}/src/.git", tmp_path / "clone"), {}))
        await until(lambda: server.asked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    names = [
        Path(f"/proc/{child}/cmdline").read_bytes() for child in children if Path(f"/proc/{child}/cmdline").exists()
    ]
    assert not [name for name in names if b"holder.py" in name]


async def test_https_goes_through_the_proxy_unless_the_host_is_exempt(work: Path, tmp_path: Path) -> None:
    async with GitServer(work.parent) as proxy:
        environ = {"https_proxy": f"http://ann:{TOKEN}@127.0.0.1:{proxy.port}"}
        wanted = _wanted("https://git.example.invalid/x", tmp_path / "clone")
        assert "the proxy does not lead there" in await _refusal(wanted, environ)
        assert "leads to no address" in await _refusal(wanted, {**environ, "no_proxy": "localhost,.example.invalid"})


async def test_a_proxy_that_wants_a_password_says_so(tmp_path: Path) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b"":
            head = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x\r\n"
            writer.write(f"{head}Content-Length: 0\r\n\r\n".encode())
        writer.close()

    proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    wanted = _wanted("https://git.example.invalid/x", tmp_path / "clone")
    async with proxy:
        assert "wants a user and password (407)" in await _refusal(wanted, {"https_proxy": f"http://127.0.0.1:{port}"})
        text = await _refusal(wanted, {"https_proxy": f"http://ann:{TOKEN}@127.0.0.1:{port}"})
        assert text == "the proxy does not accept the user and password of https_proxy (407)"


async def test_redirects_in_a_circle_say_so(work: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    async with GitServer(work.parent) as server:
        server.status = 302
        server.location = f"{server.url}/src/.git/info/refs?service=git-upload-pack"
        for environ in ({}, {"RECONCILER_GIT_TOKEN_FILE": str(token)}):
            assert "in circles" in await _refusal(_wanted(f"{server.url}/src/.git", tmp_path / "clone"), environ)


async def test_a_file_that_was_named_but_is_not_there_is_named(work: Path, tmp_path: Path) -> None:
    for variable, url in (
        ("RECONCILER_GIT_TOKEN_FILE", "https://example.invalid/x"),
        ("RECONCILER_GIT_CA", "https://example.invalid/x"),
        ("RECONCILER_GIT_SSH_KEY", "ssh://example.invalid/x"),
        ("RECONCILER_GIT_KNOWN_HOSTS", "ssh://example.invalid/x"),
    ):
        with pytest.raises(StoreError, match=r"nobody(:| cannot be read:) No such file"):
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


async def test_a_crash_of_what_runs_git_is_a_failed_fetch(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = tmp_path / "holder.py"
    monkeypatch.setattr(processes, "_HOLDER", holder)
    holder.write_text("import os\nos.abort()\n")
    assert "git cannot be run (lost" in await _refusal(_wanted(f"file://{work}", tmp_path / "clone"))


async def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    for url in ("https://example.invalid/x", "ssh://example.invalid/x"):
        assert "install git" in await _refusal(_wanted(url, tmp_path / "clone"), environ)
    (tmp_path / "git").symlink_to(needed("git"))
    assert "install openssh-client" in await _refusal(_wanted("ssh://example.invalid/x", tmp_path / "clone"), environ)


async def test_a_credential_helper_of_the_operator_is_asked_about_the_host_of_the_url_alone(
    work: Path, tmp_path: Path
) -> None:
    helper = tmp_path / "helper"
    helper.write_text(f"#!/bin/sh\ntest $1 = get && echo username=x && echo password={TOKEN} && cat >>$HOME/asked\n")
    helper.chmod(0o700)
    environ = {"RECONCILER_GIT_CREDENTIAL_HELPER": str(helper), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    async with GitServer(work.parent, token=TOKEN) as server, GitServer(work.parent, token=TOKEN) as thief:
        wanted = _wanted(f"{server.url}/src/.git", tmp_path / "clone")
        assert (await fetch(wanted, environ)).commit == _head(work)
        server.status, server.location = 302, f"{thief.url}/src/.git/info/refs?service=git-upload-pack"
        assert "sends to another one" in await _refusal(wanted, environ)
        assert all(not sent for _, sent in thief.asked)
        assert str(thief.port) not in (tmp_path / "asked").read_text()
