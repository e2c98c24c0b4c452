"""Text from the store and the clusters, made harmless for a terminal, a log and a page.

Source: control and bidirectional characters can change the text that a reviewer sees ("Trojan Source", CVE-2021-42574);
continuous-integration runners obey lines that begin with `::` or hold `##[`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from reconciler.regex import regex

_LOGGING_COMMAND = regex(r"##(?=[A-Za-z]*\[)")
_COMMAND_AT_START = regex(r"^(\s*):(?=:)")
_RAW_IN_JSON = regex(
    "[\x7f-\xa0\xad\u0600-\u0605\u061c\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\ufeff]|[\ufff9-\ufffb]"
)
_ASTRAL_FORMAT = regex("[\U000e0000-\U000e0fff\U0001d173-\U0001d17a]")


def visible(text: str) -> str:
    r"""The text on one line, with everything that does not print as a visible escape.

    >>> visible("a\x1b[31m\u202eb\n")
    'a\\x1b[31m\\u202eb\\n'
    """
    if "##" in text:
        text = _LOGGING_COMMAND.sub(r"#\\x23", text)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escape(char) for char in text)


def escape(char: str) -> str:
    r"""A character as `\n`, `\x1b`, `\u202e` or `\U000e0041`."""
    named = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(char)
    if named:
        return named
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def inert(line: str) -> str:
    """The line without a command at its start that the runner which reads our output would obey."""
    return _COMMAND_AT_START.sub(r"\1\\x3a", line) if "::" in line else line


def is_inert(line: str) -> bool:
    """Return whether no CI runner would take the line for a command."""
    return _COMMAND_AT_START.match(line) is None and _LOGGING_COMMAND.search(line) is None


def joined(lines: Iterable[str]) -> str:
    """Lines as a text with a newline at the end; empty when there are none. Every text report ends here."""
    return "".join(f"{inert(line.rstrip())}\n" for line in lines)


def ascii_json(text: str) -> str:
    r"""JSON with everything that could fool a terminal or a runner as a `\u` escape; its meaning stays the same."""
    if "##" in text:
        text = _LOGGING_COMMAND.sub(r"#\\u0023", text)
    if text.isascii() and "\x7f" not in text:
        return text
    text = _RAW_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return _ASTRAL_FORMAT.sub(_surrogates, text)


def _surrogates(found: re.Match[str]) -> str:
    code = ord(found[0]) - 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def code_span(text: str) -> str:
    """Markdown inline code in a table, whose cells a pipe would end even in code."""
    return _spanned(visible(text).replace("|", "\\|") or " ")


def code_text(text: str) -> str:
    """Markdown inline code outside of tables: no markup, no HTML, no mention, no link inside.

    Source: CommonMark, code spans: the fence is longer than any run of backticks inside.
    """
    return _spanned(visible(text) or " ")


def _spanned(shown: str) -> str:
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or shown.strip() != shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def code_html(text: str) -> str:
    """The text as an HTML code element: for `<summary>`, where Markdown does not reach."""
    return f"<code>{html.escape(visible(text))}</code>"


def fence_for(lines: Iterable[str]) -> str:
    """A code fence that no line inside can close."""
    return "`" * max(3, max((_longest_run(line) for line in lines), default=0) + 1)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
