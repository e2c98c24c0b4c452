"""Draw docs/pictures from real output: the example store, with one commit on top, compared without any cluster.

With --check, nothing is written and the exit code is 1 when a picture is out of date.

Usage: python scripts/make_pictures.py [--check]
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs/pictures/diff.svg"
COMMAND = "reconciler diff --base HEAD"
COLUMNS = 148

# The format of rich without its fonts, which a browser would fetch from elsewhere.
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
  <style>
    .{unique_id}-matrix {{
      font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
      font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
    }}
    {styles}
  </style>
  <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
  </defs>
  {chrome}
  <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
  </g>
</svg>
"""


def main() -> int:
    """Write the picture, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "fleet"
        # The pages' own examples would fill the picture with what they are not about.
        shutil.copytree(ROOT / "examples/fleet-repo", store, ignore=shutil.ignore_patterns("pages", "inference"))
        _git(store, "init", "--quiet")
        _git(store, "add", ".")
        _git(store, "commit", "--quiet", "--message=Begin")
        _edit(store)
        output = _reconciler(store)
    TARGET.parent.mkdir(exist_ok=True)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold green"), COMMAND))
    console.print(Text.from_ansi(output.rstrip("\n")))
    # A fixed id: the same output gives the same file.
    picture = console.export_svg(title="", code_format=SVG, unique_id="diff")
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == picture:
        return 0
    if not check:
        TARGET.write_text(picture, encoding="utf-8")
    verb = "out of date: run python scripts/make_pictures.py" if check else "written"
    sys.stdout.write(f"{TARGET.relative_to(ROOT)} {verb}\n")
    return int(check)


def _edit(store: Path) -> None:
    """A new image, more replicas, and a Service that nobody needs any more."""
    web = store / "apps/shop/web.yaml"
    text = web.read_text(encoding="utf-8").replace("nginx:1.27", "nginx:1.28").replace("replicas: 6", "replicas: 9")
    kept = [part for part in text.split("---\n") if "kind: Service\n" not in part]
    web.write_text("---\n".join(kept), encoding="utf-8")


def _git(store: Path, *arguments: str) -> None:
    identity = {
        f"GIT_{who}_{what}": "demo@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    dates = {f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}
    subprocess.run(["git", "-C", str(store), *arguments], check=True, env={**os.environ, **identity, **dates})  # noqa: S603, S607


def _reconciler(store: Path) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "reconciler", *COMMAND.split()[1:]],
        cwd=store,
        env={**os.environ, "CLICOLOR_FORCE": "1", "COLUMNS": str(COLUMNS)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
