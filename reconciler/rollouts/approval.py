"""A new entry under `spec.approvals` of a Rollout, as an edit of lines.

A file of a person keeps its comments and its layout, so it is not written anew from values: a line is put in, and the
result is parsed again. If anything but that entry has changed, nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from reconciler.api.content import dig
from reconciler.api.problem import Document
from reconciler.api.rollouts import Approval
from reconciler.errors import ConfigurationError
from reconciler.rollouts.rollout_document import parse_rollout
from reconciler.rollouts.stage_slots import approval_entry
from reconciler.yaml import read_yaml

_EMPTY: Final = re.compile(r"(\s*approvals:)\s*(?:\[\s*\]|null|~)?(\s+#.*)?")
_FLOW: Final = re.compile(r"(\s*approvals:\s*\[)(\s*\S.*)")


class NotClear(ConfigurationError):
    """The place of the entry is ambiguous, or more than that would change. The message has the entry to write."""


def approved(path: str, data: bytes, rollout: str, approval: Approval) -> bytes:
    """The file with an approval more in the Rollout of that name, as the first of them.

    Raises:
        NotClear: the file has no such Rollout, or it is written in a way that a line more does not fit.
    """
    entry = approval_entry(approval.stage, approval.revision, approval.until)
    documents = read_yaml(path, data).documents
    found = [number for number, one in enumerate(documents) if _is_of(one, rollout)]
    if len(found) != 1:
        raise _not_clear(path, entry, f"it has {len(found) or 'no'} documents of the Rollout {rollout}")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise _not_clear(path, entry, "it is not UTF-8") from None
    document = documents[found[0]]
    edited = _edited(text.splitlines(keepends=True), document, entry)
    if edited is None:
        raise _not_clear(path, entry, "it is written in a way that a line more does not fit")
    made = "".join(edited).encode()
    if not _is_as_meant(path, made, documents, found[0], approval):
        raise _not_clear(path, entry, "a line more would change something else")
    return made


def _is_of(document: Document, rollout: str) -> bool:
    return (dig(document.body, "kind"), dig(document.body, "metadata", "name")) == ("Rollout", rollout)


def _edited(lines: list[str], document: Document, entry: str) -> list[str] | None:
    """The lines with the entry in its place; None where there is no clear one."""
    spec = dig(document.body, "spec")
    if not isinstance(spec, Mapping) or not spec:
        return None
    if "approvals" not in spec:
        return _with_field(lines, document, next(iter(spec)), entry)
    number = document.locate(("spec", "approvals")) - 1
    line = lines[number]
    given = spec["approvals"]
    if given and (flow := _FLOW.fullmatch(line.rstrip("\r\n"))):
        return [*lines[:number], f"{flow[1]}{entry}, {flow[2].lstrip()}{_end(line)}", *lines[number + 1 :]]
    empty = _EMPTY.fullmatch(line.rstrip("\r\n"))
    if empty is None:
        return None
    indent = _indent(lines[document.locate(("spec", "approvals", 0)) - 1]) if given else _indent(line)
    head = f"{empty[1]}{empty[2] or ''}{_end(line)}"
    return [*lines[:number], head, f"{indent}- {entry}{_end(line)}", *lines[number + 1 :]]


def _with_field(lines: list[str], document: Document, first: str, entry: str) -> list[str] | None:
    """The lines with `approvals` as the first field of the spec."""
    number, below = document.locate(("spec",)) - 1, document.locate(("spec", first)) - 1
    line = lines[number]
    if below <= number or not re.fullmatch(r"\s*(?:- )?\s*spec:(?:\s+#.*)?", line.rstrip("\r\n")):
        return None
    indent, end = _indent(lines[below]), _end(line)
    return [*lines[: number + 1], f"{indent}approvals:{end}", f"{indent}- {entry}{end}", *lines[number + 1 :]]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


def _end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n"


def _is_as_meant(path: str, made: bytes, before: tuple[Document, ...], place: int, approval: Approval) -> bool:
    """Return whether the new file has the old content, with the entry as the first approval of the document."""
    read = read_yaml(path, made)
    if read.broken or len(read.documents) != len(before):
        return False
    bodies: list[Any] = [one.body for one in before]
    spec = bodies[place]["spec"]
    entry = {"stage": approval.stage, "revision": approval.revision}
    entry |= {"until": approval.until} if approval.until else {}
    bodies[place] = {**bodies[place], "spec": {**spec, "approvals": [entry, *(spec.get("approvals") or ())]}}
    parsed, problems = parse_rollout(read.documents[place])
    return [one.body for one in read.documents] == bodies and parsed is not None and not problems


def _not_clear(path: str, entry: str, why: str) -> NotClear:
    return NotClear(f"{path}: {why}; add it by hand under spec.approvals: - {entry}")
