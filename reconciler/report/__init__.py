"""A plan as text, Markdown, JSON and review forms. Secret values are masked here."""

from reconciler.report.difference import compact_json, value_texts
from reconciler.report.json_parts import json_text, problems_part
from reconciler.report.mask import Masker, scrub_text
from reconciler.report.problems_text import problems_text
from reconciler.report.render_json import Rendering, dump_yaml, render_json, render_yaml, rendering, sorted_manifests
from reconciler.report.safe_text import ascii_json, inert, joined, visible
from reconciler.report.terminal import PLAIN, Fit, Style, folded, table, text_width
