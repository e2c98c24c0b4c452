"""docs/reference/security.md names each dependency that reads hostile bytes, and the limits that the code has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from reconciler.helm import files, inputs
from reconciler.secrets import sops_block
from reconciler.sops import decrypt
from reconciler.store import file_walk, ignore
from reconciler.store.git import artifact_commits, repository
from reconciler.store.oci import archives, artifact, registry_client, signature
from reconciler.templates import rules
from reconciler.yaml import yaml_limits

ROOT: Final = Path(__file__).parents[2]
LINES: Final = (ROOT / "docs/reference/security.md").read_text().splitlines()
READ_NOTHING_HOSTILE: Final = {
    "click", "kubernetes", "markupsafe", "multidict", "prometheus-client", "rich", "watchfiles", "yarl",
}  # fmt: skip
"""They read arguments, the person's own files, or what aiohttp has read; markupsafe only escapes."""
LIMITS: Final = [
    ("a file", f"{yaml_limits.MAX_BYTES >> 20} MiB, {yaml_limits.MAX_DOCUMENTS:,} documents"),
    ("a file", f"{yaml_limits.MAX_DIRECTIVES} directives"),
    ("a document", f"{yaml_limits.MAX_DEPTH} levels, {yaml_limits.MAX_NODES:,} values"),
    ("an object", f"{rules.MAX_OBJECT_BYTES:,} bytes"),
    ("keys of sops in a file", f"{sops_block._MAX_GROUPS} groups of {sops_block._MAX_RECIPIENTS} "),
    ("keys of sops in a file", f"{sops_block._ENC_MAX['age']:,} characters each for age (up to {decrypt._ENC_MAX:,} "),
    ("keys of sops in a file", f"{sops_block._ENC_MAX['pgp']:,} for PGP, {sops_block._OTHER_ENC_MAX:,} else"),
    ("a store", f"{file_walk.MAX_FILES:,} files with documents, {file_walk.MAX_TOTAL_BYTES >> 30} GiB"),
    ("a store", f"{file_walk.MAX_FOLDERS:,} folders, {file_walk.MAX_FOLDER_DEPTH} deep; {file_walk.MAX_ENTRIES:,} "),
    ("an object of Git", f"over {repository.MAX_OBJECT_BYTES >> 20} MiB"),
    ("a `.reconcilerignore`", f"{ignore.MAX_IGNORE_BYTES >> 10} KiB, {ignore.MAX_PATTERNS:,} lines"),
    ("a `.reconcilerignore`", f"{ignore.MAX_PATTERN} characters and {ignore.MAX_STARS} stars"),
    ("all of them together", f"{file_walk.MAX_IGNORE_WORK:,}"),
    ("pyrage", f"{decrypt._ENC_MAX:,} characters"),
    ("zlib", f"{inputs._MAX_UNPACKED_BYTES >> 20} MiB"),
    ("tarfile", f"{files.MAX_FILES:,} entries, {artifact.ENTRIES_MAX:,} of an artifact; "),
    ("tarfile", f"{archives._MAX_HEADER_BYTES:,} bytes"),
    ("tarfile", f"{archives._MAX_HEADERS_COST:,} for the squares"),
    ("zlib", f"{artifact.UNPACKED_BYTES_MAX >> 20} MiB of an artifact"),
    ("a manifest, list or token", f"{registry_client.MANIFEST_BYTES_MAX >> 20} MiB; "),
    ("a manifest, list or token", f"{signature.PAYLOAD_BYTES_MAX >> 20} MiB of a token"),
    ("a manifest, list or token", f"{signature.SIGNATURES_MAX} signatures"),
    ("layers", f"{artifact.LAYERS_MAX} of tar+gzip, {artifact.LAYER_BYTES_MAX >> 20} MiB together, "),
    ("layers", f"{artifact.UNPACKED_BYTES_MAX >> 20} MiB and {artifact.ENTRIES_MAX:,} entries unpacked"),
    ("a pull", f"{registry_client.CONNECT_S:.0f} s to connect"),
    ("a pull", f"{artifact_commits.TOTAL_S // 60:.0f} minutes in all; {registry_client.HOPS_MAX} redirects"),
]  # fmt: skip


def row(name: str) -> str:
    """The row of a table that begins with these words."""
    return next((line for line in LINES if re.match(rf"\| [^|]*{re.escape(name)}\b[^|]*\|", line, re.IGNORECASE)), "")


def test_each_dependency_that_reads_hostile_bytes_has_a_row() -> None:
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    found = {re.split(r"[^\w-]", one)[0] for one in named}
    assert found >= READ_NOTHING_HOSTILE
    assert [one for one in sorted(found - READ_NOTHING_HOSTILE) if not row(one)] == []


@pytest.mark.parametrize(("name", "limit"), LIMITS)
def test_a_row_says_the_limit_of_the_code(name: str, limit: str) -> None:
    found = next((line for line in LINES if line.startswith(f"| {name} |")), "")
    assert limit in found
