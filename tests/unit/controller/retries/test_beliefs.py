from __future__ import annotations

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK, Identity
from reconciler.controller.retries.caches import SyncedVersions

CONFIG_MAP = GVK("", "v1", "ConfigMap")


def live(name: str, version: str = "1", uid: str = "u") -> LiveObject:
    identity = Identity("", "ConfigMap", "demo", name)
    return LiveObject(gvk=CONFIG_MAP, identity=identity, uid=uid, resource_version=version, body={})


def believing(*objects: LiveObject) -> SyncedVersions:
    beliefs = SyncedVersions()
    for found in objects:
        beliefs.confirm("m1", found.identity, found.uid, found.resource_version)
    return beliefs


def test_holds_only_the_version_and_object_that_were_confirmed() -> None:
    beliefs = believing(live("a"))
    assert beliefs.holds("m1", live("a"))
    assert not beliefs.holds("m1", live("a", version="2"))
    assert not beliefs.holds("m1", live("a", uid="another"))
    assert not beliefs.holds("m2", live("a"))


def test_doubt_and_forgetting_end_a_belief() -> None:
    beliefs = believing(live("a"), live("b"))
    beliefs.invalidate("m1", live("a").identity)
    assert not beliefs.holds("m1", live("a"))
    assert beliefs.holds("m1", live("b"))
    beliefs.forget("m1")
    assert not beliefs.holds("m1", live("b"))
    beliefs.invalidate("m1", live("b").identity)


def test_a_list_contradicts_other_versions_strangers_and_missing_objects() -> None:
    beliefs = believing(live("same"), live("newer"), live("gone"))
    listed = [live("same"), live("newer", version="2"), live("stranger")]
    found = beliefs.doubtful("m1", ("", "ConfigMap"), listed)
    assert {identity.name for identity in found} == {"newer", "gone", "stranger"}


def test_a_list_does_not_contradict_what_was_written_since_it_was_asked_for() -> None:
    beliefs = believing(live("same"), live("gone"))
    beliefs.list_begins("m1", ("", "ConfigMap"))
    for found in (live("same", version="2"), live("new")):
        beliefs.confirm("m1", found.identity, found.uid, found.resource_version)
    assert {identity.name for identity in beliefs.doubtful("m1", ("", "ConfigMap"), [live("same")])} == {"gone"}
    found_later = beliefs.doubtful("m1", ("", "ConfigMap"), [live("same")])
    assert {identity.name for identity in found_later} == {"gone", "same", "new"}, "another list was asked for later"


def test_a_list_that_is_newer_than_what_was_written_meanwhile_is_looked_at() -> None:
    beliefs = believing()
    beliefs.list_begins("m1", ("", "ConfigMap"))
    written = live("ready", version="9")
    beliefs.confirm("m1", written.identity, written.uid, written.resource_version)
    found = beliefs.doubtful("m1", ("", "ConfigMap"), [live("ready", version="10")])
    assert {identity.name for identity in found} == {"ready"}, "the watch begins behind it"


def test_a_list_of_one_kind_says_nothing_about_another() -> None:
    assert believing(live("a")).doubtful("m1", ("", "Secret"), []) == set()
