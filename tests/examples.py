"""The number of examples for the laws."""

from __future__ import annotations

import os

IS_CI = bool(os.environ.get("CI"))
"""CI tries the same examples in every run, and many; the desk tries a few new ones."""


def examples(number: int) -> int:
    """So many in CI, and half of them at the desk, where everybody waits for them."""
    return number if IS_CI else max(number // 2, 10)
