"""A document of sops is read without a key, and every form that is not known is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.fleet import StoreFile
from reconciler.fleet import parse_file
from reconciler.secrets.ciphertext import is_to_be_encrypted
from tests.fakes.sealed_documents import ciphertext, sealed, text_of
from tests.unit.yaml_cases import cases


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**below, **above}.items() if value is not None}


@pytest.mark.parametrize("case", cases("sealed/forms.yaml"))
def test_a_form_is_known_or_refused_by_name(case: dict[str, Any]) -> None:
    document = sealed(a="b")
    document = _laid_over(document, case.get("body", {}))
    document["sops"] = _laid_over(document.pop("sops"), case.get("block", {}))
    parsed = parse_file(StoreFile(path="s.yaml", blob="1", data=text_of(document).encode()))
    assert sorted(f"{problem.code} {problem.path}" for problem in parsed.problems) == case["problems"]
    assert len(parsed.templates) == (0 if case["problems"] else 1)
    assert bool(parsed.frozen) == bool(case["problems"]), "what it was stays in force"


def test_ciphertext_without_its_block_is_refused() -> None:
    document = sealed(a="b")
    del document["sops"]
    listed = {"apiVersion": "v1", "kind": "List", "items": [document], "sops": sealed()["sops"]}
    for text in (text_of(document), text_of(listed)):
        parsed = parse_file(StoreFile(path="s.yaml", blob="1", data=text.encode()))
        assert [problem.code for problem in parsed.problems] == ["sops-stray-ciphertext"]
        assert parsed.templates == ()


def test_no_message_repeats_a_value() -> None:
    document = {**sealed(a="b"), "data": {"a": "canary-in-clear", "b": ciphertext("x")[:-9]}}
    parsed = parse_file(StoreFile(path="s.yaml", blob="1", data=text_of(document).encode()))
    assert len(parsed.problems) == 2
    assert "canary" not in "".join(map(str, parsed.problems))
    assert "ENC[" not in "".join(map(str, parsed.problems))


@pytest.mark.parametrize(
    ("rule", "names", "expected"),
    [
        ({}, ("data", "a"), True),
        ({}, ("data", "a_unencrypted"), False),
        ({"unencrypted_suffix": "_clear"}, ("a_clear", "b"), False),
        ({"encrypted_suffix": "_x"}, ("a", "b"), False),
        ({"encrypted_suffix": "_x"}, ("a_x", "b"), True),
        ({"encrypted_regex": "^(data|stringData)$"}, ("stringData", "a"), True),
        ({"encrypted_regex": "^(data|stringData)$"}, ("metadata", "data2"), False),
        ({"encrypted_regex": "data"}, ("metadata", "a"), True),
        ({"encrypted_regex": "^data"}, ("metadata", "a"), False),
        ({"unencrypted_regex": "^(kind|metadata)$"}, ("kind",), False),
        ({"unencrypted_regex": "^(kind|metadata)$"}, ("spec", "a"), True),
        ({"encrypted_regex": "(a+)+$"}, ("a" * 60 + "!",), None),
        ({"encrypted_comment_regex": "secret"}, ("a",), None),
    ],
)
def test_rules_of_words_are_judged_and_expressions_are_not(
    rule: dict[str, str], names: tuple[str, ...], expected: bool | None
) -> None:
    assert is_to_be_encrypted(rule, names) is expected


def test_documents_of_a_file_share_what_sops_says_of_it() -> None:
    first, second = sealed(name="one", a="b"), sealed(name="two", a="b")
    parsed = parse_file(StoreFile(path="s.yaml", blob="1", data=text_of(first, second).encode()))
    assert parsed.problems == ()
    assert parsed.templates[0].sealed is parsed.templates[1].sealed
    second["sops"] = {**second["sops"], "mac": ciphertext("another")}
    parsed = parse_file(StoreFile(path="s.yaml", blob="1", data=text_of(first, second).encode()))
    assert [(problem.code, problem.path) for problem in parsed.problems] == [("sops-tampered", "sops")]
    assert [template.identity.name for template in parsed.templates] == ["one"]
