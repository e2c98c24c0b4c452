"""Freshness: what changed since an output was made, told from names of contents alone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from reconciler.api.fleet import RenderLock
from reconciler.api.problem import Document
from reconciler.hydration import blob_id, input_paths, lock_text, parse_lock, staleness
from reconciler.yaml import read_yaml
from tests.unit.hydration.test_variants import PROD, render_of

RENDER = render_of(prod=PROD)
INPUTS = {"charts/web/Chart.yaml": "a" * 40, "prod.yaml": "b" * 40}
OUTPUTS = {"rendered/web/base.yaml": "c" * 40}


def lock() -> RenderLock:
    data = lock_text(RENDER, INPUTS, {"helm": "v4.3.1"}, OUTPUTS, {})
    (document,) = read_yaml(RENDER.lock_path, data).documents
    found, problems = parse_lock(document)
    assert found is not None, problems
    return found


def test_a_lock_says_again_what_it_was_made_of() -> None:
    found = lock()
    assert (found.inputs, found.outputs, found.spec) == (INPUTS, OUTPUTS, RENDER.digest)
    assert list(staleness(RENDER, found, INPUTS, OUTPUTS)) == []


def test_what_changed_is_named_with_the_command() -> None:
    changed = {**INPUTS, "prod.yaml": "d" * 40, "charts/web/templates/new.yaml": "e" * 40}
    (problem,) = staleness(RENDER, lock(), changed, OUTPUTS)
    assert (problem.code, problem.source.path) == ("render-stale", "web.yaml")
    assert "charts/web/templates/new.yaml, prod.yaml changed" in problem.message
    assert "run reconciler hydrate" in problem.message


def test_another_spec_and_no_lock_are_stale() -> None:
    assert [p.code for p in staleness(replace(RENDER, digest="x"), lock(), INPUTS, OUTPUTS)] == ["render-stale"]
    assert [p.code for p in staleness(RENDER, None, INPUTS, {})] == ["render-stale"]


def test_an_edited_a_missing_and_a_strange_output_are_named() -> None:
    for outputs, path in (
        ({"rendered/web/base.yaml": "f" * 40}, "rendered/web/base.yaml"),
        ({}, "rendered/web/base.yaml"),
        ({**OUTPUTS, "rendered/web/more.yaml": "f" * 40}, "rendered/web/more.yaml"),
    ):
        (problem,) = staleness(RENDER, lock(), INPUTS, outputs)
        assert (problem.code, problem.source.path) == ("render-edited", path)


def test_a_lock_of_another_form_is_refused() -> None:
    body = {"inputs": {"../x": "a" * 40}, "outputs": {}, "spec": "", "tool": {}}
    bad: dict[str, Any]
    for bad in ({}, {"inputs": []}, body, {**body, "inputs": {"x": "y"}}):
        document = Document(path=RENDER.lock_path, line=1, body=bad, locate=lambda steps: 1)
        found, problems = parse_lock(document)
        assert found is None
        assert [problem.code for problem in problems] == ["render-lock"]


def test_names_of_contents_are_those_of_git(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"a\r\nb\0")
    told = subprocess.run(["git", "hash-object", "--no-filters", file], capture_output=True, text=True, check=True)
    assert blob_id(file.read_bytes()) == told.stdout.strip()


def test_folders_of_kustomizations_are_those_of_the_lock() -> None:
    render = replace(RENDER, helm=None, kustomize="apps/prod", variants=())
    found = replace(lock(), inputs={"apps/base/kustomization.yaml": "a" * 40, "apps/prod/kustomization.yml": "a" * 40})
    assert input_paths(render, found) == ("apps/base", "apps/prod")
