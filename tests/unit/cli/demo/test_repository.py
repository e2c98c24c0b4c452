from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from reconciler.cli.demo.world import DemoRepository, example_store
from reconciler.store.git.snapshot import GitStore

FILE = "apps/shop/web.yaml"


def test_the_same_store_gives_the_same_commit_ids(tmp_path: Path) -> None:
    ids = set()
    for name in ("a", "b"):
        repository = DemoRepository(tmp_path / name)
        ids.add(repository.propose("topic", FILE, "a: b\n", "Say less", author="Mei"))
    assert len(ids) == 1


def test_the_first_commit_holds_the_example_store(tmp_path: Path) -> None:
    repository = DemoRepository(tmp_path / "fleet")
    store = GitStore(repository.folder)
    names = {file.path for file in store.snapshot(store.resolve("main"), "").files}
    wanted = {path.relative_to(example_store()).as_posix() for path in example_store().rglob("*.yaml")}
    assert names >= wanted
    assert FILE in wanted


def test_main_moves_only_when_a_branch_is_merged(tmp_path: Path) -> None:
    repository = DemoRepository(tmp_path / "fleet")
    before = repository.revision
    proposed = repository.propose("topic", FILE, "a: b\n", "Say less", author="Mei")
    assert repository.revision == before
    assert "+a: b\n" in repository.patch("topic")
    assert "1 file changed" in repository.stat("topic")
    repository.merge("topic")
    assert repository.revision == proposed == GitStore(repository.folder).resolve("HEAD")
    assert repository.read(FILE) == "a: b\n"


def test_a_commit_names_its_author_and_subject(tmp_path: Path) -> None:
    repository = DemoRepository(tmp_path / "fleet")
    info = GitStore(repository.folder).words(repository.propose("topic", FILE, "a: b\n", "Say less", author="Mei"))
    assert (info.author, info.subject) == ("Mei", "Say less")


def test_the_wheel_brings_the_example_store_along(tmp_path: Path) -> None:
    root = Path(__file__).parents[4]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=root, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    wanted = {path.relative_to(example_store()).as_posix() for path in example_store().rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition("share/fleet-reconciler/fleet-repo/")[2] for name in archive.namelist()}
    assert names - {""} == wanted
