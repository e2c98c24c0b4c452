"""Fetches from a Git server over SSH."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import pygit2
import pytest

from reconciler.errors import RevisionNotFound, StoreError
from reconciler.store.git import parse_git_url
from reconciler.store.git.fetch import Fetched, FetchRequest, fetch
from tests.fakes.git_server import needed
from tests.fakes.ssh_server import SshServer, make_key
from tests.fakes.store_trees import commit_all, write_files
from tests.fakes.waiting import until

PASSPHRASE = "s3cret 'passphrase' $of \"the\" test"
INTO = "refs/fleet/fetched/x"


class Keys(NamedTuple):
    """Private keys; the server knows all but `strange`."""

    host: Path
    other_host: Path
    plain: Path
    sealed: Path
    rsa: Path
    ecdsa: Path
    strange: Path


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    needed("ssh")
    folder = tmp_path_factory.mktemp("keys")
    return Keys(
        host=make_key(folder / "host"),
        other_host=make_key(folder / "other_host"),
        plain=make_key(folder / "plain"),
        sealed=make_key(folder / "sealed", passphrase=PASSPHRASE),
        rsa=make_key(folder / "rsa", "rsa"),
        ecdsa=make_key(folder / "ecdsa", "ecdsa"),
        strange=make_key(folder / "strange"),
    )


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with two commits on main."""
    root = tmp_path / "served/src"
    commit_all(write_files(root, {"a.yaml": "1"}), "first", new=True)
    write_files(root, {"a.yaml": "2"})
    commit_all(root, "second")
    return root


@pytest.fixture
def server(work: Path, keys: Keys) -> SshServer:
    """A server that knows the keys, and serves while a test that is `served` runs."""
    return SshServer(work.parent, keys.host, keys.plain, keys.sealed, keys.rsa, keys.ecdsa)


def served(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., Coroutine[Any, Any, None]]:

    @functools.wraps(test)
    async def run(**given: Any) -> None:
        async with given["server"]:
            await test(**given)

    return run


class Client:
    """An SSH client in a folder of its own; `environ` is what it has in its environment."""

    def __init__(self, folder: Path, server: SshServer, key: Path | None) -> None:
        self.clone = folder / "clone"
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text(server.known_hosts)
        self.environ = {"RECONCILER_GIT_KNOWN_HOSTS": str(self.known_hosts), "PATH": os.environ["PATH"]}
        if key is not None:
            self.environ["RECONCILER_GIT_SSH_KEY"] = str(key)
        self.url = f"{server.url}/src/.git"

    def passphrase(self, text: str) -> Client:
        file = self.known_hosts.with_name("passphrase")
        file.write_text(f"{text}\n")
        self.environ["RECONCILER_GIT_SSH_KEY_PASSPHRASE_FILE"] = str(file)
        return self

    async def fetch(self, rev: str | None = None) -> Fetched:
        wanted = FetchRequest(url=parse_git_url(self.url), rev=rev, folder=self.clone, into=INTO)
        return await fetch(wanted, self.environ)

    async def refusal(self) -> str:
        with pytest.raises(StoreError) as caught:
            await self.fetch()
        text = str(caught.value)
        assert text.isprintable()
        assert PASSPHRASE not in text
        return text.removeprefix(f"{self.url}: ")


def _head(work: Path) -> str:
    return str(pygit2.Repository(str(work)).head.target)


