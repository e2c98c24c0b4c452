"""The holder of the fleet in a cluster, when a journal was copied, restored, lost, or its process killed.

Source: design#one-writer: one writer in each cluster, whatever was copied.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.ledger import HoldRecord
from reconciler.api.refs import GVK
from reconciler.controller.inbox import ClusterChanged, ClusterScope, Inbox
from reconciler.controller.round.owner_record import NAMESPACE, OwnerRecord, holder_name, is_own
from reconciler.controller.round.ownership_lock import OwnershipLock, ensure_namespace
from reconciler.errors import Deposed, FleetHeld, HeldByCopy, MemberClusterError, NotLeading
from reconciler.journal import Journal
from reconciler.ownership import field_manager
from tests.fakes.clocks import QuickClock
from tests.fakes.hands import ask
from tests.fakes.members import FLEET, Open, opened

PATH = f"/api/v1/namespaces/fleet-system/configmaps/fleet-{FLEET}"


class Scene:
    """One cluster, and journals that are copies of each other."""

    def __init__(self, scene: Open, folder: Path) -> None:
        self.folder = folder
        self.box = scene.box
        self.member = scene.members["m1"]

    @contextmanager
    def process(self, name: str) -> Iterator[OwnershipLock]:
        """A process with the journal of that name, on a host of that name."""
        with Journal.open(self.folder / name / "journal.db") as journal:
            yield OwnershipLock(journal, QuickClock(), host=name)

    def copy(self, name: str, to: str) -> None:
        """Copy a journal that nobody writes."""
        shutil.rmtree(self.folder / to, ignore_errors=True)
        shutil.copytree(self.folder / name, self.folder / to)

    async def hold(self, holder: OwnershipLock, *, take_over: bool = False) -> MemberClusterError | None:
        return (await holder.hold([self.member], FLEET, take_over=take_over)).get("m1")

    @property
    def mark(self) -> dict[str, Any]:
        live = self.box["m1"].state.get("ConfigMap", "fleet-system", f"fleet-{FLEET}")
        assert live is not None
        return dict(live["data"])

    def write_mark(self, method: str, data: dict[str, Any] | None = None) -> None:
        ask(self.box["m1"], method, PATH, {"data": data} if data else None)


@asynccontextmanager
async def one_cluster(folder: Path) -> AsyncIterator[Scene]:
    async with opened(folder / "scene") as scene:
        yield Scene(scene, folder)


async def test_each_start_raises_the_epoch_and_asking_again_writes_nothing(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        for epoch in (1, 2, 3):
            with scene.process("a") as holder:
                assert await scene.hold(holder) is None
                assert scene.mark["epoch"] == str(epoch)
                assert scene.mark["host"] == "a"
                before = scene.mark
                assert await scene.hold(holder) is None
                assert scene.mark == before
                assert await holder.lost(scene.member, FLEET) is None


async def test_of_two_processes_with_copies_of_a_journal_the_later_one_writes(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
        scene.copy("a", "b")
        with scene.process("a") as first, scene.process("b") as second:
            assert await scene.hold(first) is None
            refused = await scene.hold(second)
            assert isinstance(refused, HeldByCopy)
            assert "epoch 2 since" in refused.message
            assert "on host a" in refused.message
            assert "journal rebuild --takeover" in refused.message
        scene.copy("a", "b")
        with scene.process("a") as first:
            assert await scene.hold(first) is None
            first_epoch = scene.mark["epoch"]
            scene.copy("a", "b")
            with scene.process("b") as second:
                assert await scene.hold(second) is None
                assert int(scene.mark["epoch"]) > int(first_epoch)
                for _ in range(2):
                    assert isinstance(await scene.hold(first), HeldByCopy)
                    assert isinstance(await first.lost(scene.member, FLEET), HeldByCopy)
                    assert await scene.hold(second) is None
        for name, is_holder in (("a", False), ("b", True), ("a", False), ("b", True)):
            with scene.process(name) as holder:
                assert list(await holder.copies([scene.member], FLEET)) == ([] if is_holder else ["m1"])
                assert (await scene.hold(holder) is None) is is_holder, "a restart changes nothing about it"


async def test_of_two_processes_that_start_at_once_one_goes_on(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
        scene.copy("a", "b")
        with scene.process("a") as first, scene.process("b") as second:
            await asyncio.gather(scene.hold(first), scene.hold(second))
            assert [await scene.hold(first) is None, await scene.hold(second) is None].count(True) == 1


@pytest.mark.parametrize("point", ["before the request", "after the request"])
async def test_a_crash_while_the_mark_is_written_needs_no_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
        for _ in range(2):
            with monkeypatch.context() as patched:
                owner, step = (OwnershipLock, "_write") if point == "before the request" else (Journal, "confirm_hold")
                patched.setattr(owner, step, die)
                with scene.process("a") as holder, pytest.raises(KeyboardInterrupt):
                    await holder._hold(scene.member, FLEET, take_over=False)
        for _ in range(2):
            with scene.process("a") as holder:
                assert await scene.hold(holder) is None


async def test_an_older_backup_of_a_journal_waits_for_a_person(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
        scene.copy("a", "backup")
        for _ in range(3):
            with scene.process("a") as holder:
                assert await scene.hold(holder) is None
        with scene.process("backup") as holder:
            assert isinstance(await scene.hold(holder), HeldByCopy)
            with pytest.raises(FleetHeld, match="held by a copy of this journal"):
                await holder.refuse_others([scene.member], FLEET)
            assert await scene.hold(holder, take_over=True) is None
            assert await scene.hold(holder) is None
        with scene.process("backup") as holder:
            assert await scene.hold(holder) is None
        with scene.process("a") as holder:
            assert isinstance(await scene.hold(holder), HeldByCopy)


async def test_a_mark_of_an_earlier_version_is_taken_up(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
        with Journal.open(tmp_path / "a/journal.db", read_only=True) as journal:
            uuid = journal.uuid
        gone = dict.fromkeys(("epoch", "instance", "host", "since"))
        scene.write_mark("PATCH", {"journal": uuid, **gone})
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
            assert scene.mark["epoch"] == "2"


async def test_a_mark_that_somebody_deleted_is_written_again_for_one(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as first:
            assert await scene.hold(first) is None
            scene.copy("a", "b")
            scene.write_mark("DELETE")
            with scene.process("b") as second:
                assert await scene.hold(second) is None
                assert isinstance(await scene.hold(first), HeldByCopy)


async def test_another_journal_is_refused_and_named(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as first, scene.process("other") as second:
            assert await scene.hold(first) is None
            for ask in (second.hold, second.copies, second.refuse_others):
                with pytest.raises(FleetHeld, match=f"held by journal {scene.mark['journal']}, epoch 1 since"):
                    await ask([scene.member], FLEET)
            assert await scene.hold(second, take_over=True) is None
            with pytest.raises(FleetHeld):
                await scene.hold(first)


KNOWN = (HoldRecord(epoch=4, token="a"), HoldRecord(epoch=5, token="b", is_confirmed=False))


@pytest.mark.parametrize(
    ("epoch", "token", "known", "expected"),
    [
        pytest.param(4, "a", KNOWN, True, id="as it was confirmed"),
        pytest.param(5, "b", KNOWN, True, id="as a crash left it"),
        pytest.param(5, "c", KNOWN, False, id="of the epoch that was in doubt, and another one"),
        pytest.param(4, "c", KNOWN, False, id="of the same epoch, and another one"),
        pytest.param(6, "c", KNOWN, False, id="newer"),
        pytest.param(3, "c", KNOWN, True, id="older: the cluster was restored"),
        pytest.param(0, "", KNOWN, True, id="of an earlier version"),
        pytest.param(0, "", (), True, id="of an earlier version, and a journal of one"),
        pytest.param(1, "a", (), False, id="a journal without a record of it"),
    ],
)
def test_which_marks_are_ours(epoch: int, token: str, known: tuple[HoldRecord, ...], expected: bool) -> None:
    assert is_own(OwnerRecord(journal="j", epoch=epoch, token=token), known) is expected


class Leads:
    """The term of a process, as its Lease gives it."""

    def __init__(self, term: int | None) -> None:
        self.term = term

    def __call__(self) -> int | None:
        return self.term


async def test_a_later_term_takes_the_mark_and_an_earlier_one_is_deposed(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with Journal.open(tmp_path / "a.db") as one, Journal.open(tmp_path / "b.db") as two:
            early, late = Leads(1), Leads(2)
            first, second = OwnershipLock(one, QuickClock(), term=early), OwnershipLock(two, QuickClock(), term=late)
            assert await scene.hold(first) is None
            assert scene.mark["term"] == "1"
            assert await scene.hold(second) is None
            assert (scene.mark["term"], scene.mark["journal"]) == ("2", two.uuid)
            with pytest.raises(Deposed) as told:
                await scene.hold(first)
            assert told.value.term == 2
            assert isinstance(await first.lost(scene.member, FLEET), NotLeading)
            early.term = 3
            assert await scene.hold(first) is None
            assert (scene.mark["term"], scene.mark["journal"]) == ("3", one.uuid)


async def test_who_leads_again_writes_its_own_mark_anew(tmp_path: Path) -> None:
    """Whoever led in between must find the later term, also where it never wrote."""
    async with one_cluster(tmp_path) as scene:
        with Journal.open(tmp_path / "a.db") as journal:
            leads = Leads(1)
            holder = OwnershipLock(journal, QuickClock(), term=leads)
            assert await scene.hold(holder) is None
            leads.term = 3
            assert await scene.hold(holder) is None
            assert scene.mark["term"] == "3"


async def test_a_mark_without_a_term_is_refused_unless_its_journal_has_led(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with Journal.open(tmp_path / "a.db") as one, Journal.open(tmp_path / "b.db") as two:
            assert await scene.hold(OwnershipLock(one, QuickClock())) is None
            with pytest.raises(FleetHeld):
                await scene.hold(OwnershipLock(two, QuickClock(), term=Leads(5)))
            known = OwnershipLock(two, QuickClock(), term=Leads(5), predecessors=lambda: (one.uuid,))
            assert await scene.hold(known) is None
            assert scene.mark["journal"] == two.uuid
            with pytest.raises(FleetHeld):
                await scene.hold(OwnershipLock(one, QuickClock()))


async def test_a_mark_of_a_shard_of_an_earlier_version_is_taken_over_by_a_person_alone(tmp_path: Path) -> None:
    """Source: ADR 24. The term is of another Lease, and who wrote it may be at work still."""
    async with one_cluster(tmp_path) as scene:
        with Journal.open(tmp_path / "a.db") as journal:
            data = {"fleet": FLEET, "journal": "of-blue", "epoch": "3", "term": "2", "shard": "blue"}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"fleet-{FLEET}"}, "data": data}
            await ensure_namespace(scene.member, field_manager(FLEET))
            name = (NAMESPACE, holder_name(FLEET))
            await scene.member.create(GVK("", "v1", "ConfigMap"), *name, body, manager=field_manager(FLEET))
            holder = OwnershipLock(journal, QuickClock(), term=Leads(5))
            with pytest.raises(FleetHeld, match=r"held by journal of-blue, epoch 3.*journal rebuild --takeover"):
                await scene.hold(holder)
            assert await scene.hold(holder, take_over=True) is None
            assert (scene.mark["journal"], scene.mark["term"], scene.mark.get("shard")) == (journal.uuid, "5", None)
            assert await scene.hold(holder) is None
            assert not journal.rollout_records()


async def test_a_copy_of_a_journal_that_leads_later_takes_the_mark(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
        scene.copy("a", "b")
        with Journal.open(tmp_path / "a" / "journal.db") as one, Journal.open(tmp_path / "b" / "journal.db") as two:
            first, second = (
                OwnershipLock(one, QuickClock(), term=Leads(1)),
                OwnershipLock(two, QuickClock(), term=Leads(2)),
            )
            assert await scene.hold(first) is None
            assert await scene.hold(second) is None
            with pytest.raises(Deposed):
                await scene.hold(first)


async def test_a_mark_of_ours_that_is_older_than_one_before_tells_of_a_restored_cluster(tmp_path: Path) -> None:
    """Source: design#restored-cluster."""
    async with opened(tmp_path / "scene") as found:
        scene, inbox = Scene(found, tmp_path), Inbox()
        marks = []
        for _ in range(3):
            with scene.process("one") as holder:
                holder.inbox = inbox
                assert await scene.hold(holder) is None
                marks.append(scene.mark)
        assert inbox.take() == ()
        scene.write_mark("PUT", marks[0])
        with scene.process("one") as holder:
            holder.inbox = inbox
            assert await scene.hold(holder) is None
            assert int(scene.mark["epoch"]) > int(marks[-1]["epoch"])
            assert inbox.take() == (ClusterChanged("m1", ClusterScope.RESTORED),)
            assert await scene.hold(holder) is None
        assert inbox.take() == (), "once"


async def test_a_cluster_that_hangs_while_it_is_to_be_held_is_left_to_its_next_write(tmp_path: Path) -> None:
    """Source: design#promise-7."""
    async with one_cluster(tmp_path) as scene:
        with scene.process("one") as holder:
            scene.box.servers["m1"].pause()
            failed = await holder.hold([scene.member], FLEET, within_s=0.1)
            assert failed["m1"].message == "no answer in time"
            scene.box.servers["m1"].resume()
            assert await scene.hold(holder) is None
            assert scene.mark["journal"]
