from __future__ import annotations

import re
from pathlib import Path

import reconciler
from reconciler.lint import PROBLEM_CODES
from reconciler.lint.lint_codes import _TABLES
from reconciler.policy import WINDOW_CODES
from reconciler.rollouts import ROLLOUT_CODES

ROOT = Path(reconciler.__file__).parent
OWN = {**ROLLOUT_CODES, **WINDOW_CODES}


def reported() -> set[str]:
    modules = [*(ROOT / "rollouts").rglob("*.py"), ROOT / "policy/cron.py", ROOT / "policy/window_documents.py"]
    texts = [path.read_text(encoding="utf-8") for path in modules if path.stem != "rollout_fields"]
    found = {code for text in texts for code in re.findall(r'"([a-z]+(?:-[a-z]+)+)"', text)}
    return found


def test_every_code_that_is_reported_is_explained_and_the_other_way_round() -> None:
    assert reported() <= PROBLEM_CODES.keys()
    assert OWN.keys() <= reported()


def test_no_code_is_explained_twice() -> None:
    assert len(PROBLEM_CODES) == sum(map(len, _TABLES))
