"""The pages by keyboard, by screen reader, on a phone, in the dark; with names that mean harm; and in full size."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect

from tests.fakes import views
from tests.fakes.page_server import PageServer
from tests.present import present
from tests.unit.server.pages.test_hostile_texts import HOSTILE, changed

pytestmark = pytest.mark.browser
PATHS = ("/", "/objects/Deployment.apps/shop/checkout", "/clusters/beijing", "/problems", "/history", "/nowhere")


def opened(page: Page, server: PageServer, path: str = "/") -> None:
    page.goto(server.url + path)
    expect(page.locator("#stream")).to_have_text("live")


@pytest.mark.parametrize("fixture", ["empty", "calm", "three_clusters", "broken", "large"])
def test_no_page_tells_an_error_nor_scrolls_sideways_on_a_phone(
    fixture: str, page: Page, server: PageServer, faults: list[str]
) -> None:
    server.views = getattr(views, fixture)()
    page.set_viewport_size({"width": 390, "height": 844})
    for path in PATHS:
        opened(page, server, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    faults[:] = [fault for fault in faults if "404" not in fault]  # the page that is not there


def test_on_a_phone_the_matrix_is_a_list_of_troubles(page: Page, server: PageServer) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, server)
    row = page.locator(".matrix tr", has_text="checkout")
    expect(row.locator("td.sum")).to_have_text("1/2")
    expect(row.locator("td.ok")).to_be_hidden()
    expect(row.locator("td.bad a")).to_be_visible()
    shown = row.locator("td.bad a").evaluate("link => getComputedStyle(link, '::before').content")
    assert "beijing" in shown


def test_names_that_mean_harm_do_none(page: Page, server: PageServer) -> None:
    for payload in HOSTILE.values():
        server.views = changed(payload, views.three_clusters())
        for path in PATHS[:5]:
            page.goto(server.url + path)
            assert page.locator("img").count() == 0
            assert page.locator("script").count() == 1
            for width in (390, 1280):
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (payload, path)
    # And when they come with a round.
    opened(page, server)
    server.views = changed("<img src=x onerror=alert(1)>", views.three_clusters())
    server.tell_round()
    expect(page.locator(".who")).to_contain_text("<img src=x")
    assert page.locator("img").count() == 0


def test_the_keyboard_reaches_everything(page: Page, server: PageServer) -> None:
    opened(page, server)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    outline = page.locator(".skip").evaluate("link => getComputedStyle(link).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".needs a").first).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("[data-filter]")).to_be_focused()
    page.keyboard.type("a/b")
    expect(page.locator("[data-filter]")).to_have_value("a/b")
    page.keyboard.press("Escape")
    expect(page.locator("[data-filter]")).not_to_be_focused()


def test_an_address_says_only_what_is_asked_for(page: Page, server: PageServer) -> None:
    opened(page, server)
    page.locator("summary", has_text="more filters").click()
    page.get_by_label("Team, by owner label or folder").fill("shop")
    page.get_by_label("columns by").select_option("region")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(f"{server.url}/?team=shop&columns=region")
    expect(page.get_by_label("Team, by owner label or folder")).to_have_value("shop")


def test_arrows_walk_through_the_matrix(page: Page, server: PageServer) -> None:
    opened(page, server)
    page.get_by_role("link", name="checkout", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-in=beijing]").first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("link", name="cart", exact=True)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("link", name="shop/cart in frankfurt: fought over")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="reports/nightly in frankfurt: held")).to_be_focused()


def test_a_screen_reader_hears_what_is_shown(page: Page, server: PageServer) -> None:
    opened(page, server)
    expect(page.locator("body")).to_match_aria_snapshot("""
- link "Skip to the content"
- banner:
  - heading "prod-fleet" [level=1]
  - status: 2 of 3 clusters in sync 1 degraded
  - navigation "Pages":
    - list:
      - listitem:
        - link "Fleet"
      - listitem:
        - link "Problems"
      - listitem:
        - link "History"
- main:
  - region "At a glance"
  - region "Needs somebody · 3":
    - list:
      - listitem:
        - paragraph:
          - strong:
            - link "shop/checkout"
            - link "beijing"
  - region "Comes by itself · 3"
  - region "Last changes"
  - region "Workloads × clusters":
    - heading "Workloads × clusters" [level=2]
    - search "Filter workloads":
      - searchbox "Name contains"
      - combobox "Namespace"
      - checkbox "troubles only"
      - button "Show"
      - group: more filters, folding
    - region "Workloads by clusters":
      - table
