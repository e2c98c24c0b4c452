"""The journal among processes: killed writers, second writers, readers beside a writer, a full disk."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.errors import JournalLocked
from reconciler.journal import Journal, holder

PRELUDE = """
import sys, time
from pathlib import Path
from reconciler.journal.sqlite_journal import Journal
from reconciler.errors import JournalError
from reconciler.api.ledger import AppliedRow, Intent
from reconciler.api.plan import Action
from reconciler.api.refs import GVK, Identity

gvk = GVK("", "v1", "ConfigMap")

def intent(number):
    return Intent(cluster="m1", gvk=gvk, identity=Identity("", "ConfigMap", "demo", f"c{number}"), action=Action.CREATE)

def row(number):
    return AppliedRow(cluster="m1", gvk=gvk, identity=intent(number).identity, uid="u", recorded={"n": number})

journal = Journal.open(Path(sys.argv[1]))

def say(text):
    print(text, flush=True)
"""


@contextmanager
def child(path: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PRELUDE + script, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_killed_writer_leaves_its_intents_open(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    script = """
first, second = journal.begin([intent(1), intent(2)])
journal.finish([(first, "done", "")], applied=[row(1)])
say(second)
time.sleep(60)
"""
    with child(path, script) as process:
        second = int(line_of(process))
        process.send_signal(signal.SIGKILL)
        process.wait()
    with Journal.open(path) as journal:
        assert [(key, value.identity.name) for key, value in journal.open_intents().items()] == [(second, "c2")]
        assert [identity.name for identity in journal.applied("m1")] == ["c1"]
        assert journal.verify() == ()


def test_a_writer_killed_inside_a_transaction_leaves_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    script = """
journal.record_timers({"kept": "t"})
with journal.transaction():
    journal.record_applied([row(n) for n in range(5000)])
    journal.record_timers({})
    say("inside")
    time.sleep(60)
"""
    with child(path, script) as process:
        assert line_of(process) == "inside"
        process.send_signal(signal.SIGKILL)
        process.wait()
    with Journal.open(path) as journal:
        assert journal.ledger() == {}
        assert journal.timers() == {"kept": "t"}
        assert journal.verify() == ()


def test_a_writer_killed_at_any_moment_loses_no_answer(tmp_path: Path) -> None:
    """Acknowledged rows are there; an intent and its row are never torn apart."""
    path = tmp_path / "journal.db"
    script = """
for number in range(10**6):
    (begun,) = journal.begin([intent(number)])
    say(f"begun {number}")
    journal.finish([(begun, "done", "")], applied=[row(number)])
    say(f"finished {number}")
"""
    for trial in range(5):
        with child(path, script) as process:
            for _ in range(20 + 37 * trial):
                line_of(process)
            process.send_signal(signal.SIGKILL)
            assert process.stdout is not None
            heard = [line.split() for line in process.stdout.read().splitlines() if line.count(" ") == 1]
            process.wait()
        begun = {int(number) for what, number in heard if what == "begun"}
        finished = {int(number) for what, number in heard if what == "finished"}
        with Journal.open(path) as journal:
            open_names = {value.identity.name for value in journal.open_intents().values()}
            applied = {identity.name for identity in journal.applied("m1")}
            assert {f"c{number}" for number in finished} <= applied
            assert {f"c{number}" for number in begun} <= applied | open_names
            assert not open_names & applied
            assert len(open_names) <= 1
            assert journal.verify() == ()
            journal.reset()


def test_only_one_process_writes_and_a_dead_one_does_not_hold_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with child(path, "say('open')\ntime.sleep(60)\n") as process:
        assert line_of(process) == "open"
        with pytest.raises(JournalLocked, match=f"process {process.pid} on "):
            Journal.open(path)
        found = holder(path)
        assert found is not None
        assert found.pid == process.pid
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert holder(path) is None
        Journal.open(path).close()


def test_readers_see_whole_commits_while_the_writer_works(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    script = """
say("open")
for number in range(10**6):
    with journal.transaction():
        journal.record_timers({"round": str(number)})
        journal.record_in_force("", {"round": str(number)})
"""
    with child(path, script) as process:
        assert line_of(process) == "open"
        seen, reads, deadline = set[str](), 0, time.monotonic() + 60
        with Journal.open(path, read_only=True) as reader:
            # On a busy machine the writer may stand still for as long as many reads take.
            while reads < 200 or (len(seen) < 2 and time.monotonic() < deadline):
                with reader.transaction():
                    assert reader.timers() == reader.good_blobs()
                seen.add(reader.timers().get("round", ""))
                reads += 1
        assert process.poll() is None
        assert len(seen) > 1, "the writer made no progress beside the reader"


def test_a_full_disk_stops_the_intents_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    script = """
import resource
journal.begin([intent(0)])
size = Path(f"{sys.argv[1]}-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, resource.RLIM_INFINITY))
try:
    journal.begin([intent(number) for number in range(1, 2000)])
except JournalError as error:
    say(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.begin([intent(9999)])
say(",".join(found.identity.name for found in journal.open_intents().values()))
journal.close()
"""
    with child(path, script) as process:
        assert "nothing was written" in line_of(process)
        assert line_of(process) == "c0,c9999"
        assert process.wait() == 0
    with Journal.open(path) as journal:
        assert journal.verify() == ()
