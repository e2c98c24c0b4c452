"""Texts as large as an object can have, made so that a search begins again at each place: each search is linear.

A search holds the interpreter's lock to its end, so that nothing else of the service goes on meanwhile.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final

import pytest

from reconciler.containment import try_call
from reconciler.importers.argocd.templating import Templates
from reconciler.importers.flux.substitution import Substitution
from reconciler.planner import urls_of_two_hosts
from reconciler.report import scrub_text, value_texts
from reconciler.report.difference import text_diff
from reconciler.secrets import has_credential, may_hold_credentials
from tests.fakes.documents import config_map
from tests.fleets import template_of

SIZE: Final = 400_000
"""A search that costs the square of it takes minutes. Kubernetes takes 1,048,576 bytes of data of a ConfigMap."""
CPU_S: Final = 1.6
"""Measured on an idle machine: at most 0.3."""


def filled(unit: str, head: str = "", tail: str = "") -> str:
    return head + unit * (SIZE // len(unit)) + tail


TEXTS: Final = {
    "URLs before an @": filled("://", tail="@"), "URLs behind an @": filled("://", "@ "),
    "users": filled("://a:", "@ "), "users with ports": filled("://:80/", "@ "),
    "users with slashes": filled("://a:b/", "@ "), "an @ each time": filled("://a:@", tail="@sha256:"),
    "digests": filled("://a:b/@sha256:"), "heads of tokens": filled("-eyJ"),
    "heads and a body": filled("-", "-eyJ" * 100 + ".eyJaaaaaaaa"), "halves of tokens": filled("eyJaaaaaaaa.eyJ-"),
    "base64": filled("eyJ", tail="!"), "bearers": filled("bearer "), "a bearer": filled(" ", "bearer"),
    "a kind": filled(" ", "kind"), "quotes": filled("'"), "half keys": filled("-----BEGIN "),
    "a name": filled(" ", "token"), "documents": filled("---\n"), "lines": filled("\n"),
    "backslashes": filled("\\"), "brackets": filled('{"'), "Cyrillic": filled("\u0430a"),
    "blanks of no width": filled("\u200b"), "accents": filled("e\u0301"), "templates": filled("{{"),
    "a template": filled(" ", "{{"), "variables": filled("${"),
    "a kubeconfig in flow form": filled("{a: b}, ", "kind: Config\nusers: [", "]"),
    "brackets of a kubeconfig": filled("[", "kind: Config\nusers: "),
    "blanks in a kubeconfig": filled(" ", "kind: Config\nusers: [a", '"]'),
}  # fmt: skip
SEARCHES: Final[dict[str, Callable[[str], object]]] = {
    "what a cache may hold": lambda text: may_hold_credentials(json.dumps(text).encode()),
    "has a credential": has_credential,
    "masked": scrub_text,
    "URLs of two hosts": lambda text: list(urls_of_two_hosts([template_of(config_map("a", a=text))])),
    "beside another": lambda text: value_texts(f"a{text}", f"b{text}", 80),
    "a change inside": lambda text: value_texts(f"{text}a{text}", f"{text}b{text}", 80),
    "a line beside another": lambda text: text_diff(f"a\n{text}\nb\n", f"a\n{text}\nc\n"),
    "a template of Argo CD": lambda text: Templates().filled(text, {}),
    "a template of Go": lambda text: try_call(Templates(go=True).filled, text, {}),
    "variables of Flux": lambda text: try_call(Substitution({}), "a.yaml", text.encode()),
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_is_dear_to_search(name: str) -> None:
    for searched, search in SEARCHES.items():
        started_s = time.process_time()
        search(TEXTS[name])
        assert time.process_time() - started_s < CPU_S, searched


@pytest.mark.parametrize(
    ("url", "is_found"),
    [
        ("https://u:p@good.example@evil.example/", True), ("https://u@good@evil", True), ("https://u:a/b@evil", True),
        ("https://u:p://x/y@evil", True), ("https://[::1]:80/x@evil", True), ("https://host:80:x/y@evil", True),
        ("https://host:8080/users/@me", False), ("https://u:p@host/", False), ("https://host/a@b", False),
        ("oci://reg:team/app@sha256:0", False), ("https://u:a/b c@evil", False), ("https://u:a/b", False),
    ],
)  # fmt: skip
def test_a_url_that_is_read_in_two_ways_is_found(url: str, is_found: bool) -> None:
    found = list(urls_of_two_hosts([template_of(config_map("a", a=url))]))
    assert bool(found) is is_found
