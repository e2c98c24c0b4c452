"""A plan as text, JSON and JSON patches."""

from reconciler.report.plan.change_lines import placement_lines, spoken, totals
from reconciler.report.plan.equal_changes import alike, alike_lines, by_folder
from reconciler.report.plan.first_line import first_line, plain
from reconciler.report.plan.plan_json import plan_document
from reconciler.report.plan.plan_text import has_destruction, plan_text
from reconciler.report.plan.stages import stage_lines
