"""Stores made of live objects, and of documents of Argo CD and Flux."""

from reconciler.importers.app import App, Inline, Member, Membership
from reconciler.importers.argocd import read_argocd
from reconciler.importers.charts import local_chart, plain, remote_chart
from reconciler.importers.checkouts import Checkout, Checkouts, Place
from reconciler.importers.compose import ImportedStore, compose_store
from reconciler.importers.flux import read_flux
from reconciler.importers.ignore import Ignored, ignored
from reconciler.importers.kustomization import Overlay, overlay_of
from reconciler.importers.kustomized import Manifests, folder_of_kustomization, folder_of_manifests
from reconciler.importers.names import safe_name
from reconciler.importers.reading import PRUNE, LeftOut, Notes, Reading, Uncarried, checked_url
from reconciler.importers.settings import Settings, of_settings, values_of
from reconciler.importers.several import OBVIOUS_GROUPS, Imported, imported, policies_of
from reconciler.importers.template import reason_to_skip

__all__ = [
    "OBVIOUS_GROUPS",
    "PRUNE",
    "App",
    "Checkout",
    "Checkouts",
    "Ignored",
    "Imported",
    "ImportedStore",
    "Inline",
    "LeftOut",
    "Manifests",
    "Member",
    "Membership",
    "Notes",
    "Overlay",
    "Place",
    "Reading",
    "Settings",
    "Uncarried",
    "checked_url",
    "compose_store",
    "folder_of_kustomization",
    "folder_of_manifests",
    "ignored",
    "imported",
    "local_chart",
    "of_settings",
    "overlay_of",
    "plain",
    "policies_of",
    "read_argocd",
    "read_flux",
    "reason_to_skip",
    "remote_chart",
    "safe_name",
    "values_of",
]
