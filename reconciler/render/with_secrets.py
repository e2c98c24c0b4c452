"""A manifest with the values of an encrypted template in it: in memory, to be compared with a cluster and sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from reconciler.api.content import JsonObject, Opened, Revealed
from reconciler.api.fleet import Template
from reconciler.api.plan import Manifest
from reconciler.api.problem import Problem
from reconciler.kinds.interpreter import Interpreter
from reconciler.overrides import FieldOverride
from reconciler.ownership import mark_encrypted
from reconciler.secrets import ciphertexts_in, disturbed, replaced

_CODE: Final = "sops-override"


def with_secrets(manifest: Manifest, opened: Opened, interpreter: Interpreter) -> Manifest | None:
    """Return the manifest to send; None if it holds foreign ciphertext.

    Its digest stays that of the ciphertext, which may be kept anywhere.
    """
    body, leaves = replaced(manifest.body, lambda leaf: (opened.values[leaf],) if leaf in opened.values else None)
    if ciphertexts_in(body):
        return None
    if manifest.identity[:2] == ("", "Secret"):
        body = interpreter.sanitize(body)  # `stringData` is folded into `data` now that it can be.
    return replace(manifest, content=Revealed(tree=mark_encrypted(body), known_digest=manifest.digest, leaves=leaves))


def touched_ciphertext(
    template: Template, declared: JsonObject, body: JsonObject, trace: Iterable[FieldOverride]
) -> tuple[Problem, ...]:
    """Return the problem of overrides that change, move or remove an encrypted value, which nobody could review."""
    leaf = disturbed(declared, body) if template.sealed is not None else None
    if leaf is None:
        return ()
    path = ".".join(leaf[0])
    written = list(trace)
    override = next((one for one in written if path.startswith(one.path) or one.path.startswith(path)), None)
    override = override or (written[-1] if written else None)
    if override is None:
        message = f"{template.identity}: an override changes {path}, which is encrypted"
        return (Problem(source=template.source, path=path, code=_CODE, message=message),)
    name = f"{override.policy} rule {override.rule} {override.overrider}"
    return (
        Problem(
            source=override.source,
            path=f"spec.overrideRules[{override.rule}].overriders.{override.overrider}",
            code=_CODE,
            message=f"{name} changes {path} of {template.identity}, which is encrypted; leave it out of the override",
        ),
    )


def still_sealed(manifest: Manifest) -> Problem:
    """Return the problem of a manifest that holds ciphertext of another place."""
    message = f"{manifest.identity} holds ciphertext that is not its own, which must not land in a cluster"
    return Problem(source=manifest.source, code=_CODE, message=message, cluster=manifest.cluster)


def unopened(template: Template) -> Problem:
    """Return the problem of an encrypted template without a key."""
    recipients = ", ".join(template.sealed.recipients) if template.sealed is not None else ""
    message = f"{template.identity} stays as it is in all clusters: no key was given; it is encrypted for {recipients}"
    return Problem(source=template.source, path="sops", code="sops-no-key", message=message)
