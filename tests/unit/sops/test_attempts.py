"""Keys that are away are asked for ever more rarely and hold nobody up, and nobody is asked whom a store made up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.api.content import DecryptedValues, SopsMetadata
from reconciler.api.fleet import Template
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.clock import BackOff
from reconciler.sops.decrypt import DecryptRefused
from reconciler.sops.keyring import Attempts, Keyring
from reconciler.sops.program import LIMITS, Program, unfit
from tests.fakes.sealed_documents import block, ciphertext, sealed, text_of
from tests.fakes.sops_programs import Fake
from tests.unit.sops.test_opening import templates

LONG_S = 30.0
"""So long a test waits before it fails; what it waits for is there at once."""
ARN = "arn:aws:kms:eu-central-1:123456789012:key/{}"
ANSWER = """
import re
text = given.decode()
print(re.sub(r"ENC\\[AES256_GCM,data:([^,]+),.*?\\]", lambda m: __import__("base64").b64decode(m[1]).decode(), text)
      .partition("sops:")[0])
"""
"""The clear text of what the fakes call ciphertext."""


def template(name: str = "app", key: str = "a", **more: Any) -> Template:
    keys = {"age": None, "kms": [{"arn": ARN.format(key), "enc": "x", "created_at": "2026-11-21T10:00:00Z"}], **more}
    document = sealed(name=name, sops={k: v for k, v in block(**keys).items() if v is not None}, a="value")
    return templates(text_of(document).encode())[0]


def part(found: Template) -> SopsMetadata:
    assert found.sealed is not None
    return found.sealed


class Heard:
    """The messages so far, and a wait for the next."""

    def __init__(self) -> None:
        self.told: list[frozenset[Identity]] = []
        self._changed = threading.Condition()

    def __call__(self, identities: Collection[Identity]) -> None:
        with self._changed:
            self.told.append(frozenset(identities))
            self._changed.notify_all()

    def until(self, fact: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(fact, LONG_S), self.told


def attempts_of(fake: Fake, first_s: float = 0.01, environ: Mapping[str, str] | None = None) -> tuple[Attempts, Heard]:
    found, heard = (
        Attempts(
            Program(fake.path, environ or {}, limits=LIMITS._replace(wall_s=LONG_S)),
            BackOff(least_s=first_s, most_s=LONG_S),
        ),
        Heard(),
    )
    found.listen(heard)
    return found, heard


def ask(attempts: Attempts, *asked: Template, wait_s: float = LONG_S) -> list[DecryptedValues | DecryptRefused]:
    answers = attempts.ask({part(one): [one.identity] for one in asked}, wait_s)
    return [answers[part(one)] for one in asked]


def test_a_file_is_asked_about_once_until_it_is_another_one(tmp_path: Path) -> None:
    fake = Fake(tmp_path, ANSWER)
    attempts, heard = attempts_of(fake)
    found = ask(attempts, template())
    assert found == [DecryptedValues(values={(("data", "a"), ciphertext("value")): "data value"})]
    assert ask(attempts, template()) == found
    attempts.keep({part(template())})
    assert ask(attempts, template()) == found
    assert len(fake.runs) == 1
    assert heard.told == [], "who waits need not be told"
    attempts.keep(())
    assert ask(attempts, template()) == found
    assert len(fake.runs) == 2


def test_keys_that_are_away_are_asked_for_ever_more_rarely_for_all_of_their_files_together(tmp_path: Path) -> None:
    fake = Fake(tmp_path, "sys.stderr.write('AccessDenied'); sys.exit(128)")
    attempts, _ = attempts_of(fake, first_s=LONG_S)
    files = [template(f"app{number}") for number in range(12)]
    refused = ask(attempts, *files)
    for answer in refused:
        assert isinstance(answer, DecryptRefused)
        assert answer.code == "sops-no-key"
        assert "AccessDenied" in answer.message
        assert ARN.format("a") in answer.message
    for _ in range(5):
        assert ask(attempts, *files) == refused
    assert len(fake.runs) <= 4, "as many as are asked about at a time"
    # A person says that it is fixed: everything is opened at once.
    fake.behave(ANSWER)
    attempts.again()
    assert all(isinstance(answer, DecryptedValues) for answer in ask(attempts, *files))


@pytest.mark.parametrize("behaviour", ["sys.exit(128)", "os.kill(os.getpid(), 9)"])
def test_what_is_tried_again_is_told_when_it_is_there(tmp_path: Path, behaviour: str) -> None:
    fake = Fake(tmp_path, behaviour)
    attempts, heard = attempts_of(fake)
    assert isinstance(ask(attempts, template())[0], DecryptRefused)
    fake.behave(ANSWER)
    heard.until(lambda: heard.told == [frozenset({template().identity})])
    runs = len(fake.runs)
    assert isinstance(ask(attempts, template())[0], DecryptedValues)
    assert len(fake.runs) == runs


def test_a_file_that_nobody_opens_holds_up_no_other_of_the_same_keys(tmp_path: Path) -> None:
    fake = Fake(tmp_path, f"if b'name: broken' in given: sys.exit(128)\n{ANSWER}")
    attempts, heard = attempts_of(fake)
    others = [template(f"app{number}") for number in range(10)]
    ask(attempts, template("broken"))
    ask(attempts, *others, wait_s=0)
    heard.until(lambda: {one.identity for one in others} <= {identity for told in heard.told for identity in told}
                or all(isinstance(answer, DecryptedValues) for answer in ask(attempts, *others, wait_s=0)))  # fmt: skip
    assert all(isinstance(answer, DecryptedValues) for answer in ask(attempts, *others, wait_s=LONG_S))


def test_a_key_service_that_hangs_holds_up_nobody_of_another_one(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    fake = Fake(
        tmp_path, f"while b'key/slow' in given and not os.path.exists({str(gate)!r}): time.sleep(0.01)\n{ANSWER}"
    )
    attempts, heard = attempts_of(fake)
    slow = ask(attempts, template("slow", "slow"), wait_s=0)[0]
    assert isinstance(slow, DecryptRefused)
    assert "has not answered yet" in slow.message
    assert isinstance(ask(attempts, template("quick", "quick"))[0], DecryptedValues)
    # As often as it is asked for meanwhile, it is one run.
    for _ in range(5):
        ask(attempts, template("slow", "slow"), wait_s=0)
    gate.touch()
    heard.until(lambda: heard.told == [frozenset({template("slow").identity})])
    assert isinstance(ask(attempts, template("slow", "slow"), wait_s=0)[0], DecryptedValues)
    assert len(fake.runs) == 2


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        ("print('garbage')", "sops-unknown-form"),
        ("print(given.decode())", "sops-unknown-form"),
        ("while True: print('x' * 10**6)", "sops-unknown-form"),
        ("sys.exit(51)", "sops-tampered"),
        ("sys.exit(1)", "sops-unknown-form"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_once_and_not_tried_again(tmp_path: Path, behaviour: str, code: str) -> None:
    fake = Fake(tmp_path, f"sys.stderr.write('canary'); sys.stderr.flush()\n{behaviour}")
    attempts, _ = attempts_of(fake)
    for _ in range(3):
        answer = ask(attempts, template())[0]
        assert isinstance(answer, DecryptRefused)
        assert answer.code == code
        assert "canary" not in answer.message
    assert len(fake.runs) == 1


VAULT = {"vault_address": "https://vault.example.com", "engine_path": "transit", "key_name": "k", "enc": "x"}


def test_the_token_of_a_vault_goes_to_the_vault_of_the_service_alone(tmp_path: Path) -> None:
    fake = Fake(tmp_path, ANSWER)
    for address, is_asked in (("https://vault.example.com/", True), ("https://evil.example.com", False), ("", False)):
        attempts, _ = attempts_of(fake, environ={"VAULT_TOKEN": "t", **({"VAULT_ADDR": address} if address else {})})
        before = len(fake.runs)
        answer = ask(attempts, template(kms=None, hc_vault=[VAULT]))[0]
        assert isinstance(answer, DecryptedValues) is is_asked
        assert (len(fake.runs) > before) is is_asked


def text(block_: dict[str, Any], **more: Any) -> bytes:
    return yaml.safe_dump({"kind": "Secret", **more, "sops": block_}).encode()


KMS = {"arn": ARN.format("a"), "enc": "x"}


@pytest.mark.parametrize(
    ("data", "is_json", "is_fit"),
    [
        (text({"kms": [KMS]}), False, True),
        (text({"kms": [{**KMS, "role": "arn:aws:iam::123456789012:role/x", "context": {"a": "b"}}]}), False, True),
        (text({"kms": [{**KMS, "arn": "arn:aws:kms:x@evil.example.com/:1:key/a"}]}), False, False),
        (text({"key_groups": [{"pgp": [{"fp": "85D77543", "enc": "x"}]}, {"hc_vault": [VAULT]}]}), False, True),
        (text({"key_groups": [{"hc_vault": [{**VAULT, "vault_address": "https://evil"}]}]}), False, False),
        (text({"hc_vault": [{**VAULT, "engine_path": "../sys"}]}), False, False),
        (text({"azure_kv": [{"vault_url": "https://x.vault.azure.net", "name": "a", "version": "", "enc": "x"}]}),
         False, True),
        (text({"azure_kv": [{"vault_url": "https://x.vault.azure.net.evil.com", "name": "a", "enc": "x"}]}),
         False, False),
        (text({"gcp_kms": [{"resource_id": "projects/p/locations/l/keyRings/r/cryptoKeys/k", "enc": "x"}]}),
         False, True),
        (text({"gcp_kms": [{"resource_id": "projects/p/../../x", "enc": "x"}]}), False, False),
        (text({"pgp": [{"fp": "--homedir=x", "enc": "x"}]}), False, False),
        # A document before those of the fleet, which sops would believe instead.
        (text({"kms": [{**KMS, "enc": "y"}]}) + b"---\n" + text({"kms": [KMS]}), False, False),
        (b"a: b\n---\n" + text({"kms": [KMS]}), False, False),
        # What two readers read differently.
        (text({"kms": [KMS]}) + b"sops: {}\n", False, False),
        (b"sops: &a\n  kms: []\nb: *a\n", False, True),
        (b"sops:\n  kms: &a []\n  pgp: *a\n", False, False),
        (b"sops: !!map\n  kms: []\n", False, False),
        (b"sops:\n  <<: {kms: []}\n", False, False),
        (b'{"sops": {"kms": []}, "SOPS": {"kms": []}}', True, False),
        (b'{"sops": {"kms": []}, "sops": {"kms": []}}', True, False),
        (b'{"sops": {"kms": []}}', True, True),
        (b"{", True, False),
        (b"{", False, False),
    ],
)  # fmt: skip
def test_whom_a_file_may_have_asked(data: bytes, is_json: bool, is_fit: bool) -> None:
    found = unfit(data, {"VAULT_ADDR": "https://vault.example.com"}, is_json=is_json)
    assert (found == "") is is_fit, found


def test_a_keyring_starts_a_program_only_for_what_age_does_not_open(tmp_path: Path) -> None:
    fake = Fake(tmp_path, ANSWER)
    attempts, _ = attempts_of(fake)
    for_age = templates(text_of(sealed(name="lost", a="value")).encode())[0]
    keyring = Keyring(None, {}, attempts, LONG_S)
    found = keyring.open([for_age, template()], True)
    assert isinstance(found[for_age.identity], Problem)
    assert isinstance(found[template().identity], DecryptedValues)
    assert len(fake.runs) == 1
    # An older revision, which is asked for after the newest, is no reason to ask again at each round.
    older = template("older")
    for _ in range(3):
        keyring.open([for_age, template()], True)
        keyring.open([older], False)
    assert len(fake.runs) == 2
    assert isinstance(Keyring(None, {}).open([template()], True)[template().identity], Problem)
