"""Signatures as Standard Webhooks has them.

Source: standard-webhooks/standard-webhooks, the example of the specification and of its libraries.
"""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from reconciler.errors import ConfigurationError
from reconciler.notify.cloud_event import signed_headers
from reconciler.notify.webhook import keys_of

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, TIMESTAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "secret"
    made.touch(mode=0o600)
    return made


def test_the_example_of_the_convention(file: Path) -> None:
    file.write_text(SECRET)
    found = signed_headers(MESSAGE, TIMESTAMP, BODY, keys_of(file))
    assert found == {
        "webhook-id": MESSAGE,
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_while_a_secret_is_exchanged_both_sign(file: Path) -> None:
    file.write_text(f"{SECRET}\n\nanother secret of ours\n")
    keys = keys_of(file)
    assert keys == (base64.b64decode(SECRET.removeprefix("whsec_")), b"another secret of ours")
    first, second = signed_headers(MESSAGE, TIMESTAMP, BODY, keys)["webhook-signature"].split(" ")
    assert first == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert second.startswith("v1,")
    assert second != first


def test_without_a_key_nothing_is_signed() -> None:
    assert "webhook-signature" not in signed_headers(MESSAGE, TIMESTAMP, BODY, ())


@pytest.mark.parametrize("text", ["", "   \n", "tiny", "whsec_ÄÄÄ", "whsec_c2hvcnQ="])
def test_a_secret_that_cannot_be_used_is_refused_by_its_file_without_being_told(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=f"--webhook-secret-file {file}: ") as caught:
        keys_of(file)
    assert not text.strip() or text.strip() not in str(caught.value)
