"""Draw docs/pictures/demo.svg from a real run of the demo: an override in one cluster, and a hand edit that is healed.

Usage: python scripts/make_demo_picture.py
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from make_pictures import SVG
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs/pictures/demo.svg"
COLUMNS = 132
BEGINS, ENDS = "3/6 ", "5/6 "


def main() -> None:
    """Write the picture."""
    # What is told on a terminal, without the table that moves.
    told = subprocess.run(
        [sys.executable, "-m", "reconciler", "demo"],
        env={**os.environ, "CLICOLOR_FORCE": "1", "COLUMNS": str(COLUMNS)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = told.splitlines()
    first, last = (next(n for n, line in enumerate(lines) if title in line) for title in (BEGINS, ENDS))
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(lines[first:last]).rstrip()))
    TARGET.write_text(console.export_svg(title="", code_format=SVG, unique_id="demo"), encoding="utf-8")
    sys.stdout.write(f"{TARGET.relative_to(ROOT)} written\n")


if __name__ == "__main__":
    main()
