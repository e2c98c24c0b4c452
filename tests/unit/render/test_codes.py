from __future__ import annotations

import re
from pathlib import Path

import reconciler
from reconciler.lint import PROBLEM_CODES
from reconciler.policy import POLICY_CODES
from reconciler.render import RENDER_CODES

ROOT = Path(reconciler.__file__).parent
MODULES = [
    *(
        ROOT / "scheduler" / f"{name}.py"
        for name in ("companions", "dependencies", "following", "grants", "makers", "namespaces")
    ),
    ROOT / "render/override_references.py",
    *sorted(ROOT.glob("overrides/*.py")),
]
_REPORTED = re.compile(r'(?:code=|EditFault\(\s*|[(\[]\()"([a-z0-9]+(?:-[a-z0-9]+)+)"')


def _reported() -> set[str]:
    return {code for path in MODULES for code in _REPORTED.findall(path.read_text())}


def test_every_code_that_is_reported_is_explained() -> None:
    assert _reported() <= PROBLEM_CODES.keys()


def test_every_code_that_is_explained_is_reported() -> None:
    assert RENDER_CODES.keys() <= _reported()
    assert not RENDER_CODES.keys() & POLICY_CODES.keys()
