"""The helm, kubectl and sops of the person who runs the command, never those of a store.

helm brings charts that others serve into the store, the one step with a network; sops encrypts its Secrets.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.api.content import JsonObject, canonical_bytes, is_same
from reconciler.api.fleet import UNKNOWN_DIGEST, HelmChart, Render
from reconciler.api.problem import Problem, Severity
from reconciler.api.refs import Identity
from reconciler.errors import ConfigurationError
from reconciler.helm.files import MAX_BYTES, MAX_FILES, InputRefused, RenderFiles
from reconciler.helm.inputs import digest_of_archive
from reconciler.helm.sandbox import RenderFailed, run_once
from reconciler.hydration import Bodies, KustomizeChart, is_below, is_in_clear, problem_of
from reconciler.store.oci.archives import archived_files

_VERSION: Final = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:[-+][0-9A-Za-z.+-]+)?)", re.ASCII)
_QUESTION: Final[Mapping[str, tuple[str, ...]]] = {
    "helm": ("version", "--template={{.Version}}"),
    "kubectl": ("version", "--client"),
    "sops": ("--disable-version-check", "--version"),
}


class Wanted(NamedTuple):
    """A binary that was named: its absolute path, and `sha256` of it as hex digits. Empty: as PATH has it."""

    path: str = ""
    sha256: str = ""


class Tool(NamedTuple):
    """A binary, and its entry in a lock: names to versions."""

    path: str
    versions: Mapping[str, str]


class Tools:
    """Finds each binary once. What was asked of a binary is kept in the cache folder, by its inode and time."""

    def __init__(
        self,
        store: Path,
        wanted: Mapping[str, Wanted],
        environ: Mapping[str, str],
        cache: Path | None,
        *,
        network: bool,
    ) -> None:
        """`store`: the folder that no binary may be in. `network`: whether a tool may have one."""
        self._store = store.resolve()
        self._wanted, self._environ, self.network = wanted, environ, network
        self._cache = cache / "tools.json" if cache is not None else None
        self._tools: dict[str, Tool] = {}

    def tool(self, name: str) -> Tool:
        """`helm`, `kubectl` or `sops`.

        Raises ConfigurationError: it is not there, in the store, or another one than was named.
        """
        if name not in self._tools:
            path = self._path(name)
            self._tools[name] = Tool(str(path), self._versions(name, path))
        return self._tools[name]

    def _path(self, name: str) -> Path:
        wanted = self._wanted.get(name, Wanted())
        if wanted.path:
            path = Path(wanted.path)
            if not path.is_absolute() or not wanted.sha256:
                raise ConfigurationError(f"--{name} is an absolute path, and --{name}-sha256 says which binary it is")
            if not path.is_file():
                raise ConfigurationError(f"--{name}: {path} is no file")
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != wanted.sha256.removeprefix("sha256:").lower():
                raise ConfigurationError(f"{path} is not the binary that --{name}-sha256 names: it has {digest}")
        else:
            folders = [part for part in self._environ.get("PATH", "").split(os.pathsep) if part.startswith("/")]
            which = shutil.which(name, path=os.pathsep.join(folders))
            if which is None:
                named = "" if name == "sops" else f", or name it by --{name} and --{name}-sha256"
                raise ConfigurationError(f"{name} is not on the PATH; install it{named}")
            path = Path(which)
        if path.resolve().is_relative_to(self._store) or path.is_relative_to(self._store):
            raise ConfigurationError(f"{path} is in the store, and nothing in a store is ever run; use another {name}")
        return path

    def _versions(self, name: str, path: Path) -> dict[str, str]:
        status = path.stat()
        stamp = f"{path} {status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        known = self._cached()
        if stamp in known:
            return known[stamp]
        with tempfile.TemporaryDirectory(prefix="fleet-render-") as folder:
            try:
                output = run_once(
                    [str(path), *_QUESTION[name]], Path(folder), environ={}, allow_network=self.network
                ).decode(errors="replace")
            except RenderFailed as error:
                raise ConfigurationError(f"{path} does not say its version: {error}") from error
        numbers = _VERSION.findall(output)
        names = ("kubectl", "kustomize") if name == "kubectl" else (name,)
        if len(numbers) < len(names):
            raise ConfigurationError(f"{path} does not say its version: {output[:200]!r}")
        versions = dict(zip(names, numbers, strict=False))
        if self._cache is not None:
            cache = json.dumps({**known, stamp: versions})
            part = self._cache.with_suffix(f".{os.getpid()}")
            part.write_text(cache, encoding="utf-8")
            part.replace(self._cache)
        return versions

    def _cached(self) -> dict[str, dict[str, str]]:
        try:
            cache = json.loads(self._cache.read_bytes()) if self._cache is not None else {}
        except (OSError, ValueError):
            return {}
        return cache if isinstance(cache, dict) else {}


_PASSED_ON: Final = (
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "HELM_REGISTRY_CONFIG",
)  # fmt: skip
"""Variables that the person's machine needs to reach a registry, and to sign in."""
_LOCAL: Final = ("oci://127.0.0.1", "oci://localhost", "oci://[::1]")


def is_there(chart: HelmChart, files: RenderFiles) -> bool:
    """Return whether the store has the archive that the digest names."""
    try:
        return digest_of_archive(files.read(chart.path)) == chart.digest
    except InputRefused:
        return False


