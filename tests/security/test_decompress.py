"""Compressed bytes of strangers: one stream, whole, up to its limit. Source: RFC 1952, 2.2; CVE-2025-69223.

An archive of a chart at its limits costs seconds, and one with headers that are dear to read is refused before.
"""

from __future__ import annotations

import gzip
import tarfile
import time
import zlib
from collections.abc import Callable
from typing import Final

import pytest

from reconciler.api.fleet import HelmChart
from reconciler.decoding import decompressed
from reconciler.helm.files import MAX_FILES, InputRefused
from reconciler.helm.inputs import _MAX_UNPACKED_BYTES, _check_archive
from reconciler.store.oci.archives import _MAX_HEADER_BYTES, _MAX_HEADERS_COST

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


CPU_S: Final = 8.0
"""Measured on an idle machine: 0.6 for entries, 3 for headers."""
END: Final = bytes(1_024)


def member(name: str, data: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    return info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)


def entries(count: int, length: int = _MAX_UNPACKED_BYTES) -> bytes:
    return b"".join(member(f"web/{number}", b"") for number in range(count)).ljust(length, b"\0")


def digits(length: int, count: int = 1) -> bytes:
    """Extended headers of digits, in which every digit may begin a record."""
    return (member("h", b"1" * length, tarfile.XHDTYPE) + member("web/a", b"")) * count + END


HEADERS: Final = _MAX_HEADERS_COST // _MAX_HEADER_BYTES**2
CASES: Final[dict[str, tuple[Callable[[], bytes], Callable[[], bytes], str]]] = {
    "bytes": (lambda: entries(1), lambda: entries(1, _MAX_UNPACKED_BYTES + 1), "holds more than"),
    "entries": (lambda: entries(MAX_FILES), lambda: entries(MAX_FILES + 1), "holds more than"),
    "a header": (lambda: digits(_MAX_HEADER_BYTES), lambda: digits(_MAX_HEADER_BYTES + 1), "extended headers"),
    "headers": (
        lambda: digits(_MAX_HEADER_BYTES, HEADERS), lambda: digits(_MAX_HEADER_BYTES, HEADERS + 1), "extended headers"),
}  # fmt: skip


def check(unpacked: bytes) -> None:
    started_s = time.process_time()
    try:
        _check_archive(
            HelmChart(chart="web.tgz", release_name="r", namespace="demo", kube_version="1.36"),
            gzip.compress(unpacked, 1),
        )
    finally:
        assert time.process_time() - started_s < CPU_S


@pytest.mark.parametrize("name", CASES)
def test_an_archive_at_a_limit_is_read_and_one_beyond_it_is_refused(name: str) -> None:
    at_limit, beyond, words = CASES[name]
    try:
        check(at_limit())
    except InputRefused as error:
        # Some Pythons refuse such digits at once.
        assert "header" in name
        assert "invalid header" in str(error)
        words = "header"
    with pytest.raises(InputRefused, match=words):
        check(beyond())


def test_headers_of_headers_are_refused() -> None:
    with pytest.raises(InputRefused, match="is no archive"):
        check(member("h", b"", tarfile.XHDTYPE) * 5_000 + END)
