"""Live objects to templates, with policies that adopt them."""

from reconciler.stages.importing.template import adopting_policies, reason_to_skip, template_of

__all__ = [
    "adopting_policies",
    "reason_to_skip",
    "template_of",
]
