"""The part of `reconciler doctor` about the Lease of a fleet with several processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.daemon.leadership.sight import Leading


def leader_words(found: Leading) -> str:
    """Return a line that names the leader."""
    where = f"the Lease in {found.cluster}"
    if found.error:
        return f"{where} cannot be read, so nobody can lead from here: {found.error}"
    left = "" if found.has_handover else "; what the next leader has to know is not there"
    if not found.holder:
        return f"nobody leads: nobody holds {where}{left}"
    return f"{found.holder} leads in term {found.term}; it renewed {where} at {found.renewed or 'no time'}{left}"


def leader_part(found: Leading) -> Mapping[str, object]:
    """The same for programs."""
    return {
        "cluster": found.cluster,
        "holder": found.holder or None,
        "term": found.term,
        "renewed": found.renewed or None,
        "handover": found.has_handover,
        "error": found.error or None,
    }
