"""What an account says of Rollouts, also when somebody else wrote it. Source: ADR 22."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.problem import Problem, Source
from reconciler.model.rollouts.record import Met, Record, Turn, Unmet
from reconciler.model.rollouts.told import NO_ROLLOUTS, Report, RolloutAccount
from reconciler.stages.shards import Account, account_body, read_account
from tests.fakes.rollouts import AWAITED, DONE, PAUSED, PINNED

RECORD = Record(revision="r1", begun_at="2026-11-25T10:00:00Z", turn="r2", turn_at="2026-11-25T11:00:00Z")
OF_SHARD = RolloutAccount(
    revision="r2",
    clusters={"m1": "", "m2": "it does not answer"},
    reports={"default": {"m1": Report(record=RECORD, sight=Met("r1", "2026-11-25T10:01:00Z")), "m2": Report()}},
)
PROBLEM = Problem(source=Source("rollout.yaml", 4), code="rollout-pinned", message="the stage rest is pinned")


def there_and_back(told: RolloutAccount) -> RolloutAccount | None:
    found = read_account(account_body("name", "fleet-system", Account(shard="a", rollouts=told)))
    return found.rollouts if found is not None else None


@pytest.mark.parametrize("progress", [AWAITED, PAUSED, PINNED, DONE])
def test_what_is_told_is_what_is_read(progress: Any) -> None:
    of_leader = RolloutAccount(
        revision="r2",
        progress={
            "default": replace(progress, problems=(PROBLEM,), changes=(Turn("m1", "r2", "2026-11-25T11:00:00Z"),))
        },
        pending={"default": {"m1": RECORD}},
    )
    assert there_and_back(of_leader) == of_leader
    assert there_and_back(OF_SHARD) == OF_SHARD
    assert there_and_back(NO_ROLLOUTS) == NO_ROLLOUTS


@pytest.mark.parametrize(
    "report",
    [
        Report(record=replace(RECORD, begun_at="yesterday")),
        Report(record=replace(RECORD, completed_at="2026-13-25T10:00:00Z")),
        Report(record=replace(RECORD, revision="r" * 300)),
        Report(record=replace(RECORD, revision="r\x1b[2J")),
        Report(record=RECORD, sight=Unmet(why=["no text"])),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_record_tells_nothing(report: Report) -> None:
    assert there_and_back(replace(OF_SHARD, reports={"default": {"m1": report}})) == NO_ROLLOUTS
