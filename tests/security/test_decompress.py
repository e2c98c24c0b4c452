"""Compressed bytes of strangers: one stream, whole, up to its limit. Source: RFC 1952, 2.2; CVE-2025-69223."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest

from reconciler.prepared import decompressed

LIMIT = 1_000
AT_LIMIT = b"x" * LIMIT


@pytest.mark.parametrize(("compress", "is_gzip"), [(gzip.compress, True), (zlib.compress, False)])
def test_a_stream_at_its_limit_is_read_and_one_byte_more_is_refused(
    compress: Callable[[bytes], bytes], is_gzip: bool
) -> None:
    assert decompressed(compress(AT_LIMIT), LIMIT, is_gzip=is_gzip) == AT_LIMIT
    with pytest.raises(ValueError, match="holds more than 1,000 bytes"):
        decompressed(compress(AT_LIMIT + b"x"), LIMIT, is_gzip=is_gzip)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b"a") + gzip.compress(b"b"), "something follows"),
        (gzip.compress(b"a") + gzip.compress(b""), "something follows"),
        (gzip.compress(b"a") + b"\0", "something follows"),
        (gzip.compress(AT_LIMIT) + b"x", "something follows"),
        (gzip.compress(AT_LIMIT)[:-1], "cut off"),
        (gzip.compress(b"a")[:5], "cut off"),
        (b"", "cut off"),
        (gzip.compress(b"a")[:-8] + bytes(8), "incorrect data check"),
        (zlib.compress(b"a"), "incorrect header check"),
        (b"\x28\xb5\x2f\xfd", "incorrect header check"),
    ],
)
def test_what_is_not_exactly_one_member_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decompressed(data, LIMIT, is_gzip=True)
