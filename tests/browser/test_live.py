"""A page that is left open stays true, tells when it cannot, and takes nothing from who uses it."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from reconciler.report.views import Alert, AlertKind, Weight
from tests.fakes import views
from tests.fakes.page_server import PageServer
from tests.fakes.views import NOW, Views, at

pytestmark = pytest.mark.browser


def calmed(found: Views, subject: str = "Take the tag back") -> Views:
    """The same fleet a round later: what was degraded is well, and the commit is another one."""
    calm = views.calm()
    assert found.fleet.commit is not None
    fleet = replace(found.fleet, needs=found.fleet.needs[1:], needs_total=2, round=813, health=calm.fleet.health,
                    commit=replace(found.fleet.commit, subject=subject))  # fmt: skip
    rows = tuple(
        replace(row, cells=tuple(views.cell(c.cluster, of=(3, 3)) for c in row.cells)) for row in found.matrix.rows
    )
    return found._replace(fleet=fleet, matrix=replace(found.matrix, rows=rows))


def opened(page: Page, server: PageServer, path: str = "/") -> None:
    """The page, listening and having looked once after it began to."""
    page.goto(server.url + path)
    expect(page.locator("#stream")).to_have_text("live")


def test_a_round_is_shown_without_loading_the_page_again(page: Page, server: PageServer) -> None:
    opened(page, server)
    page.evaluate("window.same = true")
    expect(page.locator("[data-live=badge]")).to_have_text("2 of 3 clusters in sync 1 degraded")
    server.views = calmed(server.views)
    server.tell_round()
    expect(page.locator("[data-live=badge]")).to_have_text("2 of 3 clusters in sync")
    expect(page.locator("#needs-title")).to_have_text("Needs somebody · 2")
    expect(page.locator(".commit")).to_contain_text("Take the tag back")
    expect(page.locator(".matrix td.bad")).to_have_count(0)
    expect(page).to_have_title("2 to look at · prod-fleet")
    assert page.evaluate("window.same") is True


def test_focus_scrolling_selection_and_what_is_folded_open_stay(page: Page, server: PageServer) -> None:
    server.views = views.broken()
    opened(page, server)
    page.locator("[data-key=needs] summary").click()
    page.locator("[data-filter]").fill("half a na")
    page.locator(".matrix-box").evaluate("box => { box.scrollTop = 300; box.scrollLeft = 40; }")
    page.evaluate("scrollTo(0, 250)")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
    page.locator("[data-filter]").focus()
    before = page.evaluate(STILL)
    source = replace(server.views.fleet.source, error="the branch main is gone for good")
    new = Alert(weight=Weight.ERROR, what=AlertKind.FAILED, title="Another one failed", since=at(1))
    fleet = replace(server.views.fleet, source=source, needs=(new, *server.views.fleet.needs[1:]), round=814)
    server.views = server.views._replace(fleet=fleet, matrix=views.generated(60, 24, troubles=0.5, seed=12))
    server.tell_round()
    expect(page.locator(".card.alarm")).to_contain_text("gone for good")
    expect(page.locator("li", has_text="Another one failed")).to_be_visible()
    assert page.evaluate(STILL) == before
    assert before["focus"] == "q"
    assert before["open"] == 1


STILL = """() => {
  const box = document.querySelector(".matrix-box"), field = document.querySelector("[data-filter]");
  return { focus: document.activeElement.name, typed: field.value, caret: field.selectionStart, top: box.scrollTop,
    left: box.scrollLeft, page: scrollY, selected: getSelection().toString(),
    open: document.querySelectorAll("details[open]").length };
}"""


def test_a_cell_that_has_the_focus_keeps_it_while_others_change(page: Page, server: PageServer) -> None:
    opened(page, server)
    cell = page.locator(".matrix td a", has_text="⇄")
    cell.focus()
    rows = list(server.views.matrix.rows)
    rows[2] = replace(rows[2], cells=(views.cell(0, "failed"), *rows[2].cells[1:]))
    server.views = server.views._replace(matrix=replace(server.views.matrix, rows=tuple(rows)))
    server.tell_round()
    expect(page.locator(".matrix td.bad")).to_have_count(2)
    expect(cell).to_be_focused()


def test_a_connection_that_is_lost_is_told_and_found_again(page: Page, server: PageServer, faults: list[str]) -> None:
    opened(page, server)
    server.stop()
    expect(page.locator("#stream")).to_contain_text("no connection since ")
    expect(page).to_have_title("no connection · 3 to look at · prod-fleet")
    expect(page.locator("html.lost")).to_have_count(1)
    server.views = calmed(server.views)
    server.start()
    expect(page.locator("#stream")).to_have_text("live")
    expect(page.locator(".commit")).to_contain_text("Take the tag back")
    expect(page).to_have_title("2 to look at · prod-fleet")
    # A browser may tell of requests that fail.
    faults[:] = [fault for fault in faults if "ERR_" not in fault]


def test_times_tick_by_the_clock_of_the_service(page: Page, server: PageServer, faults: list[str]) -> None:
    # The clock of the browser is wrong by years, and stands still but for what the test lets pass.
    page.clock.install(time=datetime.fromisoformat("2031-01-01T00:00:00Z"))
    page.clock.pause_at(datetime.fromisoformat("2031-01-01T01:00:00Z"))
    page.route("**/api/v1/events", lambda route: route.abort())  # so that nothing but the clock moves the times
    page.goto(server.url)
    timer = page.locator(".timers time").first
    expect(timer).to_have_text("in 1 min 04 s")
    since = page.locator(".needs time").first
    expect(since).to_have_text("9 min ago")
    page.clock.run_for(5_000)
    expect(timer).to_have_text("in 59 s")
    page.clock.run_for(62_000)
    expect(timer).to_have_text("now")
    expect(since).to_have_text("10 min ago")
    faults.clear()


def test_script_and_templates_tell_times_alike(page: Page, server: PageServer, faults: list[str]) -> None:
    spans_s = (0, 1, 59, 60, 61, 599, 600, 3599, 3600, 7500, 86399, 86400, 180000)
    from reconciler.server.pages import ago, until  # noqa: PLC0415 - beside what it is compared with
    from reconciler.server.pages.page_links import lasting  # noqa: PLC0415 - beside what it is compared with

    page.clock.install(time=datetime.fromisoformat(NOW))
    page.clock.pause_at(datetime.fromisoformat(at(-3600)))
    page.route("**/api/v1/events", lambda route: route.abort())  # so that nothing but the clock moves the times
    page.goto(server.url)
    told = page.evaluate(
        """([times]) => times.map(([time, as]) => {
            const made = document.createElement("time");
            made.dateTime = time; made.dataset.as = as;
            return document.querySelector("footer").appendChild(made);
        }).length""",
        [
            [[at(span_s), kind] for span_s in spans_s for kind in ("ago", "lasting")]
            + [[at(-s), "until"] for s in spans_s]
        ],
    )
    assert told == 3 * len(spans_s)
    page.clock.run_for(1_000)
    later = at(-1)
    wanted = [words for s in spans_s for words in (ago(at(s), later), lasting(at(s), later))] + [
        until(at(-s), later) for s in spans_s
    ]
    expect(page.locator("footer time")).to_have_text(wanted)
    faults.clear()


def test_a_page_that_is_hidden_asks_for_nothing(page: Page, server: PageServer) -> None:
    opened(page, server)
    page.evaluate("""() => {
        Object.defineProperty(document, "hidden", { value: true, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }""")
    expect(page.locator("#stream")).to_have_text("· paused")
    asked = len(server.asked)
    server.tell_round()
    server.views = calmed(server.views)
    assert len(server.asked) == asked
    page.evaluate("""() => {
        Object.defineProperty(document, "hidden", { value: false, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }""")
    expect(page.locator(".commit")).to_contain_text("Take the tag back")
    assert len(server.asked) > asked


def test_many_rounds_at_once_are_looked_at_once(page: Page, server: PageServer) -> None:
    opened(page, server)
    before = server.asked.count("/")
    server.views = calmed(server.views)
    for _ in range(20):
        server.tell_round()
    expect(page.locator(".commit")).to_contain_text("Take the tag back")
    assert server.asked.count("/") - before <= 3


def test_a_page_is_whole_without_script(page: Page, server: PageServer) -> None:
    context = page.context.browser.new_context(java_script_enabled=False)  # type: ignore[union-attr]
    still = context.new_page()
    still.goto(server.url)
    expect(still.locator("noscript")).to_be_visible()
    expect(still.locator(".timers time").first).to_have_text("in 1 min 04 s")
    expect(still.locator(".copy")).to_be_hidden()
    still.locator("input[name=q]").fill("web")
    still.get_by_role("button", name="Show").click()
    expect(still).to_have_url(re.compile(r"/\?q=web&namespace=&"))
    context.close()
