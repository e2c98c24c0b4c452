"""Values that the page and its JSON show."""

from reconciler.report.views.cluster_views import ProcessState, cluster_view, fleet_view, problems_view
from reconciler.report.views.live_view import LiveReading, LiveView, live_view
from reconciler.report.views.matrix import matrix_view, rows_at_once
from reconciler.report.views.object_view import object_view
from reconciler.report.views.queries import FILTERS, FOLDS, DayView, HistoryQuery, MatrixQuery, NotFound, day_view
from reconciler.report.views.view_inputs import JournalRows, ViewModel
from reconciler.report.views.view_shapes import (
    Alert,
    AlertKind,
    CapacityPart,
    ClusterHead,
    ClusterView,
    CopyPart,
    FieldDifference,
    FleetView,
    MatrixRow,
    MatrixView,
    ObjectView,
    ProblemsView,
    ResourceView,
    SourcePart,
    Timer,
    Weight,
)
