"""Every problem code that users may meet, with what it means and what to do. Documentation is generated from this.

A part that reports problems keeps its codes in a table beside its modules and adds the table here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reconciler.stages.lint_codes import LINT_CODES
from reconciler.stages.policy_codes import POLICY_CODES
from reconciler.stages.problem_code import ProblemCode
from reconciler.stages.render_codes import RENDER_CODES
from reconciler.stages.stalled import MOVE_CODES

_TABLES: tuple[Mapping[str, ProblemCode], ...] = (POLICY_CODES, LINT_CODES, RENDER_CODES, MOVE_CODES)

PROBLEM_CODES: Mapping[str, ProblemCode] = MappingProxyType(
    {code: explained for table in _TABLES for code, explained in sorted(table.items())}
)
"""Code to its explanation."""
