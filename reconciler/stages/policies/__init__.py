"""Documents of policies to values, in every dialect. Knows nothing of templates."""

from reconciler.stages.policies.affinity import read_affinity
from reconciler.stages.policies.codes import POLICY_CODES
from reconciler.stages.policies.override import parse_override_policy
from reconciler.stages.policies.override_fields import OVERRIDE_SHAPE
from reconciler.stages.policies.propagation import parse_propagation_policy
from reconciler.stages.policies.propagation_fields import PROPAGATION_SHAPE
from reconciler.stages.policies.selectors import readable_selectors

__all__ = [
    "OVERRIDE_SHAPE",
    "POLICY_CODES",
    "PROPAGATION_SHAPE",
    "parse_override_policy",
    "parse_propagation_policy",
    "read_affinity",
    "readable_selectors",
]
