"""The place of a fleet's journal when nobody names it: one for each fleet, and an older one of all fleets is found.

One writer at a time; what a dead process left behind is no lock.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import JournalCorrupt, JournalError, JournalLocked
from reconciler.journal import Journal, holder, journal_of
from reconciler.journal.journal_lock import JournalLock, LockHolder, file_system_of, lock_path, whose
from tests.fakes.journals import made


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "fleet-reconciler"


def test_each_fleet_has_a_journal_of_its_own(environ: dict[str, str], folder: Path) -> None:
    assert journal_of("shop", (), environ) == folder / "shop/journal.db"
    assert journal_of("bakery", (), environ) == folder / "bakery/journal.db"
    assert journal_of("shop", (), {"HOME": "/home/a"}) == Path("/home/a/.local/state/fleet-reconciler/shop/journal.db")


def test_a_service_has_one_fleet_in_its_folder(environ: dict[str, str]) -> None:
    assert journal_of("shop", (), {**environ, "STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}) == Path(
        "/var/lib/a/journal.db"
    )


def test_the_journal_of_an_earlier_version_is_found_by_its_fleet_alone(environ: dict[str, str], folder: Path) -> None:
    old = made(folder / "journal.db", "shop")
    assert journal_of("shop", (), environ) == old
    assert journal_of("bakery", (), environ) == folder / "bakery/journal.db"
    own = made(folder / "shop/journal.db", "shop")
    assert journal_of("shop", (), environ) == own


def test_a_renamed_fleet_goes_on_with_the_journal_of_its_former_name(environ: dict[str, str], folder: Path) -> None:
    former = made(folder / "old-shop/journal.db", "old-shop")
    assert journal_of("shop", ("old-shop",), environ) == former
    assert journal_of("shop", (), environ) == folder / "shop/journal.db"
    earlier = made(folder / "journal.db", "first-shop")
    assert journal_of("new", ("first-shop",), environ) == earlier


def test_a_journal_of_an_earlier_version_that_cannot_be_read_is_nobodys_by_default(
    environ: dict[str, str], folder: Path
) -> None:
    folder.mkdir()
    (folder / "journal.db").write_bytes(b"not a journal, and longer than a header is, to be sure of that " * 40)
    with pytest.raises(JournalError, match="rebuild"):
        journal_of("shop", (), environ)


def test_no_state_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="--journal"):
        journal_of("shop", (), {})


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /srv rw shared:2 - nfs4 server:/export rw
31 30 0:41 / /srv/fast rw - xfs /dev/vdb rw
32 22 0:42 / /mnt/with\\040space rw - cifs //server/share rw
nonsense
"""


def test_a_second_writer_is_refused_with_the_holder_s_name(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path):
        with pytest.raises(JournalLocked, match=f"process {os.getpid()} on {socket.gethostname()}"):
            Journal.open(path)
        assert holder(path) == LockHolder(os.getpid(), socket.gethostname())
    assert holder(path) is None
    Journal.open(path).close()


def test_a_child_that_is_only_forked_keeps_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path):
        opened = {int(each.name): os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()}
        (descriptor,) = (number for number, file in opened.items() if file == str(lock_path(path)))
        of_the_child = os.dup(descriptor)
    Journal.open(path).close()
    os.close(of_the_child)


def test_a_full_disk_takes_the_note_and_not_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "journal.db"
    monkeypatch.setattr("reconciler.journal.journal_lock.os.pwrite", full)
    with Journal.open(path):
        assert str(holder(path)) == "another process"
        with pytest.raises(JournalLocked):
            Journal.open(path)


def test_a_disk_that_became_read_only_keeps_the_note_and_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    path = tmp_path / "journal.db"
    journal = Journal.open(path)
    with monkeypatch.context() as patch:
        patch.setattr("reconciler.journal.journal_lock.os.ftruncate", read_only)
        journal.close()
    assert holder(path) is None
    Journal.open(path).close()


def test_a_note_without_a_process_is_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    lock_path(path).write_text('{"pid": 1, "host": "elsewhere"}')
    assert holder(path) is None
    with Journal.open(path):
        found = holder(path)
    assert found is not None
    assert found.pid == os.getpid()


def test_a_holder_without_a_note_is_still_a_holder(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path):
        lock_path(path).write_text("{")
        assert str(holder(path)) == "another process"
        with pytest.raises(JournalLocked, match="another process"):
            Journal.open(path)


def test_a_journal_that_does_not_open_holds_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(b"x" * 5000)
    with pytest.raises(JournalCorrupt):
        Journal.open(path)
    assert holder(path) is None


def test_nobody_holds_a_journal_that_is_not_there(tmp_path: Path) -> None:
    assert holder(tmp_path / "journal.db") is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/reconciler/journal.db", "ext4"),
        ("/srv/journal.db", "nfs4"),
        ("/srvx/journal.db", "ext4"),
        ("/srv/fast/journal.db", "xfs"),
        ("/mnt/with space/journal.db", "cifs"),
    ],
)
def test_the_deepest_mount_point_tells_the_file_system(path: str, kind: str) -> None:
    assert file_system_of(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("blocked", ["", ".lock", "-shm", "folder"])
def test_a_journal_that_may_not_be_used_is_told_with_the_file_its_owner_and_what_to_do(
    folder: Path, blocked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(folder / "journal.db", "shop")
    lock_path(path).touch()
    path.with_name("journal.db-shm").touch()
    file = folder if blocked == "folder" else path.with_name(f"journal.db{blocked}")
    monkeypatch.setattr(os, "access", lambda one, rights, **_: Path(one) != file or rights == os.F_OK)
    told = rf"; user {os.geteuid()} may not use {file} of {file.owner()}: fix its mode"
    monkeypatch.setattr(os, "open", refusing(os.open))
    with pytest.raises(JournalError, match=f"journal.db: Permission denied{told}"):
        Journal.open(path, lock=JournalLock.__new__(JournalLock))
    for use in (JournalLock, holder):
        with pytest.raises(JournalError, match=f"journal.db.lock: Permission denied{told}"):
            use(path)


def test_of_a_file_of_another_user_both_ways_out_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(folder / "journal.db", "shop")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    monkeypatch.setattr(os, "access", lambda one, rights, **_: Path(one) != path or rights == os.F_OK)
    assert whose(path).endswith(f"of {path.owner()}: work as {path.owner()}, or fix its owner or mode")


def refusing(opened: Callable[..., int]) -> Callable[..., int]:
    def refuse(path: str | Path, *args: Any, **options: Any) -> int:
        if ".db" in str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *args, **options)

    return refuse
