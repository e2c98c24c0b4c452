"""Rules of every page: landmarks, names of what can be used, and nothing that a strict policy forbids."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from reconciler.server.pages import CONTENT_SECURITY_POLICY, STATIC_FILES
from tests.unit.server.pages.reading import Page, every_page

PAGES = {name: Page(html) for name, html in every_page()}


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> Page:
    return PAGES[request.param]


def test_has_one_heading_and_one_of_each_landmark(page: Page) -> None:
    counts = Counter(element.tag for element in page.elements)
    assert [counts[tag] for tag in ("h1", "header", "main", "nav", "footer", "title")] == [1] * 6
    assert page.all("html")[0].attributes["lang"] == "en"
    assert page.all("a")[0].attributes == {"class": "skip", "href": "#main"}


def test_says_changes_of_the_badge_aloud_and_of_nothing_else(page: Page) -> None:
    (aloud,) = [element for element in page.elements if "aria-live" in element.attributes]
    assert (aloud.attributes["role"], aloud.attributes["aria-live"]) == ("status", "polite")


def test_tables_say_what_they_are_and_what_their_heads_are_for(page: Page) -> None:
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(head.attributes.get("scope") in ("col", "row", "rowgroup") for head in page.all("th"))


def test_whatever_can_be_used_has_a_name(page: Page) -> None:
    ids = Counter(element.attributes["id"] for element in page.elements if "id" in element.attributes)
    assert all(count == 1 for count in ids.values()), ids
    for element in page.elements:
        for name in ("aria-labelledby", "list"):
            assert element.attributes.get(name, next(iter(ids))) in ids
        if element.tag == "input" and element.attributes.get("type") != "hidden":
            assert "label" in element.within
        if element.tag in ("form", "nav") or element.attributes.get("role") == "region":
            assert element.attributes.get("aria-label") or element.attributes.get("aria-labelledby")


def test_needs_neither_inline_style_nor_inline_script_nor_another_host(page: Page) -> None:
    for element in page.elements:
        assert element.tag not in ("style", "iframe", "object", "embed", "base")
        assert not [name for name in element.attributes if name == "style" or name.startswith("on")]
        for name in ("src", "href", "action"):
            address = element.attributes.get(name, "/")
            is_of_forge = element.tag == "a" and address.startswith("https://git.example.com/platform/fleet/")
            assert re.match(r"(/(?!/)|#main$)", address) or (is_of_forge and element.attributes["rel"] == "noreferrer")
    (script,) = page.all("script")
    assert script.attributes["src"] in STATIC_FILES
    assert not [text for within, text in page.texts if within[-1:] == ("script",) and text.strip()]
    for link in page.all("link"):
        assert link.attributes["href"] in STATIC_FILES


def test_the_policy_lets_nothing_come_from_elsewhere() -> None:
    rules = dict(rule.split(" ", 1) for rule in CONTENT_SECURITY_POLICY.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert {rules[name] for name in rules if name.endswith("-src") and name != "default-src"} == {"'self'"}
    assert "unsafe" not in CONTENT_SECURITY_POLICY


def test_the_script_makes_no_markup_and_runs_no_text() -> None:
    (script,) = [file.content.decode() for file in STATIC_FILES.values() if file.content_type == "text/javascript"]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)
    assert len(script.splitlines()) <= 250


def test_the_files_have_addresses_that_change_with_them() -> None:
    assert len(STATIC_FILES) == 5
    assert all(re.fullmatch(r"/static/[a-z-]+-[0-9a-f]{12}\.(css|js|svg)", address) for address in STATIC_FILES)
    assert not [
        file for file in STATIC_FILES.values() if re.search(rb"https?://(?!www\.w3\.org/2000/svg)", file.content)
    ]
