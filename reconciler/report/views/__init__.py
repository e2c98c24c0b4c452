"""Values that the page and its JSON show."""

from reconciler.report.views.cluster_views import Signs, cluster_view, fleet_view, problems_view
from reconciler.report.views.live_view import LiveReading, LiveView, live_view
from reconciler.report.views.matrix import matrix_view, rows_at_once
from reconciler.report.views.object_view import object_view
from reconciler.report.views.questions import (
    FILTERS,
    FOLDS,
    DayView,
    HistoryQuestion,
    MatrixQuestion,
    NotFound,
    day_view,
)
from reconciler.report.views.view_inputs import JournalRows, ViewModel
from reconciler.report.views.view_shapes import (
    Alert,
    AlertKind,
    ClusterHead,
    ClusterView,
    FleetView,
    MatrixView,
    ObjectView,
    ProblemsView,
    ResourceView,
    Weight,
)
