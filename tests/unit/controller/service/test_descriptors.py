from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
from reconciler.controller.service.signals import raise_descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256))
print(raise_descriptors(), *resource.getrlimit(resource.RLIMIT_NOFILE))
print(raise_descriptors(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["256"] * 6
