"""Stores made of live objects, and of documents of Argo CD and Flux."""

from reconciler.importers.app import safe_name
from reconciler.importers.argocd import read_argocd
from reconciler.importers.checkouts import Checkouts
from reconciler.importers.compose import ImportedStore
from reconciler.importers.flux import read_flux
from reconciler.importers.reading import Notes, Reading, Uncarried, grouped
from reconciler.importers.settings import Settings, of_settings, values_of
from reconciler.importers.several import OBVIOUS_GROUPS, Imported, imported, policies_of, reason_to_skip
