"""StatefulSets whose volumes keep them where they are, under a policy that would move them."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.fleet import Fleet
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity
from reconciler.stages.claims import Claims
from reconciler.stages.templates import claims_of
from reconciler.stages.ticks import is_descheduled


def lint_volumes(fleet: Fleet, claims: Claims) -> Iterator[Problem]:
    """A hint for each StatefulSet with volume claims that ticks would move if it had none."""
    policies = {policy.ref: policy for policy in fleet.propagation}
    for identity, claim in claims.claims.items():
        if identity[:2] != ("apps", "StatefulSet") or not _may_move(identity, policies[claim.policy]):
            continue
        template = fleet.templates[identity]
        names = ", ".join(claims_of(identity, template.body))
        if names:
            message = (
                f"{identity} has volume claims ({names}), which stay in their cluster: descheduling leaves it where it "
                f"is, and a failover by {claim.policy} is held until a person confirms it"
            )
            yield Problem(
                source=template.source,
                path="spec.volumeClaimTemplates",
                code="volumes-stay",
                message=message,
                severity=Severity.HINT,
            )


def _may_move(identity: Identity, policy: PropagationPolicy) -> bool:
    return is_descheduled(identity, policy) or policy.application_failover is not None
