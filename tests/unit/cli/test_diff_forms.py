"""The formats of `diff`: each is one document, of one plan and of two, and several come of one comparison."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reconciler.cli.diff import FORMATS, diff_text
from reconciler.errors import ConfigurationError
from tests.fakes.store_trees import commit_all
from tests.golden.pulls import own_images, two_deletions
from tests.unit.cli.command_line import APP, run, write_store


@pytest.mark.parametrize("form", FORMATS)
def test_two_plans_are_one_document(form: str) -> None:
    text = diff_text([own_images(), two_deletions()], form, max_size=8192, marker="")
    if form == "junit":
        assert len(ElementTree.fromstring(text.encode())) > 2  # noqa: S314 - of our own making
    elif form in ("json", "jsonpatch"):
        assert json.loads(text)["live"]
    elif form == "markdown":
        assert len(text.encode()) <= 8192
    assert text.count("<!doctype html>") == (form == "html")
    assert "svc-1" in text
    assert "web" in text


def test_two_plans_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="give 4098 or more"):
        diff_text([own_images(), two_deletions()], "markdown", max_size=2048, marker="")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    store = tmp_path / "store"
    store.mkdir()
    write_store(store)
    commit_all(store, "first", new=True)
    (store / "app.yaml").write_text(APP.replace("key: value", "key: other"))
    commit_all(store, "second")
    return store


def test_one_comparison_writes_several_formats(repository: Path, tmp_path: Path) -> None:
    page, tests = tmp_path / "plan.html", tmp_path / "plan.xml"
    done = run(
        "diff", str(repository), "--base", "HEAD~1", "--head", "HEAD", "--detailed-exitcode", "--marker", "shop",
        "--also", f"html={page}", "--also", f"junit={tests}", "-o", "markdown",
    )  # fmt: skip
    assert (done.code, done.err) == (2, "")
    assert done.out.startswith("<!-- fleet-plan shop -->\n### `ConfigMap demo/app` in `m1`: key `value` → `other`\n")
    assert "value → other" in page.read_text()
    assert ElementTree.fromstring(tests.read_bytes()).tag == "testsuites"  # noqa: S314 - of our own making


@pytest.mark.parametrize("also", ["html", "html=", "=x", "pdf=x"])
def test_a_file_without_a_format_is_refused(repository: Path, also: str) -> None:
    done = run("diff", str(repository), "--base", "HEAD", "--also", also)
    assert done.code == 2
    assert "is not FORMAT=FILE with a format of text, markdown, json" in " ".join(done.err.split())


def test_one_file_for_two_formats_is_refused(repository: Path, tmp_path: Path) -> None:
    page = tmp_path / "plan"
    also = ("--also", f"html={page}", "--also", f"json={tmp_path / '.' / 'x' / '..' / 'plan'}")
    done = run("diff", str(repository), "--base", "HEAD", *also)
    assert (done.code, page.exists()) == (2, False)
    assert "plan is written twice" in " ".join(done.err.split())
