"""Credentials for one API server: TLS context and headers, renewed when they expire or are refused.

Token files and authorities are read again every minute, exec plugins run when their token expires, and a 401 renews
everything once; so does a connection that ended without an answer, once the files of certificates were replaced. A file
that is broken for a while costs nothing: its former content is used until it is refused. Static entries come from the
kubeconfig as read. For exec plugins the kubernetes package checks the entry and builds the command's environment; it is
run here, since the package's own runner has no deadline. The auth providers of old (oidc, gcp) are the package's alone.
Source: Kubernetes, "Authenticating, client-go credential plugins"; "kubeconfig (v1), AuthInfo".
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import signal
import ssl
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from reconciler.clock import Clock, epoch_s
from reconciler.errors import ClusterUnreachable, ConfigurationError, CredentialsRejected, MemberClusterError
from reconciler.kube.connection.kubeconfig import MemberConfig
from reconciler.kube.connection.risks import exec_plugin_of, why_rejected
from reconciler.kube.connection.session import SharedContexts, system_authorities
from reconciler.kube.refusal_errors import clean
from reconciler.regex import regex
from reconciler.secret_files import read_secret_file, token_in, why_not_read

log = logging.getLogger("reconciler")

TOKEN_FILE_AGE_MAX_S = 60.0
PLUGIN_DEADLINE_S = 30.0
PLUGIN_PATIENCE_S = 4.0
"""A request waits so long for a plugin, which goes on. Rounds wait longer for a cluster, so that they learn why."""
PLUGIN_OUTPUT_MAX = 2**20
FAILURE_AGE_MAX_S = 5.0
"""For so long a failure is the answer to everybody: those who waited for it do not each wait for another one."""
EXPIRY_MARGIN_S = 10.0
TOKEN_MAX_BYTES: Final = 65_536
"""API servers take no larger headers. Source: Go, http.DefaultMaxHeaderBytes is 1 MiB for all of them."""
Headers = tuple[tuple[str, str], ...]
"""Name and value; a name may be there several times."""
Value = TypeVar("Value")
_CONTROL: Final = regex(r"[\x00-\x1f\x7f]")


class Credentials:
    """Headers and TLS context for one cluster. Renewal is single-flight: hundreds of requests wait for one plugin."""

    def __init__(self, config: MemberConfig, clock: Clock, contexts: SharedContexts | None = None) -> None:
        """Nothing is read or run before the first request. `contexts`: of all clusters."""
        self._config = config
        self._contexts = contexts or SharedContexts()
        self._clock = clock
        self._lock = asyncio.Lock()
        self._headers: Headers | None = None
        self.context: ssl.SSLContext | None = None
        """Of TLS, valid after `headers`; None where the URL is plain HTTP."""
        self._parts_digest = b""
        self._is_distrusted = False
        self._stale_from_s: float | None = None
        self._failure: tuple[float, MemberClusterError] | None = None
        self._plugin: asyncio.Task[Mapping[str, Any]] | None = None
        self.generation = 0
        """Counts renewals: a request that was refused renews only what it was sent with."""

    async def headers(self) -> Headers:
        """Return authorization and impersonation headers, renewed if they have expired."""
        if self._headers is None:
            await self.renew(self.generation)
        elif self._stale_from_s is not None and self._clock.monotonic_s() >= self._stale_from_s:
            # While file or plugin is broken, keep the old ones in use: the server may still accept them.
            try:
                await self.renew(self.generation)
            except MemberClusterError:
                if self._is_distrusted:
                    raise
                self._expires_in(FAILURE_AGE_MAX_S)
        assert self._headers is not None, "renew sets the headers or raises"
        return self._headers

    async def log_in(self) -> None:
        """Wait until an exec plugin has ended; the first request has its answer, or tells what is wrong with it."""
        if self._config.exec_plugin is not None:
            running = {self._running(self._config.exec_plugin)}
            if not (await asyncio.wait(running, timeout=PLUGIN_PATIENCE_S))[0]:
                plugin = exec_plugin_of(self._config)
                log.warning("%s: waiting for exec plugin %s, which gives no answer yet", self._config.name, plugin)
                await asyncio.wait(running)

    async def renew(self, generation: int) -> None:
        """Read and run everything again unless done since `generation`. Raises CredentialsRejected."""
        async with self._lock:
            if self.generation != generation:
                return
            if self._failure is not None and self._clock.monotonic_s() < self._failure[0] + FAILURE_AGE_MAX_S:
                raise self._failure[1]
            try:
                token, pair = await self._load()
            except MemberClusterError as error:
                self._failure = self._clock.monotonic_s(), error
                raise
            headers = [("Authorization", token)] if token else []
            for header, values in sorted(self._config.impersonate.items()):
                headers += [(header, value) for value in values]
            if any(_CONTROL.search(value) for _, value in headers):
                what = f"a token or name in {self._config.source} holds a line break or another control sign"
                raise CredentialsRejected(self._config.name, f"{what}; write it again")
            config, ca = self._config, b""
            if config.server.startswith("https:"):
                if pair is None and config.client_certificate:
                    pair = (self._read(config.client_certificate.read), self._key())
                if config.ca and not config.is_insecure:
                    ca = self._read(config.ca.read)
                made_of = _digests(ca, pair)
                # Connections belong to a context, and end with it.
                if self.context is None or self._is_distrusted or made_of != self._parts_digest:
                    self.context, self._parts_digest = self._tls_context(ca, pair), made_of
            self._headers, self._is_distrusted = tuple(headers), False
            self.generation += 1

    def refused(self, error: CredentialsRejected) -> CredentialsRejected:
        """Return the error of a 401, with the fault of the credentials and the remedy."""
        why = why_rejected(self._config, dict(self._headers or ()).get("Authorization", ""), self._clock.now())
        fault = CredentialsRejected(error.cluster, f"{error.message}: {why}", status=error.status)
        fault.changed_nothing = error.changed_nothing
        return fault

    def distrust(self) -> None:
        """Read and run everything again before the next request: a certificate was refused, by us or by the server."""
        if self._headers is not None:
            self._is_distrusted, self._stale_from_s = True, self._clock.monotonic_s()

    def are_replaced(self) -> bool:
        """Return whether certificate files changed: TLS 1.3 may show but a closed connection (RFC 8446, 4.4.2.4)."""
        config = self._config
        has_files = any(pem.file for pem in (config.ca, config.client_certificate)) and config.exec_plugin is None
        if self.context is None or not has_files:
            return False
        pair = None
        try:
            if config.client_certificate:
                pair = (config.client_certificate.read(), config.client_key.read())
            ca = config.ca.read() if config.ca and not config.is_insecure else b""
        except OSError:
            return False  # They are being replaced just now.
        return _digests(ca, pair) != self._parts_digest

    def _expires_in(self, seconds: float | None) -> None:
        self._stale_from_s = None if seconds is None else self._clock.monotonic_s() + seconds

    async def _load(self) -> tuple[str, tuple[bytes, bytes] | None]:
        """Return the Authorization header, and a client certificate that a plugin gave."""
        config = self._config
        self._expires_in(None)
        if config.token_file is not None:
            self._expires_in(TOKEN_FILE_AGE_MAX_S)
            is_private, most = config.needs_private_files, TOKEN_MAX_BYTES
            read = partial(token_in, config.token_file, "token file", is_private=is_private, max_length=most)
            return f"Bearer {self._read(read)}", None
        if config.token:
            return f"Bearer {config.token}", None
        if config.username:
            return "Basic " + b64encode(f"{config.username}:{config.password}".encode()).decode(), None
        if config.exec_plugin is not None:
            return await self._from_plugin(config.exec_plugin)
        if config.auth_provider is not None:
            return await self._from_provider(config.auth_provider), None
        return "", None

    async def _from_plugin(self, entry: Mapping[str, Any]) -> tuple[str, tuple[bytes, bytes] | None]:
        running = self._running(entry)
        if not (await asyncio.wait((running,), timeout=PLUGIN_PATIENCE_S))[0]:
            plugin = f"exec plugin {exec_plugin_of(self._config)}"
            advice = "run it by hand to see what it waits for"
            message = f"{plugin} gives no answer (waited {PLUGIN_PATIENCE_S:g} s); {advice}"
            raise ClusterUnreachable(self._config.name, message)
        self._plugin = None
        status = self._read(running.result)
        expiry = status.get("expirationTimestamp")
        if expiry:
            try:
                left_s = epoch_s(str(expiry)) - epoch_s(self._clock.now()) - EXPIRY_MARGIN_S
                # Where clocks differ each one has expired already, and a plugin for each request is too much.
                self._expires_in(max(left_s, FAILURE_AGE_MAX_S))
            except ValueError as error:
                what = f"the exec plugin's expirationTimestamp is no time: {clean(str(expiry))}; fix the plugin"
                raise CredentialsRejected(self._config.name, what) from error
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        token = f"Bearer {status['token']}" if status.get("token") else ""
        if not token and not (certificate and key and isinstance(certificate, str) and isinstance(key, str)):
            what = "the exec plugin gave neither a token nor a client certificate with its key; log in with it by hand"
            raise CredentialsRejected(self._config.name, what)
        return token, (certificate.encode(), key.encode()) if certificate and key else None

    def _running(self, entry: Mapping[str, Any]) -> asyncio.Task[Mapping[str, Any]]:
        """Return the run of the plugin, which goes on when nobody waits for it any more."""
        if self._plugin is None:
            self._plugin = asyncio.create_task(run_plugin(self._config, entry), name=f"plugin of {self._config.name}")
            self._plugin.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._plugin

    async def _from_provider(self, entry: Mapping[str, Any]) -> str:
        """Return the header that the kubernetes package makes of an auth-provider, without a cluster."""
        import aiohttp  # noqa: PLC0415 - the package brings it
        from kubernetes.aio.client import Configuration  # noqa: PLC0415 - 270 ms that few need
        from kubernetes.aio.config.config_exception import ConfigException  # noqa: PLC0415
        from kubernetes.aio.config.kube_config import KubeConfigLoader  # noqa: PLC0415

        loader = KubeConfigLoader(  # type: ignore[no-untyped-call] # the package has no types here
            {
                "current-context": "member",
                "contexts": [{"name": "member", "context": {"cluster": "member", "user": "member"}}],
                "clusters": [{"name": "member", "cluster": {"server": "http://unused.invalid"}}],
                "users": [{"name": "member", "user": {"auth-provider": json.loads(json.dumps(entry))}}],
            }
        )
        configuration = Configuration()
        try:
            async with asyncio.timeout(PLUGIN_DEADLINE_S):
                await loader.load_and_set(configuration)  # type: ignore[no-untyped-call] # as above
        except (ConfigException, aiohttp.ClientError, OSError, ValueError, KeyError, ImportError) as error:
            what = f"auth-provider {entry.get('name')!r} failed: {type(error).__name__}; log in with kubectl again"
            raise CredentialsRejected(self._config.name, what) from error
        self._expires_in(TOKEN_FILE_AGE_MAX_S)
        return str(configuration.api_key.get("BearerToken", ""))

    def _key(self) -> bytes:
        key, is_private = self._config.client_key, self._config.needs_private_files
        if key.file is None:
            return key.data
        return self._read(partial(read_secret_file, key.file, "client-key", is_private=is_private))

    def _read(self, read: Callable[[], Value]) -> Value:
        try:
            return read()
        except (ConfigurationError, OSError) as error:
            why = why_not_read(error.filename, error) if isinstance(error, OSError) else error
            remedy = "; the pod must mount the token of its account there" if self._config.is_in_cluster else ""
            raise CredentialsRejected(self._config.name, f"{why}{remedy}") from error

    def _tls_context(self, ca: bytes, pair: tuple[bytes, bytes] | None) -> ssl.SSLContext:
        """Return a context that trusts the cluster's CA alone: 0.1 ms, where all system CAs cost 19."""
        config = self._config
        used = [("certificate-authority", config.ca)]

        def make() -> ssl.SSLContext:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if config.is_insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            elif config.ca:
                context.load_verify_locations(cadata=ca.decode())
            else:
                context.load_default_certs()
            if pair is not None:
                used[:] = [("client-certificate", config.client_certificate), ("client-key", config.client_key)]
                # OpenSSL takes client certificates only from files. This one is ours alone.
                with tempfile.NamedTemporaryFile() as file:
                    file.write(pair[0] + b"\n" + pair[1])
                    file.flush()
                    context.load_cert_chain(file.name)
            return context

        if config.is_insecure:
            trusted = (b"anybody", b"")
        elif config.ca:
            trusted = (b"own", ca)
        else:
            trusted = (b"system", system_authorities())
        try:
            parts = (*trusted, *(pair or ()), config.tls_server_name.encode())
            return self._contexts.of(parts, make, is_anew=self._is_distrusted)
        except (ssl.SSLError, ValueError) as error:  # a ValueError: there is nothing in it, or it is no text
            unusable = " or ".join(f"{what} in {pem.file or config.source}" for what, pem in used)
            pairs = " that belong together" if len(used) > 1 else ""
            remedy = f"put in PEM files or data{pairs}, from who runs the cluster"
            raise CredentialsRejected(
                config.name, f"{unusable} is unusable ({type(error).__name__}); {remedy}"
            ) from error


