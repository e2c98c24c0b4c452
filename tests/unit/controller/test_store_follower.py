"""The revision in force of each kind of store, what is refused and for how long, and what a restart goes on with.

Source: design#last-good-revision: the last good revision stays in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pygit2
import pytest
import yaml

from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.clock import SystemClock
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.once import Access
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.store_follower import StoreFollower
from reconciler.controller.store_in_force import StoreInForce
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.journal import Journal
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import MemberClusters, UserAgent
from reconciler.store.source import open_source
from tests.fakes.raising import InterpreterFault
from tests.fakes.store_trees import commit_all, write_files
from tests.fakes.worlds import config_map

BROKEN = "kind: ConfigMap\napiVersion: v1\nmetadata: [\n"


def fleet_yaml(name: str = "shop") -> str:
    return yaml.safe_dump({"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": name}})


def app_yaml(value: str) -> str:
    return yaml.safe_dump(config_map(value=value))


class Followed:
    """A store that is followed, with the journal of its fleet."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind = folder, kind
        self.work = folder / "work"
        self.vitals = Vitals()

    @property
    def text(self) -> str:
        """Return the text that stands for STORE."""
        return f"file://{self.work}" if self.kind == "url" else str(self.work)

    def put(self, files: dict[str, str], *, gone: tuple[str, ...] = ()) -> str:
        """Files as a revision; the commit."""
        is_new = not self.work.exists()
        write_files(self.work, files)
        for path in gone:
            (self.work / path).unlink()
        if self.kind == "directory":
            return ""
        return str(commit_all(self.work, new=is_new))

    def set_back(self, commit: str) -> None:
        """Force the branch to a commit."""
        repository = pygit2.Repository(str(self.work))
        repository.references["refs/heads/main"].set_target(pygit2.Oid(hex=commit))

    @asynccontextmanager
    async def follower(self) -> AsyncIterator[StoreFollower]:
        """As the service begins, with what the journal knows."""
        with Journal.open(self.folder / "state/journal.db") as journal:
            source = await open_source(
                self.text,
                rev=None,
                as_directory=self.kind == "directory",
                poll_s=0.1,
                state_folder=self.folder / "state",
                clock=SystemClock(),
                environ={},
            )
            self.vitals = Vitals()
            parts = LoopParts(
                source=source,
                store=StoreInForce(journal.good_blobs(), source),
                journal=journal,
                holder=OwnershipLock(journal, SystemClock()),
                opened=cast("MemberClusters", None),
                access=Access(interpreters=BUILT_IN_KINDS),
                agent=UserAgent("test"),
                vitals=self.vitals,
            )
            self.source = source
            try:
                yield StoreFollower(parts)
            finally:
                await source.close()

    async def next(self, follower: StoreFollower) -> Fleet | None:
        """Return what one more look brings."""
        async with asyncio.timeout(60):
            await self.source.changed()
        return await follower.read()

    async def until(self, follower: StoreFollower) -> Fleet:
        """The next fleet that comes into force."""
        while True:
            found = await self.next(follower)
            if found is not None:
                return found


def value(fleet: Fleet | None) -> str:
    assert fleet is not None
    (template,) = fleet.templates.values()
    body: Any = template.body
    return str(body["data"]["value"])


@pytest.fixture(params=["url", "work tree", "directory"])
def followed(request: pytest.FixtureRequest, tmp_path: Path) -> Followed:
    return Followed(tmp_path, request.param)


BAD = [
    pytest.param({"fleet.yaml": fleet_yaml("shopp")}, (), "names fleet 'shopp'", id="a mistyped name"),
    pytest.param({"README.md": ""}, ("fleet.yaml", "app.yaml"), "no document of kind Fleet", id="an empty tree"),
]


@pytest.mark.parametrize(("files", "gone", "why"), BAD)
async def test_what_is_refused_stays_refused_until_something_else_is_read(
    followed: Followed, files: dict[str, str], gone: tuple[str, ...], why: str
) -> None:
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        assert value(await followed.until(follower)) == "1"
        followed.put(files, gone=gone)
        for _ in range(3):
            while why not in followed.vitals.source_error:
                assert await followed.next(follower) is None
            # Asked again without a change, as at every poll of a URL.
            assert await follower.read() is None
            assert why in followed.vitals.source_error
        followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("2")})
        assert value(await followed.until(follower)) == "2"
        assert followed.vitals.source_error == ""


