"""Threads may decode into a type at once, also the first time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
AT_ONCE = """
import sys, threading
sys.setswitchinterval(1e-6)
from reconciler.model.rollouts.told import RolloutAccount
from reconciler.stages.shards import Account, account_body, read_account
account = Account(shard="a", rollouts=RolloutAccount(revision="abc", clusters={"m1": ""}))
body, gate = account_body("name", "namespace", account), threading.Barrier(8)
def read():
    gate.wait()
    assert read_account(body) == account
threads = [threading.Thread(target=read) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
"""
DECODES = re.compile(
    r"msgspec\.(?:convert|json\.decode|msgpack\.decode)"
    r"\([^()]*(?:\([^()]*\))?[^()]*?(?:type=|, )(_?[A-Z]\w*)\)"
)
DECODED = re.compile(r"^@prepared\nclass (\w+)\(", re.M)


def test_two_threads_that_read_the_first_account_at_once_do_not_end_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", AT_ONCE], cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_every_type_that_is_decoded_into_is_prepared() -> None:
    texts = [path.read_text() for path in sorted((ROOT / "reconciler").rglob("*.py"))]
    decoded = {name for text in texts for name in DECODES.findall(text)}
    prepared = {name for text in texts for name in DECODED.findall(text)}
    assert decoded >= {"RolloutAccount", "ShardPicture", "ObjectMetadata", "_Entry", "_Kept"}, "it finds them"
    assert decoded <= prepared
