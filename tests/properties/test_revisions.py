"""Comparing two revisions looks only at what they decide differently, and finds what a full comparison finds."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.engine import compare_revisions, decide, render_decision, schemas_of
from reconciler.model.binding import Constraint, PreviousPlacement
from reconciler.model.fleet import Fleet
from reconciler.model.observation import Observations
from reconciler.model.plan import Plan
from reconciler.model.refs import Identity
from reconciler.stages.guard import guard
from reconciler.stages.inputs import render_inputs
from reconciler.stages.order import waves
from reconciler.stages.parsed_file import ParsedFile
from reconciler.stages.placement_changes import placement_changes
from reconciler.stages.render import RenderCache, managed_in, problems_in
from reconciler.stages.revisions import previous_of, revision_changes
from tests.properties.test_decide_memo import (
    ALL_OBSERVED,
    BASE,
    FIXED,
    NOW,
    SPACES,
    Doc,
    broken,
    changed_clusters,
    edits,
    fleet_of,
    path_of,
    placements,
    plain,
    policy,
    selector,
)

OVERRIDERS: tuple[Doc, ...] = (
    {"plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": 7}]},
    {"plaintext": [{"path": "/spec/absent", "operator": "remove"}]},
    {"plaintext": [{"path": "/metadata/ownerReferences", "operator": "add", "value": []}]},
    {"imageOverrider": [{"component": "Registry", "operator": "add", "value": "reg.example"}]},
    {"imageOverrider": [{"component": "Repository", "operator": "remove"}]},
    {"annotationsOverrider": [{"operator": "add", "value": {"fleet.reconciler/skip-auto-propagation": "x"}}]},
)


def override(ns: str, name: str, lane: str, cluster: Doc | None, overriders: Doc) -> Doc:
    kind = "OverridePolicy" if ns else "ClusterOverridePolicy"
    rule = {"overriders": overriders, **({"targetCluster": cluster} if cluster else {})}
    spec = {"resourceSelectors": [selector("Deployment", lane)], "overrideRules": [rule]}
    return {**policy(kind, ns, name, [], {}), "spec": spec}


overrides = st.builds(
    override,
    st.sampled_from(("", *SPACES)),
    st.sampled_from(("o1", "o2")),
    st.sampled_from(("", "x", "y")),
    st.sampled_from(
        (
            None,
            {"clusterNames": ["m1"]},
            {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["s"]}]}},
        )
    ),
    st.sampled_from(OVERRIDERS),
)
claimed_namespaces = st.builds(
    lambda name, lane, picked: (
        plain("Namespace", "", name, lane),
        policy("ClusterPropagationPolicy", "", "spaces", [{"apiVersion": "v1", "kind": "Namespace"}],
               {"clusterAffinity": {"clusterNames": picked}}),
    ),
    st.sampled_from(SPACES), st.sampled_from("xy"), st.sampled_from((["m1"], ["m2"], ["m1", "m3"])),
)  # fmt: skip
fleets = st.builds(
    lambda guards, ignored: {
        "apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": ignored},
        "spec": {"guards": guards},
    },
    st.sampled_from(({"maxDeletes": 0}, {"maxDeletes": 2, "maxDeletePercent": 50}, {"maxDeletes": 100})),
    st.sampled_from(("f", "f", "g")),
)  # fmt: skip
Edits = list[tuple[str, bytes | None]]
changes = st.lists(
    st.one_of(
        edits.map(lambda edit: [edit]),
        edits.map(lambda edit: [edit]),
        overrides.flatmap(
            lambda doc: st.sampled_from(([(path_of(doc), json.dumps(doc).encode())], [(path_of(doc), None)]))
        ),
        claimed_namespaces.map(lambda docs: [(path_of(doc), json.dumps(doc).encode()) for doc in docs]),
        fleets.map(lambda doc: [("fleet.yaml", json.dumps(doc).encode())]),
        st.one_of(broken, changed_clusters).map(lambda edit: [edit]),
        st.sampled_from([path_of(doc) for doc in BASE]).map(lambda path: [(path, None)]),
    ),
    max_size=6,
).map(lambda lists: [edit for found in lists for edit in found])


def applied(files: dict[str, bytes], found: Edits) -> dict[str, bytes]:
    return {path: data for path, data in (files | dict(found)).items() if data is not None}


def in_full(base: Fleet, head: Fleet, observations: Observations) -> Plan:
    """The plan from two decisions that are made from nothing, each rendered as a whole."""
    before = decide(base, observations, NOW)
    placed = {**observations.previous, **previous_of(before.bindings)}
    after = decide(head, replace(observations, previous=placed), NOW)
    was, is_now = render_decision(before), render_decision(after)
    found = revision_changes((before, was), (after, is_now), schemas_of(after))
    ordered = tuple(sorted(found, key=lambda c: (c.identity, c.cluster, c.held is not None, c.action)))
    managed = Counter(manifest.cluster for manifest in was.manifests)
    kept, held = guard(ordered, head.settings.guards, managed, NOW)
    return Plan(
        base=base.revision,
        head=head.revision,
        changes=kept,
        waves=waves(kept, after.needs),
        placements=placement_changes(after, previous_of(before.bindings)),
        problems=tuple(sorted({*after.problems, *is_now.problems})),
        is_complete=base.is_complete and head.is_complete,
        held_digest=held,
    )


@settings(max_examples=300, deadline=None)
@given(changes, changes, st.integers(0, 5), st.integers(0, 3), st.booleans())
def test_a_comparison_of_what_differs_is_the_comparison_of_everything(
    first: Edits, second: Edits, kind: int, ticked: int, remembers: bool
) -> None:
    files = applied(FIXED | {path_of(doc): json.dumps(doc).encode() for doc in BASE}, first)
    cache = dict[str, ParsedFile]()
    base, head = fleet_of(files, dict(cache)), fleet_of(applied(files, second), dict(cache))
    constraints = tuple(
        Constraint(identity=identity, cluster="m1", replicas_max=ticked - 1, reason="t", excludes=ticked == 2)
        for identity in sorted(base.templates)[:ticked]
    )
    seen = Observations(clusters=ALL_OBSERVED[kind].clusters, constraints=constraints)
    if remembers:
        previous: dict[Identity, PreviousPlacement] = placements(decide(base, ALL_OBSERVED[1], NOW))
        seen = replace(seen, previous=previous)
    assert compare_revisions(base, head, seen, NOW) == in_full(base, head, seen)


@settings(max_examples=100, deadline=None)
@given(changes)
def test_what_rendering_makes_is_counted_and_reported_without_rendering(edited: Edits) -> None:
    files = applied(FIXED | {path_of(doc): json.dumps(doc).encode() for doc in BASE}, edited)
    decision = decide(fleet_of(files, {}), ALL_OBSERVED[1], NOW)
    rendered, inputs = render_decision(decision), render_inputs(decision)
    found = managed_in(inputs, RenderCache())
    assert +Counter(found) == Counter(manifest.cluster for manifest in rendered.manifests)
    assert problems_in(inputs, RenderCache()) == rendered.problems
