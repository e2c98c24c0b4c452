"""Kinds as words: one Deployment, five thousand Deployments."""

from __future__ import annotations

from reconciler.report.text.safe import visible

_VOWELS = frozenset("aeiou")
_PLURAL_ALREADY = frozenset({"Endpoints"})


def counted_kind(kind: str, count: int) -> str:
    """`1 Ingress`, `5,000 Deployments`, `2 NetworkPolicies`."""
    return f"{count:,} {visible(kind if count == 1 else plural(kind))}"


def plural(kind: str) -> str:
    """More than one of a kind, by the rules of English that Kubernetes' own names follow."""
    if kind in _PLURAL_ALREADY:
        return kind
    if kind.endswith("y") and kind[-2:-1].lower() not in _VOWELS:
        return f"{kind[:-1]}ies"
    if kind.endswith(("s", "x", "ch", "sh")):
        return f"{kind}es"
    return f"{kind}s"


def counted(count: int, noun: str) -> str:
    """`1 deletion`, `4,000 deletions`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
