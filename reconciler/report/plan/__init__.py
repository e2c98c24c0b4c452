"""A plan as text, JSON and JSON patches."""

from reconciler.report.plan.alike import alike
from reconciler.report.plan.change_lines import totals
from reconciler.report.plan.plan_text import plan_text
