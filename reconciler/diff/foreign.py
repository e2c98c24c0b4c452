"""Objects that are not ours, hooks that ran, and entries of map lists that replaced ours.

Source: design#foreign-objects; ADR 26. An entry whose key was edited by hand is another one for an API server: ours
would come beside it, or be refused, so the edited one goes with the same apply. An entry that somebody added beside
ours stays. Source: design#replaced-entries; docs/concepts/three-way-diff.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from typing import Final, NamedTuple

from reconciler.api.clusters import LiveObject
from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.plan import MISSING, FieldChange, Manifest
from reconciler.api.policies import ConflictResolution, PropagationPolicy
from reconciler.api.problem import Problem, Severity
from reconciler.diff.canonical import same_scalar
from reconciler.observations import JobProgress, has_succeeded, run_of
from reconciler.ownership import (
    CONFLICT_RESOLUTION,
    RELEASE,
    TAKE_OVER,
    FieldPath,
    Keyed,
    ObjectOwner,
    Ownership,
    conflict_resolution,
    entries_of,
    foreign_mark,
    is_applied_by,
    is_terminating,
    made_by,
    parse_path,
    states,
    strip_marks,
    subtree,
)
from reconciler.secrets import leaves_in
from reconciler.templates import HookEnd, hook_of


def problem_in_cluster(manifest: Manifest, code: str, message: str, severity: Severity = Severity.ERROR) -> Problem:
    """Return a problem of the manifest in its cluster; the message begins with the object."""
    return Problem(
        source=manifest.source,
        code=code,
        message=f"{manifest.identity} {message}",
        severity=severity,
        cluster=manifest.cluster,
    )


def namespace_remark(manifest: Manifest, live: LiveObject) -> Problem | None:
    """Return the remark about a foreign Namespace that lacks labels of its template; None if it lacks none."""
    wanted = strip_marks(manifest.body)
    lacking = sorted(
        key
        for field in ("labels", "annotations")
        for key, value in (dig(wanted, "metadata", field) or {}).items()
        if dig(live.body, "metadata", field, key) != value
    )
    if not lacking:
        return None
    message = (
        f"exists in the cluster and is not ours; it is used as it is, without what its template says of "
        f"{', '.join(lacking)}; adopt it by a policy with conflictResolution: Overwrite if that matters"
    )
    return problem_in_cluster(manifest, "namespace-not-ours", message, Severity.HINT)


def refusal(
    manifest: Manifest, live: LiveObject, ownership: Ownership, policy: PropagationPolicy | None, lost: tuple[str, ...]
) -> Problem | None:
    """Return why an object that is not ours is left alone; None: adopt it. `lost`: marks that somebody took off."""
    if ownership.standing is not ObjectOwner.NOBODYS and _taken_over(manifest) != ownership.holder:
        return problem_in_cluster(manifest, "object-of-another-tool", _held_by(manifest, ownership))
    if conflict_resolution(manifest.body, policy) is not ConflictResolution.ABORT:
        return None
    advice = "set conflictResolution: Overwrite in its policy to adopt it"
    if str(dig(manifest.body, "metadata", "annotations", CONFLICT_RESOLUTION)).lower() == "abort":
        advice = f"set {CONFLICT_RESOLUTION}: overwrite on the template, which outranks its policy, to adopt it"
    if ownership.standing is ObjectOwner.NOBODYS and lost:
        message = f"is left alone, since somebody took {' and '.join(lost)} off; put back what is missing, or {advice}"
        return problem_in_cluster(manifest, "object-let-go", message, Severity.WARNING)
    maker = f" ({made_by(live.body)} made it)" if made_by(live.body) else ""
    return problem_in_cluster(manifest, "object-not-ours", f"exists and is not ours{maker}; {advice}")


def second_holder(manifest: Manifest, live: LiveObject) -> Problem | None:
    """Return the problem of an object of ours with another tool's mark, not stated or taken over; None: none."""
    mark = foreign_mark(live.body)
    if mark is None or states(manifest.body, mark) or _taken_over(manifest) == mark.tool:
        return None
    message = (
        f"is ours and carries the mark of {mark.tool}, too ({mark}): both may write it, and {mark.tool} may delete it; "
        f"have {mark.tool} let go of it, then take the mark off, or set the annotation {TAKE_OVER}: {mark.tool} on the "
        "template"
    )
    return problem_in_cluster(manifest, "marked-by-another-tool", message, Severity.WARNING)


