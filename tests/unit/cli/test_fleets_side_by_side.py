"""One person, one machine, several fleets: each has a journal, and no command takes one for another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from tests.unit.cli.command_line import CLUSTERS, FLEET, Ran, run, write_store


@pytest.fixture
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    with background_fleet([ClusterSpec(name=name) for name in ("m1", "m2")], tmp_path_factory.mktemp("f")) as found:
        yield found


class Person:
    """Somebody with an empty home and two stores, `shop` and `bakery`."""

    def __init__(self, folder: Path, fleet: BackgroundFleet) -> None:
        self.state = folder / "state/fleet-reconciler"
        self._environ = {
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "RECONCILER_KUBECONFIG": str(fleet.call(lambda box: box.kubeconfig)),
        }
        self.stores = {name: folder / name for name in ("shop", "bakery")}
        for name, store in self.stores.items():
            store.mkdir()
            write_store(store, fleet=FLEET.replace("shop", name))
        # Only one of the two has objects, so that they do not want the same ones.
        (self.stores["bakery"] / "app.yaml").unlink()

    def types(self, *args: str, **environ: str) -> Ran:
        return run(*args, **{**self._environ, **environ})

    def applies(self, name: str, *args: str) -> Ran:
        return self.types("apply", str(self.stores[name]), "--dir", "--yes", *args)


@pytest.fixture
def person(tmp_path: Path, fleet: BackgroundFleet, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.chdir(tmp_path)
    return Person(tmp_path, fleet)


def test_a_second_fleet_can_be_applied_and_each_is_told_of_by_itself(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shop", "bakery"):
        assert person.applies(name).code == 0
        assert (person.state / name / "journal.db").is_file()
    unclear = person.types("status")
    assert unclear.code == 1
    assert "journals of several fleets: bakery, shop" in unclear.err
    assert "bakery" in person.types("status", str(person.stores["bakery"])).out
    assert "bakery" in person.types("status", "--store", str(person.stores["bakery"])).out
    monkeypatch.chdir(person.stores["shop"])
    assert person.types("suspend", "fleet", "--reason", "a test").code == 0
    assert "fleet" in person.types("suspend").out
    other = person.types("suspend", "--store", str(person.stores["bakery"]))
    assert (other.code, other.out) == (0, "")
    assert person.types("resume", "--all").code == 0


def test_the_journal_of_another_fleet_is_refused_without_advice_that_could_delete(person: Person) -> None:
    assert person.applies("shop").code == 0
    done = person.applies("bakery", "--journal", str(person.state / "shop/journal.db"))
    assert done.code == 1
    assert "it is the journal of fleet shop, and the store is fleet bakery" in done.err
    before, _, after = done.err.partition("add shop to spec.previousNames")
    assert before.endswith("only if shop itself was renamed to bakery, ")
    assert "deleted" in after


def test_a_store_that_was_another_fleet_does_not_begin_anew_in_silence(person: Person) -> None:
    assert person.applies("shop").code == 0
    store = person.stores["shop"]
    write_store(store, fleet=FLEET.replace("shop", "grocery"))
    done = person.applies("shop")
    assert done.code == 1
    assert "its fleet was shop and is grocery now" in done.err
    write_store(store, fleet=f"{FLEET.replace('shop', 'grocery')}spec: {{previousNames: [shop]}}\n")
    assert person.applies("shop").code == 0
    with Journal.open(person.state / "shop/journal.db", read_only=True) as journal:
        assert journal.fleet == "grocery"


def test_a_store_without_a_fleet_has_no_journal_and_can_be_looked_at(person: Person) -> None:
    store = person.stores["shop"]
    (store / "fleet.yaml").write_text(CLUSTERS)
    (store / "clusters.yaml").unlink()
    assert person.types("diff", str(store), "--dir").code == 0
    done = person.applies("shop")
    assert done.code == 1
    assert "no document of kind Fleet" in done.err
    done = person.types("status", str(store))
    assert done.code == 1
    assert "--journal" in done.err


def test_a_service_that_is_begun_by_hand_takes_the_journal_of_its_fleet(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reconciler.controller.service.serve_fleet import Service  # noqa: PLC0415 - the import is what a command makes late

    served: list[Service] = []

    async def serve(service: Service, *_: object) -> None:
        served.append(service)

    monkeypatch.setattr("reconciler.controller.service.serve_fleet.serve", serve)
    for environ in ({}, {"STATE_DIRECTORY": str(person.state / "unit")}):
        assert person.types("run", str(person.stores["shop"]), "--dir", **environ).code == 0
    assert [service.access.journal for service in served] == [
        person.state / "shop/journal.db",
        person.state / "unit/journal.db",
    ]


def test_a_store_that_is_given_twice_is_refused(person: Person) -> None:
    shop, bakery = (str(person.stores[name]) for name in ("shop", "bakery"))
    done = person.types("validate", shop, "--store", bakery)
    assert done.code == 2
    assert "STORE is given twice" in done.err
    assert person.types("validate", shop, RECONCILER_STORE=bakery).out == person.types("validate", "--store", shop).out
