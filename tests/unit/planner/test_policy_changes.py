from __future__ import annotations

from msgspec.structs import replace

from reconciler.api.policies import ApplicationFailover, Flavor, PropagationPolicy, StatePreservationRule
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import PolicyRef
from reconciler.planner.open_questions import _FIELDS, policy_changes

NOT_WRITTEN = {"ref", "source", "suspension_source", "dependent_source", "digest"}


def test_every_field_that_has_an_effect_is_told_when_it_changes() -> None:
    told = {attribute.partition(".")[0] for attribute in _FIELDS}
    assert told == {*PropagationPolicy.__struct_fields__} - NOT_WRITTEN


def test_state_that_is_to_travel_is_told_when_it_changes() -> None:
    kept = (StatePreservationRule(alias_label="job-id", json_path="{.jobID}"),)
    before = PropagationPolicy(
        ref=PolicyRef("PropagationPolicy", "demo", "web"),
        flavor=Flavor.KARMADA,
        source=NOWHERE,
        application_failover=ApplicationFailover(),
    )
    after = replace(before, application_failover=ApplicationFailover(state_preservation=kept))
    (change,) = policy_changes(before, after)
    assert change.path == "spec.failover.application"
    assert change.after["statePreservation"] == [{"aliasLabel": "job-id", "jsonPath": "{.jobID}"}]
