"""Nothing of a store or a cluster becomes markup, whatever it is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.report import visible
from reconciler.report.views import MatrixQuery
from reconciler.server.pages import fleet_page
from tests.fakes import views
from tests.fakes.views import NOW, Views, every_text
from tests.unit.server.pages.reading import Page, drawn

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "quotes": "\"'`><img src=x onerror=alert(1) x=\"'",
    "end of everything": "</title></script></td></table></main><!-- -->",
    "entities": "&lt;script&gt;&#60;b&#62;&amp;quot;",
    "template": "{{ 7 * 7 }}{% raw %}{# #}",
    "other ways": "\u202e\u2066gnp.exe\x1b[31m\x00\x7f\u200b",
    "lines": "a\nb\r\n\tc\u2028d",
    "scheme": "javascript:alert(1)//../../?a=b#c",
    "half a pair": "\ud800",
    "long": "n" * 253,
}
FORGE = "https://git.example.com/platform/fleet/"
KEPT = ("commit_url", "file_url", "sign", "state", "sync", "health", "event", "severity", "mode", "subject")
"""Words of a list of ours; what is told of an event leads to a page where it is a resource."""


def changed(payload: str, found: Views) -> Views:
    return Views(*(every_text(view, lambda text: f"{text}{payload}", KEPT) for view in found))


@pytest.mark.parametrize("name", HOSTILE)
def test_the_markup_stays_the_same_whatever_the_texts_are(name: str) -> None:
    plain = views.three_clusters()
    # What no resource is called leads nowhere.
    expected = drawn(changed(" / " if set(" /") & set(HOSTILE[name]) else "x", plain))
    for page, html in drawn(changed(HOSTILE[name], plain)).items():
        found = Page(html)
        assert found.shape() == Page(expected[page]).shape(), page
        assert all(char.isprintable() or char == "\n" for char in html), page
        if page == "object":
            assert " ".join(visible(HOSTILE[name]).split()) in found.text


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_every_link_stays_here(payload: str) -> None:
    for html in drawn(changed(payload, views.three_clusters())).values():
        for element in Page(html).elements:
            for name in ("href", "src", "action"):
                address = element.attributes.get(name, "/")
                is_here = address == "#main" or (address.startswith("/") and not address.startswith("//"))
                assert is_here or address.startswith(FORGE)
                assert not {"<", '"', "\\", " "} & set(address)


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_what_was_asked_for_is_shown_as_it_was_written(payload: str) -> None:
    found = views.calm()
    html = fleet_page(found.fleet, found.matrix, MatrixQuery(q=payload, namespace=payload, kind=payload), NOW)
    (box,) = [element for element in Page(html).all("input") if element.attributes["name"] == "q"]
    assert box.attributes["value"] == visible(payload)


def test_subjects_labels_and_events_are_texts_too() -> None:
    found, payload = views.three_clusters(), HOSTILE["quotes"] + HOSTILE["script"]
    events = tuple({**event, "subject": payload, "event": payload} for event in found.fleet.events)
    cluster = replace(found.cluster, labels={payload: payload}, counts={payload: 1}, health={payload: 1})
    fleet = replace(found.fleet, events=events, objects={payload: 3}, health={payload: 3})
    for html in drawn(found._replace(fleet=fleet, cluster=cluster)).values():
        page = Page(html)
        assert not page.all("img")
        assert len(page.all("script")) == 1
        assert not [name for element in page.elements for name in element.attributes if name.startswith("on")]


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a?b", "a#b", "%2F", "a b", "ü"])
def test_a_name_leads_to_its_own_page_alone(name: str) -> None:
    found = views.three_clusters()
    cluster = replace(found.matrix.clusters[0], name=name)
    matrix = replace(found.matrix, clusters=(cluster, *found.matrix.clusters[1:]))
    html = fleet_page(found.fleet, matrix, MatrixQuery(), NOW)
    links = [
        element.attributes["href"] for element in Page(html).all("a") if "tall" in element.attributes.get("class", "")
    ]
    place = links[0].removeprefix("/clusters/")
    assert place
    assert not set("/?# ") & set(place)
    assert place.strip(".")
