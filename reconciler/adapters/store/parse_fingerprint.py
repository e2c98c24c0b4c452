"""The fingerprint of the parser: it changes with the parser, the interpreters and the shape of cached values.

It is made from the source itself, since a version number would once be forgotten, and then old results stay.
Interpreters of other packages are not part of it: their results are never cached (`stages/templates/facts.py`).
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from reconciler import __version__

_PACKAGE: Final = Path(__file__).parents[2]
PARTS: Final = ("adapters/store", "interpreters", "model", "stages", "containment.py", "prepared.py", "regex.py")
"""The parts of the package that determine the parse result of a text and its form in the cache."""
_SUFFIXES: Final = (".py", ".json")


@cache
def parse_fingerprint() -> str:
    """Return the hex digest over the source of the parser, computed once in a process: 10 ms.

    Raises:
        OSError: the source cannot be read.
    """
    reader = find_spec("yaml")
    beside = [Path(reader.origin)] if reader is not None and reader.origin is not None else []
    return digest_of_source(_PACKAGE, PARTS, (__version__, sys.version, *(found.read_text() for found in beside)))


def digest_of_source(package: Path, parts: Iterable[str], texts: Iterable[str] = ()) -> str:
    """Hex digits of a digest over the source files of these folders and files, by their paths, and over texts.

    Raises:
        OSError: one of them cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(text.encode() + b"\0")
    for part in parts:
        for path in _files(package / part):
            digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, below, names in os.walk(path):
        below.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(_SUFFIXES))
