"""Secrets with values in clear in the store.

Secrets that the store has and that an operator makes, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.api.fleet import Fleet, PlainSecrets
from reconciler.api.problem import Problem, Severity
from reconciler.scheduler import Makers


def lint_secrets(fleet: Fleet) -> Iterator[Problem]:
    """A warning for each Secret with values that nothing encrypts; an error where the Fleet document refuses them."""
    answer = fleet.settings.plain_secrets
    if answer is PlainSecrets.ALLOW:
        return
    severity = Severity.ERROR if answer is PlainSecrets.REFUSE else Severity.WARNING
    for identity, template in fleet.templates.items():
        if identity[:2] != ("", "Secret") or template.sealed is not None:
            continue
        held = next((part for part in ("data", "stringData") if _has_values(template.body.get(part))), None)
        if held is not None:
            message = (
                f"{identity} has its values in clear: whoever reads the store reads them; encrypt it with sops, or say "
                "spec.secrets.plain: allow in the Fleet document"
            )
            yield Problem(source=template.source, path=held, code="secret-in-clear", message=message, severity=severity)


def _has_values(part: object) -> bool:
    return isinstance(part, Mapping) and any(part.values())


def lint_makers(fleet: Fleet, makers: Makers) -> Iterator[Problem]:
    """A warning at each template whose operator writes a whole object that the store has as well."""
    for made, found in makers.of.items():
        if made not in fleet.templates:
            continue
        for maker in found:
            if maker.is_whole:
                message = (
                    f"{maker.identity} makes {made}, which is in the store as well, and the two undo each other's "
                    "changes; take one of them out"
                )
                source = fleet.templates[maker.identity].source
                yield Problem(source=source, code="secret-made-twice", message=message, severity=Severity.WARNING)
