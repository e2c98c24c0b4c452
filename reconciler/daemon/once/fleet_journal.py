"""A journal belongs to one fleet."""

from __future__ import annotations

from reconciler.adapters.journal.journal import Journal
from reconciler.errors import ConfigurationError
from reconciler.model.fleet import Fleet


def check_fleet(journal: Journal, fleet: Fleet) -> None:
    """Bind a new journal to the fleet; refuse a journal of another one, unless the fleet was renamed openly."""
    name = fleet.settings.name
    if journal.fleet not in ("", name, *fleet.settings.previous_names):
        raise ConfigurationError(
            f"{journal.path}: it is the journal of fleet {journal.fleet}, and the store is fleet {name}; name the "
            f"journal of {name} with --journal, or none: each fleet has its own ({rename_advice(journal.fleet, name)})"
        )
    if journal.fleet != name:
        journal.record_fleet(name)


def rename_advice(former: str, name: str) -> str:
    """When a journal of another name may be gone on with, and what that does to a fleet which still is one."""
    return (
        f"only if {former} itself was renamed to {name}, add {former} to spec.previousNames of the Fleet document: "
        f"all that {former} runs is then judged, and deleted, by this store"
    )
