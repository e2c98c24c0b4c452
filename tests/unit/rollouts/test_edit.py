"""An approval keeps everything else of a file as a person wrote it, or is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.rollouts import Approval
from reconciler.report import dump_yaml
from reconciler.rollouts import NotClear, approved
from tests.yaml_text import load_yaml

HEAD = """# who may approve is in CODEOWNERS
apiVersion: fleet.reconciler/v1alpha1
kind: Rollout
metadata: {name: default}  # the only one
"""
STAGES = """  stages:
  - name: canary   # small
    clusters: {clusterNames: [m1]}
    after: {approval: true}

  - {name: rest, clusters: {}}
"""
APPROVAL = Approval(stage="canary", revision="bbbbbbbbbbbb")
FLOW = "{stage: canary, revision: bbbbbbbbbbbb}"


def edited(text: str, approval: Approval = APPROVAL) -> str:
    return approved("rollouts/default.yaml", text.encode(), "default", approval, dump_yaml).decode()


def entry(indent: str) -> str:
    return f"{indent}- revision: bbbbbbbbbbbb\n{indent}  stage: canary\n"


WEEK = "    # last week\n    - {stage: canary, revision: aaaaaaa}  # by ann\n"
LINES = "  - stage: canary\n    revision: aaaaaaa\n"
ADDED = {
    "no approvals yet": ("spec:\n" + STAGES, "spec:\n" + STAGES + "  approvals:\n" + entry("  ")),
    "an empty list": (
        "spec:\n  approvals: []  # none\n" + STAGES,
        f"spec:\n  approvals: [{FLOW}]  # none\n" + STAGES,
    ),
    "nothing behind the name": (
        "spec:\n" + STAGES + "  approvals:\n",
        "spec:\n" + STAGES + f"  approvals: [{FLOW}]\n",
    ),
    "others, with a comment": (
        "spec:\n" + STAGES + "  approvals:\n" + WEEK,
        "spec:\n" + STAGES + "  approvals:\n" + WEEK + entry("    "),
    ),
    "others on several lines": (
        "spec:\n  approvals:\n" + LINES + STAGES,
        "spec:\n  approvals:\n" + LINES + entry("  ") + STAGES,
    ),
    "a list on one line": (
        "spec:\n  approvals: [{stage: canary, revision: aaaaaaa}]\n" + STAGES,
        f"spec:\n  approvals: [{{stage: canary, revision: aaaaaaa}}, {FLOW}]\n" + STAGES,
    ),
    "the spec on one line": (
        "spec: {stages: [{name: canary, clusters: {}}]}\n",
        f"spec: {{stages: [{{name: canary, clusters: {{}}}}], approvals: [{FLOW}]}}\n",
    ),
}


@pytest.mark.parametrize("case", ADDED)
def test_an_entry_is_added_and_nothing_else_changes(case: str) -> None:
    before, after = ADDED[case]
    assert edited(HEAD + before) == HEAD + after


def test_an_end_is_written_as_text() -> None:
    found = load_yaml(
        edited(HEAD + "spec:\n" + STAGES, Approval(stage="canary", revision="1234567", until="2026-12-01T00:00:00Z"))
    )
    assert found["spec"]["approvals"] == [{"stage": "canary", "revision": "1234567", "until": "2026-12-01T00:00:00Z"}]


def test_lines_end_as_they_did() -> None:
    text = (HEAD + "spec:\n" + STAGES).replace("\n", "\r\n")
    assert edited(text).count("\r\n") == edited(text).count("\n")


def test_other_documents_of_the_file_stay() -> None:
    other = HEAD.replace("name: default", "name: other") + "spec:\n" + STAGES
    text = other + "---\n" + HEAD + "spec:\n" + STAGES
    made = edited(text)
    assert made.startswith(other + "---\n")
    assert made.endswith(HEAD + ADDED["no approvals yet"][1])


REFUSED = {
    "another name": HEAD.replace("default", "other") + "spec:\n" + STAGES,
    "twice": (HEAD + "spec:\n" + STAGES + "---\n") * 2,
    "a list behind an anchor": HEAD + "spec:\n  approvals: &old\n  - {stage: canary, revision: aaaaaaa}\n" + STAGES,
    "a broken file": HEAD + "spec: [\n",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_clear_is_refused_with_the_entry_to_write(case: str) -> None:
    with pytest.raises(NotClear, match=r"add it by hand under spec\.approvals: - "):
        edited(REFUSED[case])


@given(
    st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?", fullmatch=True),
    st.from_regex("[0-9a-f]{7,40}", fullmatch=True),
)
def test_any_stage_and_any_revision_are_read_as_they_are(stage: str, revision: str) -> None:
    """`1234567` is no number, `1e10000` no float, and `no` no flag."""
    body = f'spec:\n  stages:\n  - {{name: "{stage}", clusters: {{}}}}\n'
    made = load_yaml(edited(HEAD + body, Approval(stage=stage, revision=revision)))
    assert made["spec"]["approvals"] == [{"stage": stage, "revision": revision}]
