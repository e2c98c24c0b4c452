from __future__ import annotations

import pytest

from reconciler.documents import (
    is_dns_label,
    is_dns_subdomain,
    is_json_pointer,
    is_label_key,
    is_label_value,
    not_a_string,
)


@pytest.mark.parametrize(
    ("text", "label", "subdomain"),
    [
        ("web", True, True),
        ("a", True, True),
        ("web-1", True, True),
        ("1web", True, True),
        ("web.v1", False, True),
        ("a" * 63, True, True),
        ("a" * 64, False, True),
        ("a" * 253, False, True),
        ("a" * 254, False, False),
        ("", False, False),
        ("Web", False, False),
        ("-web", False, False),
        ("web-", False, False),
        ("web..v1", False, False),
        ("we b", False, False),
        ("web\n", False, False),
        ("wéb", False, False),
    ],
)
def test_names_of_objects(text: str, label: bool, subdomain: bool) -> None:
    assert (is_dns_label(text), is_dns_subdomain(text)) == (label, subdomain)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("app", True, True),
        ("App_1.x-y", True, True),
        ("example.com/app", True, False),
        ("example.com/", False, False),
        ("/app", False, False),
        ("Example.com/app", False, False),
        ("a/b/c", False, False),
        ("", False, True),
        ("a" * 63, True, True),
        ("a" * 64, False, False),
        ("-a", False, False),
        ("a-", False, False),
        ("a b", False, False),
        ("app\n", False, False),
    ],
)
def test_keys_and_values_of_labels(text: str, key: bool, value: bool) -> None:
    assert (is_label_key(text), is_label_value(text)) == (key, value)


@pytest.mark.parametrize(
    ("text", "is_pointer"),
    [
        ("/a", True),
        ("/a/0/b~1c~0d", True),
        ("/", True),
        ("/a//b", True),
        ("", False),
        ("a", False),
        ("/a~", False),
        ("/a~2", False),
    ],
)
def test_json_pointers(text: str, is_pointer: bool) -> None:
    assert is_json_pointer(text) is is_pointer


def test_the_remedy_fits_what_stands_in_place_of_a_string() -> None:
    assert not_a_string(None) == 'null where a string is needed; write "" for an empty text, or take it out'
    assert not_a_string(3) == "a number where a string is needed; quote it"
    assert "without brackets" in not_a_string(["a"])
