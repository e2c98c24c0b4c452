from __future__ import annotations

import re
from pathlib import Path

import reconciler.stages
from reconciler.stages.lint import all_codes
from reconciler.stages.lint.all_codes import PROBLEM_CODES
from reconciler.stages.rollouts import ROLLOUT_CODES
from reconciler.stages.windows import WINDOW_CODES

STAGES = Path(reconciler.stages.__file__).parent
OWN = {**ROLLOUT_CODES, **WINDOW_CODES}


def reported() -> set[str]:
    modules = [path for folder in ("rollouts", "windows") for path in (STAGES / folder).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in modules if path.stem not in ("codes", "fields")]
    found = {code for text in texts for code in re.findall(r'"([a-z]+(?:-[a-z]+)+)"', text)}
    return found


def test_every_code_that_is_reported_is_explained_and_the_other_way_round() -> None:
    assert reported() <= PROBLEM_CODES.keys()
    assert OWN.keys() <= reported()


def test_no_code_is_explained_twice() -> None:
    assert len(PROBLEM_CODES) == sum(map(len, all_codes._TABLES))
