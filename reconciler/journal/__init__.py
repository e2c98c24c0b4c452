"""The journal in SQLite: placements, intents, outcomes, orders. Knows no cluster and no store."""

from reconciler.journal.events import EventFilter
from reconciler.journal.journal_lock import holder
from reconciler.journal.journal_rebuild import journal_of, rebuild
from reconciler.journal.locks import SharedOrdersTable
from reconciler.journal.sqlite_journal import Journal
