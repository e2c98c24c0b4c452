"""`MemoryDenyWriteExecute=yes`: everything works without memory that is writable and executable.

The kernel's own switch for it (PR_SET_MDWE, Linux 6.3) is set in a process, and holds for those that it starts.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.git_server import self_signed
from tests.fakes.store_trees import commit_all, write_files

_SCRIPT = """
import asyncio, ctypes, mmap, sys
from pathlib import Path

PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0:
    sys.exit(77)
try:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
except OSError:
    pass
else:
    sys.exit("memory that is writable and executable was given")

import aiohttp, jsonpatch, kubernetes, msgspec, orjson, prometheus_client, pygit2, sqlite3, watchfiles, yaml
from reconciler.store.git.fetch import FetchRequest, fetch
from reconciler.store.git import parse_git_url
from tests.fakes.git_server import GitServer
from tests.fakes.ssh_server import SshServer, make_key

async def main(root, certificate, key, token):
    async with GitServer(Path(root), token="s3cret", certificate=(Path(certificate), Path(key))) as server:
        url = parse_git_url(f"{server.url}/src/.git")
        wanted = FetchRequest(url=url, rev="main", folder=Path(root) / "clone", into="refs/fleet/x")
        environ = {"RECONCILER_GIT_CA": certificate, "RECONCILER_GIT_TOKEN_FILE": token}
        print((await fetch(wanted, environ)).commit)
    host, client, known = make_key(Path(root) / "host"), make_key(Path(root) / "client"), Path(root) / "known"
    async with SshServer(Path(root), host, client) as server:
        known.write_text(server.known_hosts)
        url = parse_git_url(f"{server.url}/src/.git")
        wanted = FetchRequest(url=url, rev="main", folder=Path(root) / "clone2", into="refs/fleet/x")
        environ = {"RECONCILER_GIT_SSH_KEY": str(client), "RECONCILER_GIT_KNOWN_HOSTS": str(known)}
        print((await fetch(wanted, environ)).commit)

asyncio.run(main(*sys.argv[1:]))
"""


def test_nothing_needs_memory_that_is_writable_and_executable(tmp_path: Path) -> None:
    commit = commit_all(write_files(tmp_path / "src", {"a.yaml": "1"}), new=True)
    certificate, key = self_signed(tmp_path)
    token = tmp_path / "token"
    token.write_text("s3cret")
    result = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path), str(certificate), str(key), str(token)],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=180,
    )
    if result.returncode == 77:
        pytest.skip("the kernel is older than 6.3 and has no PR_SET_MDWE")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [commit, commit]
