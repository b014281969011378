"""Print the share of harmless changes that pass with default settings, and of harmful ones."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.gate.changes import HARMFUL, HARMLESS
from tests.gate.checks import VERSIONS, check_harmful, cluster_of, red_ones
from tests.gate.sets import SETS


def main() -> None:
    """Print one line per version."""
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            cluster = cluster_of(version, folder)
            red = list(red_ones(cluster, folder))
            green = [
                each.name
                for number, each in enumerate(HARMFUL)
                if check_harmful(cluster, each, folder / str(number))[0] == 0
            ]
        total = len(SETS) * len(HARMLESS)
        lines = [
            f"{version}: {total - len(red)} of {total} harmless changes pass, {len(green)} of {len(HARMFUL)} harmful",
            *(f"  {each}" for each in (*red, *green)),
        ]
        sys.stdout.writelines(f"{line}\n" for line in lines)


main()
