"""HTML by construction: a text becomes markup only by being escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

from reconciler.report.text.safe import visible


class Markup(str):
    """HTML that is safe in a page. Only this module makes it of texts."""

    __slots__ = ()


def element(name: str, *children: Markup | str, **attributes: str) -> Markup:
    """An element; texts among its children and attributes are escaped. `class_` is the attribute `class`."""
    given = "".join(f' {key.rstrip("_")}="{_escaped(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{together(children)}</{name}>")


def together(children: Iterable[Markup | str]) -> Markup:
    """Pieces one after the other; texts are escaped."""
    return Markup("".join(child if isinstance(child, Markup) else _escaped(child) for child in children))


def _escaped(text: str) -> str:
    return html.escape(visible(text), quote=True)
