"""Answers of every form, with the headers that all of them carry."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct

from reconciler.report.json_parts import json_text
from reconciler.report.text.safe import ascii_json

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_REVALIDATED: Final = {**HEADERS, "Cache-Control": "no-cache", "Vary": "Authorization, Accept-Encoding"}
"""Headers of answers with a tag: clients may cache them and revalidate each time."""
_PACKED_FROM: Final = 16_384
"""So many bytes are worth packing."""


class Packed(Struct, frozen=True, kw_only=True):
    """A text as it is sent. `packed`: with gzip; empty: it is too short for that."""

    plain: bytes
    tag: str
    packed: bytes = b""


def packed(value: Any) -> Packed:
    """Return a value as JSON, harmless on a terminal. Slow work is done once here, not for each reader."""
    return packed_text(json_text(value) if isinstance(value, dict) else _struct_text(value))


def packed_text(text: str) -> Packed:
    """A text as it is sent to many readers."""
    plain = text.encode(errors="replace")
    # An answer holds no part of a question and no secret: compressing reveals nothing.
    packed_bytes = gzip.compress(plain, compresslevel=1, mtime=0) if len(plain) >= _PACKED_FROM else b""
    return Packed(plain=plain, tag=f'"{hashlib.sha256(plain).hexdigest()[:32]}"', packed=packed_bytes)


def _struct_text(value: Any) -> str:
    try:
        return ascii_json(msgspec.json.encode(value).decode()) + "\n"
    except UnicodeEncodeError:  # half a surrogate pair, which the standard library can write
        return json.dumps(msgspec.to_builtins(value)) + "\n"


def plain(status: int, text: str) -> web.Response:
    """A line of ours."""
    return web.Response(status=status, text=f"{text}\n", headers=HEADERS)


def document(body: Mapping[str, Any], status: int = HTTPStatus.OK) -> web.Response:
    """A small JSON document, as it is now."""
    text = ascii_json(json.dumps(body, ensure_ascii=False, indent=1))
    return web.Response(status=status, text=f"{text}\n", content_type="application/json", headers=HEADERS)


def fault(status: int, error: str, todo: str) -> web.Response:
    """Return an error with its remedy as JSON."""
    return document({"error": error, "todo": todo}, status)


def tagged(
    request: web.BaseRequest,
    found: Packed,
    headers: Mapping[str, str] | None = None,
    *,
    content_type: str = "application/json",
    status: int = HTTPStatus.OK,
) -> web.Response:
    """The text, packed where the reader can unpack it; 304 where the reader has it already."""
    sent = {**_REVALIDATED, **(headers or {}), "ETag": found.tag}
    known = (each.strip().removeprefix("W/") for each in request.headers.get("If-None-Match", "").split(","))
    if found.tag in known and status == HTTPStatus.OK:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=sent)
    codings = (each.partition(";")[0].strip() for each in request.headers.get("Accept-Encoding", "").split(","))
    if found.packed and "gzip" in codings:
        sent["Content-Encoding"] = "gzip"
        return web.Response(status=status, body=found.packed, content_type=content_type, charset="utf-8", headers=sent)
    return web.Response(status=status, body=found.plain, content_type=content_type, charset="utf-8", headers=sent)
