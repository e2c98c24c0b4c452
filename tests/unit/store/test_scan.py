from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.errors import StoreError
from reconciler.store.scan import scan
from tests.fakes.store_trees import write_files

AN_HOUR_AGO = 1_700_000_000


def _at_rest(root: Path) -> None:
    """Make every file old enough for its stamp to be trusted."""
    for folder, _, names in os.walk(root):
        for name in names:
            os.utime(Path(folder) / name, (AN_HOUR_AGO, AN_HOUR_AGO), follow_symlinks=False)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {
        "a.yaml": "1", "sub/b.yaml": "2", ".hidden/c.yaml": "3", "link.yaml": "-> .hidden/c.yaml", "notes.txt": "x",
        ".reconcilerignore": "z.yaml\n",
    }  # fmt: skip
    write_files(tmp_path / "store", files)
    _at_rest(tmp_path / "store")
    return tmp_path / "store"


def test_sees_no_change_where_there_is_none(store: Path) -> None:
    assert scan(store).stamps == scan(store).stamps


def _replace(store: Path) -> None:
    (store / "new").write_text("9")
    os.utime(store / "new", (AN_HOUR_AGO, AN_HOUR_AGO))
    (store / "new").replace(store / "a.yaml")


def _edit_in_the_past(store: Path) -> None:
    (store / "a.yaml").write_text("3")
    _at_rest(store)


def _lead_elsewhere(store: Path) -> None:
    (store / "link.yaml").unlink()
    (store / "link.yaml").symlink_to("x")


def _swap_root(store: Path) -> None:
    store.rename(store.with_name("old"))
    write_files(store, {"a.yaml": "1"})


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda store: (store / "a.yaml").write_text("22"),
    "content with the old time": _edit_in_the_past,
    "an atomic replacement of equal size and time": _replace,
    "a new file": lambda store: (store / "sub/new.yaml").write_text("1"),
    "a new folder": lambda store: (store / "new").mkdir(),
    "a file that is gone": lambda store: (store / "sub/b.yaml").unlink(),
    "a new name": lambda store: (store / "a.yaml").rename(store / "c.yaml"),
    "the target of a link": lambda store: (store / ".hidden/c.yaml").write_text("33"),
    "a link that leads elsewhere": _lead_elsewhere,
    "an ignore file": lambda store: (store / ".reconcilerignore").write_text(""),
    "another root": _swap_root,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_sees_changes(store: Path, change: Callable[[Path], object]) -> None:
    before = scan(store)
    change(store)
    assert before.stamps != scan(store).stamps


def test_does_not_mind_what_is_not_of_the_store(store: Path) -> None:
    before = scan(store)
    (store / "notes.txt").write_text("longer")
    write_files(store, {".hidden/new.yaml": "1", "log": "x"})
    assert before.stamps == scan(store).stamps


def test_never_trusts_a_stamp_that_is_too_young(store: Path) -> None:
    (store / "a.yaml").write_text("5")
    assert scan(store).racy


def test_survives_broken_and_circular_links(store: Path) -> None:
    write_files(store, {"broken.yaml": "-> nobody", "circle.yaml": "-> circle.yaml"})
    assert len(scan(store).stamps["broken.yaml"]) == 1


def test_fails_for_a_root_that_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        scan(tmp_path / "nobody")
