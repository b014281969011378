"""What must hold on clusters as they are, and whether it does: ``python -m benchmarks.bounds``.

Decisions are held against the real scheduler's code on the same dump and cores, as a ratio; what has no counterpart
there is held against seconds and bytes. The seconds are those of the clock, so that the machine must be quiet.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tabulate import tabulate

from benchmarks import check
from benchmarks.clusters import write_cluster
from benchmarks.decide import DECISION, reference_seconds
from benchmarks.lifelike import FEATURES, Feature, question, write_lifelike

PODS_PER_NODE = 30
SMALL = 100
# The most that a decision may take of what the real scheduler's code does.
OF_TIES, OF_OTHERS = 0.2, 0.4
SECONDS_OF_SMALL, SECONDS_OF_PREPARING, SECONDS_OF_EXPLAIN, SECONDS_OF_HELP, SECONDS_OF_CHECK = (
    0.01,
    0.4,
    2.0,
    0.09,
    8.0,
)
BYTES_OF_EXPLAIN = 350e6
PROGRAM = str(Path(sys.executable).parent / "kpreempt")


class Row(NamedTuple):
    """A case, what it took, and the most that it may."""

    case: str
    measured: float
    bound: float
    unit: str
    note: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000, help="of the big cluster, of 30 pods each")
    parser.add_argument("--runs", type=int, default=3, help="times that each is measured")
    parser.add_argument("--without-reference", action="store_true", help="leave the ratios out, which need Go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(_rows(Path(folder), options))
    cells = [
        [row.case, f"{row.measured:.3g} {row.unit}", f"{row.bound:.3g} {row.unit}", _held(row), row.note]
        for row in rows
    ]
    print(tabulate(cells, headers=["case", "measured", "bound", "holds", ""], disable_numparse=True))


def _held(row: Row) -> str:
    return "yes" if row.measured <= row.bound else "NO"


def _rows(folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    choices: list[tuple[Feature, ...]] = [(), *((each,) for each in FEATURES)]
    for features in choices:
        name = " and ".join(("ties", *features))
        print(f"{name}, {options.nodes:,} nodes ...", file=sys.stderr)
        of_case = Measured(folder, options.nodes, features, options.runs)
        if options.without_reference:
            yield Row(f"decision, {name}", of_case.decision, float("inf"), "s")
        else:
            bound = OF_OTHERS if features else OF_TIES
            yield Row(f"decision, {name}", of_case.decision / of_case.real, bound, "x", f"{of_case.decision:.3f} s")
        if not features:
            yield Row("whole explain", of_case.whole, SECONDS_OF_EXPLAIN, "s")
            yield Row("memory of explain", of_case.memory / 1e6, BYTES_OF_EXPLAIN / 1e6, "MB")
            yield Row("prepare", of_case.prepare, SECONDS_OF_PREPARING, "s")
    small = Measured(folder, SMALL, (), options.runs)
    yield Row(f"decision, {SMALL} nodes", small.decision, SECONDS_OF_SMALL, "s")
    if not options.without_reference:
        yield Row(f"decision, {SMALL} nodes", small.decision / small.real, OF_OTHERS, "x")
    yield Row("check, 500 replicas that evict", _rollout(folder), SECONDS_OF_CHECK, "s", "1,000 nodes, 20,000 pods")
    helps = [_seconds([PROGRAM, "--help"]) for _ in range(max(5, options.runs))]
    yield Row("--help", statistics.median(helps), SECONDS_OF_HELP, "s")


class Measured:
    """The figures of one cluster, each the median of ``runs``; ``memory`` is the highest, in bytes."""

    def __init__(self, folder: Path, nodes: int, features: Sequence[Feature], runs: int) -> None:
        self._cluster, self._features, self._runs = folder / "cluster.json", features, runs
        write_lifelike(self._cluster, nodes=nodes, pods_per_node=PODS_PER_NODE, features=features)
        pod = folder / "pod.json"
        pod.write_text(json.dumps(question(features)), encoding="utf-8")
        profile = folder / "profile.json"
        command = [PROGRAM, "explain", "--algorithm", "kube-1.36", "-f", str(pod), "--snapshot", str(self._cluster)]
        wholes, profiles = [], []
        for _ in range(runs):
            wholes.append(_seconds([*command, "--profile-json", str(profile)]))
            profiles.append(json.loads(profile.read_text(encoding="utf-8")))
        self.whole = statistics.median(wholes)
        self.memory = max(each["peakMemoryBytes"] for each in profiles)
        self.prepare = _median_of(profiles, ["prepare"])
        self.decision = _median_of(profiles, DECISION)

    @property
    def real(self) -> float:
        """Seconds of the same decision by the real scheduler's code."""
        return sum(reference_seconds(self._cluster, question(self._features), self._runs).values())


def _median_of(profiles: Sequence[dict[str, Any]], phases: Sequence[str]) -> float:
    return statistics.median(sum(each["phases"].get(name, 0.0) for name in phases) for each in profiles)


def _seconds(command: Sequence[str]) -> float:
    """Seconds of the clock; what the command says of the cluster is not looked at."""
    start = time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _rollout(folder: Path) -> float:
    cluster, manifest = folder / "rollout.json", folder / "change.json"
    write_cluster(cluster, nodes=1_000, pods_per_node=20, style="json", fat=False, flavour="budgets")
    manifest.write_text(json.dumps(check.deployment("displaces", 500)), encoding="utf-8")
    return _seconds([PROGRAM, "check", "--algorithm", "kube-1.36", "-f", str(manifest), "--snapshot", str(cluster)])


if __name__ == "__main__":
    main()
