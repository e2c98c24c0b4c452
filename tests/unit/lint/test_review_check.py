"""A pull request must not bring its own judge: what the repository shows of that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.lint import review_faults

ROOT = Path(__file__).parents[3]


def workflow_of(page: str) -> str:
    """Return the workflow that a page tells people to take."""
    found: list[str] = re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    return next(text for text in found if "actions/checkout" in text and "pull_request" in text)


WORKFLOW = workflow_of("docs/how-to/pull-request-check.md")
GOOD = {
    ".reconciler/requirements.lock": b"a==1 --hash=sha256:0\n",
    ".reconciler/fleet_reconciler-1-py3-none-any.whl": b"",
    ".github/workflows/fleet.yml": WORKFLOW.encode(),
    "CODEOWNERS": b"/.reconciler/ @platform\n.github/ @platform\nCODEOWNERS @platform\n",
}


@pytest.mark.parametrize("page", ["docs/how-to/pull-request-check.md", "README.md"])
def test_the_workflow_of_the_docs_has_no_gap(page: str) -> None:
    assert review_faults({**GOOD, ".github/workflows/fleet.yml": workflow_of(page).encode()}) == []


@pytest.mark.parametrize(
    ("path", "old", "new", "fault"),
    [
        ("fleet.yml", "on: pull_request_target", "on: pull_request", "on pull_request"),
        ("fleet.yml", "on: pull_request_target", "on: {pull_request: {branches: [main]}}", "on pull_request"),
        ("fleet.yml", "uses: ./base/.reconciler\n", "uses: ./head/.reconciler\n", "from the head"),
        ("fleet.yml", "        path: head\n", "", "from the head"),
        ("fleet.yml", "persist-credentials: false", "persist-credentials: true", "leaves its token"),
        ("fleet.yml", "contents: read\n    outputs", "contents: write\n    outputs", "may write"),
        ("fleet.yml", "jobs:", "jobs: [", "cannot be read"),
        ("fleet.yml", "    permissions:\n      contents: read\n    outputs:", "    outputs:", "permissions of the"),
        ("fleet.yml", ".reconciler", ".other", "no workflow uses"),
        ("CODEOWNERS", "/.reconciler/ @platform", "/.reconciler/", ".reconciler/requirements.lock has no owner"),
        ("requirements.lock", " --hash=sha256:0", "", "has no hashes"),
    ],
)
def test_each_gap_is_named(path: str, old: str, new: str, fault: str) -> None:
    name = next(name for name in GOOD if name.endswith(path))
    assert old.encode() in GOOD[name]
    faults = review_faults({**GOOD, name: GOOD[name].replace(old.encode(), new.encode())})
    assert any(fault in one for one in faults)


def test_a_repository_without_any_of_it_says_what_is_missing() -> None:
    assert len(review_faults({})) == 3
