"""Ignored parts of a store: hidden folders, editors' leftovers, and the paths of `.reconcilerignore`.

Its patterns become expressions without backtracking: each run of characters between two stars is searched once, so that
a pattern costs at most its length times that of the name. Source: gitignore(5).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from reconciler.api.fleet import StoreFile
from reconciler.api.problem import Problem, Source
from reconciler.fleet import is_store_file
from reconciler.regex import regex

IGNORE_FILE: Final = ".reconcilerignore"
MAX_IGNORE_BYTES: Final = 65_536
MAX_PATTERNS: Final = 1_000
MAX_PATTERN: Final = 256
MAX_STARS: Final = 8


class IgnoreRules(NamedTuple):
    """The patterns of one ignore file, the last one first, and of those above it.

    `folder` ends in a slash, or is empty at the root. `per_name`, `per_path`: how many characters of patterns, of
    those above as well, are matched with names, and with paths.
    """

    folder: str
    patterns: tuple[IgnorePattern, ...]
    above: IgnoreRules | None = None
    per_name: int = 0
    per_path: int = 0

    def work(self, path: str) -> int:
        """Return the maximal cost of a question about a path, in characters of patterns times characters of names."""
        return self.per_name * (len(path) - path.rfind("/") - 1) + self.per_path * len(path)


def is_hidden_folder(name: str) -> bool:
    """Return whether a folder is never entered: `.git`, `.github`, `..data`."""
    return name.startswith(".")


def is_leftover(name: str) -> bool:
    """Return whether an editor or file system left it: `#x.yaml#`, `.#x.yaml`, `x.yaml~`, `.x.yaml.swp`, `._x.yaml`."""
    return name.startswith((".#", "._", "#")) or name.endswith(("~", ".swp", ".swo", ".swx", "#"))


def is_document(path: str) -> bool:
    """Return whether a file of that path is a document of the store."""
    *folders, name = path.split("/")
    return is_store_file(name) and not is_leftover(name) and not any(map(is_hidden_folder, folders))


_MISNAMED: Final = regex(
    r"[^.]+|.+\.(?:(?i:txt|bak|orig|old|ya?ml[._-].+|ymal|yalm|ylm|yam|yaml_)|(?!ya?ml$)(?i:ya?ml))"
)
_DOCUMENT: Final = regex(rb"(?:\s*#[^\n]*\n|---\s*\n|\s)*(?:apiVersion|kind):")


def is_misnamed(path: str) -> bool:
    """Return whether a file that is not read has the name of a document that was meant to be."""
    return _MISNAMED.fullmatch(path.rpartition("/")[2]) is not None


def looks_like_document(data: bytes) -> bool:
    """Return whether a file begins as a document does."""
    return _DOCUMENT.match(data[:4096]) is not None


def with_rules(above: IgnoreRules | None, folder: str, text: bytes) -> tuple[IgnoreRules, tuple[Problem, ...]]:
    """The rules inside a folder that has an ignore file. A pattern that is refused is a problem, the others hold."""
    below = f"{folder}/" if folder else ""
    patterns: list[IgnorePattern] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.decode("utf-8", errors="replace").splitlines(), start=1):
        refusal = _refusal(line, number)
        if not refusal and number <= MAX_PATTERNS:
            try:
                pattern = parse_pattern(line)
            except (ValueError, re.error) as error:
                refusal = f"not in gitignore syntax: {error}"
            else:
                patterns += [pattern] if pattern is not None else []
        if refusal:
            source = Source(below + IGNORE_FILE, number)
            problems.append(Problem(source=source, code="ignore-pattern-refused", message=refusal))
    per_path = sum(pattern.length for pattern in patterns if pattern.is_of_path)
    per_name = sum(pattern.length for pattern in patterns if not pattern.is_of_path)
    if above is not None:
        per_name, per_path = per_name + above.per_name, per_path + above.per_path
    return IgnoreRules(below, tuple(reversed(patterns)), above, per_name, per_path), tuple(problems)


def _refusal(line: str, number: int) -> str:
    if number > MAX_PATTERNS:
        return f"more than {MAX_PATTERNS:,} lines" if number == MAX_PATTERNS + 1 else ""
    if len(line) > MAX_PATTERN:
        return f"a pattern is at most {MAX_PATTERN} characters long"
    if not line.startswith("#") and len(re.findall(r"\*+", line)) > MAX_STARS:
        return f"a pattern has at most {MAX_STARS} stars; write several patterns"
    return ""


def is_ignored(rules: IgnoreRules | None, path: str, *, is_folder: bool) -> bool:
    """Return whether the nearest ignore file with a match excludes the path. Folders above it come beforehand."""
    name = path.rpartition("/")[2]
    while rules is not None:
        below = path[len(rules.folder) :]
        for pattern in rules.patterns:
            if pattern.folders_only and not is_folder:
                continue
            if pattern.expression.match(below if pattern.is_of_path else name):
                return pattern.excludes
        rules = rules.above
    return False


def is_ignore_file(path: str) -> bool:
    """Return whether a file of this path is an ignore file."""
    return path.rpartition("/")[2] == IGNORE_FILE


def without_doubtful(files: tuple[StoreFile, ...], remembered: Collection[str]) -> tuple[StoreFile, ...]:
    """Return the files without those that an ignore file, now unreadable, may have excluded so far.

    `remembered`: the formerly active paths; without any, nothing is left out.
    """
    folders = tuple(file.path.removesuffix(IGNORE_FILE) for file in files if file.faults and is_ignore_file(file.path))
    if not folders or not remembered:
        return files
    return tuple(file for file in files if file.faults or file.path in remembered or not file.path.startswith(folders))


_FOLDERS: Final = "(?:[^/]+/)*?"
_END: Final = r"(?=/|\Z)"


class IgnorePattern(NamedTuple):
    """A pattern. `is_of_path`: it is matched with the whole path below its file, not with the last name alone."""

    expression: re.Pattern[str]
    excludes: bool
    folders_only: bool
    is_of_path: bool
    length: int


def parse_pattern(line: str) -> IgnorePattern | None:
    """Return the pattern of a line; None for a blank line and a comment.

    Raises ValueError: it says nothing: `!`, `/`.
    """
    bare = line.rstrip(" ")
    # A backslash keeps the blank behind it.
    is_kept = bare != line and (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    text = bare + " " if is_kept else bare
    if not text or text.startswith("#"):
        return None
    excludes = not text.startswith("!")
    text = text if excludes else text[1:]
    folders_only = text.endswith("/")
    body = text.rstrip("/") if folders_only else text
    if not body:
        raise ValueError("the pattern names nothing")
    is_of_path = "/" in body
    segments = body.removeprefix("/").split("/")
    expression = _of_segments(segments) if is_of_path else _of_segment(segments[0])
    return IgnorePattern(re.compile(expression + r"\Z"), excludes, folders_only, is_of_path, len(body))


def _of_segments(segments: list[str]) -> str:
    """Return runs of names between double stars: the first at the beginning, the last at the end."""
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == "**":
            runs.append([])
        else:
            runs[-1].append(segment)
    runs = [runs[0], *(run for run in runs[1:-1] if run), *runs[-1:]] if len(runs) > 1 else runs
    whole = ["/".join(map(_of_segment, run)) for run in runs]
    if len(runs) == 1:
        return whole[0]
    first = f"{whole[0]}/" if runs[0] else ""
    middle = "".join(f"(?>{_FOLDERS}{run}/)" for run in whole[1:-1])
    last = f"(?:[^/]+/)*{whole[-1]}" if runs[-1] else r"[\s\S]+"
    return first + middle + last


def _of_segment(text: str) -> str:
    """One name of a path. It is found as a whole or not at all."""
    chunks: list[list[str]] = [[]]
    at = 0
    while at < len(text):
        if text[at] == "*":
            chunks.append([])
            at += 1
        else:
            part, at = _one_character(text, at)
            chunks[-1].append(part)
    whole = ["".join(chunk) for chunk in chunks]
    if len(whole) == 1:
        return f"(?>{whole[0]}{_END})"
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in whole[1:-1] if chunk)
    return f"(?>{whole[0]}{middle}[^/]*{whole[-1]}{_END})"


def _one_character(text: str, at: int) -> tuple[str, int]:
    if text[at] == "?":
        return "[^/]", at + 1
    if text[at] == "\\" and at + 1 < len(text):
        return re.escape(text[at + 1]), at + 2
    if text[at] == "[" and (end := _end_of_class(text, at)):
        return _class(text[at + 1 : end]), end + 1
    return re.escape(text[at]), at + 1


def _end_of_class(text: str, at: int) -> int:
    """Return the index of the closing bracket; 0: there is none, and the bracket is literal."""
    end = at + 1
    if text[end : end + 1] in ("!", "^"):
        end += 1
    if text[end : end + 1] == "]":
        end += 1
    while end < len(text) and text[end] != "]":
        end += 2 if text[end] == "\\" else 1
    return end if end < len(text) else 0


def _class(inside: str) -> str:
    is_negated = inside.startswith(("!", "^"))
    members: list[str] = []
    body, at = inside[1:] if is_negated else inside, 0
    while at < len(body):
        at += body[at] == "\\" and at + 1 < len(body)
        low, at = body[at], at + 1
        if body[at : at + 1] == "-" and at + 1 < len(body):
            at += 1
            at += body[at] == "\\" and at + 1 < len(body)
            high, at = body[at], at + 1
            if low <= high:
                members.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            members.append(re.escape(low))
    if not members:
        return "[^/]" if is_negated else r"(?!)"
    return f"[^/{''.join(members)}]" if is_negated else f"(?!/)[{''.join(members)}]"
