"""Threads may decode into a type at once, also the first time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from reconciler.journal.rows import RECORDS

ROOT = Path(__file__).parents[2]
AT_ONCE = """
import sys, threading
sys.setswitchinterval(1e-6)
from reconciler.api.rollout_progress import Record
from reconciler.rollouts.record_book import entry_of, record_of
record = Record(revision="abc", begun_at="2026-11-21T10:00:00Z")
entry, gate = entry_of(record), threading.Barrier(8)
def read():
    gate.wait()
    assert record_of(entry) == record
threads = [threading.Thread(target=read) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
"""
DECODES = re.compile(
    r"msgspec\.(?:convert|json\.decode|msgpack\.decode)"
    r"\([^()]*(?:\([^()]*\))?[^()]*?(?:type=|, )(_?[A-Z]\w*)\)"
)
FROM_ROWS = re.compile(r"value_of\(\w+, \w+(?:\[0\])?, ([A-Z]\w*)\)")
DECODED = re.compile(r"^(?:@prepared\nclass |prepared\()(\w+)[()]", re.M)


def test_threads_that_read_the_first_entry_at_once_do_not_end_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", AT_ONCE], cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_every_type_that_is_decoded_into_is_prepared() -> None:
    texts = [path.read_text() for path in sorted((ROOT / "reconciler").rglob("*.py"))]
    decoded = {name for text in texts for name in DECODES.findall(text)}
    prepared = {name for text in texts for name in DECODED.findall(text)}
    assert decoded >= {"ObjectMetadata", "_RecordEntry", "_SavedFiles"}, "it finds them"
    assert decoded <= prepared


def test_every_record_that_a_row_becomes_is_prepared() -> None:
    texts = [path.read_text() for path in sorted((ROOT / "reconciler" / "journal").glob("*.py"))]
    found = {name for text in texts for name in FROM_ROWS.findall(text)}
    assert found == {record.__name__ for record in RECORDS}
