"""A snapshot of the store to a fleet: documents, settings, clusters, last good content."""

from reconciler.fleet.assemble import AssemblyTables, assemble
from reconciler.fleet.cluster_documents import CLUSTER_APIS, DEFAULT_PROPERTIES
from reconciler.fleet.documents import KINDS, DocumentKind, ParsedFile, classify, inputs_of, parse_promotion
from reconciler.fleet.encrypted_documents import withheld_blob, without_secrets
from reconciler.fleet.inventory_sync import (
    EditKind,
    InventoryEdits,
    InventoryOrigin,
    InventoryRefused,
    commit_message,
    followed,
    synced,
)
from reconciler.fleet.last_good import LAST_GOOD, Earlier, emptied, says_nothing, with_last_good, without_later_twins
from reconciler.fleet.parse import ParsedAsRead, is_store_file, memo_key, parse, parse_file
from reconciler.fleet.settings import why_nameless
