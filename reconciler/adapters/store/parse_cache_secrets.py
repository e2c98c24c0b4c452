"""Content that may not be kept on a disk: Secrets, values for them, and quotes of them.

Source: design#promise-10: no secret value leaves the process except to the cluster it is for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.containment import INTERNAL_ERROR
from reconciler.model.fleet import Reach
from reconciler.model.policy import ResourceSelector
from reconciler.model.tree import Json
from reconciler.stages.documents import OVERRIDE_KINDS
from reconciler.stages.fleet import ParsedFile
from reconciler.stages.secrecy import holds_credential, is_secret_kind, may_hold_credentials

_NEVER: Final = (b"PRIVATE KEY", b"last-applied-configuration", b"stringData")
_MARK: Final = b"Secret"
_HARMLESS: Final = b"imagePullSecrets"
"""A field of most pods of private registries; it names Secrets and holds nothing of them."""


def is_cacheable(file: ParsedFile) -> bool:
    """Return whether a file holds no Secret, no value for or quote of one, and no fault of the program.

    A broken document may be kept if it is certainly no Secret.
    """
    if any(is_secret_kind(template.gvk.kind) for template in file.templates):
        return False
    if any(problem.code == INTERNAL_ERROR for problem in file.problems):
        return False  # Another run may not meet it.
    return not any(map(_may_quote_secrets, file.frozen)) and not any(
        _may_select_secrets(override.selectors) for override in file.overrides
    )


def _may_quote_secrets(reach: Reach) -> bool:
    """Return whether the problems of a broken document may quote a value of a Secret, or a value for one."""
    if reach.policy is not None:
        return reach.policy.kind in OVERRIDE_KINDS and _may_select_secrets(reach.selectors)
    return not reach.identities or any(is_secret_kind(identity.kind) for identity in reach.identities)


def _may_select_secrets(selectors: Iterable[ResourceSelector]) -> bool:
    kinds = [selector.kind for selector in selectors]
    return not kinds or not all(kinds) or any(map(is_secret_kind, kinds))


def holds_secrets(document: Json, packed: bytes) -> bool:
    """Return whether another kind, an override, or their problems may hold a secret.

    `packed`: the same as bytes, which rule out most.
    """
    if may_hold_keys(packed) or (_MARK in packed and _MARK in packed.replace(_HARMLESS, b"")):
        return True
    return may_hold_credentials(packed) and holds_credential(document)


def may_hold_keys(packed: bytes) -> bool:
    """Return the same for a document that only names Secrets, such as a policy that selects them."""
    return any(mark in packed for mark in _NEVER)
