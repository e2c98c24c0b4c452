"""Marks of other tools on a template: allowed take-over, and marks that it should not carry."""

from __future__ import annotations

import difflib
import re
from typing import Final

from reconciler.model.tree import Json, JsonObject
from reconciler.regex import regex
from reconciler.stages.documents import Findings, is_dns_subdomain
from reconciler.stages.ownership import FOREIGN_TOOLS, TAKE_OVER, foreign_mark

_BY_LETTERS: Final = {re.sub(r"[^a-z0-9]", "", tool.lower()): tool for tool in FOREIGN_TOOLS}
_OBJECT: Final = regex(r"[A-Z][A-Za-z0-9]* \S+", re.ASCII)
"""Kind and name of an object that controls another, as in `object-of-another-tool`."""


def check_take_over(metadata: JsonObject, findings: Findings) -> None:
    """Warn of a name to take over from that is no tool's; names of other fleets and of objects are not known here."""
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or TAKE_OVER not in annotations:
        return
    name = annotations[TAKE_OVER]
    if not isinstance(name, str) or name in FOREIGN_TOOLS:
        return
    close = difflib.get_close_matches(re.sub(r"[^a-z0-9]", "", name.lower()), _BY_LETTERS, n=1, cutoff=0.8)
    if close:
        hint = f"did you mean {_BY_LETTERS[close[0]]}?"
    elif is_dns_subdomain(name) or _OBJECT.fullmatch(name):
        return
    else:
        hint = f"known are {', '.join(FOREIGN_TOOLS)}, other fleets by their name, and objects by kind and name"
    findings.warning(
        "take-over-unknown", f"{name[:80]!r} is no tool that is known; {hint}", "metadata", "annotations", TAKE_OVER
    )


def check_foreign_marks(metadata: JsonObject, findings: Findings) -> None:
    """Warn of a label or annotation by which another tool would hold the objects of the template for its own."""
    mark = foreign_mark({"metadata": {place: _mapping(metadata.get(place)) for place in ("labels", "annotations")}})
    if mark is None or mark.is_stated:
        return
    message = f"{mark.tool} knows by {mark} what it holds, and may delete the object; take it out"
    findings.warning("template-of-another-tool", message, "metadata", mark.place.value, mark.key)


def _mapping(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
