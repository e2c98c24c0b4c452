"""The answer of sops about a file, accepted only in the shape of the file: the same tree with values in it.

AES-GCM keeps the length, so that a value has exactly as many bytes as its ciphertext, and a type that stands in clear.
The authentication of a file needs its data key, which sops keeps to itself: it has checked that.
"""

from __future__ import annotations

import base64
import binascii
from itertools import zip_longest
from typing import Final

from reconciler.adapters.sops.opening import NotOpenedError, Refused, value_of
from reconciler.model.content import Leaf, Opened, Sealed
from reconciler.model.tree import Json
from reconciler.stages.sealed import UNKNOWN, OrderUnknown, Value, parts_of, values_in_order

_OTHERWISE: Final = Refused(UNKNOWN, "sops answered with something else than the file with its values; encrypt it anew")


def values_of(sealed: Sealed, answer: bytes) -> Opened | Refused:
    """The values that an answer has in place of the ciphertext of a file, or why none of it is used."""
    found: dict[Leaf, Json] = {}
    try:
        for ours, theirs in zip_longest(
            values_in_order(sealed.data, is_json=sealed.is_json), values_in_order(answer, is_json=sealed.is_json)
        ):
            if ours is None or theirs is None or ours.names != theirs.names or theirs.ciphertext is not None:
                return _OTHERWISE
            if ours.ciphertext is None:
                if ours.clear != theirs.clear:
                    return _OTHERWISE
                continue
            value = _value(ours, theirs)
            if (ours.names, ours.ciphertext) in found and found[ours.names, ours.ciphertext] != value:
                return _OTHERWISE
            found[ours.names, ours.ciphertext] = value
    except NotOpenedError as error:
        return error.refused
    except OrderUnknown:
        return _OTHERWISE
    return Opened(values=found)


def _value(ours: Value, theirs: Value) -> Json:
    parts = parts_of(ours.ciphertext or "")
    try:
        length = len(base64.b64decode(parts.data, validate=True)) if parts is not None else -1
    except binascii.Error:
        length = -1
    if parts is None or len(theirs.clear) != length:
        raise NotOpenedError(*_OTHERWISE)
    return value_of(theirs.clear, parts.type)[0]
