from __future__ import annotations

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK, Identity
from reconciler.controller.retries.caches import SyncedVersions

CONFIG_MAP = GVK("", "v1", "ConfigMap")


def live(name: str, version: str = "1", uid: str = "u") -> LiveObject:
    identity = Identity("", "ConfigMap", "demo", name)
    return LiveObject(gvk=CONFIG_MAP, identity=identity, uid=uid, resource_version=version, body={})


def believing(*objects: LiveObject) -> SyncedVersions:
    synced = SyncedVersions()
    for found in objects:
        synced.confirm("m1", found.identity, found.uid, found.resource_version)
    return synced


def test_holds_only_the_version_and_object_that_were_confirmed() -> None:
    synced = believing(live("a"))
    assert synced.holds("m1", live("a"))
    assert not synced.holds("m1", live("a", version="2"))
    assert not synced.holds("m1", live("a", uid="another"))
    assert not synced.holds("m2", live("a"))


def test_doubt_and_forgetting_end_a_belief() -> None:
    synced = believing(live("a"), live("b"))
    synced.invalidate("m1", live("a").identity)
    assert not synced.holds("m1", live("a"))
    assert synced.holds("m1", live("b"))
    synced.forget("m1")
    assert not synced.holds("m1", live("b"))
    synced.invalidate("m1", live("b").identity)


def test_a_list_contradicts_other_versions_strangers_and_missing_objects() -> None:
    synced = believing(live("same"), live("newer"), live("gone"))
    listed = [live("same"), live("newer", version="2"), live("stranger")]
    found = synced.doubtful("m1", ("", "ConfigMap"), listed)
    assert {identity.name for identity in found} == {"newer", "gone", "stranger"}


def test_a_list_does_not_contradict_what_was_written_since_it_was_asked_for() -> None:
    synced = believing(live("same"), live("gone"))
    synced.list_begins("m1", ("", "ConfigMap"))
    for found in (live("same", version="2"), live("new")):
        synced.confirm("m1", found.identity, found.uid, found.resource_version)
    assert {identity.name for identity in synced.doubtful("m1", ("", "ConfigMap"), [live("same")])} == {"gone"}
    found_later = synced.doubtful("m1", ("", "ConfigMap"), [live("same")])
    assert {identity.name for identity in found_later} == {"gone", "same", "new"}, "another list was asked for later"


def test_a_list_that_is_newer_than_what_was_written_meanwhile_is_looked_at() -> None:
    synced = believing()
    synced.list_begins("m1", ("", "ConfigMap"))
    written = live("ready", version="9")
    synced.confirm("m1", written.identity, written.uid, written.resource_version)
    found = synced.doubtful("m1", ("", "ConfigMap"), [live("ready", version="10")])
    assert {identity.name for identity in found} == {"ready"}, "the watch begins behind it"


def test_a_list_of_one_kind_says_nothing_about_another() -> None:
    assert believing(live("a")).doubtful("m1", ("", "Secret"), []) == set()
