"""Equal changes of different objects are one entry, in which every object has its place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.plan import MISSING, Action, Change, FieldChange, Plan
from reconciler.api.problem import Source
from reconciler.report.plan import alike, alike_lines, first_line, plain
from reconciler.report.plan.change_lines import Detail
from reconciler.report.plan.equal_changes import common_folder
from tests.golden.plans import CONFIG_MAP, DEPLOYMENT, change, image_bump

fields = st.builds(
    FieldChange,
    path=st.sampled_from(["a", "b"]),
    before=st.sampled_from([MISSING, None, 1, "1", [1]]),
    after=st.sampled_from([MISSING, 1, True]),
)
changes = st.lists(
    st.builds(
        change,
        st.sampled_from([Action.UPDATE, Action.DELETE, Action.RELEASE]),
        st.sampled_from(["m1", "m2", "m3"]),
        st.sampled_from([CONFIG_MAP, DEPLOYMENT]),
        st.sampled_from(["c", "d", "e"]),
        held=st.sampled_from([None, "waits", "guard: too many"]),
        fields=st.lists(fields, max_size=2, unique_by=lambda field: field.path).map(tuple),
    ),
    max_size=10,
    unique_by=lambda found: (found.cluster, found.identity, found.action, found.held),
)


@given(changes)
def test_entries_say_exactly_what_the_changes_say(found: list[Change]) -> None:
    told = [
        (cluster, one.action, identity, one.held)
        for one in alike(found)
        for clusters, members in one.places
        for cluster in clusters
        for identity, _ in members
    ]
    assert sorted(map(repr, told)) == sorted(repr((c.cluster, c.action, c.identity, c.held)) for c in found)
    assert sum(one.count for one in alike(found)) == len(found)


@given(changes)
def test_every_field_of_every_change_is_told_for_its_cluster(found: list[Change]) -> None:
    told = {
        (cluster, one.action, identity, one.held, line.path, repr(line.before), repr(line.after))
        for one in alike(found)
        for clusters, members in one.places
        for identity, _ in members
        for line in one.fields
        for cluster in (clusters if line.clusters == one.clusters else line.clusters)
    }
    assert told == {
        (c.cluster, c.action, c.identity, c.held, field.path, repr(field.before), repr(field.after))
        for c in found
        for field in c.fields
    }


@given(changes)
def test_losses_come_first_and_those_that_happen_before_those_that_are_held(found: list[Change]) -> None:
    entries = alike(found)
    order = [(not entry.is_destructive, entry.is_destructive and entry.held is not None) for entry in entries]
    assert order == sorted(order)


def test_the_same_change_of_many_objects_is_one_entry_that_shows_it() -> None:
    bumps = [image_bump(f"m{number % 2}", f"web-{number}") for number in range(40)]
    (one,) = alike(bumps)
    lines = alike_lines(one)
    assert lines[0] == "~ update     m0, m1  40 Deployments  apps/"
    assert lines[1].endswith(".image  nginx:1.25 → nginx:1.27")
    assert lines[2].startswith("      m0: demo/web-{0,2,4,6,8,10,")


def test_few_objects_have_a_line_each_with_their_place() -> None:
    (one,) = alike([image_bump("m1", "a"), image_bump("m1", "b")])
    assert alike_lines(one)[-2:] == ["      demo/a  apps/a.yaml:18", "      demo/b  apps/b.yaml:18"]


def test_names_that_are_left_out_are_counted() -> None:
    (one,) = alike(image_bump("m1", f"x{number * 7919}") for number in range(500))
    lines = alike_lines(one, detail=Detail(name_lines_max=2))
    assert len(lines) == 1 + 1 + 2 + 1
    assert lines[-1] == "      … and more: 500 objects in all"


def test_what_differs_between_the_clusters_of_an_object_stays_with_those_clusters() -> None:
    extra = FieldChange(path="spec.replicas", before=1, after=2)
    found = [image_bump("m1", "a"), image_bump("m2", "a", extra), image_bump("m1", "b"), image_bump("m2", "b")]
    entries = alike(found)
    assert len(entries) == 2
    assert [line.clusters for one in entries for line in one.fields if line.path == "spec.replicas"] == [("m2",)]


def test_the_common_folder_ends_where_paths_part() -> None:
    assert common_folder([Source("apps/shop/a.yaml", 1), Source("apps/shop/b/c.yaml")]) == "apps/shop/"
    assert common_folder([Source("apps/a.yaml"), Source("base/a.yaml")]) == ""
    assert common_folder([]) == ""


def test_an_object_without_a_file_is_told_without_a_place() -> None:
    made = [replace(image_bump("m1", name), source=Source("")) for name in "ab"]
    (one,) = alike(made)
    assert alike_lines(one)[-1] == "      demo/b"


def test_registries_with_equally_many_images_have_one_order() -> None:
    hosts = ["docker.io/x", "docker.io/y", "docker.io/z", "c.example", "e.example", "b.example", "d.example"]
    field = FieldChange(path="spec.containers", before=[], after=[{"image": f"{host}/a:1"} for host in hosts])
    (one,) = alike([replace(image_bump("m1", "web"), fields=(field,))])
    named = ", ".join(f"1 of {host}.example (demo/web)" for host in "bcde")
    assert f"      image  3 images of docker.io, {named}" in alike_lines(one)


def test_a_power_of_an_object_that_changes_differently_in_two_clusters_counts_once() -> None:
    found = [
        replace(image_bump(name, "web"), fields=(
            FieldChange(path="spec.a", before=0, after=number),
            FieldChange(path="spec.pod", before={}, after={"hostNetwork": True}),
        ))
        for number, name in enumerate(("m1", "m2"), start=1)
    ]  # fmt: skip
    line = plain(first_line(Plan(base="a", head="b", changes=tuple(found))))
    assert "(privilege hostNetwork)" in line, line
