"""Print the share of harmless changes that pass with default settings, and of harmful ones."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.gate.changes import HARMFUL, HARMLESS
from tests.gate.checks import VERSIONS, check_harmful, cluster_of, red_ones, with_pending_pods
from tests.gate.sets import SETS


def main() -> None:
    """Print one line per version."""
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            cluster = cluster_of(version, folder)
            red = list(red_ones(cluster, folder))
            crowded = with_pending_pods(cluster)
            green = [
                each.name
                for number, each in enumerate(HARMFUL)
                for place in (cluster, crowded)
                if check_harmful(place, each, folder / f"{number}-{place.stem}")[0] == 0
            ]
        total = len(SETS) * len(HARMLESS)
        harmful = 2 * len(HARMFUL)
        lines = [
            f"{version}: {total - len(red)} of {total} harmless changes pass, {len(green)} of {harmful} harmful",
            *(f"  {each}" for each in (*red, *green)),
        ]
        sys.stdout.writelines(f"{line}\n" for line in lines)


main()