- contentinfo
""")
    expect(page.locator(".matrix tr", has_text="checkout")).to_match_aria_snapshot("""
- row:
  - rowheader "checkout"
  - cell "1 of 2 in sync and healthy"
  - cell:
    - link /checkout in beijing. degraded, 2 of 3 ready/
  - cell "in sync, healthy, 4 of 4 ready"
""")
    expect(page.locator(".matrix thead")).to_match_aria_snapshot("""
- rowgroup:
  - row:
    - columnheader "workload"
    - columnheader "fine"
    - columnheader "beijing , 1 with troubles"
    - columnheader "hangzhou"
    - columnheader "frankfurt , 2 with troubles"
""")


def test_what_confirms_is_copied(page: Page, server: PageServer) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, server)
    page.get_by_role("button", name="copy").click()
    expect(page.get_by_role("button", name="copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "confirm: 9c41e0d7"


@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(244, 246, 248)"), ("dark", "rgb(16, 21, 27)")])
def test_light_and_dark_follow_the_reader(scheme: str, ground: str, page: Page, server: PageServer) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    opened(page, server)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    # Fields and scroll bars, which the browser draws, too.
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light dark"


def test_nothing_moves_where_that_is_not_welcome(browser: Browser, server: PageServer) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(server.url)
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert page.evaluate("getComputedStyle(document.querySelector('.skip')).transitionDuration") == "0s"
    context.close()


def test_in_full_size_the_names_stay_in_sight_and_cells_stay_narrow(page: Page, server: PageServer) -> None:
    server.views = views.large()
    opened(page, server)
    box = page.locator(".matrix-box")
    box.scroll_into_view_if_needed()
    box.evaluate("box => { box.scrollTop = 6000; box.scrollLeft = 5000; }")
    frame = present(box.bounding_box())
    head = present(page.locator(".matrix thead").bounding_box())
    assert abs(head["y"] - frame["y"]) < 4
    # Far down and to the right, the name of a workload is at the left edge of the box, and nothing covers it. Rows are
    # laid out only once they are in sight: that takes the browser a frame or two.
    name = page.locator(".matrix tbody th[scope=row]").nth(300)
    name.evaluate("""name => {
        name.closest("tr").scrollIntoView({ block: "center", inline: "nearest" });
        name.closest(".matrix-box").scrollLeft = 5000;
    }""")
    page.wait_for_function(
        """name => {
            const at = name.getBoundingClientRect(), frame = name.closest(".matrix-box").getBoundingClientRect();
            return Math.abs(at.left - frame.left) < 2
                && name.contains(document.elementFromPoint(at.left + 12, at.top + at.height / 2));
        }""",
        arg=name.element_handle(),
    )
    widths = page.locator(".matrix thead th:not(.corner)").evaluate_all(
        "heads => heads.map((head) => head.offsetWidth)"
    )
    assert len(widths) == 51
    assert sorted(widths)[25] <= 26
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_round_in_full_size_touches_only_the_rows_that_differ(page: Page, server: PageServer) -> None:
    server.views = views.large()
    opened(page, server)
    page.evaluate("""() => {
        window.touched = new Set();
        const keyOf = (node) => (node.closest?.("tr") ?? node).dataset?.key;
        new MutationObserver((all) => all.forEach((one) => touched.add(keyOf(one.target))))
            .observe(document.querySelector(".matrix"), { childList: true, subtree: true, attributes: true });
    }""")
    rows = list(server.views.matrix.rows)
    rows[40] = replace(rows[40], cells=(views.cell(rows[40].cells[0].cluster, "failed"), *rows[40].cells[1:]))
    server.views = server.views._replace(matrix=replace(server.views.matrix, rows=tuple(rows)))
    server.tell_round()
    resource = rows[40].resource
    key = f"/objects/Deployment.apps/{resource.namespace}/{resource.name}"
    expect(page.locator(f'tr[data-key="{key}"] td a', has_text="✗")).to_be_visible()
    touched = page.evaluate("[...touched].filter((key) => key?.startsWith('/objects/'))")
    assert touched == [key]
