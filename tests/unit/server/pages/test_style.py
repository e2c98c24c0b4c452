"""Colours can be told from their ground, in light and in dark. Source: WCAG 2.2, contrast (minimum), 4.5 to 1."""

from __future__ import annotations

import re

import pytest

from reconciler.server.pages import STATIC_FILES

(STYLE,) = [file.content.decode() for file in STATIC_FILES.values() if file.content_type == "text/css"]
LIGHT, DARK = (
    dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
)
PAIRS = [
    *[(ink, ground) for ink in ("ink", "soft", "link", "ok", "warn", "bad") for ground in ("card", "bg", "hover")],
    *[(tone, f"{tone}bg") for tone in ("ok", "prog", "warn", "bad", "unk")],
    ("onbad", "bad"),
    ("ink", "unkbg"),
]


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), PAIRS)
def test_texts_can_be_read(ink: str, ground: str, colours: dict[str, str]) -> None:
    assert contrast(colours[ink], colours[ground]) >= 4.5


def test_light_and_dark_name_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_every_colour_that_is_used_is_one_of_them() -> None:
    rules = STYLE.partition("*, *::before")[2].partition("@media print")[0]
    assert set(re.findall(r"var\(--(\w+)\)", STYLE)) <= LIGHT.keys() | {"mono"}
    assert not re.findall(r"#[0-9a-f]{3,6}\b", rules)


def test_what_moves_moves_only_where_that_is_welcome() -> None:
    for match in re.finditer(r"transition|scroll-behavior|animation", STYLE):
        assert "prefers-reduced-motion: no-preference" in STYLE[: match.start()].rpartition("@media")[2]
