"""Archives of strangers: tar in gzip, read in memory and within bounds."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import Final, NamedTuple, Self

from reconciler.decoding import decompressed

_MAX_HEADER_BYTES: Final = 8_192
_MAX_HEADERS_COST: Final = 10**9
"""Of extended headers, which are read in time by the square of their length (CVE-2024-6232): lengths squared."""


class ArchivedFile(NamedTuple):
    """An ordinary file. `path`: relative, without `.` and `..`."""

    path: str
    data: bytes
    is_executable: bool


def archived_files(data: bytes, *, bytes_max: int, entries_max: int) -> Iterator[ArchivedFile]:
    """Yield the files of an archive. `bytes_max`: of it when it is unpacked.

    Raises ValueError: it is no archive or too large, or an entry is neither file nor folder, or leads out of it.
    """
    try:
        plain = decompressed(data, bytes_max, is_gzip=True)
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:", tarinfo=_bounded_headers()) as archive:
            for count, member in enumerate(archive, start=1):
                if count > entries_max:
                    raise ValueError(f"it holds more than {entries_max:,} entries")
                parts = [part for part in member.name.split("/") if part not in ("", ".")]
                is_plain = (member.isfile() and not member.issparse()) or member.isdir()
                if not is_plain or member.name.startswith("/") or ".." in parts:
                    raise ValueError(f"it holds {member.name!r}, which is a link or leads out of it")
                content = archive.extractfile(member)
                if content is not None:
                    yield ArchivedFile("/".join(parts), content.read(), bool(member.mode & 0o100))
    except (tarfile.TarError, EOFError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _bounded_headers() -> type[tarfile.TarInfo]:
    """Return the type of members of one archive, which raises ValueError before it reads what is dear."""

    class BoundedMember(tarfile.TarInfo):
        cost = 0

        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            header = super().frombuf(buf, encoding, errors)
            if header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
                cls.cost += header.size**2
                if header.size > _MAX_HEADER_BYTES or cls.cost > _MAX_HEADERS_COST:
                    raise ValueError(f"its extended headers are longer than {_MAX_HEADER_BYTES:,} bytes, or too many")
            return header

    return BoundedMember
