"""A hook of mkdocs: the address of the site, and links out of docs/, which lead to files at the home of the project."""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
_PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_FILES: Final = f"{_PROJECT['urls']['Homepage']}/blob/v{_PROJECT['version']}"
_LINK: Final = re.compile(r"\]\(((?:\.\./)+)([^)\s]*)\)")


def on_config(config: Any) -> Any:
    """Return the configuration with the address of pyproject.toml."""
    config["site_url"] = f"{_PROJECT['urls']['Documentation']}/"
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the page with such links made absolute."""
    return with_links(markdown, page.file.src_uri)


def with_links(markdown: str, path: str) -> str:
    """Return the text of a page with links out of docs/ made absolute. `path`: of the page, below docs/."""

    def absolute(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(path), found[1] + found[2]))
        return found[0] if target.startswith("docs/") else f"]({_FILES}/{target})"

    return _LINK.sub(absolute, markdown)
