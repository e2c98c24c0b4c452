"""What of an account is about Rollouts, as a part of its document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from reconciler.model.rollouts.record import Record
from reconciler.model.rollouts.told import NO_ROLLOUTS, RolloutAccount
from reconciler.stages.observations import instant

_TEXT_CHARS_MAX: Final = 256


def rollouts_tree(account: RolloutAccount) -> Any:
    """The part as plain values; None where nothing is told."""
    return msgspec.to_builtins(account) if account != NO_ROLLOUTS else None


def read_rollouts(tree: Any) -> RolloutAccount:
    """What a part tells. One that another version wrote, or a person, and that is not understood tells nothing."""
    if tree is None:
        return NO_ROLLOUTS
    try:
        account = msgspec.convert(tree, RolloutAccount)
        if all(_is_sane(record) for record in _records(account)):
            return account
    except (msgspec.ValidationError, ValueError, RecursionError):
        pass
    return NO_ROLLOUTS


def _records(account: RolloutAccount) -> Iterator[Record]:
    for progress in account.progress.values():
        yield from progress.records.values()
    for told in account.pending.values():
        yield from told.values()
    for reports in account.reports.values():
        for report in reports.values():
            yield report.record


def _is_sane(record: Record) -> bool:
    """Whether its times are times, and its revisions may be the names of revisions.

    Raises:
        ValueError: a time is none.
    """
    for text in (record.begun_at, record.completed_at, record.steady_since, record.turn_at):
        instant(text)
    return all(len(text) <= _TEXT_CHARS_MAX and text.isprintable() for text in (record.revision, record.turn))
