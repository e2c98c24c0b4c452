"""Text from the store and the clusters, made harmless for a terminal, a log and a page.

Source: control, bidirectional and invisible characters, and letters of two alphabets that look alike, change the text
that a reviewer sees ("Trojan Source", CVE-2021-42574, CVE-2021-42694; Unicode UTS 39); continuous-integration runners
obey lines that begin with `::` or hold `##[`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

from reconciler.regex import regex

_LOGGING_COMMAND = regex(r"##(?=[A-Za-z]*\[)")
_COMMAND_AT_START = regex(r"^(\s*):(?=:)")
_BLANK = regex(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u2d7f\u303f\u3164\ufe00-\ufe0f\uffa0\ufffc"
    "\U0001107f\U00013441\U00013442\U00016fe4\U0001d159\U000e0000-\U000e0fff]"
)
"""Characters that count as printable and show nothing. Source: Unicode, Default_Ignorable_Code_Point, and blanks."""
_PUNCTUATION = regex(
    "[\u01c0\u01c3\u02d0\u02d7\u0589\u05c3\u2010\u2011\u2024\u2044\u2212\u2215\u2236\u2571\u29f8\ua789\ufe52-\ufe6b\uff0f]"
)
"""It looks like `/ : . - ! |` in names and addresses."""
_LIKE_LATIN = regex(
    "[\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d\u0405\u0406\u0408\u0410\u0412\u0415\u041a"
    "\u041c\u041d\u041e\u0420-\u0423\u0425\u03b1\u03b9\u03bd\u03bf\u03c1\u03c5\u0391\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1"
    "\u03a4\u03a5\u03a7\u0585\u057d\u0570\u0578]+"
)
"""Letters of Cyrillic, Greek and Armenian with the shape of a Latin one."""
_TOKEN, _LETTERS = regex(r"\S*[^\x00-\x7f]\S*"), regex(r"(?:(?<!\\)[A-Za-z]|[^\W\d_A-Za-z])+")
_BESIDE_LATIN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"})
"""Scripts that stand beside Latin letters without a space. Source: UTS 39, highly restrictive."""

_FORMS = frozenset({"MATHEMATICAL", "FULLWIDTH", "PHONETIC", "DOUBLE-STRUCK", "SCRIPT", "BLACK-LETTER", "MODIFIER"})
"""Letters of an alphabet in another shape."""


def visible(text: str) -> str:
    r"""The text on one line, with everything that does not print, or is not what it looks like, as a visible escape.

    Letters of a second alphabet in a word, and words of letters that look Latin, are named.

    >>> visible("a\x1b[31m\u202eb\n")
    'a\\x1b[31m\\u202eb\\n'
    >>> visible("ng\u0456nx")
    'ng\\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}nx'
    """
    if "##" in text:
        text = _LOGGING_COMMAND.sub(r"#\\x23", text)
    return text if text.isascii() and text.isprintable() else _rewritten(text, escape)


def _rewritten(text: str, escaped: Callable[[str], str]) -> str:
    foreign = set() if text.isascii() else set(_foreign(text))
    return "".join(
        char
        if (char.isascii() and char.isprintable()) or (place not in foreign and is_clear(char, text[place - 1 : place]))
        else escaped(char)
        for place, char in enumerate(text)
    )


@lru_cache(maxsize=4096)
def is_clear(char: str, after: str = "") -> bool:
    """Return whether a character shows itself and nothing else. `after`: the one before it, which it may alter."""
    if not char.isprintable() or _BLANK.match(char) or _PUNCTUATION.match(char):
        return False
    is_free_mark = unicodedata.category(char) in ("Mn", "Me") and unicodedata.name(char).startswith("COMBINING")
    # What Unicode calls the same text has one form that is shown as it is: the composed one.
    return not is_free_mark and unicodedata.is_normalized("NFC", after + char if after.isprintable() else char)


def _foreign(text: str) -> Iterable[int]:
    """Yield the places of letters of a second alphabet in a word, and of words that only look Latin."""
    for token in _TOKEN.finditer(text):
        words = list(_LETTERS.finditer(token[0]))
        others = [char for word in words for char in word[0] if alphabet(char) not in ("LATIN", "")]
        is_like_latin = len("".join(word[0] for word in words)) > 1 and bool(_LIKE_LATIN.fullmatch("".join(others)))
        for word in words:
            names = [alphabet(char) for char in word[0]]
            kinds = set(names) - {""}
            if len(kinds) > 1 or is_like_latin or kinds & _FORMS:
                main = "LATIN" if "LATIN" in kinds or is_like_latin else next(iter(kinds - _FORMS), "LATIN")
                yield from (token.start() + word.start() + at for at, of in enumerate(names) if of not in (main, ""))


@lru_cache(maxsize=4096)
def alphabet(char: str) -> str:
    """Return the alphabet of a letter, `LATIN` or `CYRILLIC`; empty: it stands beside any, or is none."""
    if ord(char) < 0x250 or not char.isalpha():
        return "LATIN" if char.isalpha() else ""
    name = unicodedata.name(char, "UNNAMED").partition(" ")[0]
    if name == "LATIN" and ord(char) < 0x370:
        return "PHONETIC"
    return "" if name in _BESIDE_LATIN else name


def escape(char: str) -> str:
    r"""A character as `\n`, `\x1b`, `\u202e`, `\U000e0041`, or by its name where it shows something."""
    simple = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(char)
    if simple:
        return simple
    code = ord(char)
    if char.isprintable() and not _BLANK.match(char) and unicodedata.category(char)[0] != "M":
        return f"\\N{{{unicodedata.name(char, f'U+{code:04X}')}}}"
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
    return text if text.isascii() and "\x7f" not in text else _rewritten(text, _json_escape)


def _json_escape(char: str) -> str:
    code = ord(char)
    if char == "\n":
        return char
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code - 0x10000 & 0x3FF):04x}"


def code_span(text: str) -> str:
    """Markdown inline code in a table, whose cells a pipe would end even in code."""
    return _spanned(visible(text).replace("|", "\\|") or " ")


def code_text(text: str) -> str:
    """Return inline code outside of tables. Source: CommonMark: the fence is longer than any run of backticks."""
    return _spanned(visible(text) or " ")


def _spanned(text: str) -> str:
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or text.strip() != text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def code_html(text: str) -> str:
    """The text as an HTML code element: for `<summary>`, where Markdown does not reach."""
    return f"<code>{html.escape(visible(text))}</code>"


def fence_for(lines: Iterable[str]) -> str:
    """A code fence that no line inside can close."""
    return "`" * max(3, max((_longest_run(line) for line in lines), default=0) + 1)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
