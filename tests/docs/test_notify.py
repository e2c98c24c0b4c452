"""The receiver of docs/how-to/notify.md takes what we sign, and nothing else."""

from __future__ import annotations

import time
from typing import Any

import pytest

from reconciler.notify.cloud_event import signed_headers
from tests.docs.pages import ROOT

KEY, OTHER = b"a secret of our own", b"a secret of another"
BODY = b'{"id": "1"}'


@pytest.fixture(scope="module")
def is_ours() -> Any:
    page = (ROOT / "docs/how-to/notify.md").read_text()
    (code,) = [page.partition("```python\n")[2].partition("```")[0]]
    found: dict[str, Any] = {}
    exec(code, found)  # noqa: S102 - of the page
    return found["is_ours"]


def test_it_takes_what_is_signed_with_its_key_also_while_that_is_exchanged(is_ours: Any) -> None:
    now = int(time.time())
    assert is_ours(signed_headers("1", now, BODY, [KEY]), BODY, KEY)
    assert is_ours(signed_headers("1", now, BODY, [OTHER, KEY]), BODY, KEY)


def test_it_refuses_another_key_another_body_and_what_is_old(is_ours: Any) -> None:
    now = int(time.time())
    assert not is_ours(signed_headers("1", now, BODY, [OTHER]), BODY, KEY)
    assert not is_ours(signed_headers("1", now, BODY, [KEY]), BODY + b" ", KEY)
    assert not is_ours({**signed_headers("1", now, BODY, [KEY]), "webhook-id": "2"}, BODY, KEY)
    assert not is_ours(signed_headers("1", now - 301, BODY, [KEY]), BODY, KEY)
