"""Stores that would have a render fetch, run, or read what is not theirs: each is refused by name."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli.main import cli
from reconciler.helm.files import MAX_FILES
from reconciler.helm.sandbox import USUAL, render_twice
from tests.hydration import copied_store
from tests.hydration.test_hydrate import hydrate, one_render, run

pytestmark = pytest.mark.usefixtures("tools_on_path")
BASE = "apps/web/base/kustomization.yaml"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return copied_store(tmp_path)


def add(store: Path, path: str, text: str) -> None:
    target = store / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(target.read_text() + text if target.exists() else text)


def link_in_chart(store: Path) -> None:
    (store / "charts/web/templates/passwd.yaml").symlink_to("/etc/passwd")


def link_for_values(store: Path) -> None:
    (store / "values/web.yaml").unlink()
    (store / "values/web.yaml").symlink_to("/etc/hostname")


def link_for_folder(store: Path) -> None:
    (store / "charts/web").rename(store / "charts/real")
    (store / "charts/web").symlink_to("real")


def archive(store: Path, fill: Callable[[tarfile.TarFile], None], behind: bytes = b"") -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        fill(tar)
    (store / "vendor").mkdir()
    (store / "vendor/web.tgz").write_bytes(gzip.compress(made.getvalue()) + behind)
    document = store / "renders/web.yaml"
    document.write_text(document.read_text().replace("charts/web", "vendor/web.tgz"))


def link_in_archive(store: Path) -> None:
    def fill(tar: tarfile.TarFile) -> None:
        member = tarfile.TarInfo("web/values.yaml")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)

    archive(store, fill)


def way_out_of_archive(store: Path) -> None:
    archive(store, lambda tar: tar.addfile(tarfile.TarInfo("../../evil")))


def second_member_of_archive(store: Path) -> None:
    archive(store, lambda tar: tar.addfile(tarfile.TarInfo("web/Chart.yaml")), gzip.compress(bytes(1024)))


def end_of_archive_with_more_behind(store: Path) -> None:
    archive(store, lambda tar: tar.addfile(tarfile.TarInfo("web/Chart.yaml")), b"more")


def very_many_entries_in_archive(store: Path) -> None:
    def fill(tar: tarfile.TarFile) -> None:
        for number in range(MAX_FILES + 1):
            tar.addfile(tarfile.TarInfo(f"web/{number}"))

    archive(store, fill)


def gigabyte_in_archive(store: Path) -> None:
    (store / "vendor").mkdir()
    with gzip.open(store / "vendor/web.tgz", "wb", compresslevel=1) as packed:
        for _ in range(128):
            packed.write(bytes(2**20))
    document = store / "renders/web.yaml"
    document.write_text(document.read_text().replace("charts/web", "vendor/web.tgz"))


def no_archive(store: Path) -> None:
    (store / "vendor").mkdir()
    (store / "vendor/web.tgz").write_bytes(b"no archive")
    document = store / "renders/web.yaml"
    document.write_text(document.read_text().replace("charts/web", "vendor/web.tgz"))


def large_file(store: Path) -> None:
    with (store / "charts/web/files/large").open("wb") as file:
        file.truncate(65 * 2**20)


def endless_template(store: Path) -> None:
    add(
        store,
        "charts/web/templates/loop.yaml",
        '{{ define "loop" }}{{ include "loop" . }}{{ end }}{{ include "loop" . }}',
    )


def endless_range(store: Path) -> None:
    line = "a" * 40
    text = f"{{{{ range until 100000 }}}}{{{{ range until 100000 }}}}{line}\n{{{{ end }}}}{{{{ end }}}}"
    add(store, "charts/web/templates/many.yaml", text)


def environment(store: Path) -> None:
    add(store, "charts/web/templates/env.yaml", 'data: {{ env "HOME" }}')


def policy(store: Path) -> None:
    text = "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\n"
    add(store, "charts/web/templates/policy.yaml", text)


@pytest.mark.parametrize(
    ("spoil", "code", "words"),
    [
        (link_in_chart, "render-refused", "templates/passwd.yaml is a link"),
        (link_for_values, "render-refused", "values/web.yaml is not in the store"),
        (link_for_folder, "render-refused", "charts/web is not in the store"),
        (link_in_archive, "render-refused", "is a link or leads out of it"),
        (way_out_of_archive, "render-refused", "is a link or leads out of it"),
        (second_member_of_archive, "render-refused", "something follows its first member"),
        (end_of_archive_with_more_behind, "render-refused", "something follows its first member"),
        (very_many_entries_in_archive, "render-refused", "holds more than 20,000 entries"),
        (gigabyte_in_archive, "render-refused", "holds more than 67,108,864 bytes"),
        (no_archive, "render-refused", "is no archive of a chart"),
        (large_file, "render-refused", "is larger than 67,108,864 bytes"),
        (endless_template, "render-failed", "loop"),
        (environment, "render-failed", '"env" not defined'),
        (policy, "render-object", "steers the fleet"),
    ],
)
def test_a_hostile_chart(store: Path, spoil: Callable[[Path], None], code: str, words: str) -> None:
    one_render(store, "web")
    spoil(store)
    result = hydrate(store)
    assert result.exit_code == 1
    assert f"[{code}]" in result.output
    assert words in " ".join(result.output.split())
    assert not (store / "rendered").exists()


def test_a_chart_that_writes_without_end_is_ended(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = USUAL._replace(cpu_s=5, memory_bytes=3 * 2**30)
    monkeypatch.setattr(render_twice, "__kwdefaults__", {"allow_network": False, "limits": limits, "readable": ()})
    one_render(store, "web")
    endless_range(store)
    result = hydrate(store)
    assert result.exit_code == 1
    assert "[render-failed]" in result.output


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        (BASE, "components: ['https://github.com/org/repo//base?ref=v1']\n", "nothing is fetched"),
        (BASE, "components: ['../../../../etc']\n", "nothing is fetched"),
        (BASE, "components: [../overlays/prod]\n", "lead round in a circle"),
        (BASE, "generators: [exec.yaml]\n", "would run a program"),
        (BASE, "helmCharts: [{name: w, releaseName: w, repo: 'https://x', version: '1'}]\n", "hydrate --update brings"),
        (BASE, "helmCharts: [{name: w, releaseName: w}]\n", "charts/w is not in the store; put it there"),
        (BASE, "secretGenerator: [{name: s, literals: [a=b]}]\n", "would be committed as it is"),
        (BASE, "patches: [{path: 'https://example.com/patch.yaml'}]\n", "leads out of the store"),
        ("apps/web/base/Kustomization", "resources: []\n", "keep one of them"),
    ],
)
def test_a_hostile_kustomization(store: Path, path: str, text: str, words: str) -> None:
    one_render(store, "shop")
    add(store, "apps/web/base/exec.yaml", "apiVersion: team/v1\nkind: Exec\nmetadata: {name: e}\n")
    add(store, path, text)
    result = hydrate(store)
    assert result.exit_code == 1
    assert words in " ".join(result.output.split())
    assert not (store / "rendered").exists()


def test_nothing_is_written_through_a_link(store: Path, tmp_path: Path) -> None:
    one_render(store, "jobs")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (store / "rendered").symlink_to(elsewhere)
    error = CliRunner().invoke(cli, ["hydrate", str(store)]).exception
    assert "rendered is a link" in str(error)
    assert not list(elsewhere.iterdir())


def test_a_pull_request_starts_nothing(store: Path) -> None:
    """A command that looks at a change of a stranger never runs a tool: it has no PATH to find one on."""
    assert hydrate(store).exit_code == 0
    endless_template(store)
    link_in_chart(store)
    code = """import sys
from reconciler.cli.main import main
started = []
watched = ("subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "socket.connect")
sys.addaudithook(lambda event, args: started.append(event) if event in watched else None)
try:
    main(["validate", sys.argv[1]])
except SystemExit:
    pass
print("started", started)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(store)],
        env={"HOME": str(store.parent)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "started []" in done.stdout, done.stdout
    assert "render-refused" in done.stdout
    assert run("validate", store).exit_code == 1


def test_a_kernel_that_hides_no_files_is_told_of_where_something_was_run(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.cli.hydrate_store.hides_files", lambda: False)
    one_render(store, "web")
    assert "cannot hide files" in hydrate(store).output
    assert "cannot hide files" not in hydrate(store).output, "nothing was run"
