from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.problem import Severity
from reconciler.yaml import read_yaml
from reconciler.yaml.scalars import as_json_number, key_text, plain_value, surprise
from tests.unit.yaml_cases import cases, exactly


def _codes(problems: Any, severity: Severity) -> list[str]:
    return [problem.code for problem in problems if problem.severity is severity]


@pytest.mark.parametrize("case", cases("yaml/scalars.yaml"))
def test_types_scalars_as_kubectl_does(case: dict[str, Any]) -> None:
    file = read_yaml("f.yaml", f"a: {case['text']}\n".encode())
    if "error" in case:
        assert _codes(file.problems, Severity.ERROR) == [case["error"]]
        assert not file.documents
    else:
        (document,) = file.documents
        assert exactly(document.body) == exactly({"a": json.loads(case["json"])})


@pytest.mark.parametrize("case", cases("yaml/keys.yaml"))
def test_writes_keys_as_kubectl_does(case: dict[str, Any]) -> None:
    file = read_yaml("f.yaml", f"{case['text']}: value\n".encode())
    assert _codes(file.problems, Severity.ERROR) == ([case["error"]] if "error" in case else [])
    assert _codes(file.problems, Severity.WARNING) == ([case["warning"]] if "warning" in case else [])
    assert [document.body for document in file.documents] == ([{case["json"]: "value"}] if "json" in case else [])


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_keeps_every_64_bit_integer(number: int) -> None:
    assert exactly(plain_value(str(number))) == exactly(number)
    assert key_text(str(number)) == str(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_keeps_the_value_of_every_float(number: float) -> None:
    assert float(as_json_number(number)) == pytest.approx(number, rel=1e-15, abs=0)
    assert as_json_number(as_json_number(number)) == as_json_number(number)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1))
def test_never_tells_digits_of_a_surprising_value(text: str) -> None:
    remark = surprise(text, is_key=False) if text.strip() == text and not text.startswith(".") else ""
    assert not remark or text.isalpha() or text not in remark
