"""The answer of sops is taken only where it is the file with its values: no other tree, length or type."""

from __future__ import annotations

import re

import pytest

from reconciler.api.content import DecryptedValues
from reconciler.sops.decrypt import DecryptRefused
from reconciler.sops.program import values_of
from tests.fakes.sops import SECRET_RULE, Sops
from tests.unit.sops.test_opening import WIDGET, opened_with, sealed_of

CHANGES: dict[str, tuple[str, str]] = {
    "nothing at all": (r".*", ""),
    "no YAML": (r".*", "{{{"),
    "a text": (r".*", "Enter passphrase:"),
    "a longer value": ("hunter2", "hunter22"),
    "a shorter value": ("hunter2", "hunter"),
    "a value of another type": ("integer: 5432", "integer: abcd"),
    "a number too few": ("integer: 5432", "integer: 543"),
    "another name": ("integer: 5432", "integers: 5432"),
    "a value at another place": ("negative: -7", "deeper: {negative: -7}"),
    "a value in plain text that is another one": ("kind: Widget", "kind: Gadget"),
    "a value more": ("integer: 5432", "integer: 5432\n    more: x"),
    "a value less": (r"    integer: 5432\n", ""),
    "a document less": (r"---.*", ""),
    "the documents in another order": (r"(.*)\n---\n(.*)", r"\2\n---\n\1"),
    "ciphertext": ("text: hunter2", "text: ENC[AES256_GCM,data:aHVudGVyMg==,iv:aaaa,tag:aaaa,type:str]"),
    "aliases": ("text: hunter2", "text: &a hunter2"),
}


def test_the_answer_of_the_real_sops_is_what_age_reads(sops: Sops) -> None:
    for name, text in (("in.yaml", WIDGET), ("in.json", '{"apiVersion": "v1", "kind": "Secret", "metadata": '
                       '{"name": "s", "namespace": "d"}, "stringData": {"a": "b", "u": "☃"}}')):  # fmt: skip
        data = sops.encrypt(text, *SECRET_RULE, name=name)
        sealed = sealed_of(data, name)
        assert values_of(sealed, sops.decrypt(data, name=name)) == opened_with(sops, sealed)


@pytest.mark.parametrize("change", CHANGES)
def test_any_other_answer_is_refused_as_a_whole(sops: Sops, change: str) -> None:
    data = sops.encrypt(WIDGET, *SECRET_RULE)
    answer, (old, new) = sops.decrypt(data).decode(), CHANGES[change]
    if change == "aliases":
        new += "\n    again: *a"
    other, count = re.subn(old, new, answer, count=1, flags=re.DOTALL)
    assert count == 1
    assert other != answer
    refused = values_of(sealed_of(data), other.encode())
    assert isinstance(refused, DecryptRefused), change
    assert refused.code == "sops-unknown-form"
    assert "hunter" not in refused.message


def test_the_answer_about_another_file_is_refused(sops: Sops) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {{name: {}, namespace: d}}\nstringData: {{a: {}}}\n"
    one, two = (sops.encrypt(text.format(name, value), *SECRET_RULE) for name, value in (("s", "xx"), ("s", "yyy")))
    assert isinstance(values_of(sealed_of(one), sops.decrypt(one)), DecryptedValues)
    assert isinstance(values_of(sealed_of(one), sops.decrypt(two)), DecryptRefused)
    assert isinstance(values_of(sealed_of(one), one), DecryptRefused)
