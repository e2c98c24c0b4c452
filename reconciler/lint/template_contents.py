"""Images that no node can pull, and custom resources without a definition in the store."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.api.fleet import Fleet
from reconciler.api.problem import Problem, Severity
from reconciler.documents import OVERRIDE_KINDS, PROPAGATION_KINDS, is_namespaced, is_never_distributed
from reconciler.policy import PolicyIndex
from reconciler.templates import malformed_images


def lint_images(fleet: Fleet) -> Iterator[Problem]:
    """An error for each image that is no reference. One that an override policy may replace is left to its check."""
    index = PolicyIndex(fleet.overrides)
    for template in fleet.templates.values():
        faulty = malformed_images(template)
        if faulty and not any(index.matches(template)):
            for path, image in faulty:
                message = f"{image[:80]!r} is no image reference, so no node can pull it; write NAME:TAG or NAME@DIGEST"
                yield Problem(source=template.source, path=path, code="image-illegal", message=message)


def lint_definitions(fleet: Fleet) -> Iterator[Problem]:
    """A hint for each custom kind without a definition, at the first of its objects."""
    seen: set[tuple[str, str]] = set()
    of_policies = PROPAGATION_KINDS | OVERRIDE_KINDS
    for identity, template in fleet.templates.items():
        kind = template.gvk.group_kind
        is_known = kind in fleet.custom_kinds or is_namespaced(*kind) is not None or kind[1] in of_policies
        if is_known or kind in seen or is_never_distributed(template.gvk, identity):
            continue
        seen.add(kind)
        message = (
            f"the store has no CustomResourceDefinition of {kind[1]} ({kind[0]}), so its fields are not checked here, "
            "and clusters that do not serve it get none; 'reconciler doctor' names these"
        )
        yield Problem(source=template.source, code="definition-missing", message=message, severity=Severity.HINT)
