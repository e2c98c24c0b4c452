"""A file of the real sops and age is read as they read it, and not at all once a bit of it is another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.content import DecryptedValues, JsonObject, SopsMetadata
from reconciler.api.fleet import StoreFile, Template
from reconciler.api.problem import Problem
from reconciler.errors import ConfigurationError
from reconciler.fleet import parse_file
from reconciler.report.status.remedies import remedy_of, remedy_of_problem
from reconciler.secrets import replaced
from reconciler.sops.decrypt import DecryptRefused, decrypted_file
from reconciler.sops.keyring import Keyring, read_identities
from reconciler.yaml import read_yaml
from tests.fakes.sops import SECRET_RULE, Sops
from tests.yaml_text import load_documents

WIDGET = """\
# about the widget
apiVersion: example.com/v1
kind: Widget
metadata:
  name: w  # its name
  namespace: demo
  annotations: {port: "80", empty: "", time: "2001-01-01"}
mode: 0640
ratio: 1.50
large: 1e21
moment: 2001-01-01
word: yes
quoted: 'true'
nothing: null
flag: True
data:
  # a comment that is encrypted
  text: hunter2
  empty: ""
  unicode: "grüße ☃"
  lines: |
    first
    second
  folded: >
    one
    two
  integer: 5432
  negative: -7
  float: 0.25
  whole: 3.0
  tiny: 1.0e-07
  huge: 1e30
  yes: true
  no: false
  nothing: null
  moment: 2024-02-03T04:05:06.700Z
  list: [1, two, 3.5, {deep: secret, deeper: [a, b]}, []]
  map: {}
  colon:key: with a colon in its name
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: demo}
type: Opaque
stringData: {password: of the second document, cert_clear: in plain text}
"""
RULES = {
    "encrypted_regex": SECRET_RULE,
    "unencrypted_suffix": ("--unencrypted-suffix", "_clear"),
    "unencrypted_regex": ("--unencrypted-regex", "^(apiVersion|kind|metadata)$"),
    "encrypted_suffix": ("--encrypted-suffix", "ata"),
}


def templates(data: bytes, path: str = "s.yaml") -> tuple[Template, ...]:
    parsed = parse_file(StoreFile(path=path, blob="b", data=data))
    assert [str(problem) for problem in parsed.problems if problem.severity == "error"] == []
    return parsed.templates


def sealed_of(data: bytes, path: str = "s.yaml") -> SopsMetadata:
    found = templates(data, path)[0].sealed
    assert found is not None
    return found


def opened_with(sops: Sops, sealed: SopsMetadata, *files: Path) -> DecryptedValues | DecryptRefused:
    keys = [key for file in files or (sops.key_file,) for key in read_identities(file, {}).keys]
    return decrypted_file(sealed, keys)


def bodies(sops: Sops, data: bytes, path: str = "s.yaml") -> list[JsonObject]:
    found = templates(data, path)
    assert found[0].sealed is not None
    values = opened_with(sops, found[0].sealed)
    assert isinstance(values, DecryptedValues), values
    return [replaced(template.body, lambda leaf: (values.values[leaf],))[0] for template in found]


def as_sops_reads(sops: Sops, data: bytes, path: str = "out.yaml") -> list[JsonObject]:
    """The documents that `sops decrypt` writes, as we read files."""
    return [document.body for document in read_yaml(path, sops.decrypt(data, name=path)).documents]


WIDGET_ALONE = WIDGET.partition("---")[0]


def test_every_type_of_value_is_what_sops_decrypts(sops: Sops) -> None:
    data = sops.encrypt(WIDGET, *SECRET_RULE)
    assert b"hunter2" not in data
    assert bodies(sops, data) == as_sops_reads(sops, data)


@pytest.mark.parametrize(
    "rule", ["encrypted_regex: ^(data|stringData)$", "encrypted_regex: ^d.ta$", "encrypted_suffix: argo"]
)
@pytest.mark.parametrize("mac_only", [False, True])
def test_rules_and_codes_over_encrypted_values_alone(sops: Sops, rule: str, mac_only: bool) -> None:
    text = WIDGET_ALONE.replace("\ndata:", "\ncargo:") if "suffix" in rule else WIDGET_ALONE
    data = sops.encrypt(text, config=f"  {rule}\n" + ("  mac_only_encrypted: true\n" if mac_only else ""))
    assert bodies(sops, data) == as_sops_reads(sops, data)


def test_an_unencrypted_rule_leaves_what_it_names_in_clear(sops: Sops) -> None:
    data = sops.encrypt(WIDGET, *RULES["unencrypted_regex"])
    assert b"mode: ENC[" in data
    assert bodies(sops, data) == as_sops_reads(sops, data)


def test_values_under_an_unencrypted_suffix_are_in_clear(sops: Sops) -> None:
    text = "apiVersion_clear: x\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
    data = sops.encrypt(text, *RULES["unencrypted_suffix"])
    found = parse_file(StoreFile(path="s.yaml", blob="b", data=data))
    assert {problem.code for problem in found.problems} >= {"sops-type-encrypted"}
    assert found.templates == ()


@pytest.mark.parametrize("rule", ["encrypted_comment_regex", "unencrypted_comment_regex"])
def test_rules_by_comments_are_told_by_the_form_of_values(sops: Sops, rule: str) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: d}\nstringData:\n  # seal me\n  a: b\n  c: d\n"
    if rule.startswith("un"):
        metadata = "metadata: {name: s, namespace: d}"
        text = f"# clear\napiVersion: v1\n# clear\nkind: Secret\n# clear\n{metadata}\nstringData: {{a: b}}\n"
    data = sops.encrypt(text, config=f"  {rule}: {'clear' if rule.startswith('un') else 'seal me'}\n")
    assert b"ENC[" in data.partition(b"sops:")[0]
    assert bodies(sops, data) == as_sops_reads(sops, data)


def test_json_is_read_as_yaml_is(sops: Sops) -> None:
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "s", "namespace": "d", "annotations": {"a": "1"}},
        "stringData": {"a": "b", "e": "", "n": 3.0},
        "more": [1, 2.5, True, None, 3.0, 1e30],
    }
    text = json.dumps(body)
    data = sops.encrypt(text, *SECRET_RULE, name="in.json")
    assert bodies(sops, data, "s.json") == as_sops_reads(sops, data, "out.json")


def test_any_of_several_recipients_opens_it_and_no_other(sops: Sops) -> None:
    second, stranger = sops.new_identity("second.key"), sops.new_identity("stranger.key")
    recipients = f"{sops.recipient()},{sops.recipient(second)}"
    sealed = sealed_of(sops.encrypt(WIDGET_ALONE, *SECRET_RULE, recipients=recipients))
    assert opened_with(sops, sealed) == opened_with(sops, sealed, stranger, second)
    refused = opened_with(sops, sealed, stranger)
    assert isinstance(refused, DecryptRefused)
    assert refused.code == "sops-no-key"
    assert all(recipient in refused.message for recipient in recipients.split(","))
    none = decrypted_file(sealed, ())
    assert isinstance(none, DecryptRefused)
    assert none.code == "sops-no-key"


def test_a_damaged_key_for_an_identity_that_is_here_is_no_missing_identity(sops: Sops) -> None:
    text = sops.encrypt(WIDGET_ALONE, *SECRET_RULE).decode()
    begin = text.index("-----BEGIN AGE") + 60
    damaged = text[:begin] + text[begin : begin + 8].swapcase() + text[begin + 8 :]
    assert damaged != text
    refused = opened_with(sops, sealed_of(damaged.encode()))
    assert isinstance(refused, DecryptRefused)
    assert refused.code == "sops-tampered"
    assert f"its key for {sops.recipient()}, whose identity is here, was changed" in refused.message


def test_a_broken_file_of_identities_is_named_and_read_again_once_it_is_another_one(sops: Sops, tmp_path: Path) -> None:
    chosen = templates(sops.encrypt(WIDGET_ALONE, *SECRET_RULE))
    key = tmp_path / "age.key"
    key.write_bytes(sops.key_file.read_bytes())
    key.chmod(0o604)
    keyring = Keyring(key, {})
    (problem,) = keyring.open(chosen, is_all=True).values()
    assert isinstance(problem, Problem)
    assert problem.code == "sops-key-file"
    assert problem.message.endswith(f"{key}: everybody on this machine can read it; chmod 600 {key}")
    assert "age1" not in problem.message, "the recipients have nothing to do with it"
    assert remedy_of_problem(problem.code, "0123456789abcdef") == remedy_of(problem.code), "no commit is behind it"

    assert list(keyring.renewed()) == []
    key.chmod(0o600)
    assert list(keyring.renewed()) == [chosen[0].identity]
    assert list(keyring.renewed()) == [], "it is looked at once"
    assert keyring.closed, "the service asks only where something is closed"
    assert isinstance(keyring.open(chosen, is_all=False)[chosen[0].identity], DecryptedValues)
    key.unlink()
    assert not keyring.closed, "what was opened needs no look"
    assert list(keyring.renewed()) == []


def test_as_many_groups_as_are_needed_open_it_and_no_fewer(sops: Sops) -> None:
    files = [sops.key_file, sops.new_identity("second.key"), sops.new_identity("third.key")]
    groups = "".join(f"  - age: [{sops.recipient(file)}]\n" for file in files)
    data = sops.encrypt_for(WIDGET_ALONE, f"  shamir_threshold: 2\n  key_groups:\n{groups}")
    sealed = sealed_of(data)
    whole = opened_with(sops, sealed, *files)
    assert isinstance(whole, DecryptedValues)
    for left_out in files:
        assert opened_with(sops, sealed, *[file for file in files if file != left_out]) == whole
        refused = opened_with(sops, sealed, left_out)
        assert isinstance(refused, DecryptRefused)
        assert refused.code == "sops-no-key"
        assert all(sops.recipient(file) in refused.message for file in files)
    # Whoever writes that one share is enough gives himself no key.
    weaker = sealed_of(data.replace(b"shamir_threshold: 2", b"shamir_threshold: 1"))
    assert isinstance(opened_with(sops, weaker, files[0]), DecryptRefused)


def test_a_file_with_old_and_new_identity_opens_before_and_after_a_rotation(sops: Sops, tmp_path: Path) -> None:
    new = sops.new_identity("new.key")
    before = sops.encrypt(WIDGET_ALONE, *SECRET_RULE)
    after = sops.rotate(before, "--add-age", sops.recipient(new), "--rm-age", sops.recipient())
    both = tmp_path / "both.key"
    both.write_bytes(sops.key_file.read_bytes() + new.read_bytes())
    both.chmod(0o600)
    was, is_now = opened_with(sops, sealed_of(before), both), opened_with(sops, sealed_of(after), both)
    assert isinstance(was, DecryptedValues)
    assert isinstance(is_now, DecryptedValues)
    assert sorted(map(str, was.values.values())) == sorted(map(str, is_now.values.values()))
    assert isinstance(opened_with(sops, sealed_of(after)), DecryptRefused)


def test_other_recipients_of_the_same_values_are_no_change_of_the_object(sops: Sops) -> None:
    second = sops.new_identity("second.key")
    before = sops.encrypt(WIDGET_ALONE, *SECRET_RULE)
    after = sops.for_recipients(before, f"{sops.recipient()},{sops.recipient(second)}")
    assert before != after
    assert templates(before)[0].digest == templates(after)[0].digest


def test_an_edit_leaves_the_other_values_as_they_were(sops: Sops) -> None:
    before = sops.encrypt(WIDGET_ALONE, *SECRET_RULE)
    after = sops.set(before, '["data"]["text"]', "hunter3")
    was, is_now = templates(before)[0].body, templates(after)[0].body
    assert [name for name in was["data"] if was["data"][name] != is_now["data"][name]] == ["text"]
    assert bodies(sops, after)[0]["data"]["text"] == "hunter3"


def flipped(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The file with one bit of one part of one value, or of what authenticates it, turned over."""
    for found in re.finditer(rb"(data|iv|tag):([A-Za-z0-9+/]+)(?==*,)|(?<=lastmodified: \")(\d{4})", data):
        place = found.start(2) if found[1] else found.start(3)
        other = b"B" if data[place : place + 1] == b"A" else b"A" if found[1] else b"3"
        yield f"{found[0][:20]!r} at {place}", data[:place] + other + data[place + 1 :]


