"""The pages of a browser, drawn from the views: values in, HTML out. Knows nothing of HTTP, clocks and the journal."""

from reconciler.web.pages.cluster import cluster_page
from reconciler.web.pages.fleet import fleet_page
from reconciler.web.pages.lists import history_page, not_found_page, not_shown_page, problems_page
from reconciler.web.pages.object import object_page
from reconciler.web.pages.static_files import CACHE_CONTROL, CONTENT_SECURITY_POLICY, STATIC_FILES, StaticFile

__all__ = [
    "CACHE_CONTROL",
    "CONTENT_SECURITY_POLICY",
    "STATIC_FILES",
    "StaticFile",
    "cluster_page",
    "fleet_page",
    "history_page",
    "not_found_page",
    "not_shown_page",
    "object_page",
    "problems_page",
]
