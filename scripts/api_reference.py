"""The shapes of the API as tables, from the module that types them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

VIEWS: Final = Path(__file__).resolve().parent.parent / "reconciler/report/views"
SHAPES: Final = ("view_shapes.py", "live_view.py", "queries.py")
"""Their classes that are renamed, or sent as an array, are shapes, and so are words."""
BEGIN: Final = "<!-- shapes: made by scripts/make_reference.py from reconciler/report/views/*_shapes.py -->\n"
END: Final = "<!-- end of shapes -->"


def with_shapes(page: str) -> str:
    """The page with the tables between its marks made again."""
    head, _, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not end:
        raise LookupError("docs/reference/api.md has no place for the shapes")
    return f"{head}{BEGIN}\n{''.join(_tables())}{end}{tail}"


def _tables() -> Iterator[str]:
    texts = ((VIEWS / name).read_text(encoding="utf-8") for name in SHAPES)
    for node in (node for text in texts for node in ast.parse(text).body):
        if isinstance(node, ast.ClassDef) and (
            (node.keywords and node.keywords[-1].arg in ("rename", "array_like")) or _is_words(node)
        ):
            yield f"### {node.name}\n\n{_text(ast.get_docstring(node) or '')}\n\n"
            yield _words(node) if _is_words(node) else _fields(node)


def _is_words(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "StrEnum" for base in node.bases)


def _fields(node: ast.ClassDef) -> str:
    """The fields as a list; neighbours of one type that need no words share an item."""
    is_array = any(word.arg == "array_like" for word in node.keywords)
    items = list[tuple[list[str], str, str]]()
    found = list(zip(node.body, [*node.body[1:], None], strict=True))
    fields = [(field, below) for field, below in found if isinstance(field, ast.AnnAssign)]
    for place, (field, below) in enumerate(fields):
        name = ast.unparse(field.target)
        shown = f"{place} `{name}`" if is_array else f"`{_camel(name)}`"
        kind, meaning = _type(ast.unparse(field.annotation)), _docstring(below)
        if items and not meaning and items[-1][1:] == (kind, ""):
            items[-1][0].append(shown)
        else:
            items.append(([shown], kind, meaning))
    lines = (f"- {', '.join(names)} ({kind}){f': {meaning}' if meaning else ''}\n" for names, kind, meaning in items)
    return "".join(lines) + "\n"


def _words(node: ast.ClassDef) -> str:
    words = list[str]()
    for word, below in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(word, ast.Assign) and isinstance(word.value, ast.Constant):
            meaning = _docstring(below)
            words.append(f"`{word.value.value}`" + (f" ({meaning.rstrip('.')})" if meaning else ""))
    return f"One of {', '.join(words)}.\n\n"


def _docstring(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return _text(node.value.value)
    return ""


def _text(text: str) -> str:
    """The words with names as they stand in the JSON: `in_sync` is `inSync` there."""
    return re.sub(r"`([a-z]+(?:_[a-z]+)+)`", lambda found: f"`{_camel(found[1])}`", " ".join(text.split()))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _type(text: str) -> str:
    """A type as JSON has it."""
    text = text.replace("dict[str, Any]", "object").replace("dict[str, int]", "{name: number}")
    text = text.replace("dict[str, str]", "{name: text}").replace("None", "null")
    text = re.sub(r"dict\[str, (.+)\]", r"{name: \1}", text)
    text = re.sub(r"tuple\[(.+), \.\.\.\]", r"\1[]", text).replace(" | null", "?")
    for python, json in (("str", "text"), ("int", "number"), ("float", "number"), ("bool", "boolean")):
        text = re.sub(rf"\b{python}\b", json, text)
    text = re.sub(r"\b([A-Z]\w+)\b", lambda found: f"[{found[1]}](#{found[1].lower()})", text)
    return text.replace(" | ", " or ")
