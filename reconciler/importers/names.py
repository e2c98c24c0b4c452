"""Names of other tools as names of a store: of letters that a file and a label may have."""

from __future__ import annotations

import re
from typing import Final

from reconciler.api.content import digest_of

_UNFIT: Final = re.compile(r"[^a-z0-9-]+")
NAME_MAX: Final = 53
"""Of a Render, whose limit is that of a release."""


def safe_name(text: str, most: int = NAME_MAX) -> str:
    """A name of small letters, digits and dashes; one that had to change ends with a digest.

    >>> safe_name("web"), safe_name("Team/Web")
    ('web', 'team-web-1f4c464a')
    """
    name = _UNFIT.sub("-", text.lower()).strip("-")
    if name == text and len(name) <= most:
        return name
    return f"{name[: most - 9].strip('-') or 'app'}-{digest_of(text)[:8]}"