def fetched(render: Render, tool: Tool, environ: Mapping[str, str]) -> tuple[dict[str, bytes], tuple[Problem, ...]]:
    """The archive of a chart that others serve by its path, when it is the one that the digest names; else why not."""
    chart = render.helm
    assert chart is not None and chart.is_remote, "a chart that others serve"
    try:
        _, data = _pulled(chart.chart, chart.repository, chart.version, tool, environ)
    except RenderFailed as error:
        return {}, (problem_of(render, "render-failed", f"{chart.chart} {chart.version}: {error}"),)
    if digest_of_archive(data) != chart.digest:
        message = f"{chart.chart} {chart.version} has {digest_of_archive(data)}; write it as spec.helm.digest"
        if chart.digest != UNKNOWN_DIGEST:
            message = (
                f"{chart.chart} {chart.version} has {digest_of_archive(data)}, not the digest that the document names; "
                "write it only if you know why it is another one"
            )
        return {}, (problem_of(render, "render-refused", message),)
    return {chart.path: data}, ()


class Newest(NamedTuple):
    """The newest version of a chart in the range of its Render, and its digest; or why it is not known."""

    version: str
    digest: str
    problems: tuple[Problem, ...] = ()


def newest(render: Render, tool: Tool, environ: Mapping[str, str]) -> Newest:
    """Return the newest version that is served in the range of `spec.helm.update`."""
    chart = render.helm
    assert chart is not None and chart.update, "a chart with a range"
    try:
        name, data = _pulled(chart.chart, chart.repository, chart.update, tool, environ)
    except RenderFailed as error:
        message = f"{chart.chart} {chart.update}: {error}"
        return Newest("", "", (problem_of(render, "render-failed", message, severity=Severity.WARNING),))
    prefix = f"{chart.chart.rstrip('/').rpartition('/')[2]}-"
    return Newest(name.removeprefix(prefix).removesuffix(".tgz"), digest_of_archive(data))


def fetched_for_kustomize(
    render: Render, chart: KustomizeChart, tool: Tool, environ: Mapping[str, str]
) -> tuple[dict[str, bytes], tuple[Problem, ...]]:
    """The files of a chart that others serve, where kustomize looks for them in the store; else why not."""
    is_oci = chart.repository.startswith("oci://")
    name = f"{chart.repository.rstrip('/')}/{chart.name}" if is_oci else chart.name
    try:
        _, data = _pulled(name, "" if is_oci else chart.repository, chart.version, tool, environ)
        inside = archived_files(data, bytes_max=MAX_BYTES, entries_max=MAX_FILES)
        above = chart.path.rpartition("/")[0]
        return {f"{above}/{file.path}": file.data for file in inside if is_below(file.path, chart.name)}, ()
    except (RenderFailed, ValueError) as error:
        return {}, (problem_of(render, "render-failed", f"{name} {chart.version}: {error}"),)


def _pulled(chart: str, repository: str, version: str, tool: Tool, environ: Mapping[str, str]) -> tuple[str, bytes]:
    """The name of an archive and its content. `chart`: as helm names it; `version`: one, or a range.

    Raises RenderFailed: it is not served.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-render-") as temporary:
        folder = Path(temporary)
        into = folder / "chart"
        into.mkdir(mode=0o700)
        command = [tool.path, "pull", chart, "--version", version, "--destination", str(into)]
        if repository:
            command += ["--repo", repository]
        elif chart.startswith(_LOCAL):
            command.append("--plain-http")  # As container tools do: a registry of this machine has no certificate.
        passed = {name: environ[name] for name in _PASSED_ON if name in environ}
        run_once(command, folder, environ=passed, allow_network=True)
        files = sorted(into.iterdir())
        if len(files) != 1:
            raise RenderFailed(f"helm brought {len(files)} files, not one")
        return files[0].name, files[0].read_bytes()


_VALUES = ("data", "stringData", "sops")


def encrypted(render: Render, bodies: Mapping[str, Bodies], committed: Bodies, tools: Tools) -> dict[str, Bodies]:
    """Return the objects of each variant with their Secrets encrypted; equal Secrets have one ciphertext.

    `committed`: encrypted objects that equal inputs made before, whose ciphertext stays: sops is not looked for where
    nothing is new.

    Raises:
        ConfigurationError: the tool is needed and not there.
        NotContained, RenderFailed: it cannot be run, or refuses a recipient.
    """
    done: dict[tuple[Identity, bytes], JsonObject] = {}

    def encrypted_once(identity: Identity, body: JsonObject) -> JsonObject:
        key = (identity, canonical_bytes(body))
        if key not in done:
            known = committed.get(identity)
            is_kept = known is not None and is_same(_in_clear(known), _in_clear(body))
            done[key] = known if known is not None and is_kept else _encrypted(render, body, tools)
        return done[key]

    return {
        name: {
            identity: encrypted_once(identity, body) if is_in_clear(body) else body for identity, body in items.items()
        }
        for name, items in bodies.items()
    }


def _in_clear(body: JsonObject) -> JsonObject:
    """Return what an encrypted Secret and one in plain text have in common: all but the values."""
    names = {part: sorted(body.get(part) or ()) for part in ("data", "stringData")}
    return {**{key: value for key, value in body.items() if key not in _VALUES}, "names": names}


def _encrypted(render: Render, body: JsonObject, tools: Tools) -> JsonObject:
    with tempfile.TemporaryDirectory(prefix="fleet-render-") as temporary:
        folder = Path(temporary)
        file = folder / "secret.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(body), encoding="utf-8")
        options = ["--age", ",".join(render.secrets.age), "--encrypted-regex", "^(data|stringData)$"]
        command = [tools.tool("sops").path, "encrypt", *options, str(file)]
        result: JsonObject = json.loads(run_once(command, folder, environ={}, allow_network=tools.network))
    return result
