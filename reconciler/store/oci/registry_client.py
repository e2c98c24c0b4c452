"""One repository of an OCI registry, asked over HTTPS within bounds; a login goes to its own host alone.

Source: OCI Distribution Specification 1.1, "Pulling"; Distribution, "Token Authentication Specification"; Docker,
`config.json`, `auths`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

import orjson

from reconciler.errors import ConfigurationError, RevisionNotFound, StoreError
from reconciler.kube.connection.session import Call, Session, SessionFault, proxy_of_environment, system_tls
from reconciler.secret_files import credential_file, read_secret_file
from reconciler.store.git.url import LOOPBACK, GitUrl, authorities

MANIFEST_BYTES_MAX: Final = 4 * 2**20
"""Source: OCI Distribution Specification 1.1, "Pushing Manifests": registries take at least so much."""
_TOKEN_BYTES_MAX: Final = 2**20
HOPS_MAX: Final = 5
CONNECT_S: Final = 20.0
_SILENCE_S: Final = 60.0
_MANIFESTS: Final = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.manifest.v1", "oci.image.index.v1",
        "docker.distribution.manifest.v2", "docker.distribution.manifest.list.v2",
    )
)  # fmt: skip
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})", re.ASCII)
_PARAMETER: Final = re.compile(r'([a-z]{1,20})="([^"]{0,2000})"', re.ASCII)
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,65536}", re.ASCII)
_HUB: Final = "docker.io"
_HUB_HOSTS: Final = frozenset({"registry-1.docker.io", "auth.docker.io", "index.docker.io"})
_AUTH_FILE: Final = "RECONCILER_OCI_AUTH_FILE"
_VERIFY_KEY: Final = "RECONCILER_OCI_VERIFY_KEY"


class RegistryAccess(NamedTuple):
    """All that a pull needs beside the address. `logins`: `user:password` in base64, by host (and port).

    `keys`: public keys in PEM, one of which has to have signed an artifact; empty: no signature is asked for.
    `keys_source`: the variable and the file that it names.
    """

    logins: Mapping[str, str] = {}
    tls: ssl.SSLContext | None = None
    keys: bytes = b""
    keys_source: str = _VERIFY_KEY


def registry_access(environ: Mapping[str, str]) -> RegistryAccess:
    """The logins, authorities and keys that the operator named; read at each pull.

    Raises StoreError: a file that was named cannot be read, or has another form.
    """
    logins, keys = (_file_content(environ, name) for name in (_AUTH_FILE, _VERIFY_KEY))
    own = authorities(environ, "RECONCILER_OCI_CA")
    try:
        tls = ssl.create_default_context(cadata=own.decode()) if own else None
    except (ssl.SSLError, ValueError) as error:
        what = f"RECONCILER_OCI_CA {environ.get('RECONCILER_OCI_CA', '')}".strip()
        raise StoreError(f"{what}: it holds no certificate that can be read; write its PEM there again") from error
    auth_file, key_file = (f"{name} {_file(environ, name)}" for name in (_AUTH_FILE, _VERIFY_KEY))
    return RegistryAccess(_logins(logins, auth_file) if logins else {}, tls, keys, key_file)


def _file(environ: Mapping[str, str], variable: str) -> Path | None:
    credential = {_AUTH_FILE: "oci-auth", _VERIFY_KEY: "oci-verify-key"}[variable]
    return credential_file(Path(environ[variable]) if environ.get(variable) else None, credential, environ)


def _file_content(environ: Mapping[str, str], variable: str) -> bytes:
    """Return the content of the file that a variable, or a credential of systemd, names; empty: none does."""
    file = _file(environ, variable)
    try:
        # Whoever can change a key decides what is signed; that others can read it does not matter.
        return read_secret_file(file, variable, environ) if file is not None else b""
    except ConfigurationError as error:
        raise StoreError(str(error)) from error


def _logins(data: bytes, where: str) -> dict[str, str]:
    try:
        logins: dict[str, str] = {}
        for name, entry in orjson.loads(data)["auths"].items():
            # As `Basic` has it. A helper or an identity token has others, which are not used.
            if entry.get("auth"):
                logins[_host(name)] = base64.b64encode(base64.b64decode(entry["auth"], validate=True)).decode()
            elif entry.get("username") and entry.get("password"):
                logins[_host(name)] = base64.b64encode(f"{entry['username']}:{entry['password']}".encode()).decode()
        return logins
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(
            f'{where}: it is no config.json of `docker login`: {{"auths": {{"HOST": {{"auth": …}}}}}}'
        ) from None


def _host(name: str) -> str:
    host = name.partition("://")[2] or name
    host = host.partition("/")[0].lower()
    return _HUB if host in _HUB_HOSTS else host


class RegistryAnswer(NamedTuple):
    """An answer, whatever its status. `headers`: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RegistryClient:
    """One repository, for one fetch. Each method raises StoreError: the registry cannot be asked, or refuses."""

    def __init__(self, session: Session, url: GitUrl, access: RegistryAccess, tell: Callable[[str], None]) -> None:
        """Nothing is asked yet. `tell`: called with what has come."""
        place = url.origin.removeprefix("oci://")
        scheme = "http" if url.host in LOOPBACK else "https"
        self._base = f"{scheme}://{'registry-1.docker.io' if place == _HUB else place}"
        self._name = url.path.strip("/")
        self._session, self._access, self._report = session, access, tell
        self._authorization = ""
        self._received_bytes = 0

    async def digest(self, tag: str) -> str:
        """Return the 64 hex digits of the manifest that a tag names now."""
        answer = await self._got("HEAD", f"manifests/{tag}", 0)
        match = _DIGEST.fullmatch(answer.headers.get("docker-content-digest", ""))
        if answer.status == HTTPStatus.OK and match is not None:
            return match[1]
        return hashlib.sha256(await self._body(f"manifests/{tag}", MANIFEST_BYTES_MAX, f"tag {tag}")).hexdigest()

    async def manifest(self, digest: str) -> bytes:
        """The manifest of a digest, which it has."""
        named = f"sha256:{digest}"
        return _checked(await self._body(f"manifests/{named}", MANIFEST_BYTES_MAX, f"artifact {named}"), digest)

    async def find(self, path: str) -> bytes | None:
        """A manifest or a list of referrers, by tag or path; None: the registry has none."""
        answer = await self._got("GET", path, MANIFEST_BYTES_MAX)
        if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return None
        self._refuse(answer)
        return answer.body

    async def blob(self, digest: str, bytes_max: int) -> bytes:
        """A blob of a digest `sha256:…`, which it has."""
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise StoreError(f"the manifest names a blob {digest[:80]!r}; sha256 is read alone")
        return _checked(await self._body(f"blobs/{digest}", bytes_max), match[1])

    async def _body(self, path: str, bytes_max: int, named: str = "") -> bytes:
        answer = await self._got("GET", path, bytes_max)
        if named and answer.status == HTTPStatus.NOT_FOUND:
            raise RevisionNotFound(f"there is no {named}, or it is hidden from this login (404)")
        self._refuse(answer)
        return answer.body

    async def _got(self, method: str, path: str, bytes_max: int) -> RegistryAnswer:
        address = f"{self._base}/v2/{self._name}/{path}"
        answer = await self._followed(method, address, bytes_max)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._authorization = await self._signed_in(answer.headers.get("www-authenticate", ""))
            answer = await self._followed(method, address, bytes_max)
        return answer

    async def _followed(self, method: str, address: str, bytes_max: int) -> RegistryAnswer:
        """The answer at the end of redirects, which go on without the login where they leave the registry."""
        for _ in range(HOPS_MAX):
            is_home = _origin(address) == _origin(self._base)
            answer = await self._request(method, address, self._authorization if is_home else "", bytes_max)
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            address = self._allowed(urljoin(address, answer.headers.get("location", "")), "to")
        raise StoreError("the registry sends round in circles (too many redirects)")

    def _allowed(self, address: str, word: str) -> str:
        """An address that the registry sends to, if it is one of HTTPS, or of this machine as the registry."""
        try:
            parts = urlsplit(address)
            is_plain = parts.scheme == "http" and parts.hostname in LOOPBACK and self._base.startswith("http:")
            is_sound = bool(parts.hostname) and not parts.username and address.isprintable() and " " not in address
            if is_sound and (parts.scheme == "https" or is_plain):
                return address
        except ValueError:
            pass
        raise StoreError(f"the registry sends {word} an address that is not https://, or cannot be read")

    async def _signed_in(self, challenge: str) -> str:
        """Return the header for a challenge of the registry.

        The host that gives tokens gets the login only if it is the registry, a domain above it, or has the same login
        in the file: any other could be a stranger's, and its own login would make a token that the registry then has.
        """
        scheme, parameters = challenge.partition(" ")[0].lower(), dict(_PARAMETER.findall(challenge))
        host = _host(urlsplit(self._base).netloc)
        login = self._access.logins.get(host, "")
        if scheme == "basic" and login:
            return f"Basic {login}"
        if scheme != "bearer" or "realm" not in parameters:
            raise StoreError(f"the registry wants a login (401), and {_AUTH_FILE} has none for {host}")
        realm = self._allowed(parameters["realm"], "for a token to")
        giver = _host(urlsplit(realm).netloc)
        if login and giver != host and not host.endswith(f".{giver}") and self._access.logins.get(giver) != login:
            raise StoreError(
                f"the registry sends for a token to {giver}, which does not get the login of {host}; where you trust "
                f"it, give {giver} the same login in {_AUTH_FILE}"
            )
        query = urlencode({"service": parameters.get("service", ""), "scope": f"repository:{self._name}:pull"})
        address = f"{realm}{'&' if '?' in realm else '?'}{query}"
        answer = await self._request("GET", address, f"Basic {login}" if login else "", _TOKEN_BYTES_MAX)
        if answer.status != HTTPStatus.OK:
            had = "does not accept the login" if login else f"wants a login, and {_AUTH_FILE} has none"
            raise StoreError(f"{giver}, which gives tokens, {had} ({answer.status})")
        try:
            reply = orjson.loads(answer.body)
            token = str(reply.get("token") or reply.get("access_token") or "")
        except (ValueError, AttributeError):
            token = ""
        if not _TOKEN.fullmatch(token):
            raise StoreError(f"{giver} gives no token that can be used")
        return f"Bearer {token}"

    async def _request(self, method: str, address: str, authorization: str, bytes_max: int) -> RegistryAnswer:
        host = urlsplit(address).netloc
        call = Call(
            method=method,
            url=address,
            headers=(
                ("Accept", _MANIFESTS if "/manifests/" in address else "*/*"),
                ("Accept-Encoding", "identity"),
                ("User-Agent", "fleet-reconciler"),
                *((("Authorization", authorization),) if authorization else ()),
            ),
            tls=(self._access.tls or system_tls()) if address.startswith("https:") else None,
            proxy=proxy_of_environment(address),
            connect_s=CONNECT_S,
            silence_s=_SILENCE_S,
        )
        try:
            async with self._session.request(call) as response:
                body = bytearray()
                while method != "HEAD" and (part := await response.content.readany()):
                    body += part
                    self._received_bytes += len(part)
                    self._report(f"{self._received_bytes / 1e6:.1f} MB have come")
                    if len(body) > bytes_max:
                        raise StoreError(f"{host} answers with more than {bytes_max:,} bytes where so many are allowed")
                headers = {name.lower(): value for name, value in response.headers.items()}
                return RegistryAnswer(response.status, headers, bytes(body))
        except SessionFault as error:
            raise StoreError(_fault(error, host)) from error

    def _refuse(self, answer: RegistryAnswer) -> None:
        if answer.status == HTTPStatus.OK:
            return
        words = {
            401: "does not accept the login (401)",
            403: "forbids access (403); may the login read this repository?",
            404: "has no such repository or blob, or hides it from this login (404)",
            429: "wants fewer requests (429); ask with --poll less often, or give a login",
        }
        raise StoreError(f"the registry {words.get(answer.status, f'answers {answer.status}')}")


def _checked(body: bytes, digest: str) -> bytes:
    if hashlib.sha256(body).hexdigest() != digest:
        raise StoreError(f"what the registry gives is not sha256:{digest}")
    return body


def _origin(address: str) -> tuple[str, str, int | None]:
    parts = urlsplit(address)
    return parts.scheme, (parts.hostname or ""), parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _fault(error: SessionFault, host: str) -> str:
    if error.is_about_certificates:
        return f"the server {host} is not trusted ({error}); for an authority of your own set RECONCILER_OCI_CA"
    if error.is_timeout:
        return f"{host} did not answer in time, or fell silent ({error})"
    return (
        f"the connection to {host} failed ({error}); see STORE (oci://HOST/NAME:TAG), and the network of this machine"
    )