def _held_by(manifest: Manifest, ownership: Ownership) -> str:
    """Return that another tool, fleet or object holds it, how that is known, and the way out."""
    mark = ownership.mark
    if ownership.standing is ObjectOwner.OTHER_OBJECT:
        known, way_out = ", which controls it", "have that object let go of it first"
    else:
        known, way_out = f" ({mark})" if mark is not None else "", "release it there first"
    if mark is not None and states(manifest.body, mark):
        way_out += f", take {mark} out of the template, too"
    return (
        f"exists and belongs to {ownership.holder}{known}; {way_out}, or set the annotation "
        f"{TAKE_OVER}: {ownership.holder} on the template together with conflictResolution: Overwrite"
    )


def _taken_over(manifest: Manifest) -> str:
    """Return the tool whose object the template may take over; empty if none."""
    return str(dig(manifest.body, "metadata", "annotations", TAKE_OVER) or "")


def end_to_leave_after(manifest: JsonObject, live: LiveObject) -> HookEnd | None:
    """Return the end of this release's hook run if it is deleted after it; None: it stays (so in a review)."""
    annotations = dig(manifest, "metadata", "annotations") or {}
    if (
        RELEASE not in annotations
        or not live.uid
        or is_terminating(live)
        or run_of(live.body) is not JobProgress.FINISHED
    ):
        return None
    hook, end = hook_of(annotations), HookEnd.SUCCEEDED if has_succeeded(live.body) else HookEnd.FAILED
    return end if hook is not None and end in hook.leaves_after else None


def other_release(manifest: JsonObject, other: JsonObject | None) -> FieldChange | None:
    """Return the difference between the releases that a hook is for and was for; None: none, or it is no hook."""
    after, before = (dig(body, "metadata", "annotations", RELEASE) for body in (manifest, other))
    if after is None or after == before:
        return None
    path = f"metadata.annotations.{RELEASE}"
    return FieldChange(path=path, before=MISSING if before is None else before, after=after)


Key = tuple[Json, ...]
Entries = Mapping[Key, JsonObject]
"""The entries of a list by key, in their order."""

_ALIKE_ABOVE: Final = 0.5
"""More than this share of our entry's fields, besides its key, must be in an entry to count as its substitute."""


class SharedList(NamedTuple):
    """A live map list with entries that are neither desired nor ours: `strangers`. `names`: fields of a key."""

    path: FieldPath
    names: tuple[str, ...]
    want: Entries
    live: Entries
    sent: Entries
    strangers: tuple[Key, ...]

    def place_of(self, key: Key) -> FieldPath:
        """Return the path of an entry."""
        return (*self.path, Keyed(tuple(zip(self.names, key, strict=True))))


Substitutes = tuple[list[FieldPath], list[FieldPath]]
"""Entries that are one of ours under another key, and those that may be: they go if ours is refused beside them."""


