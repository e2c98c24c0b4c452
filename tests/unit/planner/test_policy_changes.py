from __future__ import annotations

from reconciler.api.policies import PropagationPolicy
from reconciler.planner.open_questions import _FIELDS

NOT_WRITTEN = {"ref", "source", "digest"}
WITHOUT_EFFECT = {"preemption", "scheduler_name", "cluster_failover_purge_mode", "activation_preference"}


def test_every_field_that_has_an_effect_is_told_when_it_changes() -> None:
    told = {attribute.partition(".")[0] for attribute in _FIELDS}
    assert told == {*PropagationPolicy.__struct_fields__} - NOT_WRITTEN - WITHOUT_EFFECT