def test_a_bit_of_any_value_or_of_the_code_makes_it_refused(sops: Sops) -> None:
    data = sops.encrypt(WIDGET, *SECRET_RULE)
    # A comment is no value: sops itself takes one that it cannot decrypt for one in plain text.
    judged = [
        (what, changed) for what, changed in flipped(data) if b"#" not in data[: _place(what)].rpartition(b"\n")[2]
    ]
    assert len(judged) > 60
    for what, changed in judged:
        parsed = parse_file(StoreFile(path="s.yaml", blob="b", data=changed))
        codes = [problem.code for problem in parsed.problems]
        if not codes:  # Each document repeats what sops says of the file, which is compared without a key.
            refused = opened_with(sops, sealed_of(changed))
            codes = [refused.code] if isinstance(refused, DecryptRefused) else []
        assert codes == ["sops-tampered"], what


def _place(what: str) -> int:
    return int(what.rpartition(" ")[2])


CHANGES: dict[str, tuple[bytes, bytes]] = {
    "a clear value": (b"mode: 416", b"mode: 417"),
    "a name in plain text": (b"    name: w", b"    name: v"),
    "an added value in plain text": (b"mode: 416", b"mode: 416\nadded: x"),
    "a removed value in plain text": (b"mode: 416\n", b""),
    "another document": (b"name: s\n", b"name: t\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_stands_in_clear_is_authenticated_too(sops: Sops, change: str) -> None:
    data = sops.encrypt(WIDGET, *SECRET_RULE)
    old, new = CHANGES[change]
    assert old in data
    refused = opened_with(sops, sealed_of(data.replace(old, new, 1)))
    assert isinstance(refused, DecryptRefused)
    assert refused.code == "sops-tampered"


def test_values_that_change_places_are_refused(sops: Sops) -> None:
    data = sops.encrypt(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: one, b: two}\n", *SECRET_RULE
    )
    one, two = re.findall(rb"^    [ab]: (ENC\[.*\])$", data, re.MULTILINE)
    swapped = data.replace(one, b"<one>").replace(two, one).replace(b"<one>", two)
    refused = opened_with(sops, sealed_of(swapped))
    assert isinstance(refused, DecryptRefused)
    assert refused.code == "sops-tampered"


def test_documents_of_a_file_that_change_places_are_refused(sops: Sops) -> None:
    text = "\n---\n".join(
        f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s{i}}}\nstringData: {{a: v{i}}}" for i in (1, 2)
    )
    first, _, second = sops.encrypt(text, *SECRET_RULE).partition(b"\n---\n")
    assert isinstance(opened_with(sops, sealed_of(first + b"\n---\n" + second)), DecryptedValues)
    assert isinstance(opened_with(sops, sealed_of(second + b"\n---\n" + first)), DecryptRefused)


