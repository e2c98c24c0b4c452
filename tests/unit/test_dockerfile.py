"""The image's steps without a container engine: what the Dockerfile says, and that its commands work."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.present import present

ROOT = Path(__file__).parents[2]
QUIET = ("--quiet", "--disable-pip-version-check", "--no-compile")
KNOWN = {"ARG", "FROM", "WORKDIR", "ENV", "RUN", "COPY", "LABEL", "USER", "VOLUME", "STOPSIGNAL", "ENTRYPOINT", "CMD"}


def _instructions() -> list[tuple[str, str]]:
    text = re.sub(r"(?m)^#.*\n", "", (ROOT / "Dockerfile").read_text()).replace("\\\n", " ")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1].strip()) for line in text.splitlines() if line.strip()]


def _stages() -> list[list[tuple[str, str]]]:
    stages: list[list[tuple[str, str]]] = []
    for name, value in _instructions():
        if name == "FROM":
            stages.append([])
        if stages:
            stages[-1].append((name, value))
    return stages


def test_every_instruction_is_one_of_docker() -> None:
    assert {name for name, _ in _instructions()} <= KNOWN
    assert [name for name, _ in _instructions()][:3] == ["ARG", "ARG", "FROM"]


def test_the_base_image_has_a_version_that_the_project_supports() -> None:
    assert int(present(re.fullmatch(r"BASE=python:3\.(\d+)-slim", _instructions()[0][1]))[1]) >= 11


def test_one_argument_names_the_base_of_every_stage_so_that_a_digest_can_be_pinned() -> None:
    """An argument declared before the first FROM is known in FROM alone, and a second ARG would hide it."""
    images = [value.split(" AS ")[0] for name, value in _instructions() if name == "FROM"]
    assert images.count("${BASE}") == 2, "a virtual environment works with the Python that made it"
    assert {image.split(" ")[-1] for image in images} == {"${BASE}", "${GO}"}
    assert [value.split("=")[0] for name, value in _instructions() if name == "ARG"] == [
        *("BASE", "GO", "TARGETOS TARGETARCH"),
    ]


def test_sops_is_the_one_that_tests_use_and_pinned_by_its_sum() -> None:
    (stage,) = (found for found in _stages() if found[0][1].endswith(" AS sops"))
    source = r"SOPS=github.com/getsops/sops/v3@v(\S+) SOPS_SUM=(h1:[A-Za-z0-9+/]{43}=)"
    pinned = present(re.fullmatch(source, dict(stage)["ENV"]))
    assert (ROOT / "tests/fakes/sealed_documents.py").read_text().count(f'"version": "{pinned[1]}"') == 1
    build = dict(stage)["RUN"]
    assert "$SOPS_SUM" in build
    assert "-mod=readonly" in build
    assert ("COPY", "--from=sops /sops /usr/local/bin/sops") in _stages()[-1]


def test_the_how_to_pins_the_base_by_its_digest() -> None:
    """The command that the page shows is the one that the file understands."""
    shown = (ROOT / "docs/how-to/container.md").read_text()
    given = present(re.search(r"--build-arg (BASE)=(\S+)@sha256:", shown))
    assert f"{given[1]}={given[2]}" == _instructions()[0][1]


def test_the_image_is_not_root_and_starts_the_program() -> None:
    final = dict(_stages()[-1])
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", final["USER"])
    assert final["ENTRYPOINT"] == '["reconciler"]'
    names = [name for name, _ in _stages()[-1]]
    assert names.index("RUN") < names.index("USER"), "folders are made by root, and nothing runs as root afterwards"
    assert final["VOLUME"] == '["/var/lib/fleet-reconciler"]'


def test_nothing_is_fetched_but_locked_packages() -> None:
    commands = [value for name, value in _instructions() if name == "RUN"]
    assert not [command for command in commands if re.search(r"curl|wget|git clone|ADD ", command)]
    (distribution,) = (command for command in commands if "apt-get" in command)
    assert re.findall(r"install --yes --no-install-recommends ([^&]+) &&", distribution) == ["git openssh-client"]
    installs = [command for command in commands if "pip install" in command]
    assert all("--require-hashes" in command or "--no-deps --no-index" in command for command in installs)
    assert len(installs) == 3
    assert "--no-build-isolation" in next(command for command in commands if "pip wheel" in command)


def test_no_secret_is_built_in() -> None:
    assert not [
        value for name, value in _instructions() if name in {"ARG", "ENV"} and re.search("TOKEN|KEY|PASS", value)
    ]


def test_all_that_is_copied_is_there_and_passes_the_ignore_file() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    allowed = {line[1:] for line in lines if line.startswith("!")}
    for name, value in _stages()[1]:
        if name == "COPY":
            for source in value.split(" ")[:-1]:
                assert (ROOT / source).exists(), source
                assert source in allowed, source
    for secret in (".env", "kubeconfig", ".git", "journal.db", "tests"):
        assert not [pattern for pattern in allowed if fnmatch.fnmatch(secret, pattern)], secret


@pytest.mark.timeout(600)
def test_its_steps_give_a_program_that_runs(tmp_path: Path) -> None:
    """The wheel is built from what the ignore file lets through, installed, and started.

    `make pythons` starts the program with the locked packages alone.
    """
    source = tmp_path / "src"
    source.mkdir()
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        name = line.removeprefix("!")
        if line.startswith("!") and (ROOT / name).exists():
            subprocess.run(["cp", "-r", str(ROOT / name), str(source / name)], check=True)
    wheels = tmp_path / "wheels"
    _run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            str(wheels),
            str(source),
        ]
    )
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert not [name for name in names if name.startswith(("tests", "docs", ".")) or "__pycache__" in name]
    assert [name for name in names if name.endswith("documents/builtin.json")], "data files belong to the wheel"
    assert [name for name in names if name.endswith("fleet-repo/fleet.yaml")], "the demo begins with the example store"
    assert [name for name in names if name.endswith("licenses/LICENSE")]
    folder = tmp_path / "opt"
    _run(
        [sys.executable, "-m", "pip", "install", *QUIET, "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    )
    own = {**os.environ, "PYTHONPATH": str(folder)}
    for program in ("reconciler", "kubectl-amc", "kubectl-fleet"):
        shown = _run([str(folder / "bin" / program), "--version"], cwd=tmp_path, env=own)
        assert re.search(r"version \d+\.\d+", shown), shown
    where = _run([sys.executable, "-c", "import reconciler; print(reconciler.__file__)"], cwd=tmp_path, env=own)
    assert where.startswith(str(folder)), "the program that ran is the one that was installed"
    store = tmp_path / "store"
    (store).mkdir()
    (store / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n")
    _run([str(folder / "bin/reconciler"), "render", "--dir", str(store)], cwd=tmp_path, env=own)


def _run(command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    result = subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd, env=env, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
