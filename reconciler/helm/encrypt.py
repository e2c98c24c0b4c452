"""Secrets of an output, encrypted by sops for the recipients of its Render."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from reconciler.api.content import JsonObject, canonical_bytes, is_same
from reconciler.api.fleet import Render
from reconciler.api.refs import Identity
from reconciler.helm.sandbox import run_once
from reconciler.helm.tools import Tool
from reconciler.hydration import Bodies, is_in_clear

_VALUES = ("data", "stringData", "sops")


def encrypted(
    render: Render, bodies: Mapping[str, Bodies], committed: Bodies, sops: Callable[[], Tool], *, allow_network: bool
) -> dict[str, Bodies]:
    """Return the objects of each variant with their Secrets encrypted; equal Secrets have one ciphertext.

    `committed`: encrypted objects that equal inputs made before, whose ciphertext stays. `sops`: finds the tool, which
    is not asked for where nothing is new.

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
            done[key] = known if known is not None and is_kept else _encrypted(render, body, sops(), allow_network)
        return done[key]

    return {
        name: {
            identity: encrypted_once(identity, body) if is_in_clear(body) else body for identity, body in found.items()
        }
        for name, found in bodies.items()
    }


def _in_clear(body: JsonObject) -> JsonObject:
    """Return what an encrypted Secret and one in clear have in common: all but the values."""
    names = {part: sorted(body.get(part) or ()) for part in ("data", "stringData")}
    return {**{key: value for key, value in body.items() if key not in _VALUES}, "names": names}


def _encrypted(render: Render, body: JsonObject, tool: Tool, allow_network: bool) -> JsonObject:
    with tempfile.TemporaryDirectory(prefix="fleet-render-") as made:
        folder = Path(made)
        file = folder / "secret.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(body), encoding="utf-8")
        options = ["--age", ",".join(render.secrets.age), "--encrypted-regex", "^(data|stringData)$"]
        command = [tool.path, "encrypt", *options, str(file)]
        found: JsonObject = json.loads(run_once(command, folder, environ={}, allow_network=allow_network))
    return found
