"""A hostile file costs little, is refused by name and line, and takes nothing else with it."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from tests.fakes.store_trees import AUTHOR, commit_all, write_files
from tests.security.bombs import HARMLESS, HEAD, REFUSED
from tests.security.command_line import Ran, reconciler

CPU_S = 4.0
"""Seconds of processor time for a whole command; on an idle machine none takes more than two."""
PEAK_MB = 200.0
OUTPUT_BYTES = 8_000_000

GOOD = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [m1]}}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m1}
---
apiVersion: fleet.reconciler/v1alpha1
kind: Fleet
metadata: {name: f}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: good, namespace: demo}
data: {a: b}
"""


def named(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: demo}}\n"


def assert_bounded(ran: Ran) -> None:
    """The command ended by itself, cheaply, and started and called nothing."""
    assert ran.is_orderly, ran.err[-2000:].decode(errors="replace")
    assert ran.events == ()
    assert ran.cpu_s < CPU_S
    assert ran.peak_mb < PEAK_MB
    assert len(ran.out) + len(ran.err) < OUTPUT_BYTES


@pytest.mark.parametrize(("name", "bomb"), REFUSED.items(), ids=REFUSED)
def test_a_bomb_is_refused_by_name(name: str, bomb: Callable[[], str], tmp_path: Path) -> None:
    store = write_files(tmp_path / "store", {"good.yaml": GOOD, "bad.yaml": bomb()})
    ran = reconciler("validate", store, "-o", "json", home=tmp_path)
    assert_bounded(ran)
    assert ran.code == 1
    errors = [found for found in json.loads(ran.out)["problems"] if found["severity"] == "error"]
    assert name.split(maxsplit=1)[0] in {found["code"] for found in errors}
    assert all(found["source"].startswith("bad.yaml") for found in errors)
    rendered = reconciler("render", store, "-o", "json", home=tmp_path)
    assert_bounded(rendered)


@pytest.mark.parametrize(("name", "content"), HARMLESS.items(), ids=HARMLESS)
def test_what_is_large_and_legal_is_read(name: str, content: Callable[[], str], tmp_path: Path) -> None:
    store = write_files(tmp_path / "store", {"good.yaml": GOOD, "large.yaml": content()})
    ran = reconciler("validate", store, home=tmp_path)
    assert_bounded(ran)
    assert ran.code == 0, ran.output[:2000]


def test_a_bomb_takes_no_other_file_with_it(tmp_path: Path) -> None:
    """As far as its lines still tell what it is; one that does not tell freezes everything (design#reach)."""
    bomb = REFUSED["yaml-alias-explosion"]().replace(
        "metadata: {name: bad, namespace: demo}", "metadata:\n  name: bad\n  namespace: demo"
    )
    store = write_files(tmp_path / "store", {"good.yaml": GOOD, "bad.yaml": bomb})
    ran = reconciler("render", store, "-o", "json", home=tmp_path)
    names = {item["manifest"]["metadata"]["name"] for item in json.loads(ran.out)["objects"]}
    assert "good" in names


HOSTILE_NAMES = {
    "a\n::set-output name=x::y\n.yaml": "a line of its own",
    "b\x1b[31m\x1b]0;title\x07.yaml": "terminal escapes",
    "c<img src=x onerror=alert(1)>@everyone.yaml": "markup",
    "##[error]d.yaml": "a logging command",
    "\u202eexe.yaml": "reordered text",
}


def a_hostile_tree(folder: Path) -> Path:
    """A directory with everything that a file system allows and no store needs."""
    write_files(folder / "outside", {"outside.yaml": named("outside")})
    store = write_files(
        folder / "store",
        {
            "good.yaml": GOOD,
            **{name: named("broken") + "x: [" for name in HOSTILE_NAMES},
            "caf\u00e9.yaml": named("one"), "cafe\u0301.yaml": named("two"),
            "Case.yaml": named("three"), "case.yaml": named("four"),
            "sub/.git/config.yaml": named("insidegit"), ".hidden/x.yaml": named("hidden"),
            "absolute.yaml": f"-> {folder}/outside/outside.yaml", "relative.yaml": "-> ../outside/outside.yaml",
            "folder": "-> ../outside", "loop": "-> .", "left": "-> right", "right": "-> left",
            "passwords.yaml": "-> /etc/passwd", "environment.yaml": "-> /proc/self/environ",
            "roundabout.yaml": "-> loop/loop/../../outside/outside.yaml",
            "dir.yaml/x.yaml": named("below"),
            ".reconcilerignore": "(a+)+$\n" + "*" * 2_000 + "x\n[[[[\n" + "a/**/" * 500 + "\n!\n\\\n",
        },
    )  # fmt: skip
    os.mkfifo(store / "pipe.yaml")
    with socket.socket(socket.AF_UNIX) as found:
        found.bind(os.path.relpath(store / "socket.yaml"))
    (Path(os.fsdecode(os.fsencode(store) + b"/bad\xff.yaml"))).write_text(named("bytes"))
    return store


