"""From ciphertext to values: the key of a file by age, each value by AES-GCM at its place, and all of them together.

Source: sops 3.13, aes/cipher.go and Decrypt of sops.go.

Shares of a data key: Shamir's scheme over bytes.

Source: sops 3.13, shamir/shamir.go. A share has a byte of each polynomial, and at its end the place of evaluation.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reconciler.api.content import DecryptedValues, Json, KeyGroup, Leaf, SopsMetadata
from reconciler.regex import regex
from reconciler.secrets import TAMPERED, UNKNOWN, OrderUnknown, go_float, parts_of, values_in_order

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

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
    weights = []
    for place in places:
        # The weight of a share at zero: Lagrange's polynomial.
        weight = 1
        for other in places:
            if other != place:
                weight = _times(weight, _times(other, _inverse(place ^ other)))
        weights.append(weight)
    secret = bytearray()
    for values in zip(*(share[:-1] for share in shares), strict=True):
        total = 0
        for value, weight in zip(values, weights, strict=True):
            total ^= _times(value, weight)
        secret.append(total)
    return bytes(secret)


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


NO_KEY: Final = "sops-no-key"
_MAC_ONLY_ENCRYPTED: Final = hashlib.sha256(b"sops").digest()
"""The beginning of the hash if only encrypted values are authenticated."""
_TAG_BYTES: Final = 16
_KEY_BYTES: Final = 32
_ENC_MAX: Final = 1_024
"""Characters of a data key for one X25519 identity (sops writes 400): reading takes time by the square of them."""
_NONCE_BYTES: Final = range(8, 129)
_INTEGER: Final = regex(rb"[-+]?\d{1,19}")
_TRUE: Final = frozenset({b"1", b"t", b"T", b"TRUE", b"true", b"True"})
_FALSE: Final = frozenset({b"0", b"f", b"F", b"FALSE", b"false", b"False"})
_EXACT: Final = 1e21
"""Whole numbers below it are written without an exponent, so that they are integers to an API server."""


class DecryptRefused(NamedTuple):
    """The reason why a file is not decrypted: a problem code, and words that quote nothing but recipients."""

    code: str
    message: str


class NotOpenedError(Exception):
    """A file is not opened; `refused` says why."""

    def __init__(self, code: str, message: str) -> None:
        """Of the code of a problem, and its words."""
        super().__init__(message)
        self.refused = DecryptRefused(code, message)


def decrypted_file(sealed: SopsMetadata, identities: Iterable[Any]) -> DecryptedValues | DecryptRefused:
    """The values of a file, or why there are none. Nothing of a file is used unless all of it is authentic."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - few stores have anything encrypted

    values: dict[Leaf, Json] = {}
    total = hashlib.sha512(_MAC_ONLY_ENCRYPTED if sealed.mac_only_encrypted else b"")
    try:
        cipher = AESGCM(_data_key(sealed, tuple(identities)))
        for names, ciphertext, clear in values_in_order(sealed.data, is_json=sealed.is_json):
            if ciphertext is None:
                total.update(b"" if sealed.mac_only_encrypted else clear)
                continue
            values[names, ciphertext], authentic = value_of(*_plain(cipher, ciphertext, ":".join(names) + ":"))
            total.update(authentic)
        mac, _ = _plain(cipher, sealed.mac, sealed.last_modified)
        if not hmac.compare_digest(mac, total.hexdigest().upper().encode()):
            raise _tampered("the file was changed without sops: its values are not those that it was encrypted with")
    except NotOpenedError as error:
        return error.refused
    except OrderUnknown as error:
        return DecryptRefused(UNKNOWN, f"{error}; encrypt it again with sops")
    return DecryptedValues(values=values)


