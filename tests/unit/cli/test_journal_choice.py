"""The journal of a command that is given none, and the message when it is not clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.cluster_access import journal_of_folder
from reconciler.errors import ConfigurationError, JournalError
from tests.fakes.journals import made
from tests.unit.cli.command_line import FLEET


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "fleet-reconciler"


def test_the_only_journal_is_the_one_that_is_meant(environ: dict[str, str], folder: Path, tmp_path: Path) -> None:
    own = made(folder / "shop/journal.db", "shop")
    assert journal_of_folder(tmp_path / "anywhere", environ) == own


def test_the_folder_that_one_is_in_says_which_fleet_is_meant(
    environ: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    store = tmp_path / "stores/shop"
    (store / "apps").mkdir(parents=True)
    (store / "fleet.yaml").write_text(FLEET)
    bakery = made(folder / "bakery/journal.db", "bakery", str(tmp_path / "stores/bakery"))
    assert journal_of_folder(store / "apps", environ) == folder / "shop/journal.db", "not that of the only other fleet"
    (tmp_path / "stores/bakery/web").mkdir(parents=True)
    assert journal_of_folder(tmp_path / "stores/bakery/web", environ) == bakery


def test_without_a_hint_nothing_is_guessed(environ: dict[str, str], folder: Path, tmp_path: Path) -> None:
    made(folder / "journal.db", "shop")
    made(folder / "bakery/journal.db", "bakery")
    with pytest.raises(ConfigurationError, match="bakery, shop") as refused:
        journal_of_folder(tmp_path, environ)
    assert "--store" in str(refused.value)


def test_before_the_first_apply_it_is_said_that_there_is_none(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="reconciler apply"):
        journal_of_folder(tmp_path, environ)
