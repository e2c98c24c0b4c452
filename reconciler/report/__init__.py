"""A plan as text, Markdown, JSON and review forms. Secret values are masked here."""

from reconciler.report.difference import shown_pair
from reconciler.report.json_parts import problems_part
from reconciler.report.mask import Masker, scrub_text
from reconciler.report.problems_text import problems_text
from reconciler.report.render_json import dump_yaml, render_json, render_yaml, rendering
from reconciler.report.safe import ascii_json, visible
from reconciler.report.terminal import PLAIN, Style, table, text_width