def test_nothing_that_is_told_of_an_opened_file_has_its_values(sops: Sops) -> None:
    found = opened_with(sops, sealed_of(sops.encrypt(WIDGET_ALONE, *SECRET_RULE)))
    assert "hunter2" not in repr(found) + str(found)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n", "sops-type-encrypted"),
    ],
)
def test_a_file_whose_type_is_encrypted_is_refused_by_name(sops: Sops, text: str, code: str) -> None:
    found = parse_file(StoreFile(path="s.yaml", blob="b", data=sops.encrypt(text)))
    assert {problem.code for problem in found.problems} == {code}
    assert found.templates == ()


@pytest.mark.parametrize("form", ["binary", "dotenv", "ini"])
def test_forms_that_are_no_manifests_are_refused_by_name(sops: Sops, form: str) -> None:
    text = {"binary": "hello\n", "dotenv": "A=b\n", "ini": "[a]\nb = c\n"}[form]
    data = sops.encrypt(text, "--input-type", form, "--output-type", form, name="in.txt")
    path = "s.json" if form == "binary" else "s.yaml"
    found = parse_file(StoreFile(path=path, blob="b", data=data))
    assert "sops-unknown-form" in {problem.code for problem in found.problems}
    assert found.templates == ()
    assert found.frozen, "what it might say stays as it is"


def identities_in(tmp_path: Path, text: str, mode: int = 0o600) -> Any:
    file = tmp_path / "key"
    file.write_text(text)
    file.chmod(mode)
    return read_identities(file, {})


def test_identities_that_everybody_can_read_are_refused(sops: Sops, tmp_path: Path) -> None:
    text = sops.key_file.read_text()
    assert len(identities_in(tmp_path, text).keys) == 1
    for wrong, mode in (
        (text, 0o644),
        ("", 0o600),
        ("# none\n", 0o600),
        ("AGE-SECRET-KEY-1CANARY\n", 0o600),
        ("x\n", 0o600),
    ):
        with pytest.raises(ConfigurationError) as error:
            identities_in(tmp_path, wrong, mode)
        assert "CANARY" not in str(error.value)
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "sops-age").write_text(text)
    (folder / "sops-age").chmod(0o644)
    assert read_identities(folder / "sops-age", {"CREDENTIALS_DIRECTORY": str(folder)}).keys


def test_the_oracle_reads_what_was_written(sops: Sops) -> None:
    data = sops.encrypt(WIDGET, *SECRET_RULE)
    assert load_documents(sops.decrypt(data))[1]["stringData"]["password"] == "of the second document"