@pytest.mark.parametrize(("files", "gone", "why"), BAD)
async def test_a_restart_goes_on_with_the_last_good_revision(
    followed: Followed, files: dict[str, str], gone: tuple[str, ...], why: str
) -> None:
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        await followed.until(follower)
        followed.put(files, gone=gone)
        while why not in followed.vitals.source_error:
            await followed.next(follower)
    for _ in range(2):
        async with followed.follower() as follower:
            assert value(await follower.read()) == "1"
            assert why in followed.vitals.source_error, "it is still said that the newest is refused"
            assert followed.vitals.is_ready
            assert await follower.read() is None
            assert why in followed.vitals.source_error
    async with followed.follower() as follower:
        followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("2")})
        assert value(await followed.until(follower)) == "2"
        assert followed.vitals.source_error == ""


@pytest.mark.parametrize("kind", ["url", "work tree"])
async def test_a_branch_that_is_set_back_from_a_refused_commit_is_followed(tmp_path: Path, kind: str) -> None:
    followed = Followed(tmp_path, kind)
    good = followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        await followed.until(follower)
        followed.put({"fleet.yaml": fleet_yaml("shopp")})
        while "names fleet 'shopp'" not in followed.vitals.source_error:
            await followed.next(follower)
        followed.set_back(good)
        assert value(await followed.until(follower)) == "1"
        assert followed.vitals.source_error == ""
        followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("2")})
        assert value(await followed.until(follower)) == "2"


async def test_what_a_refused_revision_broke_or_lost_keeps_its_last_good_content(followed: Followed) -> None:
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        await followed.until(follower)
        followed.put({"README.md": ""}, gone=("fleet.yaml", "app.yaml"))
        while not followed.vitals.source_error:
            await followed.next(follower)
        followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": BROKEN})
        fleet = await followed.until(follower)
        assert value(fleet) == "1"
        assert not fleet.is_complete


async def test_a_restart_knows_the_last_good_content_of_a_broken_file(followed: Followed) -> None:
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1"), "other.yaml": ""})
    async with followed.follower() as follower:
        await followed.until(follower)
        for text in ("# one", "# two"):
            followed.put({"app.yaml": BROKEN, "other.yaml": text})
            assert value(await followed.until(follower)) == "1"
    async with followed.follower() as follower:
        assert value(await followed.until(follower)) == "1"


async def test_a_copy_that_was_damaged_counts_as_none(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "directory")
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        await followed.until(follower)
    (copy,) = (tmp_path / "state/directories").iterdir()
    assert copy.stat().st_mode & 0o777 == 0o600
    copy.write_bytes(copy.read_bytes()[:-1])
    followed.put({"fleet.yaml": fleet_yaml("shopp")})
    async with followed.follower() as follower:
        assert await follower.read() is None
        assert not followed.vitals.is_ready
        assert "names fleet 'shopp'" in followed.vitals.source_error


@pytest.mark.parametrize("text", ["", "\n \n", "# Copyright\n", "---\n", "metadata:\n  n", "metadata:\n  name: app\n"])
async def test_a_file_of_a_directory_that_is_emptied_keeps_its_last_good_content(tmp_path: Path, text: str) -> None:
    followed = Followed(tmp_path, "directory")
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1"), "new.yaml": ""})
    async with followed.follower() as follower:
        fleet = await followed.until(follower)
        assert fleet.is_complete, "what never said anything may be empty"
        followed.put({"app.yaml": text})
        fleet = await followed.until(follower)
        assert value(fleet) == "1"
        assert not fleet.is_complete
        assert "file-emptied" in {problem.code for problem in fleet.problems}
    async with followed.follower() as follower:
        fleet = await followed.until(follower)
        assert value(fleet) == "1", "a restart knows it, too"
        assert not fleet.is_complete
        followed.put({}, gone=("app.yaml",))
        fleet = await followed.until(follower)
        assert (dict(fleet.templates), fleet.is_complete) == ({}, True), "a file that is removed is removed"
        followed.put({"app.yaml": text})
        fleet = await followed.until(follower)
        assert fleet.is_complete, "what was removed had no documents any more"


