"""The record of a manifest tells a change from none, and tells nobody a Secret value."""

from __future__ import annotations

import base64
import copy
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from reconciler.ownership import LAST_APPLIED, decoded, recorded_form

KEY = b"k" * 32


def secret(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, **parts}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_other_kinds_stay_the_same_object() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    assert recorded_form(body, KEY) is body
    foreign = {"apiVersion": "example.com/v1", "kind": "Secret", "data": {"a": "b"}}
    assert recorded_form(foreign, KEY) is foreign


def test_equal_values_give_equal_hashes_however_they_are_written() -> None:
    plain = recorded_form(secret(stringData={"a": "value"}), KEY)
    data = recorded_form(secret(data={"a": encoded("value")}), KEY)
    wrapped = recorded_form(secret(data={"a": encoded("value")[:4] + "\n" + encoded("value")[4:]}), KEY)
    assert plain == data == wrapped
    assert recorded_form(secret(data={"a": encoded("other")}), KEY) != data
    assert recorded_form(secret(data={"a": encoded("value")}), b"another key") != data


def test_stringdata_wins_over_data_as_the_api_server_has_it() -> None:
    both = secret(data={"a": encoded("old")}, stringData={"a": "new"})
    assert recorded_form(both, KEY) == recorded_form(secret(data={"a": encoded("new")}), KEY)


def test_a_value_of_a_wrong_type_is_hidden_as_well() -> None:
    shown = str(recorded_form(secret(data={"a": {"b": "canary"}, "c": ["canary"]}), KEY))
    assert "canary" not in shown
    assert "canary" not in str(recorded_form(secret(data="canary", stringData=["canary"]), KEY))


def test_the_annotation_of_kubectl_apply_is_hidden_in_every_kind() -> None:
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"annotations": {LAST_APPLIED: "canary", "a": "b"}}}
    annotations = recorded_form(body, KEY)["metadata"]["annotations"]
    assert annotations["a"] == "b"
    assert annotations[LAST_APPLIED].startswith("hmac:")


values = st.one_of(
    st.text(), st.binary().map(lambda raw: base64.b64encode(raw).decode()), st.integers(-(2**63), 2**63 - 1), st.none()
)


@given(st.dictionaries(st.text(max_size=5), values), st.dictionaries(st.text(max_size=5), st.text()))
def test_hides_everything_once_and_writes_into_nothing(data: dict[str, Any], plain: dict[str, str]) -> None:
    body = secret(data=data, stringData=plain)
    before = copy.deepcopy(body)
    first = recorded_form(body, KEY)
    assert body == before
    assert recorded_form(first, KEY) == first
    assert set(first.get("data", {})) == {*data, *plain}
    assert all(value.startswith("hmac:") for value in first.get("data", {}).values())
    assert "stringData" not in first
    orjson.dumps(first)


def test_what_is_no_base64_stands_for_itself() -> None:
    assert decoded("not base64!") == b"not base64!"
    assert decoded(encoded("text")) == b"text"
    assert decoded(7) == b"7"
