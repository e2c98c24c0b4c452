"""An installed interpreter that raises for what is in one cluster: everything else goes on, as a plan and as a service.

Source: design#promise-7.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api.clusters import Health
from reconciler.api.refs import Identity
from reconciler.controller.once import Access, observe_once, plan_once
from reconciler.controller.once.applying import apply_once
from reconciler.kinds import Registry
from reconciler.sim import ClusterSpec, FleetInABox
from tests.fakes.clocks import TestClock
from tests.fakes.raising import InterpreterFault, raising, registry_with
from tests.soak.lies import HONEST, LIAR, store

KINDS = (("apps", "Deployment"), ("batch", "Job"), ("", "Service"), ("apps", "DaemonSet"))


def faulty() -> Registry:
    """Interpreters of four kinds that raise as soon as a live object is judged."""
    return registry_with(*((f"{kind} that fails", raising(group, kind)) for group, kind in KINDS))


async def test_a_plan_and_an_observation_are_made_without_what_they_raise_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with FleetInABox([ClusterSpec(name=name) for name in (LIAR, HONEST)], tmp_path) as box:
        access = Access(
            interpreters=faulty(), kubeconfig=box.kubeconfig, journal=tmp_path / "journal.db", clock=TestClock()
        )
        await apply_once(store(), access, lambda planned: True)
        planned = (await plan_once(store(value="2"), access)).plan
        seen = await observe_once(store(), access)
    assert {(change.cluster, change.identity.name) for change in planned.changes} >= {
        (LIAR, "settings"),
        (HONEST, "settings"),
    }
    told = [problem.message for problem in planned.problems if problem.code == "internal-error"]
    assert any(message.startswith("Service demo/web:") for message in told)
    web = seen.clusters[HONEST].workloads[Identity("apps", "Deployment", "demo", "web")]
    assert web.health is Health.UNKNOWN
    traces = [record.exc_info for record in caplog.records if record.exc_info]
    assert {type(trace[1]) for trace in traces} == {InterpreterFault}
