"""Tricks of a pull request's author on links, submodules, modes, names and renders: loud, or without effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.api.fleet import Snapshot
from reconciler.errors import StoreError
from reconciler.hydration import blob_id, lock_text, parse_render
from reconciler.store.git.git_past import SnapshotReader
from reconciler.store.git.snapshot import GitStore
from reconciler.yaml import MAX_BYTES, read_yaml
from tests.fakes.store_trees import commit_all, write_files
from tests.security.tricks import (
    Files,
    Trick,
    both,
    config,
    entered,
    forged,
    git,
    linked,
    moved,
    played,
    replaced,
    submodule,
    without,
    written,
)
from tests.unit.cli.command_line import run
from tests.yaml_text import load_yaml

C = {"apps/c.yaml": config("good")}
TWO = {"apps/c.yaml": config("good"), "apps/d.yaml": config("good", "d")}
LINK = {"apps/c.yaml": "-> ../data/c.txt", "data/c.txt": config("good")}
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 9\n" % ("0" * 64)

RENDER = """\
apiVersion: fleet.reconciler/v1alpha1
kind: Render
metadata: {name: web}
spec:
  helm: {chart: charts/web, namespace: shop, kubeVersion: "1.36", values: [prod.yaml]}
  output: rendered/web
"""
INPUTS = {"charts/web/Chart.yaml": "name: web\n", "charts/web/values.yaml": "a: b\n", "prod.yaml": "a: c\n"}


def rendered() -> Files:
    """A chart with its output and its lock."""
    (document,) = read_yaml("render.yaml", RENDER.encode()).documents
    render, _ = parse_render(document)
    assert render is not None
    outputs = {"rendered/web/base.yaml": config("good")}
    inputs, made = ({path: blob_id(text.encode()) for path, text in files.items()} for files in (INPUTS, outputs))
    lock = lock_text(render, inputs, {"helm": "v4.3.1"}, made, {})
    return {"render.yaml": RENDER, render.lock_path: lock.decode(), **INPUTS, **outputs}


def lost_object(root: Path) -> None:
    write_files(root, {"apps/c.yaml": config("evil")})
    commit_all(root)
    name = git(root, "rev-parse", "HEAD:apps/c.yaml").strip()
    (root / ".git/objects" / name[:2] / name[2:]).unlink()


RENDERED = rendered()
TRICKS: dict[str, Trick] = {
    "a directory of links is read": Trick(
        {".good/c.yaml": config("good")}, linked("apps", ".good"), "ConfigMap shop/c"
    ),
    "the file that a link leads to": Trick(LINK, replaced("data/c.txt", "good", "evil"), "evil"),
    "a link leads to another file": Trick(
        {**LINK, "data/e.txt": config("evil")}, linked("apps/c.yaml", "../data/e.txt"), "evil"
    ),
    "a link leads to a link that leads elsewhere": Trick(
        {**LINK, "apps/c.yaml": "-> ../data/l", "data/l": "-> c.txt", "data/e.txt": config("evil")},
        linked("data/l", "e.txt"),
        "evil",
    ),
    "a link for a folder leads to another folder": Trick(
        {"apps": "-> .one", ".one/c.yaml": config("good"), ".two/c.yaml": config("evil")},
        linked("apps", ".two"),
        "evil",
    ),
    "a link into a hidden folder": Trick(
        {".drafts/e.yaml": config("evil", "e")}, linked("e.yaml", ".drafts/e.yaml"), "shop/e"
    ),
    "a link into an ignored folder": Trick(
        {"drafts/e.yaml": config("evil", "e"), ".reconcilerignore": "drafts/\n"},
        linked("e.yaml", "drafts/e.yaml"),
        "shop/e",
    ),
    "a link to an ignored folder": Trick(
        {"drafts/e.yaml": config("evil", "e"), ".reconcilerignore": "drafts/\n"}, linked("more", "drafts"), "shop/e"
    ),
    "a file becomes a link to a folder": Trick(
        {**C, ".two/e.yaml": config("evil", "e")}, linked("apps/c.yaml", "../.two"), "file-displaced"
    ),
    "a link round in a circle": Trick(C, linked("apps/c.yaml", "c.yaml"), "link-refused"),
    "a link out of the store by dots": Trick(C, linked("apps/c.yaml", "../../outside.yaml"), "link-refused"),
    "a link for the settings": Trick(C, linked("store.yaml", "/etc/passwd"), "link-refused"),
    "a link for the rules of what is ignored": Trick(
        {**C, "rules": "apps/\n", ".reconcilerignore": "drafts/\n"},
        linked(".reconcilerignore", "rules"),
        "ignore-file-unreadable",
    ),
    "a submodule for the rules of what is ignored": Trick(
        {**C, ".reconcilerignore": "drafts/\n"}, submodule(".reconcilerignore"), "ignore-file-unreadable"
    ),
    "a pointer of LFS for the rules of what is ignored": Trick(
        {"drafts/e.yaml": config("evil", "e"), ".reconcilerignore": "drafts/\n"},
        written({".reconcilerignore": LFS}),
        "are read again",
    ),
    "the rules of what is ignored change case": Trick(
        {"drafts/e.yaml": config("evil", "e"), ".reconcilerignore": "drafts/\n"},
        moved(".reconcilerignore", ".ReconcilerIgnore"),
        "are read again",
    ),
    "the program of the check becomes a link": Trick(
        {**C, "tools/action.yml": "a: b\n"}, linked(".reconciler", "tools"), "judging pull requests"
    ),
    "the link to the program of the check leads elsewhere": Trick(
        {**C, ".reconciler": "-> tools", "tools/action.yml": "a: b\n", "evil/action.yml": "a: c\n"},
        linked(".reconciler", "evil"),
        "judging pull requests",
    ),
    "the program of the check becomes a submodule": Trick(
        {**C, ".reconciler/action.yml": "a: b\n"}, submodule(".reconciler"), "judging pull requests"
    ),
    "a submodule as the program of the check": Trick(C, submodule(".reconciler"), "judging pull requests"),
    "a link as the workflows": Trick(C, linked(".github", "tools"), "judging pull requests"),
    "a CODEOWNERS becomes a link": Trick(
        {**C, "CODEOWNERS": "* @ann\n", "mine": "* @evil\n"}, linked("CODEOWNERS", "mine"), "judging pull requests"
    ),
    "a submodule becomes a folder": Trick(
        C, entered("sub/e.yaml", "100644", config("evil", "e")), "shop/e", before=submodule("sub")
    ),
    "a submodule takes the place of a file": Trick(C, submodule("apps/c.yaml"), "file-displaced"),
    "a file with the mode of a link": Trick(C, entered("apps/c.yaml", "120000", config("evil")), "link-refused"),
    "a link becomes a file with the text of its target": Trick(
        LINK, entered("apps/c.yaml", "100644", "../data/c.txt"), "apps/c.yaml"
    ),
    "a value beside a mode": Trick(C, entered("apps/c.yaml", "100755", config("evil")), "evil"),
    "a file with the mode of a folder": Trick(
        C, forged(("40000", b"sub", config("evil"))), "stands where a folder belongs"
    ),
    "a name with a slash": Trick(C, forged(("100644", b"apps/c.yaml", config("evil"))), "Git never writes"),
    "a name twice": Trick(
        {"c.yaml": config("good")}, forged(("100644", b"c.yaml", config("evil"))), "Git never writes"
    ),
    "a folder of dots": Trick(C, forged(("40000", b"..", {"e.yaml": config("evil", "e")})), "Git never writes"),
    "a file below more folders than are read": Trick(
        {}, entered("d/" * 201 + "e.yaml", "100644", config("evil", "e")), "folder-unreadable"
    ),
    "a name of other bytes": Trick(C, forged(("100644", b"\xff.yaml", config("evil", "e"))), "name-not-utf-8"),
    "a name of dots": Trick({}, written({"apps/..e.yaml": config("evil", "e")}), "..e.yaml"),
    "a name with a backslash": Trick({}, written({"..\\..\\e.yaml": config("evil", "e")}), r"e.yaml"),
    "a folder that shows nothing": Trick({}, written({"apps\u200b/e.yaml": config("evil", "e")}), r"apps\u200b/e.yaml"),
    "a name with a separator of lines": Trick({}, written({"apps/\u2028e.yaml": config("evil", "e")}), r"\u2028e.yaml"),
    "a name of another ending, which is not read": Trick(C, moved("apps/c.yaml", "apps/c.yaml.bak"), "file-not-read"),
    "a name of an editor's copy": Trick(C, moved("apps/c.yaml", "apps/c.yaml~"), "release"),
    "a name of a resource fork": Trick(C, moved("apps/c.yaml", "apps/._c.yaml"), "release"),
    "a line end behind the ending": Trick(C, moved("apps/c.yaml", "apps/c.yaml\n"), "release"),
    "YAML under the name of JSON": Trick(
        C, moved("apps/c.yaml", "apps/c.json", replaced("apps/c.json", "good", "evil")), "c.json"
    ),
    "the same name, composed and decomposed": Trick(
        {"caf\u00e9.yaml": config("good")}, written({"cafe\u0301.yaml": config("evil")}), "e\\u0301.yaml"
    ),
    "a folder takes the place of a file": Trick(
        C, both(moved("apps/c.yaml", "x"), written({"apps/c.yaml/e.yaml": config("evil", "e")})), "file-displaced"
    ),
    "a file takes the place of a folder": Trick(
        {"apps/c.yaml": config("good")}, both(moved("apps", ".x"), written({"apps": "x"})), "file-displaced"
    ),
    "a file past the limit": Trick(C, written({"apps/c.yaml": config("evil") + "#" * MAX_BYTES}), "file-too-large"),
    "a pointer of LFS": Trick(C, written({"apps/c.yaml": LFS}), "lfs-pointer"),
    "a file of NUL bytes": Trick(C, written({"apps/c.yaml": b"\0" * 100}), "apps/c.yaml"),
    "an encrypted file": Trick(C, written({"apps/c.yaml": b"\0GITCRYPT\0" + bytes(range(256))}), "apps/c.yaml"),
    "an empty file": Trick(C, written({"apps/c.yaml": ""}), "release"),
    "an object that is not there": Trick(C, lost_object, "missing or corrupt"),
    "one of two equal files": Trick({**C, "apps/z.yaml": config("good")}, moved("apps/z.yaml", "x"), "apps/c.yaml"),
    "another encoding of the work tree": Trick(
        C, written({".gitattributes": "*.yaml working-tree-encoding=UTF-7\n"}), ".gitattributes"
    ),
    "a filter of the work tree": Trick(C, written({".gitattributes": "*.yaml filter=evil\n"}), ".gitattributes"),
    "what archives leave out": Trick(C, written({".gitattributes": "apps export-ignore\n"}), ".gitattributes"),
    "attributes become a link": Trick(
        {**C, ".gitattributes": "* text\n"}, linked(".gitattributes", "x"), ".gitattributes"
    ),
    "a chart becomes a link": Trick(
        RENDERED, both(moved("charts/web", "x"), linked("charts/web", "../x")), "render-refused"
    ),
    "the folder of charts becomes a link": Trick(
        RENDERED, both(moved("charts", "x"), linked("charts", "x")), "render-stale"
    ),
    "a file of a chart becomes a link": Trick(
        RENDERED, linked("charts/web/values.yaml", "Chart.yaml"), "render-refused"
    ),
    "a link among the files of a chart": Trick(RENDERED, linked("charts/web/templates", "/etc"), "render-refused"),
    "a file of a chart has another mode": Trick(
        RENDERED, entered("charts/web/values.yaml", "120000", "a: b\n"), "render-refused"
    ),
    "values become a link": Trick(RENDERED, linked("prod.yaml", "charts/web/values.yaml"), "render-refused"),
    "the output of a chart becomes a link": Trick(
        {**RENDERED, ".o/c.yaml": config("evil")}, linked("rendered/web/base.yaml", "../../.o/c.yaml"), "render-refused"
    ),
    "the lock becomes a link": Trick(RENDERED, linked("rendered/web/render.lock.json", "../../store.yaml"), "render"),
}
HARMLESS: dict[str, Trick] = {
    "a mode": Trick(C, entered("apps/c.yaml", "100755", config("good"))),
    "a mode that git writes no more": Trick(C, forged(("100664", b"z.txt", "x"))),
    "a link becomes the file that it led to": Trick(
        LINK, both(without("apps/c.yaml"), written({"apps/c.yaml": config("good")}))
    ),
    "a file becomes a link to its text": Trick(
        {**C, "data/c.txt": config("good")}, linked("apps/c.yaml", "../data/c.txt")
    ),
    "a link to what is read anyway": Trick(C, linked("apps/z.yaml", "c.yaml")),
    "a link that is no document and leads nowhere": Trick(C, linked("apps/notes", "gone")),
    "another ending": Trick(C, moved("apps/c.yaml", "apps/c.yml")),
    "a dot before the name": Trick(C, moved("apps/c.yaml", "apps/.c.yaml")),
    "another case": Trick(C, moved("apps/c.yaml", "Apps/C.yaml")),
    "composed and decomposed": Trick({"caf\u00e9.yaml": config("good")}, moved("caf\u00e9.yaml", "cafe\u0301.yaml")),
    "ends of lines": Trick(C, written({"apps/c.yaml": config("good").replace("\n", "\r\n").encode()})),
    "a mark of byte order": Trick(C, written({"apps/c.yaml": b"\xef\xbb\xbf" + config("good").encode()})),
    "blanks and comments": Trick(C, written({"apps/c.yaml": "# x\n\n" + config("good") + "\n\n# y"})),
    "other quotes": Trick(C, replaced("apps/c.yaml", "a: good", "'a': \"good\"")),
    "JSON": Trick(C, both(moved("apps/c.yaml", "x"), written({"apps/c.json": json.dumps(load_yaml(config("good")))}))),
    "objects in one file": Trick(
        TWO, both(moved("apps/d.yaml", "x"), written({"apps/c.yaml": "---\n".join(TWO.values())}))
    ),
    "files in another order": Trick(TWO, both(moved("apps/c.yaml", "apps/z.yaml"))),
    "a submodule beside": Trick(C, submodule("sub")),
    "a submodule at another commit": Trick(C, entered("sub", "160000", commit="2" * 40), before=submodule("sub")),
    "a pointer of LFS that is no document": Trick(C, written({"logo.png": LFS})),
    "a pipe's name in a hidden folder": Trick(C, written({".x/e.yaml": config("evil", "e")})),
    "a large file that is no document": Trick(C, written({"video.bin": b"\0" * (MAX_BYTES + 1)})),
    "settings of LFS": Trick(C, written({".lfsconfig": "[lfs]\n\turl = https://evil.example\n"})),
}


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_is_not_hidden(name: str, tmp_path: Path) -> None:
    trick = TRICKS[name]
    code, texts = played(trick, tmp_path)
    assert code in trick.codes, texts[0]
    for text in texts:
        assert trick.said in text, text
    assert followed(tmp_path / "store") == read(tmp_path / "store")


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_not_said_changes_nothing(name: str, tmp_path: Path) -> None:
    """The objects to be applied are the same before and after, each for itself: not by a comparison of revisions."""
    trick, store = HARMLESS[name], tmp_path / "store"
    code, texts = played(trick, tmp_path)
    assert code == 0, texts[0]
    rendered = [run("render", str(store), "--rev", rev, "-o", "yaml").out for rev in ("base", "HEAD")]
    objects = [[line for line in text.splitlines() if not line.startswith("# source: ")] for text in rendered]
    assert objects[0] == objects[1]
    assert "  a: good" in objects[0]
    assert followed(store) == read(store)


def read(store: Path, reader: SnapshotReader | None = None, rev: str = "HEAD") -> Snapshot | str:
    """The files of a commit, or why there are none."""
    try:
        with GitStore(store) as repository:
            commit = repository.resolve(rev)
            return reader.read(repository, commit) if reader is not None else repository.snapshot(commit)
    except StoreError as error:
        return str(error)


def followed(store: Path) -> Snapshot | str:
    """The same as the service has it, which read the base before."""
    reader = SnapshotReader()
    read(store, reader, "base")
    return read(store, reader)
