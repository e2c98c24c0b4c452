"""The Rollout of each template.

Source: Karmada: the most specific policy wins; two equally specific ones are an error and never a choice (ADR 18).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from reconciler.model.fleet import Fleet, Template
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity, PolicyRef
from reconciler.model.rollouts.rollout import Rollout, TemplateScope

AT_ONCE = ""
"""In place of the name of a Rollout: none speaks for the template, and it changes everywhere at once."""


class Selection(Struct, frozen=True, kw_only=True):
    """The Rollouts of each template, by name; a template that is not in it changes at once.

    Several: a dependency goes with the most advanced one in a cluster. `tied`: templates with two equally specific
    Rollouts; they stay as they are.
    """

    rollouts: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    tied: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def select(
    fleet: Fleet,
    governing: Mapping[Identity, PolicyRef],
    owners: Mapping[Identity, Iterable[Identity]],
) -> Selection:
    """Return the Rollout of each template of a fleet.

    `governing`: the propagation policy of each template that has one. `owners`: by dependency its owners; it goes with
    them, even if a Rollout selects it itself.
    """
    if not fleet.rollouts:
        return Selection()
    own: dict[Identity, str] = {}
    tied: dict[Identity, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for identity, template in fleet.templates.items():
        best = best_of(fleet.rollouts, template, governing.get(identity))
        if len(best) > 1:
            tied[identity] = best
            problems.append(_tie(template, best))
        elif best:
            own[identity] = best[0]
    found: dict[Identity, tuple[str, ...]] = {identity: (name,) for identity, name in own.items()}
    for identity, bringing in owners.items():
        names = {own.get(owner, AT_ONCE) for owner in bringing if owner not in tied}
        tied_owners = sorted({name for owner in bringing for name in tied.get(owner, ())})
        if tied_owners:
            tied[identity] = tuple(tied_owners)
        if len(names) > 1 and identity in fleet.templates:
            problems.append(_shared(fleet.templates[identity], names))
        if names == {AT_ONCE} or AT_ONCE in names:
            found.pop(identity, None)
        elif names:
            found[identity] = tuple(sorted(names))
    return Selection(
        rollouts={identity: names for identity, names in sorted(found.items()) if identity not in tied},
        tied=dict(sorted(tied.items())),
        problems=tuple(sorted(problems)),
    )


def refused_without_revisions(rollouts: Iterable[Rollout]) -> tuple[Problem, ...]:
    """Return the error of each Rollout in a plain directory, which has no revisions."""
    message = "a directory has no revisions, so that no cluster could stay at an earlier one; follow a Git repository"
    return tuple(
        Problem(source=rollout.source, code="rollout-needs-revisions", message=f"Rollout {rollout.name}: {message}")
        for rollout in rollouts
    )


def best_of(rollouts: Iterable[Rollout], template: Template, policy: PolicyRef | None) -> tuple[str, ...]:
    """The names of the most specific Rollouts that select a template."""
    selecting = [rollout for rollout in rollouts if _selects(rollout.templates, template, policy)]
    precision = max((rollout.templates.precision for rollout in selecting), default=None)
    return tuple(sorted(rollout.name for rollout in selecting if rollout.templates.precision == precision))


def _selects(scope: TemplateScope, template: Template, policy: PolicyRef | None) -> bool:
    if scope.policies and (policy is None or _written(policy) not in scope.policies):
        return False
    if scope.namespaces and template.identity.namespace not in scope.namespaces:
        return False
    return scope.labels is None or scope.labels.matches(template.labels)


def _written(policy: PolicyRef) -> str:
    return f"{policy.namespace}/{policy.name}" if policy.namespace else policy.name


def _tie(template: Template, names: Sequence[str]) -> Problem:
    message = (
        f"the Rollouts {' and '.join(names)} both speak for {template.identity}, and neither is more specific; "
        "it stays as it is"
    )
    return Problem(source=template.source, code="rollout-template-tied", message=message)


def _shared(template: Template, names: Iterable[str]) -> Problem:
    shown = " and ".join(f"with the Rollout {name}" if name else "at once" for name in sorted(names))
    message = f"what brings {template.identity} changes {shown}; it goes with the earlier one"
    code = "rollout-dependency-shared"
    return Problem(source=template.source, code=code, message=message, severity=Severity.WARNING)
