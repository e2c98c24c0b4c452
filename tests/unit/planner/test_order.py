from __future__ import annotations

import time
from itertools import chain, pairwise

from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.plan import Action, Cause, Change
from reconciler.api.refs import GVK, Identity
from reconciler.planner import waves
from reconciler.planner.order import kind_rank
from tests.fakes.holds import hold


def change(kind: str, name: str = "x", action: Action = Action.CREATE, held: str | None = None) -> Change:
    identity = Identity("", kind, "demo", name)
    return Change(
        action=action, cluster="m1", gvk=GVK("", "v1", kind), identity=identity, cause=Cause.DECLARED, hold=hold(held)
    )


def ordered(*changes: Change, needs: dict[Identity, frozenset[Identity]] | None = None) -> list[list[str]]:
    return [[f"{changes[i].action} {changes[i].identity.kind}" for i in wave] for wave in waves(changes, needs or {})]


def test_namespaces_and_crds_come_first_and_autoscalers_after_workloads() -> None:
    kinds = ["HorizontalPodAutoscaler", "Deployment", "Service", "ConfigMap", "Namespace", "CustomResourceDefinition"]
    assert ordered(*(change(kind) for kind in kinds)) == [
        ["create Namespace", "create CustomResourceDefinition"],
        ["create ConfigMap"],
        ["create Service"],
        ["create Deployment"],
        ["create HorizontalPodAutoscaler"],
    ]


def test_what_leads_traffic_comes_after_what_it_leads_to() -> None:
    kinds = ["HTTPRoute", "BackendTLSPolicy", "Deployment", "ListenerSet", "Gateway", "Service", "Secret",
             "ReferenceGrant", "GatewayClass"]  # fmt: skip
    assert ordered(*(change(kind) for kind in kinds)) == [
        ["create GatewayClass"],
        ["create ReferenceGrant"],
        ["create Secret"],
        ["create Gateway", "create Service"],
        ["create Deployment", "create ListenerSet"],
        ["create HTTPRoute", "create BackendTLSPolicy"],
    ]


def test_deletions_come_last_and_in_reverse() -> None:
    assert ordered(
        change("Namespace", action=Action.DELETE), change("Deployment", action=Action.DELETE), change("ConfigMap")
    ) == [["create ConfigMap"], ["delete Deployment"], ["delete Namespace"]]


def test_held_changes_are_in_no_wave() -> None:
    assert ordered(change("ConfigMap", held="waits for m2 healthy")) == []


def test_what_is_needed_comes_first_within_a_rank() -> None:
    first, second = change("Widget", "first"), change("Widget", "second")
    needs = {first.identity: frozenset({second.identity})}
    assert waves((first, second), needs) == ((1,), (0,))


def test_a_circle_of_references_is_no_deadlock() -> None:
    a, b = change("Widget", "a"), change("Widget", "b")
    needs = {a.identity: frozenset({b.identity}), b.identity: frozenset({a.identity})}
    assert sorted(index for wave in waves((a, b), needs) for index in wave) == [0, 1]


def test_a_long_chain_of_references_is_followed_to_its_end() -> None:
    links = [change("Widget", f"{number:04}") for number in range(2000)]
    needs = {one.identity: frozenset({other.identity}) for one, other in pairwise(links)}
    assert [index for wave in waves(tuple(links), needs) for index in wave] == list(reversed(range(2000)))


def test_references_crosswise_take_no_longer_than_there_are_references() -> None:
    rows = [[change("Widget", f"{row:02}-{column}") for column in range(4)] for row in range(40)]
    needs = {
        one.identity: frozenset(other.identity for other in below) for above, below in pairwise(rows) for one in above
    }
    found = waves(tuple(chain.from_iterable(rows)), needs)
    assert found == tuple(tuple(range(4 * row, 4 * row + 4)) for row in reversed(range(40)))


@given(
    st.lists(
        st.sampled_from(["Namespace", "ConfigMap", "Deployment", "Widget", "Ingress", "GatewayClass", "HTTPRoute"]),
        max_size=12,
    )
)
def test_every_change_is_in_exactly_one_wave(kinds: list[str]) -> None:
    changes = tuple(change(kind, str(n)) for n, kind in enumerate(kinds))
    flat = [index for wave in waves(changes, {}) for index in wave]
    assert sorted(flat) == list(range(len(changes)))
    assert [kind_rank(changes[i].identity.kind) for i in flat] == sorted(kind_rank(kind) for kind in kinds)


def test_many_circles_are_opened_in_linear_time() -> None:
    pairs = [(change("Widget", f"{number:05}-a"), change("Widget", f"{number:05}-b")) for number in range(5_000)]
    needs = {
        one.identity: frozenset({other.identity}) for pair in pairs for one, other in (pair, tuple(reversed(pair)))
    }
    started_s = time.process_time()
    found = waves(tuple(chain.from_iterable(pairs)), needs)
    assert time.process_time() - started_s < 2
    assert [len(wave) for wave in found] == [5_000, 5_000]
    assert set(found[0]) == set(range(0, 10_000, 2))
