"""The real sops and age, as a person calls them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

SECRET_RULE = ("--encrypted-regex", "^(data|stringData)$")


class Sops:
    """Encrypts for the identities that it makes. `key_file`: of the first of them, as a machine is given it."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self.folder = folder
        self.key_file = self.new_identity("first.key")

    def new_identity(self, name: str) -> Path:
        file = self.folder / name
        self._run("age-keygen", "-o", str(file))
        file.chmod(0o600)
        return file

    def recipient(self, key_file: Path | None = None) -> str:
        """The public key of an identity."""
        return self._run("age-keygen", "-y", str(key_file or self.key_file)).decode().strip()

    def encrypt(self, text: str, *options: str, name: str = "in.yaml", recipients: str = "", config: str = "") -> bytes:
        """Return the encrypted text. `config`: more of a creation rule of `.sops.yaml`."""
        file = self.folder / name
        file.write_text(text)
        rule = f"creation_rules:\n- age: {recipients or self.recipient()}\n{config}"
        (self.folder / ".sops.yaml").write_text(rule if config else "")
        age = () if config else ("--age", recipients or self.recipient())
        given = ("--config", str(self.folder / ".sops.yaml")) if config else ()
        return self._run("sops", *given, "encrypt", *age, *options, str(file))

    def encrypt_for(self, text: str, rule: str, **environment: str) -> bytes:
        """Return a text encrypted for the keys of a creation rule, as in `.sops.yaml`."""
        (self.folder / "in.yaml").write_text(text)
        (self.folder / ".sops.yaml").write_text(f"creation_rules:\n- encrypted_regex: ^(data|stringData)$\n{rule}")
        given = ("--config", str(self.folder / ".sops.yaml"), "encrypt", str(self.folder / "in.yaml"))
        return self._run("sops", *given, environment=environment)

    def encrypt_documents(self, *documents: dict[str, Any], options: tuple[str, ...] = SECRET_RULE) -> bytes:
        return self.encrypt(yaml.safe_dump_all(documents, sort_keys=False), *options)

    def decrypt(self, data: bytes, *, name: str = "out.yaml") -> bytes:
        (self.folder / name).write_bytes(data)
        return self._run("sops", "decrypt", str(self.folder / name), key_file=self.key_file)

    def set(self, data: bytes, path: str, value: Any, *, name: str = "edited.yaml") -> bytes:
        """The file with one value changed, as an edit leaves it."""
        return self._in_place(data, name, "set", str(self.folder / name), path, json.dumps(value))

    def rotate(self, data: bytes, *options: str, name: str = "rotated.yaml") -> bytes:
        """The file with a new data key."""
        return self._in_place(data, name, "rotate", "-i", *options, str(self.folder / name))

    def for_recipients(self, data: bytes, recipients: str, *, name: str = "updated.yaml") -> bytes:
        """The file with its data key encrypted for others."""
        rule = f"creation_rules:\n- age: {recipients}\n"
        (self.folder / ".sops.yaml").write_text(rule)
        config = str(self.folder / ".sops.yaml")
        return self._in_place(data, name, "--config", config, "updatekeys", "-y", str(self.folder / name))

    def _in_place(self, data: bytes, name: str, *arguments: str) -> bytes:
        (self.folder / name).write_bytes(data)
        self._run("sops", *arguments, key_file=self.key_file)
        return (self.folder / name).read_bytes()

    @property
    def binary(self) -> Path:
        return self._binaries / "sops"

    def _run(
        self, program: str, *arguments: str, key_file: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> bytes:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **(environment or {})}
        if key_file is not None:
            environment["SOPS_AGE_KEY_FILE"] = str(key_file)
        command = [str(self._binaries / program), *arguments]
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout
