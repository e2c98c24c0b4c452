"""System namespaces: those of them that the Fleet document lets policies distribute to, and policies for others.

Source: design#system-namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from reconciler.api.fleet import Template
from reconciler.api.policies import OverridePolicy, PropagationPolicy
from reconciler.api.problem import Problem
from reconciler.documents import is_system_namespace, may_be_allowed, system_namespace_of


def admitted(templates: Iterable[Template], allowed: frozenset[str]) -> list[Template]:
    """Return the templates, with a mark on those that are in or are an allowed system namespace."""
    return [
        replace(template, is_admitted=True) if system_namespace_of(template.identity) in allowed else template
        for template in templates
    ]


def concerns_system(templates: Iterable[Template], policies: Iterable[PropagationPolicy | OverridePolicy]) -> bool:
    """Return whether what becomes of any of them depends on the allowed namespaces."""
    return any(system_namespace_of(template.identity) for template in templates) or any(
        True for policy in policies for _ in refusals(policy, frozenset())
    )


def refusals(policy: PropagationPolicy | OverridePolicy, allowed: frozenset[str]) -> Iterator[Problem]:
    """Yield an error for each system namespace that a policy is in or selects, and that is not allowed."""
    own = policy.ref.namespace
    if is_system_namespace(own) and own not in allowed:
        message = f"a policy in the system namespace {own} distributes nothing; move it to the namespace it is for"
        path, code = "metadata.namespace", "system-namespace"
        yield Problem(source=policy.source, path=path, code=code, message=_with_way_out(message, own))
    for index, selector in enumerate(policy.selectors):
        is_named = (selector.api_version, selector.kind) == ("v1", "Namespace") and is_system_namespace(selector.name)
        system = selector.name if is_named else selector.namespace
        if system in ("", own) or system in allowed or not is_system_namespace(system):
            continue
        message = f"nothing is distributed in the system namespace {system}; take this selector out"
        path = f"spec.resourceSelectors[{index}].{'name' if is_named else 'namespace'}"
        yield Problem(
            source=selector.source, path=path, code="system-namespace", message=_with_way_out(message, system)
        )


def _with_way_out(message: str, namespace: str) -> str:
    allows = f", or name {namespace} in spec.namespaces.allowed of the Fleet document"
    return message + allows if may_be_allowed(namespace) else message