def _digests(ca: bytes, pair: tuple[bytes, bytes] | None) -> bytes:
    return b"".join(hashlib.sha256(part).digest() for part in (ca, *(pair or ())))


async def run_plugin(config: MemberConfig, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the ExecCredential status; CredentialsRejected. The output is never shown, as it may hold a token."""
    from kubernetes.aio.config.config_exception import ConfigException  # noqa: PLC0415
    from kubernetes.aio.config.exec_provider import ExecProvider  # noqa: PLC0415 - 270 ms that few need
    from kubernetes.aio.config.kube_config import ConfigNode  # noqa: PLC0415

    try:
        node = ConfigNode("exec", dict(entry))  # type: ignore[no-untyped-call] # the package has no types here
        plugin = ExecProvider(node)  # type: ignore[no-untyped-call] # as above
    except ConfigException as error:
        raise CredentialsRejected(config.name, clean(str(error))) from error
    command = str(plugin.args[0])
    if "/" in command:
        command = str(config.folder / command)
    spec: dict[str, Any] = {"interactive": False}
    if entry.get("provideClusterInfo"):
        cluster: dict[str, Any] = {
            "server": config.server,
            "tls-server-name": config.tls_server_name,
            "proxy-url": config.proxy_url,
            "insecure-skip-tls-verify": config.is_insecure,
        }
        if config.ca:
            cluster["certificate-authority-data"] = b64encode(config.ca.read()).decode()
        spec["cluster"] = {key: value for key, value in cluster.items() if value}
        if config.exec_extension is not None:
            spec["cluster"]["config"] = config.exec_extension
    info = {"apiVersion": entry.get("apiVersion"), "kind": "ExecCredential", "spec": spec}
    environment = {**plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    output = await _run(config, [command, *map(str, plugin.args[1:])], environment)
    try:
        answer = json.loads(output)
        status = answer["status"]
        is_credential = answer["kind"] == "ExecCredential" and answer["apiVersion"] == plugin.api_version
    except (ValueError, KeyError, TypeError):
        is_credential, status = False, None
    if not is_credential or not isinstance(status, Mapping):
        raise CredentialsRejected(config.name, f"exec plugin {command} printed no ExecCredential {plugin.api_version}")
    return status


async def _run(config: MemberConfig, command: list[str], environment: Mapping[str, str]) -> bytes:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    # Where asyncio is cancelled while it starts a process, it waits for pipes that nobody closes.
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(
        *command, env=environment, stdin=nothing, stdout=pipe, stderr=pipe, start_new_session=True))  # fmt: skip
    try:
        async with asyncio.timeout(PLUGIN_DEADLINE_S):
            process = await asyncio.shield(starting)
            output, errors = await asyncio.gather(_printed(process, process.stdout), _printed(process, process.stderr))
            await process.wait()
    except TimeoutError as error:
        message = f"exec plugin {command[0]} gave no answer in {PLUGIN_DEADLINE_S:g} s"
        raise ClusterUnreachable(config.name, message) from error
    except OSError as error:
        message = f"exec plugin {command[0]} cannot be started: {error.strerror}; install it where PATH finds it"
        raise CredentialsRejected(config.name, message) from error
    finally:
        with suppress(OSError):
            process = await starting
            if process.returncode is None:
                _kill(process)
                # What has left its group keeps the pipes open, and `communicate` would wait for their ends.
                process._transport.close()  # type: ignore[attr-defined]  # Process has no method for it
                await process.wait()
    if max(len(output), len(errors)) > PLUGIN_OUTPUT_MAX:
        raise CredentialsRejected(
            config.name, f"exec plugin {command[0]} printed more than {PLUGIN_OUTPUT_MAX:,} bytes"
        )
    if process.returncode:
        message = f"exec plugin {command[0]} ended with {process.returncode}: {clean(errors.decode(errors='replace'))}"
        raise CredentialsRejected(config.name, message)
    return output


async def _printed(process: asyncio.subprocess.Process, stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None, "it is a pipe"
    output = b""
    while part := await stream.read(PLUGIN_OUTPUT_MAX):
        output += part
        if len(output) > PLUGIN_OUTPUT_MAX:
            _kill(process)
    return output


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill it with all that it has started: a child that lives on keeps the pipes open, whose ends are waited for."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