def _data_key(sealed: SopsMetadata, identities: tuple[Any, ...]) -> bytes:
    share_bytes = _KEY_BYTES if len(sealed.groups) == 1 else _KEY_BYTES + 1
    shares = [share for group in sealed.groups if (share := _share(group, identities, share_bytes)) is not None]
    if len(shares) >= sealed.threshold:
        key = shares[0] if len(sealed.groups) == 1 else joined(shares)
        if key is not None:
            return key
        raise _tampered("two shares of its key are the same")
    if not shares and not sealed.has_others:
        named = {name for group in sealed.groups for name, enc in group.age if len(enc) <= _ENC_MAX}
        if spoilt := sorted(named & {str(identity.to_public()) for identity in identities}):
            raise _tampered(f"its key for {', '.join(spoilt)}, whose identity is here, was changed or cut off")
    raise NotOpenedError(NO_KEY, _missing_keys(sealed, len(shares), has_identities=bool(identities)))


def _share(group: KeyGroup, identities: tuple[Any, ...], size: int) -> bytes | None:
    """Return a group's data key, or share of it; None: no identity is one of its recipients."""
    import pyrage  # noqa: PLC0415 - as cryptography

    own = {str(identity.to_public()): identity for identity in identities}
    # What is for others is not tried: it costs as much as what is ours, and a file may name a hundred.
    for recipient, encrypted in dict(group.age).items():
        if recipient not in own or len(encrypted) > _ENC_MAX:
            continue
        try:
            share = pyrage.decrypt(encrypted.encode(), [own[recipient]])
        except Exception:  # noqa: S112 - it is spoilt: another one may do
            continue
        if len(share) == size:
            return bytes(share)
    return None


def _missing_keys(sealed: SopsMetadata, shares: int, *, has_identities: bool) -> str:
    """Return why there is no data key, with the remedy."""
    recipients = ", ".join(sealed.recipients)
    if not any(group.age for group in sealed.groups):
        return f"it is encrypted for {recipients} alone; add an age recipient, or give the service --sops-binary"
    if len(sealed.groups) > 1:
        needed, of = sealed.threshold, len(sealed.groups)
        return f"{needed} of its {of} groups of keys are needed, and {shares} opened; it is encrypted for {recipients}"
    if has_identities:
        return f"no identity of --sops-age-key-file opens it; it is encrypted for {recipients}"
    return f"no identity was given (--sops-age-key-file); it is encrypted for {recipients}"


def _plain(cipher: AESGCM, ciphertext: str, about: str) -> tuple[bytes, str]:
    """Return a decrypted value, and its type. `about`: the authenticated context."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above

    parts = parts_of(ciphertext)
    if parts is None:
        raise _tampered("an encrypted value is cut off")
    try:
        data, nonce, tag = (base64.b64decode(part, validate=True) for part in parts.groups()[:3])
    except binascii.Error:
        raise _tampered("an encrypted value is no base64") from None
    if len(tag) != _TAG_BYTES or len(nonce) not in _NONCE_BYTES:
        raise _tampered("an encrypted value is cut off")
    try:
        return cipher.decrypt(nonce, data + tag, about.encode()), parts["type"]
    except InvalidTag:
        raise _tampered("an encrypted value was changed, or moved to another field") from None


def value_of(raw: bytes, type_: str) -> tuple[Json, bytes]:
    """Return a value as part of an object, and its authenticated bytes."""
    match type_:
        case "str" | "time":
            try:
                return raw.decode(), raw
            except UnicodeDecodeError:
                raise NotOpenedError(UNKNOWN, "an encrypted text is no UTF-8; encode it with base64 first") from None
        case "int" if _INTEGER.fullmatch(raw):
            return int(raw), str(int(raw)).encode()
        case "float":
            try:
                value = float(raw)
            except ValueError:
                raise NotOpenedError(UNKNOWN, "an encrypted number is none") from None
            return int(value) if value.is_integer() and abs(value) < _EXACT else value, go_float(value)
        case "bool" if raw in _TRUE | _FALSE:
            return raw in _TRUE, b"True" if raw in _TRUE else b"False"
        case _:
            raise NotOpenedError(UNKNOWN, f"an encrypted value of type {type_} is not known here")


def _tampered(message: str) -> NotOpenedError:
    return NotOpenedError(TAMPERED, f"{message}; restore the file, or encrypt it again")
