"""Addresses that an operator may name, and what is shown of them."""

from __future__ import annotations

import pytest

from reconciler.errors import ConfigurationError
from reconciler.notify.post import addresses

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"https://hooks.example.com/{SECRET}?key={SECRET}", "hooks.example.com"),
        (f"https://me:{SECRET}@hooks.example.com:8443/", "hooks.example.com:8443"),
        ("http://127.0.0.1:9/x", "127.0.0.1:9"),
        ("http://[::1]:9/x", "[::1]:9"),
        ("http://localhost/x", "localhost"),
    ],
)
def test_an_address_is_shown_as_its_host(url: str, name: str) -> None:
    (found,) = addresses([url, url], allows_http=False)
    assert (found.url, str(found)) == (url, name)
    assert SECRET not in f"{found} {found!r} {found.key}"


def test_two_receivers_at_one_host_have_names_of_their_own() -> None:
    found = addresses(["https://a.example/1", "https://a.example/2"], allows_http=False)
    assert [str(one) for one in found] == ["a.example", "a.example (2)"]
    assert found[0].key != found[1].key


@pytest.mark.parametrize(
    "url",
    [f"http://hooks.example.com/{SECRET}", f"ftp://h/{SECRET}", SECRET, f"https://h:x/{SECRET}", f"https://h/{SECRET}\n",
     f"https://h/ {SECRET}", f"https:///{SECRET}", f"http://127.0.0.1.example.com/{SECRET}", f"https://[/{SECRET}"],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_without_being_told(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        addresses([url], allows_http=False)
    assert SECRET not in str(caught.value)
    assert "--webhook" in str(caught.value)


def test_plain_http_is_taken_where_it_is_allowed() -> None:
    assert addresses(["http://hooks.internal/x"], allows_http=True)[0].name == "hooks.internal"
