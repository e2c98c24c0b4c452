"""Every problem code that users may meet, with its meaning and remedy. Documentation is generated from this.

A part that reports problems keeps its codes in a table beside its modules and adds the table here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reconciler.stages.documents import ProblemCode
from reconciler.stages.hydration import HYDRATION_CODES
from reconciler.stages.lint.codes import LINT_CODES
from reconciler.stages.moves import MOVE_CODES
from reconciler.stages.policies import POLICY_CODES
from reconciler.stages.rendering import RENDER_CODES
from reconciler.stages.rollouts import ROLLOUT_CODES
from reconciler.stages.sealed import SEALED_CODES
from reconciler.stages.windows import WINDOW_CODES

_TABLES: tuple[Mapping[str, ProblemCode], ...] = (
    POLICY_CODES,
    LINT_CODES,
    RENDER_CODES,
    MOVE_CODES,
    ROLLOUT_CODES,
    WINDOW_CODES,
    SEALED_CODES,
    HYDRATION_CODES,
)

PROBLEM_CODES: Mapping[str, ProblemCode] = MappingProxyType(
    {code: explained for table in _TABLES for code, explained in sorted(table.items())}
)
"""Code to its explanation."""
