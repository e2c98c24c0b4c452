"""Rows of a review about promotions: what follows from where, its health there, and what differs on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from reconciler.api.content import Json, is_same
from reconciler.api.fleet import StoreFile
from reconciler.api.plan import MISSING, Direction, FieldChange, SettingChange
from reconciler.api.rollouts import Promotion
from reconciler.promotion.promoted_fields import DocumentPair, Promoted, PromotionRefused, is_downgrade, promoted
from reconciler.yaml import NotEdited

HealthWords = Callable[[str, str], str]
"""The health of an object in words, by its folder and subject: `Deployment shop/web`."""

_SHOWN_MAX = 12


def promotion_changes(
    promotions: Iterable[Promotion],
    before: Iterable[StoreFile],
    after: Iterable[StoreFile],
    health: HealthWords,
    write: Callable[[Json], str],
) -> tuple[SettingChange, ...]:
    """Return the rows of each promotion whose target differs between two revisions. `before`, `after`: all files."""
    old, new = tuple(before), tuple(after)
    return tuple(row for rule in promotions for row in _rows(rule, old, new, health, write))


def conflicts(
    rule: Promotion,
    origin: Iterable[StoreFile],
    last: Iterable[StoreFile],
    result: Promoted,
    write: Callable[[Json], str],
) -> tuple[str, ...]:
    """Return fields it would write over that were edited since the last promotion, whose files are `last`."""
    try:
        then = {pair.subject: pair for pair in promoted(rule, origin, last, write).carried}
    except (PromotionRefused, NotEdited):
        return ()
    # What the target has since the last promotion alone was never promoted to.
    known = [(carried, then[carried.subject]) for carried in result.carried if carried.subject in then]
    return tuple(
        f"{carried.subject} {change.path} ({carried.source})"
        for carried, before in known
        for change in carried.moved
        if not any(one.path == change.path and _is_same(one.before, change.before) for one in before.moved)
    )


def _rows(
    rule: Promotion,
    old: tuple[StoreFile, ...],
    new: tuple[StoreFile, ...],
    health: HealthWords,
    write: Callable[[Json], str],
) -> Iterator[SettingChange]:
    try:
        # What the older target lacks of the newer origin, and what it still lacks.
        lacked, lacks = (_carried(rule, new, target, write) for target in (old, new))
        known = _carried(rule, old, old, write)
    except (PromotionRefused, NotEdited):
        return
    for key, (carried, change) in lacked.items():
        if key in lacks and _is_same(lacks[key][1].before, change.before):
            continue
        if key in lacks:
            theirs = lacks[key][1].before
            yield _row(
                rule, carried, change.path, change.before, theirs, f"not of {rule.origin}, which has another value"
            )
            continue
        # An origin that changes in the same review has not run what is promoted.
        is_new = key not in known or not _is_same(known[key][1].after, change.after)
        note = "not run there yet: the same change brings it there" if is_new else health(rule.origin, carried.origin)
        note += "; an older version than before" if is_downgrade(change) else ""
        yield _row(rule, carried, change.path, change.before, change.after, f"from {carried.origin}, {note}")
    for carried in promoted(rule, new, new, write).carried if lacked.keys() - lacks.keys() else ():
        paths = [change.path for change in carried.differing]
        if paths:
            more = f" and {len(paths) - _SHOWN_MAX} more" if len(paths) > _SHOWN_MAX else ""
            note = f"differs from {carried.origin} on purpose: {', '.join(paths[:_SHOWN_MAX])}{more}"
            yield _row(rule, carried, "", MISSING, MISSING, note)


def _carried(
    rule: Promotion, origin: tuple[StoreFile, ...], target: tuple[StoreFile, ...], write: Callable[[Json], str]
) -> Mapping[tuple[str, str], tuple[DocumentPair, FieldChange]]:
    pairs = promoted(rule, origin, target, write).carried
    return {(carried.subject, change.path): (carried, change) for carried in pairs for change in carried.moved}


def _row(rule: Promotion, carried: DocumentPair, path: str, before: Json, after: Json, meaning: str) -> SettingChange:
    return SettingChange(
        source=carried.source,
        document=f"Promotion {rule.name}: {carried.subject}",
        path=path,
        before=before,
        after=after,
        meaning=meaning,
        direction=Direction.PROMOTES,
    )


def _is_same(one: Json, other: Json) -> bool:
    return one is other or (MISSING not in (one, other) and is_same(one, other))
