"""The parts of a release: made from the tree alone, complete, and each what its tool reads."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import click
import pytest

from reconciler.cli.main import all_commands, cli
from reconciler.server import api
from tests.yaml_text import load_yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of it, with a text in place of the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    (folder / "fleet_reconciler-0.0.0.tar.gz").write_text("source")
    subprocess.run([sys.executable, "scripts/make_release.py", str(folder)], cwd=ROOT, check=True)
    return folder


def test_every_command_and_option_has_its_manual(dist: Path) -> None:
    commands = {"reconciler": cast("click.Command", cli), **{f"reconciler-{k}": v for k, v in all_commands().items()}}
    assert {path.stem for path in (dist / "man").iterdir()} == set(commands)
    for name, command in commands.items():
        text = (dist / "man" / f"{name}.1").read_text().replace("\\-", "-")
        shown = [
            parameter for parameter in command.params if isinstance(parameter, click.Option) and not parameter.hidden
        ]
        assert [option.opts for option in shown if option.opts[-1] not in text] == [], name


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff renders manuals")
def test_manuals_are_rendered_without_a_warning(dist: Path) -> None:
    pages = sorted(map(str, (dist / "man").iterdir()))
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", *pages], capture_output=True, check=True)
    assert done.stderr == b""
    assert b"INCOMPLETE" in done.stdout or b"FORMAT=FILE" in re.sub(rb".\x08", b"", done.stdout)


def test_the_description_of_the_api_has_its_paths_and_all_that_they_refer_to(dist: Path) -> None:
    described = json.loads((dist / "openapi.json").read_text())
    unused: Any = type("", (), {"__getattr__": lambda _, name: None})()
    served = {route.pattern for route in api.Api(unused, unused, unused, unused).routes()}
    assert set(described["paths"]) == served - {"/status.json"}  # another address of `/api/v1/status`
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(described)))
    assert named == set(described["components"]["schemas"])
    fields = described["components"]["schemas"]["FleetView"]["properties"]
    assert all("_" not in name for name in fields)


def test_schemas_stand_at_the_address_that_they_name(dist: Path) -> None:
    folder = dist / "schemas/v1alpha1"
    (entry,) = json.loads((folder / "catalog.json").read_text())["schemas"]
    found = {path.name: json.loads(path.read_text()) for path in folder.glob("*.schema.json")}
    assert entry["url"].rpartition("/")[2] == "store.schema.json"
    assert {schema["$id"].partition("/schemas/v1alpha1/")[2] for schema in found.values()} == set(found)


def test_packages_name_what_there_is(dist: Path) -> None:
    packaging = dist / "packaging"
    assert not [path for path in packaging.iterdir() if re.search(r"@\w+@", path.read_text())]
    plugin = dist / f"kubectl-fleet-{_version()}.tar.gz"
    (platform,) = load_yaml((packaging / "krew.yaml").read_text())["spec"]["platforms"]
    assert platform["sha256"] == hashlib.sha256(plugin.read_bytes()).hexdigest()
    assert platform["uri"].endswith(f"/{plugin.name}")
    assert hashlib.sha256(b"source").hexdigest() in (packaging / "fleet-reconciler.rb").read_text()
    debian = load_yaml((packaging / "nfpm.yaml").read_text())
    for source in (*(entry.get("src", "/opt/") for entry in debian["contents"]), *debian["scripts"].values()):
        path = source.removeprefix("dist/")
        assert path.startswith("/opt/") or [*ROOT.glob(path), *dist.glob(path)], source
    assert "${PYTHON}" in debian["depends"], "the environment goes with the Python that made it"
    assert len(debian["description"].splitlines()[0]) <= 80


@pytest.mark.parametrize(("script", "words", "expected"), [
    ("postinst", ["configure"], ["daemon-reload"]),
    ("postinst", ["configure", "0.1.0"], ["daemon-reload", "try-restart reconciler.service"]),
    ("prerm", ["upgrade", "0.3.0"], []),
    ("prerm", ["remove"], ["disable --now reconciler.service"]),
])  # fmt: skip
def test_an_update_starts_the_service_anew_and_a_removal_stops_it(
    dist: Path, tmp_path: Path, script: str, words: list[str], expected: list[str]
) -> None:
    (tmp_path / "systemctl").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "systemctl").chmod(0o755)
    text = (dist / f"packaging/{script}.sh").read_text()
    for started, commands in ((tmp_path, expected), (tmp_path / "none", [])):
        here = text.replace("/run/systemd/system", str(started))
        done = subprocess.run(
            ["/bin/sh", "-c", here, script, *words],
            env={"PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines() == commands


def test_the_plugin_starts_the_program_or_says_how_to_get_it(dist: Path, tmp_path: Path) -> None:
    (archive,) = dist.glob("kubectl-fleet-*.tar.gz")
    subprocess.run(["tar", "-xf", archive, "-C", tmp_path], check=True)
    plugin = tmp_path / "kubectl-fleet"
    (tmp_path / "bin").mkdir()
    started = tmp_path / "bin/reconciler"
    said = subprocess.run(
        [plugin, "status"], env={"PATH": str(started.parent)}, capture_output=True, text=True, check=False
    )
    assert (said.returncode, "reconciler is not installed" in said.stderr) == (1, True)
    started.write_text('#!/bin/sh\necho "$@"\n')
    started.chmod(0o755)
    said = subprocess.run(
        [plugin, "get", "a b"], env={"PATH": str(started.parent)}, capture_output=True, text=True, check=True
    )
    assert said.stdout == "get a b\n"


def test_the_same_commit_gives_the_same_parts(dist: Path, tmp_path: Path) -> None:
    (tmp_path / "fleet_reconciler-0.0.0.tar.gz").write_text("source")
    command = [sys.executable, "scripts/make_release.py", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    assert dict(_contents(tmp_path)) == dict(_contents(dist))


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    return ((str(path.relative_to(folder)), path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def _version() -> str:
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_links_of_the_site_lead_to_a_page_or_to_a_file_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    with_links = importlib.import_module("site_links").with_links
    home = f"https://fleet-reconciler.example.com/blob/v{_version()}/"
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = with_links(page.read_text(), page.relative_to(ROOT / "docs").as_posix())
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, is_outside = target.partition("#")[0], target.startswith(home)
            place = ROOT / path.removeprefix(home) if is_outside else page.parent / path
            if is_outside or "://" not in target:
                assert place.exists(), (page, target)
                assert is_outside or place.resolve().is_relative_to(ROOT / "docs"), (page, target)


def test_hooks_for_stores_are_commands() -> None:
    for hook in load_yaml((ROOT / ".pre-commit-hooks.yaml").read_text()):
        program, name, *options = shlex.split(hook["entry"])
        assert program == "reconciler"
        all_commands()[name].make_context(name, options)
        assert re.search(hook["files"], "apps/web.yaml")


def test_what_publishes_is_given_credentials_alone_and_stops_at_an_example() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    steps = load_yaml(text)["jobs"]["publish"]["steps"]
    assert steps[0]["with"]["persist-credentials"] is False
    assert re.fullmatch(r"actions/checkout@[0-9a-f]{40}", steps[0]["uses"])
    assert [step for step in steps if "uses" in step] == steps[:1]
    assert "make release" in steps[1]["run"]
    assert "example" in steps[1]["run"]
    assert "run: |" in text and "${{ secrets" not in "".join(step.get("run", "") for step in steps)
