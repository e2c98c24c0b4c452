"""Existing systems as a store: live objects as templates, and applications of Argo CD or Flux as Renders."""

from reconciler.stages.importing.apps import Checkout, Checkouts, ImportedStore, safe_name
from reconciler.stages.importing.argocd import read_argocd
from reconciler.stages.importing.flux import read_flux
from reconciler.stages.importing.several import OBVIOUS_GROUPS, Imported, imported, policies_of
from reconciler.stages.importing.template import reason_to_skip

__all__ = [
    "OBVIOUS_GROUPS",
    "Checkout",
    "Checkouts",
    "Imported",
    "ImportedStore",
    "imported",
    "policies_of",
    "read_argocd",
    "read_flux",
    "reason_to_skip",
    "safe_name",
]
