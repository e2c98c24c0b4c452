"""The release: the wheel and the source archive hold what is needed, and nothing else that lies in the folder."""

from __future__ import annotations

import email
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STRAY = ("kubeconfig", ".env", "notes.txt", ".venv/pyvenv.cfg", "reconciler/__pycache__/x.pyc", "tests/journal.db")
"""Files that may lie in a folder in which somebody works."""


def build(target: str, source: Path, into: Path) -> Path:
    """The archive that the build tool makes from the folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    done = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = into.iterdir()
    return archive


@pytest.fixture(scope="module")
def source_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def in_source(archive: Path) -> set[str]:
    """The files of a source archive, without its top folder."""
    with tarfile.open(archive) as held:
        return {member.name.partition("/")[2] for member in held.getmembers() if member.isfile()}


def in_wheel(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as held:
        return set(held.namelist())


def tracked(*options: str) -> set[str]:
    """The repository's files that are there. `options`: which ones, as `git ls-files` takes them."""
    listed = subprocess.run(["git", "ls-files", "-z", *options], cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone: there is no list of files to compare with")
def test_the_source_archive_has_all_that_the_repository_has_and_nothing_more(source_archive: Path) -> None:
    found = in_source(source_archive) - {"PKG-INFO"}
    assert not tracked() - found
    assert not found - tracked("--cached", "--others", "--exclude-standard")


def test_what_else_lies_in_the_folder_gets_into_neither_archive(source_archive: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    subprocess.run(["tar", "-xf", source_archive, "-C", tmp_path / "folder"], check=True)
    (folder,) = (tmp_path / "folder").iterdir()
    before = in_source(source_archive)
    for name in STRAY:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("secret")
    assert in_source(build("sdist", folder, tmp_path / "sdist")) == before
    assert not [name for name in in_wheel(build("wheel", folder, tmp_path / "wheel")) if name.endswith(STRAY)]


def test_a_wheel_from_the_source_archive_is_the_one_from_the_repository(
    source_archive: Path, wheel: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    subprocess.run(["tar", "-xf", source_archive, "-C", tmp_path / "folder"], check=True)
    (folder,) = (tmp_path / "folder").iterdir()
    assert in_wheel(build("wheel", folder, tmp_path / "wheel")) == in_wheel(wheel)


def test_the_wheel_has_the_package_with_its_data_and_nothing_of_the_tests(wheel: Path) -> None:
    found = in_wheel(wheel)
    own = {path.relative_to(ROOT).as_posix() for path in (ROOT / "reconciler").rglob("*.py")}
    assert not own - found
    assert len([name for name in found if name.endswith(".sql")]) == len([*(ROOT / "reconciler").rglob("*.sql")]) > 0
    assert [name for name in found if name.endswith("documents/builtin.json")]
    beside = (
        path for folder in ("templates", "static") for path in (ROOT / "reconciler/server/pages" / folder).iterdir()
    )
    pages = [path.relative_to(ROOT).as_posix() for path in beside]
    assert {Path(name).suffix for name in pages} >= {".html", ".css", ".js", ".svg"}
    assert not set(pages) - found
    assert [name for name in found if name.endswith("share/fleet-reconciler/fleet-repo/fleet.yaml")]
    tops = {name.split("/")[0].removesuffix(".data").removesuffix(".dist-info") for name in found}
    assert {top.rpartition("-")[0] or top for top in tops} == {"reconciler", "fleet_reconciler"}


def test_the_wheel_makes_both_commands(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as held:
        (name,) = [name for name in held.namelist() if name.endswith("entry_points.txt")]
        lines = held.read(name).decode().split("\n")
    for command in ("reconciler", "kubectl-amc", "kubectl-fleet"):
        assert f"{command} = reconciler.cli.process:run_process" in lines


def test_both_archives_carry_the_license_that_is_declared(source_archive: Path, wheel: Path) -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "LICENSE" in in_source(source_archive)
    with zipfile.ZipFile(wheel) as held:
        (metadata,) = [name for name in held.namelist() if name.endswith(".dist-info/METADATA")]
        said = email.message_from_bytes(held.read(metadata))
        carried = held.read(metadata.replace("METADATA", "licenses/LICENSE")).decode()
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (declared["license"], declared["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert said["License-Expression"] == "Apache-2.0"
    assert said.get_all("License-File") == ["LICENSE"]
    assert carried == text


def test_make_wheel_gives_what_the_pages_install_and_the_same_commit_the_same_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    ready.touch()
    settings = [f"READY={ready}", f"BIN={Path(sys.executable).parent}", f"DIST={tmp_path / 'dist'}"]
    subprocess.run(["make", *settings, "wheel"], cwd=ROOT, check=True, capture_output=True, timeout=120)
    found = sorted(path.name for path in (tmp_path / "dist").iterdir())
    assert [name.partition("-")[0] for name in found] == [
        "action.yml",
        "comment",
        "fleet_reconciler",
        "gitlab.yml",
        "requirements.lock",
    ]
    assert (tmp_path / "dist" / wheel.name).read_bytes() == wheel.read_bytes()
