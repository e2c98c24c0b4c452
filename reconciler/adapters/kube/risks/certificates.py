"""Until when certificates are valid: the one field that matters here, read from their DER form.

Source: RFC 5280, 4.1 Basic Certificate Fields; X.690 for the encoding. The standard library reads no certificates.
"""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime
from typing import Final

from reconciler.regex import regex

_PEM: Final = regex(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_LONG_LENGTH: Final = 0x80
_CENTURY_BEGINS: Final = 50
"""Source: RFC 5280, 4.1.2.5.1: two digits from 50 on are of the last century."""


def ends_of_validity(pem: bytes) -> list[datetime]:
    """Return the end of validity of each certificate of a PEM text (UTC), in order; unreadable ones are left out."""
    ends = []
    for found in _PEM.finditer(pem.decode("ascii", errors="replace")):
        try:
            ends.append(_not_after(ssl.PEM_cert_to_DER_cert(found[0])))
        except (ValueError, IndexError):
            continue
    return ends


def _not_after(der: bytes) -> datetime:
    _, certificate = _elements(der)[0]
    _, signed = _elements(certificate)[0]
    fields = [element for element in _elements(signed) if element[0] != _VERSION]
    # serialNumber, signature, issuer, validity
    tag, validity = fields[3]
    if tag != _SEQUENCE:
        raise ValueError("no validity where it should be")
    _, (tag, value) = _elements(validity)
    return _time(tag, value.decode("ascii"))


def _elements(data: bytes) -> list[tuple[int, bytes]]:
    """Yield tag and content of each element in the data, one after the other."""
    found, at = [], 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & _LONG_LENGTH:
            size = length & ~_LONG_LENGTH
            length, at = int.from_bytes(data[at : at + size]), at + size
        if at + length > len(data):
            raise ValueError("an element is longer than what holds it")
        found.append((tag, data[at : at + length]))
        at += length
    return found


def _time(tag: int, text: str) -> datetime:
    if tag == _UTC_TIME:
        text = ("19" if int(text[:2]) >= _CENTURY_BEGINS else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("no time where it should be")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
