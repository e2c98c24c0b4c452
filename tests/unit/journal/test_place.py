"""The place of a fleet's journal when nobody names it: one for each fleet, and an older one of all fleets is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import JournalError
from reconciler.journal import journal_of
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