@served
async def test_fetches_what_is_asked_for_and_then_what_is_new(
    work: Path, tmp_path: Path, server: SshServer, keys: Keys
) -> None:
    repository = pygit2.Repository(str(work))
    head, first = _head(work), str(repository.revparse_single("HEAD~1").id)
    repository.references.create("refs/tags/v1", repository.revparse_single("HEAD~1").id)
    client = Client(tmp_path, server, keys.plain)
    for rev, expected in (
        (None, Fetched(head, "refs/heads/main")),
        ("v1", Fetched(first, "refs/tags/v1")),
        (first, Fetched(first, "")),
    ):
        assert await client.fetch(rev) == expected
        clone = pygit2.Repository(str(client.clone))
        assert str(clone.references[INTO].peel(pygit2.Commit).id) == expected.commit
    write_files(work, {"a.yaml": "3"})
    newest = commit_all(work)
    assert (await client.fetch("main")).commit == newest
    assert newest in pygit2.Repository(str(client.clone))
    assert {name.suffix for name in (client.clone / "objects/pack").iterdir()} == {".pack", ".idx"}
    asked = len(server.asked)
    await client.fetch("main")
    assert len(server.asked) == asked + 1, "what the clone has is not asked for again"
    assert set(server.users) == {"git"}
    with pytest.raises(RevisionNotFound, match=r"gone.*branches: main"):
        await client.fetch("gone")
    with pytest.raises(RevisionNotFound, match="leads to a commit ffff"):
        await client.fetch("f" * 40)


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "plain"])
@served
async def test_keys_of_all_kinds_sign_in(work: Path, tmp_path: Path, server: SshServer, keys: Keys, kind: str) -> None:
    assert (await Client(tmp_path, server, getattr(keys, kind)).fetch()).commit == _head(work)


@served
async def test_a_key_with_a_passphrase_signs_in(work: Path, tmp_path: Path, server: SshServer, keys: Keys) -> None:
    client = Client(tmp_path, server, keys.sealed)
    assert "has a passphrase, and none was given (git-ssh-key-passphrase)" in await client.refusal()
    assert "the passphrase does not open the SSH key" in await client.passphrase("wrong").refusal()
    assert (await client.passphrase(PASSPHRASE).fetch()).commit == _head(work)
    cut = tmp_path / "cut"
    cut.write_bytes(keys.sealed.read_bytes()[:-80])
    cut.chmod(0o600)
    damaged = Client(tmp_path, server, cut)
    assert f"the SSH key {cut} is damaged, or cut off" in await damaged.refusal()
    assert f"the SSH key {cut} is damaged, or cut off" in await damaged.passphrase(PASSPHRASE).refusal()
    held = [file for file in tmp_path.rglob("*") if file.is_file() and PASSPHRASE.encode() in file.read_bytes()]
    assert [file.name for file in held] == ["passphrase"]


