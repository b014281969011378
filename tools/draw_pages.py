"""Draw pages at random for an editor to read: help pages, reports and pages of the docs.

``python tools/draw_pages.py SEED`` prints the names of ten of each kind, ``--text`` their text as well, ``--count N``
draws N of each. The same seed and the same pages give the same draw.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kpreempt.cli.requests import COMMANDS

ROOT = Path(__file__).parent.parent
GOLDENS = ("golden", "golden-answers", "golden-check", "golden-screens")
REPORTS = (".txt", ".text", ".md")


def pages() -> Mapping[str, Sequence[str]]:
    """The names of all pages by kind, sorted: commands, and files by their path in the repository."""
    reports = (path for folder in GOLDENS for path in (ROOT / "fixtures" / folder).rglob("*"))
    docs = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return {
        "help": sorted(f"kpreempt help {command}" for command in COMMANDS),
        "reports": sorted(str(path.relative_to(ROOT)) for path in reports if path.suffix in REPORTS),
        "docs": sorted(str(path.relative_to(ROOT)) for path in docs),
    }


def text_of(page: str) -> str:
    """What a page says."""
    if not page.startswith("kpreempt "):
        return (ROOT / page).read_text(encoding="utf-8")
    command = [sys.executable, "-m", "kpreempt", *page.split()[1:]]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def main(arguments: Sequence[str]) -> int:
    """Print the draw."""
    parser = argparse.ArgumentParser(description="Draw pages at random for an editor to read.")
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=10, help="pages of each kind (default 10)")
    parser.add_argument("--text", action="store_true", help="print the text of each page as well")
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)  # noqa: S311 - a draw that can be repeated
    for kind, names in pages().items():
        print(f"{kind}:")
        for name in sorted(chance.sample(names, min(options.count, len(names)))):
            print(f"  {name}")
            if options.text:
                print(f"{'=' * 80}\n{text_of(name)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
