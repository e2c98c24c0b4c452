"""Memory of a Spark pod, in bytes. Source: Spark configuration, memory and memoryOverhead of driver and executor."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from reconciler.model.tree import Json
from reconciler.regex import regex

_FORM: Final = regex(r"(\d{1,15})([kmgtp]?)b?", re.IGNORECASE)
_MIB: Final = 2**20
_POWERS: Final = {"": 2, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_LEAST_OVERHEAD: Final = 384 * _MIB


def pod_memory(memory: Json, overhead: Json, factor: Fraction) -> int:
    """Return memory plus overhead: the given overhead, else the factor's share and at least 384 MiB.

    Spark's units are binary and a bare number means MiB, so `512m` is 512 MiB, not a Kubernetes quantity.
    """
    heap = _bytes(memory)
    if heap is None:
        heap = 1024 * _MIB
    written = _bytes(overhead)
    if written is not None:
        return heap + written
    share = heap * factor
    return heap + max(_LEAST_OVERHEAD, -((-share.numerator) // share.denominator))


def _bytes(value: Json) -> int | None:
    match = _FORM.fullmatch(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    return int(match.group(1)) * 1024 ** _POWERS[match.group(2).lower()] if match else None
