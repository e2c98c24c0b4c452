from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.sim import Refused
from reconciler.sim.objects.fields import compare, decode, dotted, encode, field_set, merge, remove
from reconciler.sim.objects.shapes import Shape

POD = Shape("Deployment").field("spec").field("template").field("spec")
NAMES = st.sampled_from(["a", "b", "c"])
CONTAINERS = st.dictionaries(NAMES, st.dictionaries(st.sampled_from(["image", "tty"]), st.integers(0, 2)), max_size=3)


@st.composite
def pod_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Specs with keyed lists, atomic maps and scalars."""
    containers = [{"name": name, **fields} for name, fields in draw(CONTAINERS).items()]
    spec: dict[str, Any] = {"containers": containers} if containers else {}
    if draw(st.booleans()):
        spec["nodeSelector"] = draw(st.dictionaries(NAMES, NAMES, min_size=1))
    if draw(st.booleans()):
        spec["dnsPolicy"] = draw(NAMES)
    return spec


def by_name(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with containers in one order."""
    if "containers" not in spec:
        return spec
    return {**spec, "containers": sorted(spec["containers"], key=lambda c: str(c["name"]))}


def test_encodes_members_with_children_by_a_dot() -> None:
    paths = frozenset({("f:a",), ("f:a", "f:b"), ("f:c", "f:d")})
    assert encode(paths) == {"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}}


@given(pod_specs())
def test_decoding_reverses_encoding(spec: dict[str, Any]) -> None:
    paths = field_set(spec, POD)
    assert decode(encode(paths)) == paths


def test_an_applier_owns_leaves_items_and_atomic_values() -> None:
    spec = {
        "containers": [{"name": "a", "args": ["x"], "resources": {}, "ports": [{"containerPort": 80}]}],
        "nodeSelector": {"x": "y"},
    }
    item = '.containers[name="a"]'
    port = f'{item}.ports[containerPort=80,protocol="TCP"]'
    assert {dotted(path) for path in field_set(spec, POD)} == {
        item, f"{item}.name", f"{item}.args", f"{item}.resources", ".nodeSelector",
        port, f"{port}.containerPort",
    }  # fmt: skip


@given(pod_specs())
def test_nothing_differs_from_itself(spec: dict[str, Any]) -> None:
    assert compare(spec, spec, POD).is_same


@given(pod_specs(), pod_specs())
def test_a_comparison_turned_round_swaps_added_and_removed(old: dict[str, Any], new: dict[str, Any]) -> None:
    there, back = compare(old, new, POD), compare(new, old, POD)
    assert (there.added, there.removed, there.modified) == (back.removed, back.added, back.modified)


@given(pod_specs(), pod_specs())
def test_a_merge_holds_everything_of_the_configuration(live: dict[str, Any], config: dict[str, Any]) -> None:
    merged = merge(live, config, POD)
    assert merge(merged, config, POD) == merged
    assert field_set(config, POD) <= field_set(merged, POD)
    change = compare(live, merged, POD)
    assert not change.removed


@given(pod_specs(), pod_specs())
def test_what_a_merge_added_can_be_removed_again(live: dict[str, Any], config: dict[str, Any]) -> None:
    merged = merge(live, config, POD)
    added = compare(live, merged, POD).added
    back = remove(merged, added, POD) or {}
    unchanged = {path for path in field_set(live, POD) if path not in compare(live, merged, POD).modified}
    assert unchanged <= field_set(back, POD)
    assert not compare(live, back, POD).added


@pytest.mark.parametrize(
    ("live", "config", "expected"),
    [
        ("ab", "b", "ab"),
        ("ab", "ba", "ba"),
        ("ac", "abc", "abc"),
        ("ab", "cb", "acb"),
        ("ab", "c", "abc"),
        ("", "ba", "ba"),
    ],
)
def test_merged_items_keep_their_order(live: str, config: str, expected: str) -> None:
    def spec(names: str) -> dict[str, Any]:
        return {"containers": [{"name": name} for name in names]}

    assert merge(spec(live), spec(config), POD) == spec(expected)


def test_a_repeated_key_refuses_the_object() -> None:
    with pytest.raises(Refused, match='duplicate entries for key \\[name="a"\\]'):
        field_set({"containers": [{"name": "a"}, {"name": "a"}]}, POD)
