"""The words of the pages: of a copy, of the fleet, of time."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from reconciler.report.views import Alert, AlertKind, LiveView, MatrixQuery, Weight
from reconciler.server.pages import (
    ago,
    clock_time,
    cluster_page,
    commit_link,
    file_link,
    fleet_page,
    object_page,
    until,
)
from reconciler.server.pages.alerts_page import alert_texts, linked
from reconciler.server.pages.drawing import head_of
from reconciler.server.pages.styles import HEALTHS, LEGEND, STATES, copy_look
from reconciler.state import HealthWord, Lag
from tests.fakes import views
from tests.fakes.views import NOW, at, workload
from tests.unit.server.pages.reading import Page


def fleet_of(found: views.Views, asked: MatrixQuery | None = None) -> Page:
    return Page(fleet_page(found.fleet, found.matrix, asked or MatrixQuery(), NOW))


def test_every_state_and_every_health_has_a_look() -> None:
    assert STATES.keys() == {str(word) for word in Lag}
    assert HEALTHS.keys() == {str(word) for word in HealthWord}


def test_two_states_never_look_alike_without_colour() -> None:
    signs = [copy_look(state, "Healthy", None, None).sign for state in STATES]
    signs += [
        copy_look("synced", health, None, None).sign for health in HEALTHS if health not in ("Healthy", "Unknown")
    ]
    assert len(set(signs)) == len(signs)
    shown = {sign for sign, _, _ in LEGEND}
    assert set(signs) - shown <= {"✓", "…", "!"}, "what stands for a count is in the legend with a count"


@pytest.mark.parametrize(
    ("state", "health", "replicas", "ready", "sign", "tone", "words"),
    [
        ("synced", "Healthy", 3, 3, "3", "ok", "in sync, healthy, 3 of 3 ready"),
        ("synced", "Healthy", None, None, "✓", "ok", "in sync, healthy"),
        ("synced", "Healthy", 0, 0, "0", "ok", "in sync, healthy, 0 of 0 ready"),
        ("synced", "Progressing", 6, 5, "5/6", "prog", "progressing, 5 of 6 ready, in sync"),
        ("synced", "Progressing", 6, 6, "6 …", "prog", "progressing, 6 of 6 ready, in sync"),
        ("synced", "Degraded", 3, 2, "2/3 !", "bad", "degraded, 2 of 3 ready, in sync"),
        ("synced", "Degraded", 120, 118, "!", "bad", "degraded, 118 of 120 ready, in sync"),
        ("synced", "Missing", 3, 0, "∅", "bad", "missing, 0 of 3 ready, in sync"),
        ("synced", "Unknown", 3, None, "3 ?", "unk", "health not known, 3 replicas, in sync"),
        ("held", "Healthy", 3, 3, "‖", "warn", "held, healthy, 3 of 3 ready"),
        ("held", "Degraded", 3, 2, "‖ !", "bad", "held, degraded, 2 of 3 ready"),
        ("fought", "Healthy", None, None, "⇄", "warn", "fought over, healthy"),
        ("unknown", "Unknown", 3, 3, "?", "unk", "not known"),
        ("of tomorrow", "Healthy", None, None, "?", "unk", "of tomorrow, healthy"),
    ],
)
def test_a_copy_looks_as_bad_as_the_worse_of_its_sync_and_its_health(
    state: str, health: str, replicas: int | None, ready: int | None, sign: str, tone: str, words: str
) -> None:
    assert copy_look(state, health, replicas, ready) == (sign, tone, words)


def test_a_cell_with_a_trouble_says_all_of_it_by_itself() -> None:
    labels = [
        e.attributes["aria-label"] for e in fleet_of(views.three_clusters()).all("a") if "data-in" in e.attributes
    ]
    assert (
        "shop/checkout in beijing: degraded, 2 of 3 ready, in sync: its image cannot be pulled (ImagePullBackOff: "
        "registry.example.com/checkout:2.4.1 not found)" in labels
    )
    assert "reports/nightly in frankfurt: held, healthy: 2 deletions, at most 1 passes" in labels


@pytest.mark.parametrize(
    ("fixture", "mark", "pills"),
    [
        ("empty", "warn", ["no round yet"]),
        ("calm", "ok", ["3 of 3 clusters in sync"]),
        ("three_clusters", "bad", ["2 of 3 clusters in sync", "1 degraded"]),
        ("broken", "bad", ["store cannot be read", "0 of 24 clusters in sync", "12 away", "44 degraded", "48 missing"]),
    ],
)
def test_the_badge_says_whether_all_is_in_step(fixture: str, mark: str, pills: list[str]) -> None:
    head = head_of(getattr(views, fixture)().fleet)
    assert (head["mark"], [pill.words for pill in head["pills"]]) == (mark, pills)


def test_nothing_is_green_where_something_is_wrong() -> None:
    calm = views.calm().fleet
    need = Alert(weight=Weight.WARNING, what=AlertKind.PROBLEM, title="a field that is not known")
    for changed in (
        replace(calm, is_progressing=False),
        replace(calm, is_ready=False),
        replace(calm, source=replace(calm.source, error="the branch is gone")),
        replace(calm, clusters=replace(calm.clusters, in_sync=2)),
        replace(calm, clusters=replace(calm.clusters, away=1, in_sync=2)),
        replace(calm, health={"Healthy": 5, "Degraded": 1}),
        replace(calm, clusters=replace(calm.clusters, total=0, in_sync=0)),
        replace(calm, needs=(need,), needs_total=1),
        replace(calm, time=None),
    ):
        assert head_of(changed)["mark"] != "ok"
    assert head_of(calm)["mark"] == "ok"


def test_the_matrix_comes_first_when_all_is_well_and_when_it_is_asked_for() -> None:
    def first(found: views.Views, asked: MatrixQuery | None = None) -> bool:
        regions = [e.attributes.get("aria-labelledby") for e in fleet_of(found, asked).all("section")]
        return regions[0] == "matrix-title"

    assert first(views.calm())
    assert not first(views.three_clusters())
    assert first(views.three_clusters(), MatrixQuery(region="north"))
    assert not first(views.empty())


def test_nobody_is_said_to_be_needed_only_when_that_is_known() -> None:
    calm = views.calm()
    assert "Nobody. Nothing is held" in fleet_of(calm).text
    unknown = calm._replace(fleet=replace(calm.fleet, time=None))
    without = calm._replace(fleet=replace(calm.fleet, clusters=replace(calm.fleet.clusters, total=0)))
    for found in (views.empty(), unknown, without):
        assert "Nobody" not in fleet_of(found).text


def test_the_bars_are_whole_and_show_one_of_many() -> None:
    bands = head_of(views.large().fleet)["bands"]
    assert sum(band["width"] for band in bands) == 1000
    assert all(band["width"] >= 12 for band in bands)
    assert [band["at"] for band in bands] == [sum(b["width"] for b in bands[:number]) for number in range(len(bands))]


def test_errors_stand_above_hints_with_who_where_and_what_to_do() -> None:
    page = fleet_of(views.three_clusters())
    for part in ("Needs somebody · 3", "by shop-team", "apps/shop/checkout.yaml:18", "push the image",
                 "confirm: 9c41e0d7", "since 9 min ago", "in 1 min 04 s"):  # fmt: skip
        assert part in page.text
    needs = [
        Alert(weight=weight, what=AlertKind.PROBLEM, title=weight)
        for weight in (Weight.INFO, Weight.ERROR, Weight.WARNING)
    ]
    assert [need.weight for need, *_ in alert_texts(needs)] == [Weight.ERROR, Weight.WARNING, Weight.INFO]


def test_a_need_says_how_often_unless_its_words_do() -> None:
    def need(title: str) -> Alert:
        return Alert(weight=Weight.ERROR, what=AlertKind.FAILED, title=title, count=4000)

    assert [times for *_, times in alert_texts([need("it failed"), need("4,000 objects failed")])] == [4000, 0]


def test_names_in_sentences_lead_to_what_they_name() -> None:
    assert linked("web-2 and web in m1", [("web", "/w"), ("m1", "/m")]) == (
        ("web-2 and ", ""), ("web", "/w"), (" in ", ""), ("m1", "/m"),
    )  # fmt: skip
    assert linked("it waits", [("m1", "/m")]) == (("it waits", ""), (" · ", ""), ("m1", "/m"))


def test_namespaces_tell_their_troubles_and_lead_to_them() -> None:
    page = fleet_of(views.three_clusters())
    links = {e.attributes["href"] for e in page.all("a")}
    assert "/?namespace=shop&troubles=1" in links
    assert "shop 4 · 2 with troubles" in page.text
    assert "inference 1" in page.text


def test_rows_beyond_one_page_are_a_link_away_and_keep_the_question() -> None:
    found = views.three_clusters()
    matrix = replace(found.matrix, total=1700, offset=500, rows=found.matrix.rows)
    asked = MatrixQuery(q="a&b", offset=500)
    page = Page(fleet_page(found.fleet, matrix, asked, NOW))
    links = {
        e.attributes["rel"]: e.attributes["href"] for e in page.all("a") if e.attributes.get("rel") in ("prev", "next")
    }
    assert links == {"prev": "/?q=a%26b", "next": "/?q=a%26b&offset=507"}
    assert "rows 501 to 507" in page.text


def test_the_object_says_why_it_is_there_and_what_differs() -> None:
    found = views.three_clusters()
    text = Page(object_page(found.fleet, found.object, None, NOW)).text
    for part in ("degraded in 1", "held in 1", "in sync and healthy in 1 of 3", "suspended: root@ops1, incident 4711",
                 "9 replicas by static weights", "live: debug set by kubectl-edit, 7 min ago", "wanted: info",
                 "OverridePolicy shop/beijing", "brings ConfigMap shop/checkout-settings"):  # fmt: skip
        assert part in text
    nowhere = replace(found.object, copies=(), differences=(), overrides=(), reasons=())
    assert "placed nowhere" in Page(object_page(found.fleet, nowhere, None, NOW)).text


def test_a_look_shows_the_broken_pod_its_log_and_what_could_not_be_read() -> None:
    found = views.three_clusters()
    page = Page(object_page(found.fleet, found.object, found.live, NOW))
    for part in ("In beijing 3 s ago", "Owners · 5 objects below it", "✗ CrashLoopBackOff", "of the run before",
                 "FATAL no database, giving up", "× 31", "Live manifest, 15 lines", "− value: debug",
                 "Not read: log of checkout-7d9f5b6c48-2lqxv: nothing came in time"):  # fmt: skip
        assert part in page.text, part
    silent = LiveView(cluster="beijing", resource=workload("checkout"), time=NOW, why="nothing came within 5 s")
    text = Page(object_page(found.fleet, found.object, silent, NOW)).text
    assert ("nothing came within 5 s" in text, "Live manifest" in text) == (True, False)


def test_commits_and_files_lead_to_the_forge_where_it_is_known() -> None:
    source = views.three_clusters().fleet.source
    root = "https://git.example.com/platform/fleet"
    assert commit_link(source, views.REVISION) == f"{root}/commit/{views.REVISION}"
    assert (
        file_link(source, views.REVISION, "a b/web#1.yaml:18") == f"{root}/blob/{views.REVISION}/a%20b/web%231.yaml#L18"
    )
    assert file_link(source, "dir:5f3c", "apps/web.yaml:18") == file_link(source, views.REVISION, "") == ""
    unknown = replace(source, commit_url=None, file_url=None)
    assert commit_link(unknown, views.REVISION) == file_link(unknown, views.REVISION, "apps/web.yaml:1") == ""


def test_the_cluster_says_when_it_was_heard_of_and_how_full_it_is() -> None:
    found = views.three_clusters()
    text = Page(cluster_page(found.fleet, found.cluster, NOW)).text
    for part in (
        "answers 1 degraded",
        "last contact 2 s ago server https://10.8.3.1:6443",
        "41.5 of 64 cores, 65%",
        "241 of 256 GiB, 94%",
        "128 of 440, 29%",
        "not known",
    ):
        assert part in text
    broken = views.broken()
    text = Page(cluster_page(broken.fleet, broken.cluster, NOW)).text
    for part in (
        "cannot be read",
        "connection refused by 10.8.3.1:6443",
        "last contact 15 min ago",
        "suspended: root@ops1",
    ):
        assert part in text
    more = replace(found.cluster, total=1200, offset=600)
    links = {
        e.attributes["rel"]: e.attributes["href"]
        for e in Page(cluster_page(found.fleet, more, NOW)).all("a")
        if e.attributes.get("rel") in ("prev", "next")
    }
    assert links == {"prev": "/clusters/beijing?offset=100", "next": "/clusters/beijing?offset=604"}


def test_times_are_told_in_words_and_exactly() -> None:
    assert (ago(at(61), NOW), ago(at(-5), NOW), until(at(-61), NOW), until(at(3), NOW)) == (
        "1 min ago",
        "0 s ago",
        "in 1 min 01 s",
        "now",
    )
    assert (ago("yesterday", NOW), until("tomorrow", NOW), clock_time("noon", NOW)) == (
        "yesterday",
        "at tomorrow",
        "noon",
    )
    for time in fleet_of(views.three_clusters()).all("time"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time.attributes["datetime"])


def test_a_matrix_of_500_by_50_is_one_page_of_a_sensible_size() -> None:
    found = views.large()
    html = fleet_page(found.fleet, found.matrix, MatrixQuery(), NOW)
    assert len(html) < 2_000_000
    assert html.count('<tr data-key="') == 500
    assert workload("api-00", "billing").name in html
