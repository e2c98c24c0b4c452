"""The style, the script and the signs of a tab. Their addresses change with their content, so they may be kept."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The browser may load nothing inline and nothing from other hosts."""
CACHE_CONTROL: Final = "private, max-age=31536000, immutable"
"""For static files alone; pages are not kept."""

_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class StaticFile(Struct, frozen=True):
    """A file as it is served, in UTF-8."""

    content: bytes
    content_type: str


def _read() -> tuple[dict[str, StaticFile], dict[str, str]]:
    files, shown_at = dict[str, StaticFile](), dict[str, str]()
    for path in sorted((Path(__file__).parent / "static").iterdir()):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            address = f"/static/{path.stem}-{sha256(content).hexdigest()[:12]}{path.suffix}"
            files[address] = StaticFile(content, _TYPES[path.suffix])
            shown_at[path.name] = address
    return files, shown_at


STATIC_FILES, SHOWN_AT = _read()
"""The served files by address, and the address of each by its name."""
