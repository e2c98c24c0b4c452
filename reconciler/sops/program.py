"""The answer of sops about a file, accepted only in the shape of the file: the same tree with values in it.

AES-GCM keeps the length, so that a value has exactly as many bytes as its ciphertext, and a type that is readable.
The authentication of a file needs its data key, which sops keeps to itself: it has checked that.

Allowed key services of a file: a store is hostile input, and sops asks the services that the file names.

A Vault gets the token of the service, so it has to be the one that the operator named. Clouds sign requests, or have
tokens that are good for them alone, so that their names must have the form that leads to them. All of it is read here
once more, from every document of the file and refused in any form that two readers could read differently.

The operator's sops, run for one file at a time, contained, with a fixed command line and a small environment.

Nothing is written to a disk: the file goes in by stdin, the decrypted text comes back by stdout.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from reconciler.api.content import DecryptedValues, Json, Leaf, SopsMetadata
from reconciler.errors import ConfigurationError
from reconciler.processes.run_program import Command, Exited, Limits, Terminated, Termination, run
from reconciler.regex import regex
from reconciler.secrets import BLOCK, UNKNOWN, OrderUnknown, parts_of, values_in_order
from reconciler.sops.decrypt import DecryptRefused, NotOpenedError, value_of
from reconciler.yaml import MappingNode, Node, ScalarNode, SequenceNode, YamlRefused, compose

_OTHERWISE: Final = DecryptRefused(
    UNKNOWN, "sops answered with something else than the file with its values; encrypt it again"
)


def values_of(sealed: SopsMetadata, answer: bytes) -> DecryptedValues | DecryptRefused:
    """The values that an answer has in place of the ciphertext of a file, or why none of it is used."""
    values: dict[Leaf, Json] = {}
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
            parts = parts_of(ours.ciphertext or "")
            try:
                length = len(base64.b64decode(parts["data"], validate=True)) if parts is not None else -1
            except binascii.Error:
                length = -1
            if parts is None or len(theirs.clear) != length:
                raise NotOpenedError(*_OTHERWISE)
            value = value_of(theirs.clear, parts["type"])[0]
            if (ours.names, ours.ciphertext) in values and values[ours.names, ours.ciphertext] != value:
                return _OTHERWISE
            values[ours.names, ours.ciphertext] = value
    except NotOpenedError as error:
        return error.refused
    except OrderUnknown:
        return _OTHERWISE
    return DecryptedValues(values=values)


_SEGMENT: Final = r"[A-Za-z0-9_.-]{1,200}"
_FORMS: Final[Mapping[str, Mapping[str, re.Pattern[str]]]] = {
    "pgp": {"fp": regex(r"[0-9A-Fa-f]{8,40}", re.ASCII)},
    "kms": {
        "arn": regex(r"arn:aws[a-z-]{0,20}:kms:[a-z0-9-]{1,40}:\d{12}:(?:key|alias)/[\w/-]{1,256}", re.ASCII),
        "role": regex(r"(?:arn:aws[a-z-]{0,20}:iam::\d{12}:role/[\w+=,.@/-]{1,512})?", re.ASCII),
        "aws_profile": regex(r"[\w.-]{0,100}", re.ASCII),
    },
    "gcp_kms": {
        "resource_id": regex(
            rf"projects/[\w.:-]{{1,200}}/locations/{_SEGMENT}/keyRings/{_SEGMENT}/cryptoKeys/{_SEGMENT}"
            rf"(?:/cryptoKeyVersions/\d{{1,9}})?",
            re.ASCII,
        )
    },
    "hckms": {"key_id": regex(r"[a-z0-9-]{1,40}:[0-9A-Fa-f-]{1,64}", re.ASCII)},
    "azure_kv": {
        "vault_url": regex(
            r"https://[A-Za-z0-9-]{1,64}\.(?:vault|managedhsm)\.(?:azure\.net|azure\.cn|usgovcloudapi\.net)/?", re.ASCII
        ),
        "name": regex(r"[A-Za-z0-9-]{1,127}", re.ASCII),
        "version": regex(r"[0-9A-Fa-f]{0,64}", re.ASCII),
    },
    "hc_vault": {
        "engine_path": regex(rf"(?!.*\.\.){_SEGMENT}(?:/{_SEGMENT}){{0,9}}/?", re.ASCII),
        "key_name": regex(rf"(?!\.\.){_SEGMENT}", re.ASCII),
    },
}


def unfit(data: bytes, environ: Mapping[str, str], *, is_json: bool) -> str:
    """Return why sops may not be asked about a file; empty: it may. `environ`: for sops."""
    try:
        if is_json:
            # Go takes names of fields in any case, and the last of several.
            root = json.loads(data, object_pairs_hook=_once, parse_int=str, parse_float=str)
            if not isinstance(root, dict) or [name for name in root if name.lower() == BLOCK] != [BLOCK]:
                raise _AmbiguousError("it was not encrypted, or twice")
            blocks = [root[BLOCK]]
        else:
            blocks_of = [[below for key, below in _entries(root) if key == BLOCK] for root in compose(data)]
            if any(len(blocks) != 1 for blocks in blocks_of):
                raise _AmbiguousError("a document of it was not encrypted, or twice")
            blocks = [_plain(block, set()) for (block,) in blocks_of]
    except (YamlRefused, ValueError, RecursionError) as error:
        return str(error) if isinstance(error, _AmbiguousError) else "it is no whole file of sops"
    if not blocks or any(block != blocks[0] for block in blocks):
        return "what sops says of the file is not the same in all of its documents"
    for group in _several(blocks[0], "key_groups") or [blocks[0]]:
        for kind, forms in _FORMS.items():
            for entry in _several(group, kind):
                why = _unfit_entry(kind, entry, forms, environ)
                if why:
                    return why
    return ""


def _several(block: Mapping[str, Any], name: str) -> list[Any]:
    entries = block.get(name)
    return entries if isinstance(entries, list) else []


def _unfit_entry(kind: str, entry: Any, forms: Mapping[str, re.Pattern[str]], environ: Mapping[str, str]) -> str:
    for name, form in forms.items():
        value = entry.get(name, "")
        if not isinstance(value, str) or not form.fullmatch(value):
            return f"{name} of its key {kind} has not the form that leads to a key of that kind"
    if kind == "hc_vault":
        named = environ.get("VAULT_ADDR", "").rstrip("/")
        if not named:
            return "it names a Vault, and the service has no VAULT_ADDR that says which one may be asked"
        if entry.get("vault_address", "").rstrip("/") != named:
            return "it names another Vault than VAULT_ADDR of the service, which alone may see its token"
    return ""


class _AmbiguousError(ValueError):
    """Two readers could read it differently."""


def _entries(node: Node) -> Iterator[tuple[str, Node]]:
    if not isinstance(node, MappingNode):
        raise _AmbiguousError("a document of it is no object")
    for key, below in node.value:
        if not isinstance(key, ScalarNode) or _is_tagged(key) or key.value == "<<":
            raise _AmbiguousError("it has keys that are no plain texts")
        yield key.value, below


def _is_tagged(node: Node) -> bool:
    tag: Any = node.tag  # The composer resolves nothing.
    return tag is not None


def _plain(node: Node, visited: set[int]) -> Any:
    if id(node) in visited or _is_tagged(node):
        raise _AmbiguousError("what sops says of it has aliases or tags")
    visited.add(id(node))
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, SequenceNode):
        return [_plain(item, visited) for item in node.value]
    return _once([(name, _plain(below, visited)) for name, below in _entries(node)])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _AmbiguousError("it says something twice")
    return fields


_OPTION: Final = "--sops-binary"
_VERSION: Final = regex(r"^sops (3)\.(\d{1,4})\.\d{1,4}(?:\s|$)", re.ASCII)
_MINOR_LEAST: Final = 10
"""sops 3.10 is the first that decrypts stdin. Source: its changelog."""
_HANDED_ON: Final = frozenset(
    {"PATH", "HOME", "XDG_CONFIG_HOME", "GNUPGHOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "IDENTITY_ENDPOINT",
     "IDENTITY_HEADER", "MSI_ENDPOINT", "MSI_SECRET", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
     "https_proxy", "no_proxy"}
)  # fmt: skip
_HANDED_ON_BEGIN: Final = ("AWS_", "VAULT_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "HUAWEICLOUD_")
"""Credentials for clouds. Nothing of ours is among it, and no setting of sops itself: some of those name programs,
and some switch checks off."""
_SECRET_NAME: Final = regex(r"TOKEN|SECRET|PASSWORD|KEY|HEADER|CREDENTIAL", re.IGNORECASE)
_SECRET_LEAST: Final = 4
_COMPLAINT_CHARACTERS: Final = 400


LIMITS: Final = Limits(wall_s=30.0, cpu_s=30, file_bytes=2**20, output_bytes=16 * 2**20, error_bytes=256 * 1024)


class ProgramResult(NamedTuple):
    """The result of a run. `code`: of its exit; None: it was ended, or could not be started, for the reason in `why`.

    `complaint`: the end of stderr, on one line and without its credentials.
    """

    code: int | None
    output: bytes = b""
    complaint: str = ""
    why: str = ""
    is_large: bool = False
    """True if it wrote more than it may."""


class Program(NamedTuple):
    """A sops binary. `environ`: its environment; `sha256`: of the binary, if named."""

    path: Path
    environ: Mapping[str, str]
    sha256: str = ""
    limits: Limits = LIMITS

    def decrypt(self, data: bytes, *, is_json: bool) -> ProgramResult:
        """A run over a file, whose output has the form of the file."""
        form = "json" if is_json else "yaml"
        # No file of configuration and no service of keys but those that the file names takes part.
        return self._run(
            ["--config", "/dev/null", "decrypt", "--input-type", form, "--output-type", form, "--filename-override",
             f"file.{form}"],
            data,
        )  # fmt: skip

    def version(self) -> str:
        """Return its version, such as 3.13.3.

        Raises ConfigurationError: it does not say one, or one that does not know what is needed.
        """
        ran = self._run(["--disable-version-check", "--version"], b"")
        match = _VERSION.match(ran.output.decode(errors="replace"))
        if ran.code != 0 or match is None:
            raise ConfigurationError(f"{_OPTION} {self.path} does not say a version of sops 3 {ran.why}".rstrip())
        if int(match[2]) < _MINOR_LEAST:
            raise ConfigurationError(f"{_OPTION} {self.path}: sops 3.{_MINOR_LEAST} or later is needed")
        return match[0].removeprefix("sops ").strip()

    def check(self) -> None:
        """Look at the binary, as before each run.

        Raises ConfigurationError: it is not there, others may write it, or it is another one than was named.
        """
        where = f"{_OPTION} {self.path}"
        try:
            status = self.path.stat()
        except OSError as error:
            raise ConfigurationError(f"{where}: {error.strerror}") from error
        if not stat.S_ISREG(status.st_mode) or not os.access(self.path, os.X_OK):
            raise ConfigurationError(f"{where}: it is no program")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigurationError(f"{where}: others than its owner can write it; chmod go-w {self.path}")
        if status.st_uid not in (0, os.geteuid()):
            raise ConfigurationError(f"{where}: it belongs to another user, who could exchange it")
        if self.sha256:
            with self.path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != self.sha256.removeprefix("sha256:").lower():
                raise ConfigurationError(f"{where} is not the binary that {_OPTION}-sha256 names: it has {digest}")

    def _run(self, arguments: list[str], data: bytes) -> ProgramResult:
        try:
            self.check()
        except ConfigurationError as error:
            return ProgramResult(None, why=str(error))
        command = Command([str(self.path), *arguments], self.environ, "/", data)
        match run(command, self.limits):
            case Exited(code, output, complaint):
                text = " ".join(complaint.decode(errors="replace").split())
                for name, value in self.environ.items():
                    if _SECRET_NAME.search(name) and len(value) >= _SECRET_LEAST:
                        text = text.replace(value, "***")
                return ProgramResult(code, output, text[-_COMPLAINT_CHARACTERS:])
            case Terminated(Termination.LATE):
                return ProgramResult(None, why=f"it did not end within {self.limits.wall_s:g} s")
            case Terminated(Termination.FLOODING):
                return ProgramResult(None, why=f"it wrote more than {self.limits.output_bytes:,} bytes", is_large=True)
            case Terminated(Termination.LOST):
                return ProgramResult(None, why="what holds it was ended")
            case _:
                return ProgramResult(None, why="it cannot be started")


def program_of(
    named: Path | None, sha256: str, environ: Mapping[str, str], *, identities: Path | None, store: str = ""
) -> Program | None:
    """The sops that was named; None: none was. `identities`: a file of age, for keys in groups of several kinds.

    Raises ConfigurationError: it is no absolute path, in the store, or as `Program.check` says.
    """
    if named is None:
        if sha256:
            raise ConfigurationError(f"{_OPTION}-sha256 says which binary {_OPTION} is, which is not given")
        return None
    if not named.is_absolute():
        raise ConfigurationError(f"{_OPTION} {named}: give an absolute path; nothing is looked for on the PATH")
    folder = Path(store).resolve() if store and Path(store).is_dir() else None
    if folder is not None and (named.resolve().is_relative_to(folder) or named.is_relative_to(folder)):
        raise ConfigurationError(f"{_OPTION} {named} is in the store, and nothing in a store is ever run")
    handed = {name: value for name, value in environ.items() if name in _HANDED_ON or name.startswith(_HANDED_ON_BEGIN)}
    handed["LC_ALL"] = "C"
    if identities is not None:
        handed["SOPS_AGE_KEY_FILE"] = str(identities.absolute())
    program = Program(named, handed, sha256)
    program.check()
    return program
