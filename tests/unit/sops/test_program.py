"""A program in the place of sops that hangs, floods, forks or asks for our secrets is held; the real one opens PGP."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.api.content import DecryptedValues
from reconciler.errors import ConfigurationError
from reconciler.sops.program import LIMITS, Program, program_of, values_of
from tests.fakes.sops import Sops
from tests.fakes.sops_programs import Fake
from tests.fakes.vault import transit_engine
from tests.present import present
from tests.unit.sops.test_opening import WIDGET, bodies, opened_with, sealed_of

SHORT = LIMITS._replace(wall_s=4.0)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def pgp(folder: Path) -> Iterator[dict[str, str]]:
    """A home of gpg with a key of its own; `FINGERPRINT` in what is told of it."""
    home = folder / "g"
    home.mkdir(mode=0o700)
    told = {"GNUPGHOME": str(home), "PATH": os.environ["PATH"]}
    make = ["gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--quick-gen-key", "t@example.com",
            "default", "default", "never"]  # fmt: skip
    try:
        subprocess.run(make, env=told, check=True, capture_output=True)
        listed = subprocess.run(
            ["gpg", "--list-keys", "--with-colons"], env=told, check=True, capture_output=True, text=True
        )
        found = next(line.split(":")[9] for line in listed.stdout.splitlines() if line.startswith("fpr"))
        yield {**told, "FINGERPRINT": found}
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env=told, check=False, capture_output=True)


def test_the_real_sops_opens_for_pgp_and_for_groups_of_pgp_and_age(sops: Sops, tmp_path: Path) -> None:
    data = b""
    with pgp(tmp_path) as home:
        second = sops.new_identity("second.key")
        groups = f"  - pgp: [{home['FINGERPRINT']}]\n  - age: [{sops.recipient()}]\n  - age: [{sops.recipient(second)}]"
        program = present(program_of(sops.binary, "", home, identities=sops.key_file))
        assert "FINGERPRINT" not in program.environ
        for rule in (f"  pgp: {home['FINGERPRINT']}\n", f"  shamir_threshold: 2\n  key_groups:\n{groups}\n"):
            data = sops.encrypt_for(WIDGET, rule, GNUPGHOME=home["GNUPGHOME"])
            sealed = sealed_of(data)
            ran = program.decrypt(data, is_json=False)
            assert (ran.code, ran.why) == (0, ""), ran.complaint
            values = values_of(sealed, ran.output)
            assert isinstance(values, DecryptedValues), values
            # The same as age reads of the same document.
            expected = opened_with(sops, sealed_of(sops.encrypt(WIDGET, *SECRET)))
            assert isinstance(expected, DecryptedValues)
            assert named(values) == named(expected)
        assert program.version().startswith("3.")
    lonely = present(program_of(sops.binary, "", {"GNUPGHOME": str(tmp_path / "g")}, identities=None))
    ran = lonely.decrypt(data, is_json=False)
    assert ran.code == 128
    assert "hunter2" not in ran.complaint


SECRET = ("--encrypted-regex", "^(data|stringData)$")


def named(opened: DecryptedValues) -> list[tuple[tuple[str, ...], str]]:
    return sorted((names, repr(value)) for (names, _), value in opened.values.items())


def test_the_real_sops_asks_a_vault(sops: Sops, tmp_path: Path) -> None:
    with transit_engine() as vault:
        told = {"VAULT_ADDR": vault.address, "VAULT_TOKEN": "token-of-the-service"}
        data = sops.encrypt_for(WIDGET, f"  hc_vault_transit_uri: {vault.address}/v1/transit/keys/fleet\n", **told)
        program = present(program_of(sops.binary, "", {**told, "HOME": str(tmp_path)}, identities=None))
        ran = program.decrypt(data, is_json=False)
        assert ran.code == 0, ran.complaint
        assert isinstance(values_of(sealed_of(data), ran.output), DecryptedValues)
        assert vault.tokens == {"token-of-the-service"}
        vault.refuse = "permission denied for token-of-the-service"
        ran = program.decrypt(data, is_json=False)
        assert ran.code == 128
        assert "permission denied" in ran.complaint
        assert "token-of-the-service" not in ran.complaint


def test_a_program_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    forks = "pids = [os.fork() for _ in range(2)]\nif 0 in pids:\n    os.setsid()\n    os.fork()\n"
    fake = Fake(tmp_path, f"{forks}open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}} ')\ntime.sleep(600)")
    ran = Program(fake.path, {}, limits=SHORT).decrypt(b"x", is_json=False)
    assert ran.code is None
    assert "did not end within 4 s" in ran.why
    pids = [*map(int, (tmp_path / "pids").read_text().split())]
    assert len(pids) >= 4
    assert not any(map(is_alive, pids))


def test_what_a_program_leaves_behind_is_ended_though_it_answered(tmp_path: Path) -> None:
    left = tmp_path / "left"
    fake = Fake(tmp_path, f"pid = os.fork()\nif pid == 0:\n    os.setsid()\n    time.sleep(600)\n"
                          f"open({str(left)!r}, 'w').write(str(pid))\nos.write(1, b'answer')")  # fmt: skip
    ran = Program(fake.path, {}, limits=SHORT).decrypt(b"x", is_json=False)
    assert (ran.code, ran.output) == (0, b"answer")
    assert not is_alive(int(left.read_text()))


@pytest.mark.parametrize("stream", [1, 2])
def test_a_program_that_writes_without_end_is_ended(tmp_path: Path, stream: int) -> None:
    fake = Fake(tmp_path, f"while True: os.write({stream}, b'x' * 65536)")
    ran = Program(fake.path, {}, limits=LIMITS._replace(output_bytes=10**6, error_bytes=10**6)).decrypt(
        b"x", is_json=False
    )
    assert ran.code is None
    assert ran.is_large
    assert len(ran.output) + len(ran.complaint) <= 2 * 10**6


def test_memory_and_files_are_limited(tmp_path: Path) -> None:
    fake = Fake(tmp_path, "x = b'x' * 2**31")
    assert Program(fake.path, {}, limits=LIMITS._replace(memory_bytes=2**30)).decrypt(b"x", is_json=False).code == 1
    large = tmp_path / "large"
    fake.behave(f"f = open({str(large)!r}, 'wb')\nwhile True: f.write(b'x' * 65536)")
    assert Program(fake.path, {}).decrypt(b"x", is_json=False).code != 0
    assert large.stat().st_size <= 2**20


def test_a_program_is_told_what_clouds_sign_in_with_and_nothing_of_ours(tmp_path: Path) -> None:
    fake = Fake(tmp_path, "")
    told = {"AWS_PROFILE": "a", "VAULT_TOKEN": "b", "HOME": "/h", "GNUPGHOME": "/g", "PATH": "/usr/bin"}
    ours = {
        "RECONCILER_LISTEN_TOKEN_FILE": "x", "CREDENTIALS_DIRECTORY": "/c", "NOTIFY_SOCKET": "/n", "KUBECONFIG": "/k",
        "SOPS_AGE_KEY_CMD": "touch /tmp/x", "SOPS_GPG_EXEC": "/x", "SOPS_KEYSERVICE": "tcp://x:1", "LD_PRELOAD": "/x",
        "PYTHONPATH": "/x", "GITHUB_TOKEN": "x",
    }  # fmt: skip
    program = present(program_of(fake.path, "", {**told, **ours}, identities=None))
    program.decrypt(b"123", is_json=True)
    (arguments, environ, _, given), = fake.runs  # fmt: skip
    assert environ.items() >= {**told, "LC_ALL": "C"}.items()
    assert not environ.keys() & ours.keys()
    assert given == 3
    assert arguments == ["--config", "/dev/null", "decrypt", "--input-type", "json", "--output-type", "json",
                         "--filename-override", "file.json"]  # fmt: skip


def test_a_binary_that_another_could_exchange_is_refused(tmp_path: Path) -> None:
    fake = Fake(tmp_path, "")
    digest = subprocess.run(["sha256sum", fake.path], check=True, capture_output=True, text=True).stdout.split()[0]
    assert program_of(fake.path, f"sha256:{digest}", {}, identities=None) is not None
    link = tmp_path / "store"
    link.mkdir()
    inside = link / "sops"
    inside.symlink_to(fake.path)
    for path, sha256, store, why in (
        (Path("sops"), "", "", "absolute path"),
        (tmp_path / "none", "", "", "No such file"),
        (tmp_path, "", "", "no program"),
        (fake.path, "0" * 64, "", "not the binary"),
        (fake.path, "", str(tmp_path), "in the store"),
        (inside, "", str(link), "in the store"),
        (None, digest, "", "not given"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            program_of(path, sha256, {}, identities=None, store=store)
    fake.path.chmod(0o777)
    with pytest.raises(ConfigurationError, match="others than its owner"):
        program_of(fake.path, "", {}, identities=None)


def test_a_binary_that_was_exchanged_while_the_service_runs_is_not_started(tmp_path: Path) -> None:
    fake = Fake(tmp_path, "")
    digest = subprocess.run(["sha256sum", fake.path], check=True, capture_output=True, text=True).stdout.split()[0]
    program = present(program_of(fake.path, digest, {}, identities=None))
    fake.behave("print('other')")
    assert "not the binary" in program.decrypt(b"x", is_json=False).why
    assert fake.runs == []


@pytest.mark.parametrize("said", ["", "sops 2.0.1", "sops 3.9.4", "helm v4.2.0"])
def test_a_version_that_does_not_know_what_is_needed_is_refused(tmp_path: Path, said: str) -> None:
    with pytest.raises(ConfigurationError):
        Program(Fake(tmp_path, f"print({said!r})").path, {}).version()


def test_a_file_of_age_alone_is_the_same_by_both_ways(sops: Sops) -> None:
    data = sops.encrypt(WIDGET, *SECRET)
    program = present(program_of(sops.binary, "", {}, identities=sops.key_file))
    assert values_of(sealed_of(data), program.decrypt(data, is_json=False).output) == opened_with(sops, sealed_of(data))
    assert bodies(sops, data)
