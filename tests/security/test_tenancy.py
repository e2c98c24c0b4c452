"""Isolation: one team's files reach nothing of another team's, of the system's and of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.store_trees import write_files
from tests.security.command_line import reconciler
from tests.yaml_text import load_yaml

_FILE = Path(__file__).parents[1] / "cases" / "security" / "tenancy.yaml"
_TABLE: dict[str, Any] = load_yaml(_FILE.read_text())


@pytest.mark.parametrize("case", _TABLE["cases"], ids=[case["name"] for case in _TABLE["cases"]])
def test_a_document_reaches_no_further_than_it_may(case: dict[str, Any], tmp_path: Path) -> None:
    """`reaches`: the objects in which the marker PWNED may stand; `code`: the problem that says why not."""
    store = write_files(tmp_path / "store", {"base.yaml": _TABLE["base"], "tenant.yaml": case["document"]})
    ran = reconciler("render", store, "-o", "json", home=tmp_path)
    assert ran.is_orderly
    assert ran.events == ()
    document = json.loads(ran.out)
    reached = [_name(item["manifest"]) for item in document["objects"] if "PWNED" in json.dumps(item["manifest"])]
    assert reached == case.get("reaches", [])
    shown = {_name(item["manifest"]) for item in document["objects"]}
    assert not {name for name in shown if name.split()[1].startswith(("kube-", "fleet-system"))}
    if "code" in case:
        assert case["code"] in {problem["code"] for problem in document["problems"]}


def _name(manifest: dict[str, Any]) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['kind']} {metadata.get('namespace', '')}/{metadata['name']}".replace(" /", " ")
