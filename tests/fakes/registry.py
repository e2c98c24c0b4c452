"""An OCI registry on loopback, which can be told to misbehave."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import json
import ssl
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

FLUX: Final = "application/vnd.cncf.flux.content.v1.tar+gzip"
ORAS: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
BUNDLE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def packed(files: Mapping[str, str], extra: tuple[tarfile.TarInfo, ...] = ()) -> bytes:
    """Files as `tar -z` packs them."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
        for entry in extra:
            archive.addfile(entry)
    return gzip.compress(made.getvalue(), mtime=0)


def _hash_of(key: ec.EllipticCurvePrivateKey) -> SHA256 | SHA384:
    return SHA384() if isinstance(key.curve, ec.SECP384R1) else SHA256()


class Registry:
    """One repository `fleet`. `login`: user and password that it wants; `token`: it wants that instead, as Bearer."""

    def __init__(self, *, login: str = "", token: str = "", certificate: tuple[Path, Path] | None = None) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        """By digest and by tag."""
        self.referrers: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[tuple[str, str, str]] = []
        """Method, path and what was sent to sign in."""
        self.status = 0
        self.realm = ""
        """The place that it sends to for a token; empty: itself."""
        self.blobs_at = ""
        """The place that it sends to for blobs; empty: it has them."""
        self.tags: list[str] = []
        """As it lists them, one a page."""
        self.is_silent = False
        self.hides_digests = False
        self._login, self._token = login, token
        self._tls: ssl.SSLContext | None = None
        if certificate is not None:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(*certificate)

    async def __aenter__(self) -> Registry:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.2" if self._tls else "127.0.0.1", 0, ssl_context=self._tls)
        await self._site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    @property
    def store(self) -> str:
        return f"oci://{'127.0.0.2' if self._tls else 'localhost'}:{self.port}/fleet"

    def push(
        self, tag: str, *layers: bytes, kind: str = FLUX, annotations: Mapping[str, str] | None = None, **more: Any
    ) -> str:
        """Push an artifact, and return its digest."""
        listed = [{"mediaType": kind, "digest": self._blob(data), "size": len(data)} for data in layers]
        body = {"schemaVersion": 2, "mediaType": MANIFEST, "layers": listed, "annotations": annotations, **more}
        return self.put(tag, json.dumps(body).encode())

    def put(self, tag: str, manifest: bytes) -> str:
        digest = sha256(manifest)
        self.manifests[tag] = self.manifests[digest] = manifest
        return digest

    def _blob(self, data: bytes) -> str:
        digest = sha256(data)
        self.blobs[digest] = data
        return digest

    def sign(self, digest: str, key: ec.EllipticCurvePrivateKey, *, named: str = "") -> None:
        """As cosign signs with a key, up to version 2: a payload beside the artifact, by tag."""
        image = {"docker-manifest-digest": named or digest}
        payload = json.dumps({"critical": {"image": image, "type": "cosign container image signature"}}).encode()
        signature = base64.b64encode(key.sign(payload, ec.ECDSA(SHA256()))).decode()
        layer = {
            "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
            "digest": self._blob(payload),
            "size": len(payload),
            "annotations": {"dev.cosignproject.cosign/signature": signature},
        }
        self.put(digest.replace(":", "-") + ".sig", json.dumps({"schemaVersion": 2, "layers": [layer]}).encode())

    def sign_as_bundle(
        self,
        digest: str,
        key: ec.EllipticCurvePrivateKey,
        predicate: str = "https://sigstore.dev/cosign/sign/v1",
        listed_type: str = BUNDLE,
    ) -> None:
        """As cosign signs since version 3: a statement in an envelope, as a referrer."""
        subject = [{"digest": {"sha256": digest.removeprefix("sha256:")}}]
        statement = json.dumps({"subject": subject, "predicateType": predicate}).encode()
        kind = "application/vnd.in-toto+json"
        signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(statement), statement)
        signature = base64.b64encode(key.sign(signed, ec.ECDSA(_hash_of(key)))).decode()
        envelope = {
            "payload": base64.b64encode(statement).decode(), "payloadType": kind, "signatures": [{"sig": signature}],
        }  # fmt: skip
        bundle = json.dumps({"mediaType": BUNDLE, "dsseEnvelope": envelope}).encode()
        layer = {"mediaType": BUNDLE, "digest": self._blob(bundle), "size": len(bundle)}
        manifest = json.dumps({"schemaVersion": 2, "artifactType": BUNDLE, "layers": [layer]}).encode()
        listed = {"mediaType": MANIFEST, "digest": self.put("", manifest), "artifactType": listed_type}
        self.referrers.setdefault(digest, []).append(listed)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        sent = request.headers.get("Authorization", "")
        self.asked.append((request.method, request.path, sent))
        if self.is_silent:
            await asyncio.Event().wait()
        if self.status:
            return web.Response(status=self.status)
        if request.path.endswith("/tags/list"):
            last = request.query.get("last")
            after = self.tags.index(last) + 1 if last else 0
            return web.json_response({"tags": self.tags[after : after + 1]})
        basic = f"Basic {base64.b64encode(self._login.encode()).decode()}"
        if request.path == "/token":
            is_known = not self._login or sent == basic
            return web.json_response({"token": self._token}, status=200 if is_known else 401)
        if self._token and sent != f"Bearer {self._token}":
            realm = self.realm or f"http://localhost:{self.port}/token"
            return web.Response(status=401, headers={"WWW-Authenticate": f'Bearer realm="{realm}",service="here"'})
        if self._login and not self._token and sent != basic:
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="here"'})
        return self._found(request.path.removeprefix("/v2/fleet/"))

    def _found(self, path: str) -> web.Response:
        what, _, name = path.partition("/")
        if what == "referrers":
            return web.json_response({"schemaVersion": 2, "manifests": self.referrers.get(name, [])})
        if what == "blobs" and self.blobs_at:
            return web.Response(status=307, headers={"Location": f"{self.blobs_at}/v2/fleet/{path}"})
        body = (self.manifests if what == "manifests" else self.blobs).get(name)
        if body is None:
            return web.Response(status=404)
        headers = {} if self.hides_digests else {"Docker-Content-Digest": sha256(body)}
        return web.Response(body=body, headers=headers)


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
