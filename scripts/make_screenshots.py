"""Take docs/pictures/page-*.png of the pages in a real browser, from the views that the tests draw.

Usage: python scripts/make_screenshots.py [--into FOLDER] [NAME …]
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace
from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.pages import schedule_of, states  # noqa: E402 - the folder of the repository is known by now
from reconciler.report.views.matrix import matrix_view  # noqa: E402
from reconciler.report.views.queries import MatrixQuery  # noqa: E402
from reconciler.report.views.view_inputs import ViewModel  # noqa: E402
from reconciler.report.views.view_shapes import ClusterCounts  # noqa: E402
from scripts.small_png import small_png  # noqa: E402
from tests.browsing import LACK, browsing, chromium  # noqa: E402
from tests.fakes import views  # noqa: E402
from tests.fakes.page_server import PageServer  # noqa: E402

_OBJECT: Final = "/objects/Deployment.apps/shop/checkout"
_LOOK: Final = f"{_OBJECT}?cluster=beijing"


class Picture(NamedTuple):
    """`fixture`: a function of `tests.fakes.views`, or of this file. Sizes in pixels of the page."""

    name: str
    fixture: str
    path: str = "/"
    width: int = 1280
    height: int = 860
    is_dark: bool = False
    scrolls_to: str = ""


PICTURES = (
    Picture("calm", "calm", height=720),
    Picture("calm-large", "calm_large", "/?team=shop", height=720),
    Picture("calm-large-laptop-dark", "calm_large", width=1440, height=900, is_dark=True),
    Picture("empty", "empty", height=560),
    Picture("three-clusters", "three_clusters", height=900),
    Picture("three-clusters-dark", "three_clusters", height=900, is_dark=True),
    Picture("three-clusters-phone", "three_clusters", width=390, height=1500),
    Picture("large", "large", width=1500, height=1000),
    Picture("large-dark", "large", width=1500, height=1000, is_dark=True),
    Picture("large-matrix", "large", width=1500, height=900, scrolls_to=".matrix-box"),
    Picture("folded", "folded", "/?columns=region&rows=team", height=720),
    Picture("broken", "broken", height=1000),
    Picture("broken-phone-dark", "broken", width=390, height=1100, is_dark=True),
    Picture("object", "three_clusters", _OBJECT, height=1000),
    Picture("object-dark", "three_clusters", _OBJECT, height=1000, is_dark=True),
    Picture("look", "three_clusters", _LOOK, height=1500),
    Picture("look-laptop-dark", "three_clusters", _LOOK, width=1440, height=900, is_dark=True, scrolls_to="#live"),
    Picture("look-phone", "three_clusters", _LOOK, width=390, height=1100, scrolls_to="#live"),
    Picture("object-phone", "three_clusters", _OBJECT, width=390, height=1100),
    Picture("cluster", "three_clusters", "/clusters/beijing", height=900),
    Picture("day", "three_clusters", "/history", height=700),
    Picture("day-phone-dark", "three_clusters", "/history", width=390, height=900, is_dark=True),
    Picture("cluster-away-phone", "broken", "/clusters/beijing-02", width=390, height=900),
)


def main() -> int:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--into", type=Path, default=ROOT / "docs/pictures")
    parser.add_argument("names", nargs="*", help="without any, all")
    options = parser.parse_args()
    path = chromium()
    if path is None:
        sys.stderr.write(f"{LACK}\n")
        return 2
    with browsing(path) as browser:
        for picture in PICTURES:
            if not options.names or picture.name in options.names:
                target = options.into / f"page-{picture.name}.png"
                target.write_bytes(small_png(_taken(browser, picture)))
                sys.stdout.write(f"{target} {target.stat().st_size // 1024} KiB\n")
    return 0


def folded() -> views.Views:
    """2,000 workloads in 200 clusters, rows folded by team and columns by region."""
    found = next(states(schedule_of(2000, 200))).picture
    if found is None:
        raise ValueError("a state of the bench has a picture")
    question = MatrixQuery(rows="team", columns="region")
    small, counts = views.calm_large(), ClusterCounts(total=200, in_sync=200, away=0, left=0)
    matrix = matrix_view(ViewModel(picture=found, now=views.NOW), question)
    return small._replace(fleet=replace(small.fleet, clusters=counts), matrix=matrix)


def _taken(browser: Browser, picture: Picture) -> bytes:
    server = PageServer({**vars(views), "folded": folded}[picture.fixture]())
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.is_dark else "light",
    )
    try:
        page = context.new_page()
        # The clock stands still, so that the same page is the same picture.
        now = datetime.fromisoformat(views.NOW)
        page.clock.install(time=now)
        page.clock.pause_at(now + timedelta(seconds=1))
        page.goto(server.url + picture.path)
        while not page.locator("#stream.live").count():
            page.clock.run_for(1)
        if picture.scrolls_to:
            page.locator(picture.scrolls_to).evaluate(
                "box => { box.scrollIntoView({ behavior: 'instant' }); box.scrollTop = 3000; }"
            )
        return page.screenshot()
    finally:
        context.close()
        server.close()


if __name__ == "__main__":
    sys.exit(main())
