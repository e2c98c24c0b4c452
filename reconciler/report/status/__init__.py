"""Documents of the state of the fleet: status, history, explanation."""

from reconciler.report.status.history_text import event_detail, history_document, history_text
from reconciler.report.status.state_document import StateOfFleet, state_document
from reconciler.report.status.text import status_text
