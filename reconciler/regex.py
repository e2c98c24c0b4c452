"""Regular expressions that are compiled when they are first used.

Python compiles them in Python: a hundred that a command may need and hardly uses took it a fiftieth of its time.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_USED = ("findall", "finditer", "fullmatch", "match", "pattern", "search", "split", "sub", "subn")


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return `re.compile` made lazily, for its methods; functions of `re` take no such value.

    >>> bool(regex("[a-z]+").fullmatch("abc"))
    True
    """
    return cast("re.Pattern[AnyStr]", _CompiledWhenUsed(pattern, flags))


class _CompiledWhenUsed:
    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        if name not in _USED:
            raise AttributeError(name)
        compiled = re.compile(*self._source)
        # From now on they are found without coming here.
        self.__dict__.update({used: getattr(compiled, used) for used in _USED})
        return self.__dict__[name]
