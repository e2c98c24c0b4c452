from __future__ import annotations

import re
from pathlib import Path

import pytest

import reconciler
from reconciler.lint import PROBLEM_CODES
from reconciler.lint.lint_codes import LINT_CODES
from reconciler.policy import POLICY_CODES

ROOT = Path(reconciler.__file__).parent
MODULES = sorted(
    path
    for pattern in (
        "policy/*.py",
        "lint/*.py",
        "documents/*.py",
        "fleet/cluster_documents.py",
        "fleet/settings.py",
    )
    for path in ROOT.glob(pattern)
    if not path.name.endswith(
        (
            "review_check.py",
            "_settings.py",
            "settings_diff.py",
            "codes.py",
            "_fields.py",
            "json_patch.py",
            "schema.py",
            "schema_check.py",
        )
    )
)
_CODE = re.compile(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"')
_NOT_CODES = {"default-scheduler", "kube-system", "karmada-system", "karmada-cluster", "static-weight"}


def _codes(path: Path) -> set[str]:
    return set(_CODE.findall(path.read_text())) - _NOT_CODES


def test_every_code_that_is_reported_is_explained() -> None:
    reported = {code: path.name for path in MODULES for code in _codes(path)}
    assert not {code: name for code, name in reported.items() if code not in PROBLEM_CODES}


def test_every_code_that_is_explained_is_reported() -> None:
    reported = {code for path in MODULES for code in _codes(path)}
    assert not (POLICY_CODES.keys() | LINT_CODES.keys()) - reported


@pytest.mark.parametrize("code", sorted(PROBLEM_CODES))
def test_explanations_are_whole(code: str) -> None:
    explained = PROBLEM_CODES[code]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", code)
    assert explained.meaning.endswith(".")
    assert explained.remedy.endswith(".")


def test_no_code_is_explained_twice() -> None:
    assert not POLICY_CODES.keys() & LINT_CODES.keys()