@pytest.mark.parametrize("line", ["validate", "validate -o json", "validate -o github", "render", "render -o json"])
def test_a_hostile_tree_leads_nowhere(line: str, tmp_path: Path) -> None:
    store = a_hostile_tree(tmp_path)
    command, *options = line.split()
    ran = reconciler(command, store, *options, home=tmp_path)
    assert_bounded(ran)
    assert ran.code == 1
    output = ran.out + ran.err
    assert b"name: outside" not in output
    assert b'"outside"' not in output
    assert b"root:" not in output
    assert_harmless(output, is_for_github="github" in line)


def assert_harmless(output: bytes, *, is_for_github: bool = False) -> None:
    """Nothing in it moves a cursor, reorders text or commands a runner."""
    text = output.decode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "##[" not in text
    if not is_for_github:
        assert not re.search(r"^\s*::", text, re.MULTILINE)
    assert all("set-output" not in line or not line.startswith("::set-output") for line in text.splitlines())


def test_markdown_of_a_hostile_tree_holds_no_markup_of_it(tmp_path: Path) -> None:
    store = write_files(tmp_path / "store", {"good.yaml": GOOD})
    base = commit_all(store, "first", new=True)
    write_files(store, {name: named("broken") + "x: [" for name in HOSTILE_NAMES})
    (store / "good.yaml").write_text(GOOD.replace("a: b", 'a: "</details><script>@all ```\\n::error::x\\n\\e[31m"'))
    head = commit_all(store, "second")
    ran = reconciler("diff", store, "--base", base, "--head", head, "-o", "markdown", home=tmp_path)
    assert_bounded(ran)
    assert_harmless(ran.out)
    outside_code = re.sub(r"(?ms)^(```+).*?^\1$|(`+).+?\2", "", ran.out.decode())
    assert "<script" not in outside_code
    assert "<img" not in outside_code
    assert "@" not in outside_code


def test_links_and_submodules_of_a_commit_lead_nowhere(tmp_path: Path) -> None:
    """Git modes 120000 and 160000, and names that a checkout would obey (CVE-2020-12278, CVE-2018-17456)."""
    repository = pygit2.init_repository(str(tmp_path / "store.git"), bare=True, initial_head="main")
    blob = repository.create_blob
    link = pygit2.enums.FileMode.LINK
    plain = pygit2.enums.FileMode.BLOB
    tree = repository.TreeBuilder()
    tree.insert("good.yaml", blob(GOOD.encode()), plain)
    tree.insert("out.yaml", blob(b"../../../../../../etc/passwd"), link)
    tree.insert("absolute.yaml", blob(b"/etc/passwd"), link)
    tree.insert("self.yaml", blob(b"self.yaml"), link)
    tree.insert("module", blob(b"").__class__(hex="1" * 40), pygit2.enums.FileMode.COMMIT)
    tree.insert(".gitmodules", blob(b'[submodule "m"]\n path = module\n url = -u./payload\n'), plain)
    tree.insert("a\n::set-output::.yaml", blob(b"x: ["), plain)
    commit = repository.create_commit("refs/heads/main", AUTHOR, AUTHOR, "m", tree.write(), [])
    ran = reconciler("validate", tmp_path / "store.git", "--rev", str(commit), home=tmp_path)
    assert_bounded(ran)
    assert ran.code == 1
    assert b"root:" not in ran.out
    assert ran.out.count(b"[link-refused]") == 3
    assert b"[submodule-skipped]" in ran.out
    assert_harmless(ran.out)


@pytest.mark.parametrize(
    "content",
    [
        "a: [" * 100_000,
        "a: &a [*a]\n",
        "[1, 2]",
        "\x00",
        "a: " + "9" * 5_000,
        HEAD,
        "!!python/object/apply:os.system [x]",
    ],
    ids=["deep", "loop", "list", "nul", "digits", "other", "object"],
)
@pytest.mark.parametrize("option", ["--config", "--observations"])
def test_files_beside_the_store_are_read_as_carefully(option: str, content: str, tmp_path: Path) -> None:
    store = write_files(tmp_path / "store", {"good.yaml": GOOD})
    (tmp_path / "file.yaml").write_text(content)
    words = ("render", str(store))
    file = str(tmp_path / "file.yaml")
    ran = reconciler(*((option, file, *words) if option == "--config" else (*words, option, file)), home=tmp_path)
    assert_bounded(ran)
    assert ran.code == 1
    assert b"file.yaml" in ran.err


@pytest.mark.parametrize(
    "store", ["https://-oProxyCommand=x/a", "ext::sh -c x", "ssh://-oProxyCommand=x/a", "-u./x:y.git"]
)
def test_no_store_becomes_an_option_or_a_program(store: str, tmp_path: Path) -> None:
    """CVE-2017-1000117."""
    ran = reconciler("validate", "--", store, home=tmp_path)
    assert_bounded(ran)
    assert ran.code != 0
