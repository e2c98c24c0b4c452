"""An application of another tool in our terms, and the store of many. Reads no disk."""

from reconciler.stages.importing.apps.app import App, Inline, Member, Membership
from reconciler.stages.importing.apps.charts import local_chart, plain, remote_chart
from reconciler.stages.importing.apps.checkouts import Checkout, Checkouts, Place
from reconciler.stages.importing.apps.compose import ImportedStore, compose_store
from reconciler.stages.importing.apps.ignore import Ignored, ignored
from reconciler.stages.importing.apps.kustomization import Overlay, overlay_of
from reconciler.stages.importing.apps.kustomized import Manifests, folder_of_kustomization, folder_of_manifests
from reconciler.stages.importing.apps.names import safe_name
from reconciler.stages.importing.apps.reading import PRUNE, LeftOut, Notes, Reading, Uncarried, checked_url
from reconciler.stages.importing.apps.settings import Settings, of_settings, values_of

__all__ = [
    "PRUNE",
    "App",
    "Checkout",
    "Checkouts",
    "Ignored",
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
    "local_chart",
    "of_settings",
    "overlay_of",
    "plain",
    "remote_chart",
    "safe_name",
    "values_of",
]