@served
async def test_where_no_program_may_be_run_a_key_with_a_passphrase_is_refused(
    tmp_path: Path, server: SshServer, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mounted(NamedTuple):
        f_flag: int = os.ST_NOEXEC

    monkeypatch.setattr(os, "statvfs", lambda folder: Mounted())
    refusal = await Client(tmp_path, server, keys.sealed).passphrase(PASSPHRASE).refusal()
    assert "no program may be run in" in refusal


@served
async def test_only_a_key_that_is_vouched_for_is_taken(tmp_path: Path, server: SshServer, keys: Keys) -> None:
    client, sound = Client(tmp_path, server, keys.plain), server.known_hosts
    other = f"{sound.split()[0]} {Path(f'{keys.other_host}.pub').read_text()}"
    for text, says in (
        ("", "its key is unknown: git-known-hosts has none of it"),
        (other, "it shows another key than git-known-hosts has of it"),
        (f"{sound}@revoked {sound}", "@revoked"),
        (f"@revoked * {sound.partition(' ')[2]}{sound}", "@revoked"),
    ):
        client.known_hosts.write_text(text)
        assert says in await client.refusal()
    assert server.users == [], "nobody signs in at a server that is not trusted"


async def test_an_authority_of_host_keys_vouches(work: Path, tmp_path: Path, keys: Keys) -> None:
    signed = tmp_path / "signed"
    signed.write_bytes(keys.host.read_bytes())
    signed.chmod(0o600)
    signed.with_name("signed.pub").write_bytes(Path(f"{keys.host}.pub").read_bytes())
    sign = [needed("ssh-keygen"), "-q", "-s", str(keys.other_host), "-I", "x", "-h", "-n", "127.0.0.1"]
    done = await asyncio.create_subprocess_exec(*sign, f"{signed}.pub")
    assert await done.wait() == 0
    async with SshServer(work.parent, signed, keys.plain) as server:
        client = Client(tmp_path, server, keys.plain)
        client.known_hosts.write_text(f"@cert-authority * {Path(f'{keys.other_host}.pub').read_text()}")
        assert (await client.fetch()).commit == _head(work)


@served
async def test_says_why_nobody_is_let_in(tmp_path: Path, server: SshServer, keys: Keys) -> None:
    assert "none was given (git-ssh-key)" in await Client(tmp_path, server, None).refusal()
    assert (
        "does not accept the SSH key; is it a deploy key there?"
        in await Client(tmp_path, server, keys.strange).refusal()
    )
    nothing = tmp_path / "nothing"
    nothing.write_text("hello")
    nothing.chmod(0o600)
    assert "is no private key" in await Client(tmp_path, server, nothing).refusal()


@served
async def test_a_key_that_others_may_read_is_told(tmp_path: Path, server: SshServer, keys: Keys) -> None:
    shared = tmp_path / "shared"
    shared.write_bytes(keys.plain.read_bytes())
    shared.chmod(0o644)
    assert "chmod 600" in await Client(tmp_path, server, shared).refusal()


@served
async def test_says_when_nobody_answers_or_nothing_is_there(tmp_path: Path, server: SshServer, keys: Keys) -> None:
    client = Client(tmp_path, server, keys.plain)
    client.url = f"{server.url}/nobody"
    assert "no repository there" in await client.refusal()
    client.url = "ssh://git@127.0.0.1:1/x"
    assert "Connection refused" in await client.refusal()
    client.url = "ssh://git@nobody.invalid/x"
    assert "nobody.invalid" in await client.refusal()
    client.url = f"{server.url}/src/.git"
    server.complaint = "this repository is archived\nCHANGED\x1b[2J\n"
    assert "this repository is archived; CHANGED" in await client.refusal()


@served
async def test_a_server_that_is_none_of_ssh_is_told(tmp_path: Path, server: SshServer, keys: Keys) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    web = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with web:
        client = Client(tmp_path, server, keys.plain)
        client.url = f"ssh://git@127.0.0.1:{web.sockets[0].getsockname()[1]}/x"
        assert "is it SSH that listens there" in await client.refusal()


@pytest.mark.parametrize(
    "name", ["a key", "100%h", "k'ey", "tilde~", "pound#", "semi;colon", "new$HOME", "-oProxyCommand=x"]
)
@served
async def test_the_path_of_a_key_is_a_path_and_nothing_else(
    work: Path, tmp_path: Path, server: SshServer, keys: Keys, name: str
) -> None:
    key = tmp_path / name
    key.write_bytes(keys.plain.read_bytes())
    key.chmod(0o600)
    assert (await Client(tmp_path, server, key).fetch()).commit == _head(work)


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "${HOME}"])
@served
async def test_the_path_of_a_key_that_openssh_would_read_otherwise_is_refused(
    tmp_path: Path, server: SshServer, keys: Keys, name: str
) -> None:
    key = tmp_path / name
    key.write_bytes(keys.plain.read_bytes())
    assert "rename it" in await Client(tmp_path, server, key).refusal()
    assert server.users == []