def substitutes(lists: Collection[SharedList], live: JsonObject, manager: str) -> Substitutes:
    """Return the entries that replaced ours, from the live object and the last sent state.

    One of ours is gone, and the other came by an update of somebody else since our last apply, when ours was there. An
    entry that another tool applied is its declared will, and no substitute. Or admission made it of ours in our apply.
    """
    certain: list[FieldPath] = []
    possible: list[FieldPath] = []
    since = max((str(entry.get("time", "")) for entry in entries_of(live) if is_applied_by(entry, manager)), default="")
    for shared in lists:
        gone = [key for key in shared.sent or shared.want if key not in shared.live]
        came, ownerless = [], []
        for key in shared.strangers if gone else ():
            holders = _holders(live, shared.place_of(key))
            # Times are of the last write of a manager: an entry that was there when we last applied is older.
            if holders and all(e.get("operation") == "Update" and str(e.get("time", "")) >= since for e in holders):
                came.append(key)
            elif not holders:
                ownerless.append(key)
        # Of admission nobody's fields tell. What it takes from our own write stays ours in the record of fields.
        lost = [k for k in gone if any(is_applied_by(e, manager) for e in _holders(live, shared.place_of(k)))]
        renamed = _renamed(shared, gone, came) | _renamed(shared, lost, ownerless)
        certain += [shared.place_of(key) for key in (*came, *ownerless) if key in renamed]
        left = [shared.place_of(key) for key in came if key not in renamed]
        possible += left if len(left) <= len(gone) - len(renamed) else []
    return certain, possible


def _holders(live: JsonObject, place: FieldPath) -> list[JsonObject]:
    return [entry for entry in entries_of(live) if subtree(entry["fieldsV1"], place) is not None]


def refused_beside(entries: Collection[FieldChange], refused: Collection[str]) -> tuple[FieldChange, ...]:
    """Return the removed entries in whose list an API server refused something. `refused`: paths by position."""
    places = [_named_steps(parse_path(path) or ()) for path in refused]
    pairs = zip(entries, [_named_steps((parse_path(entry.path) or ())[:-1]) for entry in entries], strict=True)
    return tuple(entry for entry, steps in pairs if any(place[: len(steps)] == steps for place in places))


def _named_steps(path: FieldPath) -> FieldPath:
    return tuple(step for step in path if isinstance(step, str))


def _renamed(shared: SharedList, gone: list[Key], came: list[Key]) -> set[Key]:
    """Return new entries that are a removed one under another key, the most similar first; none if ambiguous."""
    if not shared.sent:
        return set()
    alike: dict[tuple[float, int], list[tuple[Key, Key]]] = {}
    for old, new in product(gone, came):
        # Values that are encrypted in the store are known as hashes, so the desired entry counts as well.
        own = [entries[old] for entries in (shared.sent, shared.want) if old in entries]
        compared = (_compared(entry, shared.live[new], shared.names) for entry in own)
        share, more = max(compared, key=lambda pair: pair[0])
        if share > _ALIKE_ABOVE:
            alike.setdefault((-share, more), []).append((old, new))
    renamed: set[Key] = set()
    settled: set[Key] = set()
    for _, pairs in sorted(alike.items()):
        free = [(old, new) for old, new in pairs if old not in settled and new not in renamed]
        for olds, news in _groups(free):
            settled |= olds
            renamed |= news if len(news) <= len(olds) else set()
    return renamed


def _groups(pairs: Collection[tuple[Key, Key]]) -> list[tuple[set[Key], set[Key]]]:
    """Return the pairs as groups of entries that any of its own could be."""
    groups: list[tuple[set[Key], set[Key]]] = []
    for old, new in pairs:
        olds, news = {old}, {new}
        for group in [group for group in groups if old in group[0] or new in group[1]]:
            groups.remove(group)
            olds, news = olds | group[0], news | group[1]
        groups.append((olds, news))
    return groups


def _compared(own: JsonObject, other: JsonObject, names: tuple[str, ...]) -> tuple[float, int]:
    """Return the share of our entry's fields in another one, 1 if it has only a key, and the number of others there."""
    leaves = [(steps, value) for steps, value in leaves_in(own) if steps[0] not in names]
    there = dict(leaves_in(other))
    same = sum(same_scalar(value, there.get(steps, MISSING)) for steps, value in leaves)
    return (same / len(leaves) if leaves else 1.0), len(there) - same
