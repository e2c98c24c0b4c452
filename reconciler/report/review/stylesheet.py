"""Style of the page of a plan: light and dark, on a desk, on a phone and on paper, without external resources."""

from __future__ import annotations

STYLESHEET = """
:root { color-scheme: light dark; --ink: #1f2328; --dim: #59636e; --ground: #fff; --panel: #f6f8fa; --rule: #d1d9e0;
  --red: #b3261e; --red-ground: #fff1f0; --green: #116329; --green-ground: #eaf7ee; --yellow: #7d4e00;
  --yellow-ground: #fff8e5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --ground: #0d1117; --panel: #151b23;
  --rule: #3d444d; --red: #ff8f87; --red-ground: #2d1513; --green: #7ee2a0; --green-ground: #0f2417;
  --yellow: #eac055; --yellow-ground: #2a2110; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 76rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; line-height: 1.35; margin: 0 0 .4rem; text-wrap: pretty; }
h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; }
code, pre, td.field { font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }
h1 code { font-size: .92em; background: var(--panel); border-radius: 4px; padding: .05em .3em; }
.dim { color: var(--dim); }
.box { border: 1px solid var(--rule); border-left: 4px solid var(--rule); border-radius: 6px; padding: .6rem .9rem;
  margin: .8rem 0; }
.box p { margin: .15rem 0; }
.entry { border: 1px solid var(--rule); border-radius: 6px; margin: .5rem 0; overflow: hidden; }
.entry > pre { margin: 0; padding: .55rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.loss, .entry.loss { border-color: var(--red); border-left-width: 4px; background: var(--red-ground); }
.fault { border-color: var(--yellow); background: var(--yellow-ground); }
.minus { color: var(--red); background: var(--red-ground); }
.plus { color: var(--green); background: var(--green-ground); }
.head { font-weight: 600; }
summary { cursor: pointer; font-weight: 600; margin: 1.6rem 0 .5rem; }
summary:focus-visible { outline: 2px solid currentColor; outline-offset: 3px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--rule); padding: .25rem .6rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
th { background: var(--panel); }
@media print { details { display: block; } body { max-width: none; } }
"""
"""Nothing in it comes from a store."""
