"""What processes tell each other, there and back. Source: ADR 22."""

from __future__ import annotations

import base64
import os
import zlib

import pytest

from reconciler.model.binding import PreviousPlacement, TargetCluster
from reconciler.model.ledger import Loss
from reconciler.model.observation import ClusterObservation, Health, Observations, Workload
from reconciler.model.refs import GVK, Identity
from reconciler.stages.shards import (
    Account,
    AccountTooLarge,
    Due,
    Guarded,
    account_body,
    account_name,
    read_account,
)

WEB = Identity("apps", "Deployment", "demo", "web")
KIND = GVK("apps", "v1", "Deployment")
TOLD = Account(
    shard="a",
    revision="abc",
    observations=Observations(
        clusters={
            "m1": ClusterObservation(
                name="m1",
                workloads={
                    WEB: Workload(gvk=KIND, identity=WEB, replicas=2, ready=2, health=Health.HEALTHY, established=2)
                },
            )
        },
        previous={WEB: PreviousPlacement(identity=WEB, targets=(TargetCluster("m1", 2),), affinity_name="near")},
    ),
    asks=(WEB,),
    guarded={
        "a": Guarded(
            revision="abc",
            due=(Due(action="delete", cluster="m1", gvk=KIND, identity=WEB),),
            made=(Loss(cluster="m1", identity=WEB, time="2026-11-24T10:00:00Z"),),
            held_since={"m1": "2026-11-24T10:00:00Z"},
            managed={"m1": 4},
        )
    },
    orders=(("fleet", "an audit", "ops", ""),),
)


def test_what_is_told_is_what_is_read() -> None:
    assert read_account(account_body(account_name("shop", "a"), "fleet-system", TOLD)) == TOLD


def test_what_does_not_fit_is_an_error_that_says_what_to_do() -> None:
    noise = base64.b64encode(os.urandom(1_000_000)).decode()
    with pytest.raises(AccountTooLarge, match=r"what shard a tells is .* use more shards"):
        account_body("x", "fleet-system", Account(shard="a", orders=((noise,),)))


@pytest.mark.parametrize(
    "packed",
    [
        "",
        "not base64",
        base64.b64encode(b"not packed").decode(),
        base64.b64encode(zlib.compress(b"[1]")).decode(),
        base64.b64encode(zlib.compress(b'{"observations": 3}')).decode(),
        base64.b64encode(zlib.compress(b"0" * 70_000_000)).decode(),
    ],
)
def test_what_has_no_such_form_is_not_believed(packed: str) -> None:
    assert read_account({"data": {"account": packed}}) is None


def test_what_of_it_is_not_understood_is_left_out() -> None:
    tree = (
        b'{"observations": {"version": 1}, "asks": [["a"], ["apps", "Deployment", "demo", "web"], 7],'
        b' "guarded": {"a": {"due": [[1, 2], null], "made": 7, "managed": {"m1": -1, "m2": true, "m3": 2}}}}'
    )
    found = read_account({"data": {"account": base64.b64encode(zlib.compress(tree)).decode()}})
    assert found is not None
    assert found.asks == (WEB,)
    assert found.guarded == {"a": Guarded(managed={"m3": 2})}
