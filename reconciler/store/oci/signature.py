"""Signatures of cosign by a key of the operator: beside the artifact by tag, or as a referrer.

Source: sigstore/cosign, `specs/SIGNATURE_SPEC.md`; sigstore bundle 0.3, with a DSSE envelope; OCI Distribution
Specification 1.1, "Listing Referrers".
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from reconciler.api.content import dig
from reconciler.errors import StoreError
from reconciler.store.oci.registry_client import MANIFEST_BYTES_MAX, RegistryAccess, RegistryClient

SIGNATURES_MAX: Final = 32
PAYLOAD_BYTES_MAX: Final = 2**20
_SIMPLE: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
_BUNDLE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
_TYPES: Final = (_BUNDLE, "application/vnd.dev.cosign.artifact.sig.v1+json")
_STATEMENT: Final = "application/vnd.in-toto+json"
_SIGNED: Final = "https://sigstore.dev/cosign/sign/v1"
"""Other statements about an artifact, as a list of its faults, are no signature of it."""
_END: Final = b"-----END PUBLIC KEY-----"

PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey


async def verify(registry: RegistryClient, digest: str, access: RegistryAccess) -> None:
    """Nothing, when one of the keys has signed the artifact of a digest (64 hex digits).

    Raises StoreError: none has, or no key can be read.
    """
    keys = _keys(access.keys, access.keys_source)
    count = 0
    async for signed, signature, named in _signatures(registry, digest):
        count += 1
        if named == f"sha256:{digest}" and any(_is_of(key, signature, signed) for key in keys):
            return
        if count == SIGNATURES_MAX:
            break
    if not count:
        raise StoreError(f"sha256:{digest} is not signed; `cosign sign --key` signs it")
    raise StoreError(
        f"none of the {count} signatures of sha256:{digest} is of a key in {access.keys_source}; somebody else signed "
        "it, or the key was exchanged"
    )


def _keys(pem: bytes, where: str) -> list[PublicKey]:
    """The keys of a file: while one is exchanged there are two."""
    keys: list[PublicKey] = []
    for part in pem.split(_END)[:-1]:
        try:
            key = load_pem_public_key(part.strip() + b"\n" + _END + b"\n")
        except ValueError as error:
            raise StoreError(f"{where}: it holds a key that cannot be read; write cosign.pub there again") from error
        if not isinstance(key, PublicKey):
            raise StoreError(f"{where}: a key is of ECDSA, Ed25519 or RSA, as cosign makes it")
        keys.append(key)
    if not keys:
        raise StoreError(f"{where}: it holds no public key in PEM (cosign.pub)")
    return keys


def _is_of(key: PublicKey, signature: bytes, signed: bytes) -> bool:
    match key:
        case ec.EllipticCurvePublicKey():
            # cosign hashes as the curve has it since version 3, before always by SHA-256.
            own = {384: SHA384(), 521: SHA512()}.get(key.curve.key_size)
            hashes = (SHA256(), own) if own is not None else (SHA256(),)
            return any(_is_verified(key, signature, signed, ec.ECDSA(each)) for each in hashes)
        case rsa.RSAPublicKey():
            return _is_verified(key, signature, signed, padding.PKCS1v15(), SHA256())
        case _:
            return _is_verified(key, signature, signed)


def _is_verified(key: PublicKey, *signed: Any) -> bool:
    try:
        key.verify(*signed)
    except InvalidSignature:
        return False
    return True


async def _signatures(registry: RegistryClient, digest: str) -> AsyncIterator[tuple[bytes, bytes, str]]:
    """Yield signed bytes, the signature, and the digest that they name. Ones of another form are passed over."""
    async for signature in _signed_by(registry, _json(await registry.find(f"manifests/sha256-{digest}.sig"))):
        yield signature
    listed = await registry.find(f"referrers/sha256:{digest}") or await registry.find(f"manifests/sha256-{digest}")
    # Some registries list another type than that of the manifest: the layers count.
    referrers = sorted(_each(_json(listed), "manifests"), key=lambda each: each.get("artifactType") not in _TYPES)
    for referrer in referrers[:SIGNATURES_MAX]:
        manifest = await registry.manifest(str(referrer.get("digest")).removeprefix("sha256:"))
        async for signature in _signed_by(registry, _json(manifest)):
            yield signature


async def _signed_by(registry: RegistryClient, manifest: Any) -> AsyncIterator[tuple[bytes, bytes, str]]:
    for layer in _each(manifest, "layers"):
        if layer.get("mediaType") == _SIMPLE:
            payload = await registry.blob(str(layer.get("digest")), PAYLOAD_BYTES_MAX)
            named = dig(_json(payload), "critical", "image", "docker-manifest-digest")
            yield payload, _bytes(dig(layer, "annotations", "dev.cosignproject.cosign/signature")), str(named)
        elif layer.get("mediaType") == _BUNDLE:
            envelope = dig(_json(await registry.blob(str(layer.get("digest")), MANIFEST_BYTES_MAX)), "dsseEnvelope")
            payload, kind = _bytes(dig(envelope, "payload")), str(dig(envelope, "payloadType"))
            statement = _json(payload)
            if kind != _STATEMENT or dig(statement, "predicateType") != _SIGNED:
                continue
            for signature in _each(envelope, "signatures"):
                for subject in _each(statement, "subject"):
                    named = f"sha256:{dig(subject, 'digest', 'sha256')}"
                    # Source: secure-systems-lab/dsse, `protocol.md`, "PAE".
                    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
                    yield signed, _bytes(signature.get("sig")), named


def _json(data: bytes | None) -> Any:
    try:
        return orjson.loads(data) if data is not None else None
    except ValueError:
        return None


def _each(value: Any, name: str) -> list[Mapping[str, Any]]:
    entries = dig(value, name)
    return [each for each in entries if isinstance(each, Mapping)] if isinstance(entries, list) else []


def _bytes(text: Any) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError:
        return b""
