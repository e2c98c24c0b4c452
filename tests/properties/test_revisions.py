"""The counts and reports of a comparison of two revisions equal those of rendering everything."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import render_schedule
from reconciler.render import RenderTables, managed_in, problems_in
from reconciler.scheduler import schedule_fleet
from tests.examples import examples
from tests.properties.test_schedule_tables import (
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


@settings(max_examples=examples(50), deadline=None)
@given(changes)
def test_what_rendering_makes_is_counted_and_reported_without_rendering(edited: Edits) -> None:
    files = applied(FIXED | {path_of(doc): json.dumps(doc).encode() for doc in BASE}, edited)
    schedule = schedule_fleet(fleet_of(files, {}), ALL_OBSERVED[1], NOW, interpreters=BUILT_IN_KINDS)
    rendered, inputs = render_schedule(schedule), RenderTables(schedule)
    found = managed_in(inputs)
    assert +Counter(found) == Counter(manifest.cluster for manifest in rendered.manifests)
    assert problems_in(inputs) == rendered.problems
