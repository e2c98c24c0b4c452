"""The page of a plan: nothing of others is markup, nothing is loaded, nothing is cut."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from reconciler.api.plan import Action, FieldChange, Plan
from reconciler.report import visible
from reconciler.server.pages.plan_page import plans_html
from tests.golden.hostile_plans import plans
from tests.golden.plans import BASE, CONFIG_MAP, HEAD, HOSTILE, change, hostile_plan, ordinary_plan
from tests.golden.pulls import PULLS, fleet_wide_bump, own_images, released_team

OURS = {"html", "head", "meta", "title", "style", "body", "main", "section", "div", "h1", "h2", "p", "code", "pre",
        "span", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "role", "open"}


class Page(HTMLParser):
    """A page as a browser reads it: elements, attributes and text, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.policy = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"{self._open} is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        given = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] != "style":
            self.text += data


@settings(max_examples=50)
@given(plans())
def test_nothing_of_others_is_markup(plan: Plan) -> None:
    page = Page(plans_html([plan]))
    assert page.names <= OURS
    assert page.attributes <= ATTRIBUTES


def test_hostile_names_are_shown_as_they_are() -> None:
    page = Page(plans_html([hostile_plan()]))
    assert page.names <= OURS
    for text in HOSTILE:
        assert visible(text) in page.text


def test_the_policy_allows_the_stylesheet_and_nothing_else() -> None:
    text = plans_html([ordinary_plan()])
    found = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert found
    digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
    policy = Page(text).policy
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:|//|url\(|@import|style=|<script|<link|<img", text.replace("</", ""))


def test_losses_stand_above_every_fold_and_are_never_folded() -> None:
    for name in ("ordinary", "two-deletions", "fleet-wide-bump", "released-team"):
        text = plans_html([PULLS[name]()])
        above = text.partition("<details")[0]
        assert above.count("entry loss") == text.count("entry loss") > 0
        assert 'class="box loss"' in above


@pytest.mark.parametrize("plan", [fleet_wide_bump(), released_team(), own_images()])
def test_nothing_is_cut(plan: Plan) -> None:
    text = Page(plans_html([plan])).text
    assert "…" not in text.replace("→", "")
    for one in plan.changes:
        assert one.identity.name.rpartition("-")[2] in text
        assert all(str(field.after) in text for field in one.fields)


def test_long_texts_are_whole() -> None:
    long = "\n".join(f"line {number} {'x' * 300}" for number in range(500))
    field = FieldChange(path="data.text", before=long, after=f"{long}\nlast")
    plan = Plan(base=BASE, head=HEAD, changes=(change(Action.UPDATE, "m1", CONFIG_MAP, "c", fields=(field,)),))
    text = Page(plans_html([plan])).text
    assert f"| line 499 {'x' * 300}" in text
    assert "+ last" in text


def test_two_plans_are_one_page() -> None:
    text = plans_html([ordinary_plan(), PULLS["two-deletions"]()])
    assert text.count("<main>") == 2
    assert text.count("<!doctype html>") == 1


def test_the_title_is_the_first_line() -> None:
    text = plans_html([fleet_wide_bump()])
    found = re.search("<title>(.*?)</title>", text)
    assert found
    assert html.unescape(found[1]).startswith("Fleet plan: 5,000 Deployments in 10 clusters")
