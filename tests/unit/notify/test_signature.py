"""Signatures as Standard Webhooks has them.

Source: standard-webhooks/standard-webhooks, the example of the specification and of its libraries.
"""

from __future__ import annotations

import base64

import pytest

from reconciler.errors import ConfigurationError
from reconciler.notify.cloud_event import keys_in, signed_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, TIMESTAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'


def test_the_example_of_the_convention() -> None:
    found = signed_headers(MESSAGE, TIMESTAMP, BODY, keys_in(SECRET))
    assert found == {
        "webhook-id": MESSAGE,
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_while_a_secret_is_exchanged_both_sign() -> None:
    keys = keys_in(f"{SECRET}\n\nanother secret of ours\n")
    assert keys == (base64.b64decode(SECRET.removeprefix("whsec_")), b"another secret of ours")
    first, second = signed_headers(MESSAGE, TIMESTAMP, BODY, keys)["webhook-signature"].split(" ")
    assert first == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert second.startswith("v1,")
    assert second != first


def test_without_a_key_nothing_is_signed() -> None:
    assert "webhook-signature" not in signed_headers(MESSAGE, TIMESTAMP, BODY, ())


@pytest.mark.parametrize("text", ["", "   \n", "tiny", "whsec_ÄÄÄ", "whsec_c2hvcnQ="])
def test_a_secret_that_cannot_be_used_is_refused_without_being_told(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        keys_in(text)
    assert not text.strip() or text.strip() not in str(caught.value)
