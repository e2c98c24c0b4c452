"""From options to access: the kubeconfig and the journal that a command uses."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.daemon.round.session import Access


def access_to(
    kubeconfig: Path | None, journal: Path | None, clusters: tuple[str, ...] = (), *, store: str = ""
) -> Access:
    """Access to the members and the journal; the journal is the default one unless named.

    Raises:
        ConfigurationError: a plugin is unusable.
        JournalError: no journal was named, and no state folder is known.
    """
    from reconciler.adapters.plugins import with_plugins
    from reconciler.daemon.round.session import Access
    from reconciler.daemon.vitals.logs import set_up_logging

    if not logging.getLogger().handlers:
        # What a command cannot print as its result is told on stderr, scrubbed as the service's log is.
        set_up_logging("text")
    return Access(
        interpreters=with_plugins(),
        kubeconfig=kubeconfig,
        journal=journal_path(journal),
        clusters=clusters,
        store=store,
    )


def journal_path(journal: Path | None) -> Path:
    """The journal that was named, else the default one.

    Raises:
        JournalError: none was named, and no state folder is known.
    """
    from reconciler.daemon.round.session import default_journal

    return journal or default_journal(dict(os.environ))
