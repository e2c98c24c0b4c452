"""Pages of a browser, drawn from views."""

from reconciler.server.pages.drawing import CACHE_CONTROL, CONTENT_SECURITY_POLICY, STATIC_FILES
from reconciler.server.pages.page_links import ago, clock_time, commit_link, file_link, matrix_query, until
from reconciler.server.pages.page_views import (
    cluster_page,
    fleet_page,
    history_page,
    not_found_page,
    not_shown_page,
    object_page,
    problems_page,
)
