"""Laws of state: kept up it is what it is from nothing, and all that tells of it says the same numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from reconciler.api.fleet import Guards
from reconciler.api.plan import Plan
from reconciler.api.refs import Copy, Identity
from reconciler.controller.vitals.service_vitals import Vitals, snapshot_of
from reconciler.planner import Round, guards_in_force
from reconciler.report.status import StateOfFleet, state_document, status_text
from reconciler.report.status.status_document import StatusDocument, status_document
from reconciler.server.metrics import PREFIX, exposition
from reconciler.state import FleetState, Fought, HealthWord, Lag, StateFacts, StateTables
from tests.unit.controller.test_loop import BROKEN
from tests.unit.state.scenes import TOLD, UNTIL, Scene

CLUSTERS = ("m1", "m2", "m3")
NAMES = ("a", "b", "c")
COPIES = st.tuples(st.sampled_from(CLUSTERS), st.sampled_from(NAMES))
TROUBLES = st.one_of(
    st.tuples(st.sampled_from(("away", "back", "leaves", "joins")), st.tuples(st.sampled_from(CLUSTERS), st.just(""))),
    st.tuples(
        st.sampled_from(
            ("edit", "foreign", "fight", "peace", "failure", "fixed", "degraded", "missing", "well", "under way",
             "answered", "unread", "held", "ordered")
        ),
        COPIES,
    ),
    st.tuples(st.sampled_from(("goes", "comes")), st.tuples(st.just(""), st.sampled_from(NAMES))),
    st.tuples(
        st.sampled_from(("apply", "commit", "observe", "act", "suspend", "resume", "breaks", "fixes")),
        st.just(("", "")),
    ),
)  # fmt: skip

JUDGED = guards_in_force(None, Guards(), "r1", "2026-11-21T10:00:00Z")


def identity_of(name: str) -> Identity:
    return Identity("", "ConfigMap", "demo", name)


UNSEEN: Mapping[str, Callable[[Scene, Copy], object]] = {
    "away": lambda scene, copy: scene.away.update({copy[0]: "refused"}),
    "back": lambda scene, copy: scene.away.pop(copy[0], None),
    "leaves": lambda scene, copy: scene.left.add(copy[0]),
    "joins": lambda scene, copy: scene.left.discard(copy[0]),
    "fight": lambda scene, copy: scene.fights.update({copy: Fought(("kubectl",), UNTIL)}),
    "peace": lambda scene, copy: scene.fights.pop(copy, None),
    "failure": lambda scene, copy: scene.failures.update({copy: "a webhook says no"}),
    "fixed": lambda scene, copy: scene.failures.pop(copy, None),
    "degraded": lambda scene, copy: scene.health.update({copy: TOLD["Degraded"]}),
    "missing": lambda scene, copy: scene.health.update({copy: TOLD["Missing"]}),
    "well": lambda scene, copy: scene.health.pop(copy, None),
}
"""A thing that no round looks at; the tables have to find it."""
LOOKED_AT: Mapping[str, Callable[[Scene, Copy], object]] = {
    "edit": lambda scene, copy: scene.edit(copy[0], copy[1].name, "by hand"),
    "foreign": lambda scene, copy: scene.put_foreign(copy[0], copy[1].name),
    "under way": lambda scene, copy: scene.under_way.add(copy),
    "answered": lambda scene, copy: scene.under_way.discard(copy),
    "unread": lambda scene, copy: scene.unread.update({copy: "forbidden"}),
    "held": lambda scene, copy: scene.held.update({copy: "guard: too many"}),
    "ordered": lambda scene, copy: scene.held.update({copy: "fleet is suspended"}),
}


def befall(scene: Scene, trouble: str, cluster: str, name: str) -> frozenset[Identity] | None:
    """Let it happen; what a round looks at after it. None: everything, as after a resync."""
    copy = (cluster, identity_of(name))
    if trouble in UNSEEN:
        UNSEEN[trouble](scene, copy)
        return frozenset()
    if trouble in LOOKED_AT:
        LOOKED_AT[trouble](scene, copy)
        return frozenset({copy[1]})
    return of_the_store(scene, trouble, name)


def of_the_store(scene: Scene, trouble: str, name: str) -> frozenset[Identity] | None:
    match trouble:
        case "goes" if len(scene.gone) < len(NAMES) - 1:
            scene.gone.add(name)
        case "comes":
            scene.gone.discard(name)
        case "commit":
            scene.value = f"{scene.value}1"
        case "observe" | "act":
            scene.observe = trouble == "observe"
        case "breaks" | "fixes":
            scene.broken = BROKEN if trouble == "breaks" else ""
            return None
        case "apply":
            scene.apply()
            return None
    return frozenset(map(identity_of, NAMES)) | {Identity("", "Namespace", "", "demo")}


def scene_with(troubles: list[tuple[str, tuple[str, str]]]) -> Scene:
    scene = Scene(*CLUSTERS, names=NAMES)
    scene.apply()
    for trouble, (cluster, name) in troubles:
        befall(scene, trouble, cluster, name)
    return scene


@pytest.mark.parametrize("trouble", UNSEEN)
def test_what_no_round_looked_at_is_found(trouble: str) -> None:
    scene, tables, copy = Scene(*CLUSTERS, names=NAMES), StateTables(), ("m1", identity_of("a"))
    scene.apply()
    for already in ("edit", "ordered") if trouble in ("suspend", "resume") else ():
        befall(scene, already, "m1", "a")
    undone = {"back": "away", "joins": "leaves", "peace": "fight", "fixed": "failure", "well": "missing",
              "resume": "suspend"}  # fmt: skip
    for before in filter(None, (undone.get(trouble), "edit" if trouble in ("failure", "fixed") else None)):
        befall(scene, before, "m1", "a")
    found = tables.update(scene.facts())
    befall(scene, trouble, *(copy[0], copy[1].name))
    facts = scene.facts()
    after = tables.update(facts, frozenset())
    assert dict(after.clusters) == dict(StateTables().update(facts).clusters)
    assert dict(after.clusters) != dict(found.clusters)


@given(st.lists(TROUBLES, max_size=8))
def test_kept_up_it_is_what_it_is_from_nothing(troubles: list[tuple[str, tuple[str, str]]]) -> None:
    scene, tables = Scene(*CLUSTERS, names=NAMES), StateTables()
    scene.apply()
    tables.update(scene.facts())
    for trouble, (cluster, name) in troubles:
        only = befall(scene, trouble, cluster, name)
        facts = scene.facts()
        kept, anew = tables.update(facts, only), StateTables().update(facts)
        assert dict(kept.clusters) == dict(anew.clusters)
        for name_, found in kept.clusters.items():
            assert sum(found.syncs.values()) == sum(found.healths.values()), name_
            assert min(found.syncs.values()) >= 0, name_
            # Nothing says that it is in sync in a cluster of which nobody knows.
            assert not (found.why_away is not None and found.syncs[Lag.SYNCED])


@given(st.lists(TROUBLES, max_size=6))
def test_everything_that_tells_of_it_says_the_same_numbers(troubles: list[tuple[str, tuple[str, str]]]) -> None:
    scene = scene_with(troubles)
    facts = scene.facts()
    state = StateTables().update(facts)
    picture, document = told(facts, state)
    expected = {name: by_hand(facts, state, name) for name in state.clusters}
    assert {
        entry["name"]: (some(entry["objects"]), some(entry["health"])) for entry in document["clusters"]
    } == expected
    assert some(document["objects"]) == dict(sum((Counter(found[0]) for found in expected.values()), Counter()))
    assert of_text(status_text(document, wide=True)) == {
        name: {word: count for word, count in {**syncs, **healths}.items() if word in SHOWN}
        for name, (syncs, healths) in expected.items()
    }
    vitals = Vitals()
    shown_now = StateOfFleet(round=picture, state=state, time="", source="")
    vitals.status.publish(snapshot_of(shown_now))
    assert of_metrics(vitals) == expected


SHOWN = {*map(str, Lag), "Progressing", "Degraded", "Missing"}


def told(facts: StateFacts, state: FleetState) -> tuple[Round, dict[str, Any]]:
    """The round and the status document of these facts."""
    changes = tuple(change for due in facts.changes.values() for change in due)
    plan = Plan(base="", head="r", changes=changes)
    picture = Round(
        schedule=facts.schedule, manifests=facts.manifests, plan=plan, problems=facts.problems, guards=JUDGED
    )
    document = state_document(StateOfFleet(round=picture, state=state, time=UNTIL))
    return picture, status_document(StatusDocument(fleet="test", journal="j", picture=document))


def by_hand(facts: StateFacts, state: FleetState, cluster: str) -> tuple[dict[str, int], dict[str, int]]:
    """Every copy that there may be, asked for one by one."""
    identities = {*facts.schedule.bindings, *facts.journal.ledger.get(cluster, {}), *map(identity_of, NAMES)}
    found = [one for identity in identities if (one := state.of(cluster, identity)) is not None]
    return dict(Counter(str(one.sync.lag) for one in found)), dict(Counter(str(one.health.word) for one in found))


def some(counts: Mapping[str, int]) -> dict[str, int]:
    return {str(word): count for word, count in counts.items() if count}


def of_text(text: str) -> dict[str, dict[str, int]]:
    """Return what the table of clusters says."""
    lines = text.splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("CLUSTER"))
    words = lines[head].split("LAST")[0].split()[2:]
    names = {word.upper(): word for word in SHOWN}
    found = {}
    for line in lines[head + 1 :]:
        if not line:
            break
        cells_ = line.split()
        counts = {names[word]: int(count) for word, count in zip(words, cells_[2:], strict=False)}
        found[cells_[0]] = some(counts)
    return found


def of_metrics(vitals: Vitals) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
    """Return what the two gauges say."""
    found: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for family in text_string_to_metric_families(exposition(vitals, 0.0).decode()):
        for index, (metric, label) in enumerate((("objects", "state"), ("object_health", "health"))):
            for sample in family.samples if family.name == PREFIX + metric else ():
                counts = found.setdefault(sample.labels["cluster"], ({}, {}))[index]
                if sample.value:
                    counts[sample.labels[label]] = int(sample.value)
    return found


def cells(row: str) -> list[str]:
    return re.findall("<td>(.*?)</td>", row)


def test_the_words_are_those_of_the_field() -> None:
    assert {*map(str, HealthWord)} == {"Healthy", "Progressing", "Degraded", "Missing", "Unknown"}
