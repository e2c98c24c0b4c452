"""Shares of a data key: Shamir's scheme over bytes.

Source: sops 3.13, shamir/shamir.go. A share has a byte of each polynomial, and at its end the place of evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_REDUCED_BY: Final = 0x11B
"""The polynomial that the field of AES is made with."""


def joined(shares: Sequence[bytes]) -> bytes | None:
    r"""Return the key of shares of one length; None: two of them are the same one.

    >>> joined([bytes([5, 1]), bytes([6, 2])])
    b'\x04'
    """
    places = [share[-1] for share in shares]
    if len(set(places)) != len(places) or 0 in places:
        return None
    weights = [_weight(place, [other for other in places if other != place]) for place in places]
    found = bytearray()
    for values in zip(*(share[:-1] for share in shares), strict=True):
        total = 0
        for value, weight in zip(values, weights, strict=True):
            total ^= _times(value, weight)
        found.append(total)
    return bytes(found)


def _weight(place: int, others: Sequence[int]) -> int:
    """Return the weight of a share at zero: Lagrange's polynomial."""
    weight = 1
    for other in others:
        weight = _times(weight, _times(other, _inverse(place ^ other)))
    return weight


def _times(left: int, right: int) -> int:
    product = 0
    while right:
        if right & 1:
            product ^= left
        left <<= 1
        if left & 0x100:
            left ^= _REDUCED_BY
        right >>= 1
    return product


def _inverse(value: int) -> int:
    result = 1
    for _ in range(254):
        result = _times(result, value)
    return result
