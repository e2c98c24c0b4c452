"""The marks on our objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.policies import Flavor
from reconciler.api.refs import PolicyRef
from reconciler.ownership import (
    FLEET_LABEL,
    OWNER_ANNOTATION,
    OwnershipRecord,
    mark,
    read_owner,
    strip_marks,
    written_terms,
)

WEB = PolicyRef("PropagationPolicy", "demo", "web")
names = st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True)
refs = st.one_of(
    st.none(),
    st.builds(PolicyRef, st.just("PropagationPolicy"), names, names),
    st.builds(PolicyRef, st.just("ClusterPropagationPolicy"), st.just(""), names),
)
owners = st.builds(
    OwnershipRecord,
    policy=refs,
    flavor=st.sampled_from(Flavor),
    keep=st.booleans(),
    replicas=st.one_of(st.none(), st.integers(0, 10**6)),
    dependency=st.booleans(),
)
bodies = st.fixed_dictionaries(
    {"kind": st.just("ConfigMap")},
    optional={
        "metadata": st.fixed_dictionaries(
            {"name": names},
            optional={
                "labels": st.dictionaries(names, names, max_size=2),
                "annotations": st.dictionaries(names, names, max_size=2),
            },
        )
    },
)


def test_the_documented_form_of_the_marks() -> None:
    owner = OwnershipRecord(policy=WEB, flavor=Flavor.ACK, keep=True, replicas=3)
    assert mark({"metadata": {"name": "web", "labels": {"a": "b"}}}, "prod", written_terms(owner)) == {
        "metadata": {
            "name": "web",
            "labels": {"a": "b", "fleet.reconciler/fleet": "prod"},
            "annotations": {
                "fleet.reconciler/owner": '{"api":"ack","keep":true,"policy":"PropagationPolicy demo/web","replicas":3}'
            },
        }
    }


def test_a_dependency_says_so() -> None:
    owner = OwnershipRecord(policy=WEB, flavor=Flavor.KARMADA, keep=False, dependency=True)
    text = mark({"metadata": {}}, "prod", written_terms(owner))["metadata"]["annotations"][OWNER_ANNOTATION]
    assert text == (
        '{"api":"karmada","dependency":true,"keep":false,"policy":"PropagationPolicy demo/web","replicas":null}'
    )


def test_without_a_fleet_name_nothing_is_added() -> None:
    body = {"metadata": {"name": "web"}}
    assert mark(body, "", written_terms(OwnershipRecord(policy=WEB))) == body


@given(bodies, owners)
def test_what_was_marked_reads_as_it_was_meant(body: dict[str, Any], owner: OwnershipRecord) -> None:
    before = copy.deepcopy(body)
    marked = mark(body, "prod", written_terms(owner))
    assert read_owner(marked) == owner
    assert marked["metadata"]["labels"][FLEET_LABEL] == "prod"
    assert body == before


@given(bodies, owners)
def test_stripping_takes_away_exactly_the_marks(body: dict[str, Any], owner: OwnershipRecord) -> None:
    stripped = strip_marks(mark(body, "prod", written_terms(owner)))
    assert read_owner(stripped) is None
    metadata = body.get("metadata", {})
    expected = {key: value for key, value in metadata.items() if key not in ("labels", "annotations") or value}
    assert stripped["metadata"] == expected


def test_a_body_without_marks_is_shared_by_stripping() -> None:
    body = {"metadata": {"labels": {"a": "b"}, "annotations": {}}}
    assert strip_marks(body) is body
    assert strip_marks({}) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"api":"ack","keep":"yes","policy":null,"replicas":null}',
        '{"api":"other","keep":true,"policy":null,"replicas":null}',
        '{"api":[],"keep":true,"policy":null,"replicas":null}',
        '{"api":"ack","keep":true,"policy":7,"replicas":null}',
        '{"api":"ack","keep":true,"policy":"web","replicas":null}',
        '{"api":"ack","keep":true,"policy":null,"replicas":-1}',
        '{"api":"ack","keep":true,"policy":null,"replicas":true}',
        '{"api":"ack","keep":true,"policy":null,"replicas":1.5}',
        '{"api":"ack","keep":true,"policy":null,"replicas":1,"dependency":"no"}',
        7,
    ],
    ids=str,
)
def test_an_annotation_that_is_not_ours_names_no_owner(text: object) -> None:
    assert read_owner({"metadata": {"annotations": {OWNER_ANNOTATION: text}}}) is None