@served
async def test_no_configuration_of_the_user_takes_part(
    work: Path, tmp_path: Path, server: SshServer, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    run = tmp_path / "run"
    run.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
    run.chmod(0o700)
    write_files(
        tmp_path / "home",
        {
            ".gitconfig": f'[core]\n\tsshCommand = {run}\n\thooksPath = {tmp_path}/hooks\n[url "ext::{run} "]\n'
            f"\tinsteadOf = ssh://\n[protocol]\n\tallow = always\n",
            ".ssh/config": f"Host *\n\tProxyCommand {run}\n",
        },
    )
    for name, value in {
        "HOME": str(tmp_path / "home"), "GIT_CONFIG_GLOBAL": str(tmp_path / "home/.gitconfig"), "GIT_SSH": str(run),
        "GIT_SSH_COMMAND": str(run), "SSH_ASKPASS": str(run), "SSH_AUTH_SOCK": str(run), "GIT_EXEC_PATH": str(tmp_path),
        "GIT_PROXY_COMMAND": str(run), "GIT_ASKPASS": str(run), "GIT_EXTERNAL_DIFF": str(run), "LD_PRELOAD_": str(run),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    client = Client(tmp_path, server, keys.plain)
    client.environ = {**os.environ, **client.environ}
    assert (await client.fetch()).commit == _head(work)
    assert not mark.exists()


@served
async def test_nothing_in_the_clone_is_run(work: Path, tmp_path: Path, server: SshServer, keys: Keys) -> None:
    client, mark = Client(tmp_path, server, keys.plain), tmp_path / "mark"
    await client.fetch()
    run = f"#!/bin/sh\ntouch {mark}\n"
    for hook in ("reference-transaction", "post-checkout", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman"):
        file = write_files(client.clone / "hooks", {hook: run}) / hook
        file.chmod(0o700)
    config = client.clone / "config"
    config.write_text(
        config.read_text() + f"[core]\n\thooksPath = {client.clone}/hooks\n\tsshCommand = touch {mark};\n"
        f"[credential]\n\thelper = !touch {mark}\n[protocol]\n\tallow = always\n"
    )
    write_files(work, {"a.yaml": "3"})
    commit_all(work)
    assert (await client.fetch()).commit == _head(work)
    assert not mark.exists()
    config.write_text(config.read_text() + f'[url "ext::touch {mark} "]\n\tinsteadOf = ssh://\n')
    assert "not allowed" in await client.refusal()
    assert not mark.exists()


@served
async def test_submodules_and_tags_are_not_fetched(work: Path, tmp_path: Path, server: SshServer, keys: Keys) -> None:
    write_files(work, {".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = {server.url}/x\n'})
    commit_all(work)
    repository = pygit2.Repository(str(work))
    repository.references.create("refs/tags/v1", repository.head.target)
    client = Client(tmp_path, server, keys.plain)
    await client.fetch("main")
    assert list(pygit2.Repository(str(client.clone)).references) == [INTO]
    assert all("/src/.git" in command for command in server.asked)


@served
async def test_a_head_that_would_be_more_than_a_name_is_passed_over(
    work: Path, tmp_path: Path, server: SshServer, keys: Keys
) -> None:
    for target in ("refs/heads/a:refs/heads/b", "refs/heads/*"):
        (work / ".git/HEAD").write_text(f"ref: {target}\n")
        assert "default branch does not exist" in await Client(tmp_path, server, keys.plain).refusal()


@served
async def test_an_ssh_that_is_not_openssh_is_told(tmp_path: Path, server: SshServer, keys: Keys) -> None:
    client = Client(tmp_path, server, keys.plain)
    other = write_files(tmp_path / "bin", {"ssh": "#!/bin/sh\necho WARNING: Ignoring unknown option >&2\nexit 1\n"})
    (other / "ssh").chmod(0o700)
    client.environ["PATH"] = f"{other}:{os.environ['PATH']}"
    assert "git and the server say: WARNING: Ignoring unknown option" in await client.refusal()


@served
async def test_a_fetch_that_is_given_up_leaves_no_process_and_no_part_of_a_pack(
    work: Path, tmp_path: Path, server: SshServer, keys: Keys
) -> None:
    write_files(work, {"big.bin": os.urandom(300_000)})
    head = commit_all(work)
    client = Client(tmp_path, server, keys.plain)
    packs = client.clone / "objects/pack"
    server.stops_after = 200_000
    await _end_when(lambda: any(packs.glob("tmp_pack_*")), client)
    await asyncio.wait_for(server.left(), 60)
    server.stops_after = None
    assert (await client.fetch()).commit == head
    assert {file.suffix for file in packs.iterdir()} == {".pack", ".idx"}
    server.is_silent = True
    asked = len(server.asked)
    await _end_when(lambda: len(server.asked) > asked, client)
    await asyncio.wait_for(server.left(), 60)


async def _end_when(is_time: Callable[[], bool], client: Client) -> None:
    task = asyncio.create_task(client.fetch())
    await until(is_time)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
