"""The store as something that advances: a directory, a repository or a URL."""

from reconciler.store.directory import DirectoryPast, StorePast, StoreSource, read_directory
from reconciler.store.ignore import is_ignored, with_rules
from reconciler.store.location import StoreKind, locate_store, open_store
from reconciler.store.parse_cache import ParseCache
from reconciler.store.scan import StoreCopy
