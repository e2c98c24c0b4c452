"""A new entry under `spec.approvals` of a Rollout, by the smallest edit of its file."""

from __future__ import annotations

from reconciler.api.content import JsonObject, dig
from reconciler.api.rollouts import Approval
from reconciler.errors import ConfigurationError
from reconciler.rollouts.stage_slots import approval_entry
from reconciler.yaml import NotEdited, Write, edited, read_yaml


class NotClear(ConfigurationError):
    """The file cannot be edited so that nothing else changes. The message has the entry to write."""


def approved(path: str, data: bytes, rollout: str, approval: Approval, write: Write) -> bytes:
    """Return the file with an approval more in the Rollout of that name, as the last of them.

    Raises:
        NotClear: the file has no such Rollout, or a layout that does not allow the edit.
    """
    try:
        bodies: list[JsonObject] = [one.body for one in read_yaml(path, data).documents]
        places = [place for place, body in enumerate(bodies) if _is_of(body, rollout)]
        if len(places) != 1:
            raise NotEdited(path, f"it has {len(places) or 'no'} documents of the Rollout {rollout}")
        body = bodies[places[0]]
        entry = {"stage": approval.stage, "revision": approval.revision}
        entry |= {"until": approval.until} if approval.until else {}
        approvals = [*(dig(body, "spec", "approvals") or ()), entry]
        bodies[places[0]] = {**body, "spec": {**(dig(body, "spec") or {}), "approvals": approvals}}
        return edited(path, data, bodies, write)
    except NotEdited as error:
        shown = approval_entry(approval.stage, approval.revision, approval.until)
        raise NotClear(f"{error.place}: {error.reason}; add it by hand under spec.approvals: - {shown}") from error


def _is_of(body: JsonObject, rollout: str) -> bool:
    return (dig(body, "kind"), dig(body, "metadata", "name")) == ("Rollout", rollout)
