"""From options to access: the kubeconfig and the journal that a command uses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli.run_options import Keys, KeysNamed

if TYPE_CHECKING:
    from reconciler.api.fleet import Fleet
    from reconciler.cli.options import ProfileOptions
    from reconciler.controller.once.planning import Access
    from reconciler.controller.rollouts.rollout_inputs import RevisionsInForce
    from reconciler.kube.profile_access import LiveAccess


def access_to(
    kubeconfig: Path | None,
    journal: Path | None,
    clusters: tuple[str, ...] = (),
    *,
    fleet: Fleet | None = None,
    store: str = "",
    revisions: RevisionsInForce | None = None,
    stage: str = "",
    keys: Keys | None = None,
    profiles: ProfileOptions | None = None,
) -> Access:
    """Return the access to the members and the journal: the named one, else that of the fleet, if there is one.

    `store`: given by commands that write, as it is named from anywhere. `revisions`, `stage`: for stores with Rollouts.
    `keys`: decrypts templates; None: the credential of the service alone. `profiles`: live ClusterProfiles with access
    to clusters.

    Raises:
        ConfigurationError: a plugin is unusable, or the store was another fleet's before.
        JournalError: no journal was named, and no state folder is known.
    """
    import logging

    from reconciler.cli.journal_choice import journal_for
    from reconciler.cli.options import person
    from reconciler.controller.once.planning import Access
    from reconciler.controller.vitals.logs import set_up_logging
    from reconciler.plugins import with_plugins

    keys = keys or Keys(KeysNamed())
    if not logging.getLogger().handlers:
        # Commentary goes to stderr, scrubbed like the service's log.
        set_up_logging("text")
    return Access(
        interpreters=with_plugins(),
        kubeconfig=kubeconfig,
        journal=journal or (journal_for(fleet, os.environ, writes=store) if fleet is not None else None),
        clusters=clusters,
        store=store,
        open=keys.open,
        later_keys=keys,
        who=person(),
        revisions=revisions,
        stage=stage,
        profiles=_live_access(profiles, kubeconfig),
    )


def _live_access(profiles: ProfileOptions | None, kubeconfig: Path | None) -> LiveAccess | None:
    if profiles is None:
        return None
    from reconciler.kube.profile_access import LiveAccess

    return LiveAccess(profiles.place, profiles.provider_file, kubeconfig)


def journal_path(journal: Path | None, store: str | None = None) -> Path:
    """Return the named journal, else that of the store's fleet, else the one that the current folder implies.

    Raises:
        ConfigurationError: the store names no fleet, or nothing says which of several journals is meant.
        JournalError: there is no journal to be chosen, or no state folder is known.
        StoreError: the store cannot be read.
    """
    if journal is not None:
        return journal
    from reconciler.cli.journal_choice import journal_about, journal_for
    from reconciler.cli.store_reading import read_fleet
    from reconciler.errors import ConfigurationError
    from reconciler.fleet import why_nameless

    if store is None:
        return journal_about(Path.cwd(), os.environ)
    fleet = read_fleet(store)
    found = journal_for(fleet, os.environ)
    if found is None:
        raise ConfigurationError(f"{store}: {why_nameless(fleet)}; or name a journal with --journal")
    return found