async def test_a_restart_that_cannot_tell_what_an_emptied_file_said_freezes_everything(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "directory")
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        await followed.until(follower)
    (copy,) = (tmp_path / "state/directories").iterdir()
    copy.unlink()
    followed.put({"app.yaml": ""})
    async with followed.follower() as follower:
        fleet = await followed.until(follower)
        assert any(reach.everything for reach in fleet.frozen)


@pytest.mark.parametrize("kind", ["url", "work tree"])
async def test_a_commit_that_empties_a_file_means_it(tmp_path: Path, kind: str) -> None:
    followed = Followed(tmp_path, kind)
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        await followed.until(follower)
        followed.put({"app.yaml": ""})
        fleet = await followed.until(follower)
        assert (dict(fleet.templates), fleet.is_complete) == ({}, True)


async def test_a_restart_without_the_directory_goes_on_with_its_copy(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "directory")
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        await followed.until(follower)
    followed.work.rename(tmp_path / "away")
    async with followed.follower() as follower:
        assert value(await follower.read()) == "1"
        assert str(followed.work) in followed.vitals.source_error
        (tmp_path / "away").rename(followed.work)
        followed.put({"app.yaml": app_yaml("2")})
        assert value(await followed.until(follower)) == "2"
        assert followed.vitals.source_error == ""


async def test_the_copy_of_a_directory_holds_no_secret_and_a_restart_freezes_it(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "directory")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "demo"}}
    with_value = yaml.safe_dump({**secret, "stringData": {"password": "hunter2-hunter2"}})
    followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1"), "secret.yaml": with_value})
    async with followed.follower() as follower:
        fleet = await follower.read()
        assert fleet is not None and Identity("", "Secret", "demo", "s") in fleet.templates
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert b"shop" in kept and b"hunter2" not in kept
    followed.put({"fleet.yaml": fleet_yaml("mistyped")})
    async with followed.follower() as follower:
        fleet = await follower.read()
        assert fleet is not None and value(fleet) == "1"
        assert Identity("", "Secret", "demo", "s") in {i for reach in fleet.frozen for i in reach.identities}
        assert "secret-not-kept" in {problem.code for problem in fleet.problems}
        followed.put({"fleet.yaml": fleet_yaml()})
        fleet = await followed.until(follower)
        assert Identity("", "Secret", "demo", "s") in fleet.templates and not fleet.frozen


async def test_an_older_revision_is_read_without_coming_into_force(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "url")
    old = followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        assert value(await followed.until(follower)) == "1"
        followed.put({"app.yaml": app_yaml("2")})
        assert value(await followed.until(follower)) == "2"
        fleet = await follower.at(old)
        assert fleet is not None
        assert (value(fleet), fleet.revision) == ("1", old)
        assert await follower.at("f" * 40) is None
        assert await follower.at("HEAD") is None
        assert await follower.read() is None
        followed.put({"app.yaml": BROKEN})
        assert value(await followed.until(follower)) == "2", "the last good content is that which was in force"


async def test_a_fault_with_an_older_revision_is_its_own_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = Followed(tmp_path, "work tree")
    old = followed.put({"fleet.yaml": fleet_yaml(), "app.yaml": app_yaml("1")})
    async with followed.follower() as follower:
        await followed.until(follower)

        def fail(*_: object) -> None:
            raise InterpreterFault("hunter2")

        with monkeypatch.context() as patched:
            patched.setattr(StoreInForce, "fleet_at", fail)
            for _ in range(3):
                assert await follower.at(old) is None
        assert len([one for one in caplog.records if "older revision" in one.message]) == 1
        assert followed.vitals.source_error == ""
        followed.put({"app.yaml": app_yaml("2")})
        assert value(await followed.until(follower)) == "2"
        assert value(await follower.at(old)) == "1"
