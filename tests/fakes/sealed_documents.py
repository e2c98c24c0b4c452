"""Documents in the form that sops gives them, without a key: for what is worked out without one."""

from __future__ import annotations

import base64
from typing import Any

import yaml


def ciphertext(value: str, type_: str = "str") -> str:
    """A value in the form of an encrypted one; equal values have equal forms."""
    parts = {name: base64.b64encode(f"{name} {value}".encode()).decode() for name in ("data", "iv", "tag")}
    return f"ENC[AES256_GCM,data:{parts['data']},iv:{parts['iv']},tag:{parts['tag']},type:{type_}]"


def block(**more: Any) -> dict[str, Any]:
    """Return the metadata of sops for a file encrypted for one recipient."""
    return {
        "age": [{"recipient": "age1example", "enc": "-----BEGIN AGE ENCRYPTED FILE-----\n"}],
        "lastmodified": "2026-11-21T10:00:00Z",
        "mac": ciphertext("mac"),
        "encrypted_regex": "^(data|stringData)$",
        "version": "3.13.3",
        **more,
    }


def sealed(kind: str = "Secret", name: str = "app", sops: dict[str, Any] | None = None, **data: str) -> dict[str, Any]:
    """An object whose data is encrypted; `data` in plain text, as the values are to be called."""
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "demo"},
        "data": {key: ciphertext(value) for key, value in data.items()},
        "sops": sops or block(),
    }


def text_of(*documents: dict[str, Any]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)
