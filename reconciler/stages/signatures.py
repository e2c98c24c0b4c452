"""What a decision says about each identity, as a value that is cheap to compare.

Two decisions with equal signatures of an identity render and settle it alike; so a commit concerns exactly the
identities whose signatures differ.
"""

from __future__ import annotations

from collections.abc import Hashable

from reconciler.model.policy import PropagationPolicy
from reconciler.model.refs import Identity
from reconciler.stages.decide import Decision
from reconciler.stages.override_select import OverrideIndex
from reconciler.stages.render import template_of


def signatures(decision: Decision) -> dict[Identity, Hashable]:
    """The signature of every bound or frozen identity. What is in no decision has none."""
    fleet = decision.fleet
    yielded = decision.yielded
    index = OverrideIndex(fleet.overrides, fleet.clusters)
    digests = {policy.ref: policy.digest for policy in fleet.overrides}
    found: dict[Identity, Hashable] = {}
    for identity, binding in decision.bindings.items():
        template = template_of(fleet, identity)
        assert template is not None, f"{identity} is bound and has no template"
        rules = tuple((rule.policy, rule.index, digests.get(rule.policy)) for rule in index.rules_of(template))
        found[identity] = (
            template.digest,
            binding.targets,
            binding.is_dependency,
            _terms(decision.policies.get(identity)),
            rules,
            tuple(sorted(yielded.get(identity, ()))),
            tuple(decision.hold(identity, cluster) for cluster in binding.clusters),
            identity in decision.frozen,
        )
    for identity in decision.frozen:
        found.setdefault(identity, "frozen")
    return found


def _terms(policy: PropagationPolicy | None) -> Hashable:
    """What of a governing policy concerns a copy. An inherited one differs from its owner's in these alone."""
    if policy is None:
        return None
    return (policy.ref, policy.flavor, policy.digest, policy.keep, policy.conflict_resolution)
