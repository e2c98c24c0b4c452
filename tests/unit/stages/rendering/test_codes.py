from __future__ import annotations

import re
from pathlib import Path

import reconciler.stages
from reconciler.stages.lint.all_codes import PROBLEM_CODES
from reconciler.stages.policies.codes import POLICY_CODES
from reconciler.stages.rendering.codes import RENDER_CODES

STAGES = Path(reconciler.stages.__file__).parent
MODULES = [
    *sorted(STAGES.glob("dependencies/*.py")),
    STAGES / "rendering/override_references.py",
    *sorted(STAGES.glob("overrides/*.py")),
]
_REPORTED = re.compile(r'(?:code=|EditFault\(\s*|[(\[]\()"([a-z0-9]+(?:-[a-z0-9]+)+)"')


def _reported() -> set[str]:
    return {code for path in MODULES for code in _REPORTED.findall(path.read_text())}


def test_every_code_that_is_reported_is_explained() -> None:
    assert _reported() <= PROBLEM_CODES.keys()


def test_every_code_that_is_explained_is_reported() -> None:
    assert RENDER_CODES.keys() <= _reported()
    assert not RENDER_CODES.keys() & POLICY_CODES.keys()
