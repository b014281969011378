"""Decision times on clusters of any size: ``python -m benchmarks.decide --sizes 100,1000 --against-reference``.

A separate process reads the dump and decides twice, and reports the phases of both; another one runs the complete
command. All figures are medians of several runs. The reference is the real scheduler's code, on the same dump and
cores.
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

from benchmarks.clusters import FLAVOURS, Flavour, Style, preemptor, write_cluster
from benchmarks.plot import growth_plot

PODS_PER_NODE = 30
SIZES = (100, 1_000, 5_000, 20_000)
DECISION = ("filter", "dryRun", "choice")
PHASES = ("read", "decode", "prepare", *DECISION, "odds", "report")
Seconds = dict[str, float]


class Case(NamedTuple):
    """A cluster to decide on."""

    nodes: int
    flavour: Flavour
    style: Style
    fat: bool

    @property
    def name(self) -> str:
        return f"{'fat' if self.fat else 'lean'} {self.style.upper()}"


def main() -> None:
    options = _parser().parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for case in _cases(options):
            print(f"{case.flavour}, {case.nodes:,} nodes, {case.name} ...", file=sys.stderr)
            results.append(measure(case, Path(folder), options.runs, against_reference=options.against_reference))
    print(to_table(results))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if options.plot:
        Path(options.plot).write_text(growth_plot(_series(results)), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decide", description=__doc__)
    parser.add_argument("--sizes", type=_numbers, default=SIZES, metavar="N,N", help="nodes, of 30 pods each")
    parser.add_argument("--flavours", type=_names, default=("budgets", "affinity"), metavar="NAME,NAME")
    parser.add_argument("--styles", type=_names, default=("json",), metavar="json,yaml")
    parser.add_argument("--fat", action="store_true", help="objects as kubectl writes them, not just what is needed")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--against-reference", action="store_true", help="time the real scheduler's code as well")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="FILE", help="growth as SVG")
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    for flavour in options.flavours:
        if flavour not in FLAVOURS:
            raise SystemExit(f"there is no flavour {flavour!r}: {', '.join(FLAVOURS)}")
        for style in options.styles:
            for nodes in options.sizes:
                yield Case(nodes, flavour, style, options.fat)


def measure(case: Case, folder: Path, runs: int, *, against_reference: bool) -> dict[str, Any]:
    """Return all figures of a case: seconds, and peak memory in bytes."""
    snapshot, pod = folder / f"cluster.{case.style}", folder / "pod.json"
    size = write_cluster(
        snapshot, nodes=case.nodes, pods_per_node=PODS_PER_NODE, style=case.style, fat=case.fat, flavour=case.flavour
    )
    pod.write_text(json.dumps(preemptor(case.flavour)), encoding="utf-8")
    whole = [_explain(snapshot, pod, folder / "profile.json") for _ in range(runs)]
    twice = [_answer_twice(snapshot, case.flavour) for _ in range(runs)]
    result: dict[str, Any] = {
        "nodes": case.nodes,
        "pods": case.nodes * PODS_PER_NODE,
        "flavour": case.flavour,
        "style": case.name,
        "bytes": size,
        "wholeProcess": statistics.median(seconds for seconds, _ in whole),
        "peakMemoryBytes": max(profile["peakMemoryBytes"] for _, profile in whole),
        "phases": _medians([profile["phases"] for _, profile in whole], PHASES),
        "firstAnswer": statistics.median(each["first"] for each in twice),
        "secondAnswer": statistics.median(each["second"] for each in twice),
    }
    if against_reference:
        real = reference_seconds(snapshot, preemptor(case.flavour), runs)
        ours, theirs = (sum(seconds[name] for name in DECISION) for seconds in (result["phases"], real))
        result |= {"reference": real, "ratioToReference": ours / theirs}
    return result


def _explain(snapshot: Path, pod: Path, profile: Path) -> tuple[float, dict[str, Any]]:
    """Return the seconds of the complete command, and its profile."""
    program = [str(Path(sys.executable).parent / "kpreempt"), "explain", "--algorithm", "kube-1.36"]
    program += ["-f", str(pod), "--snapshot", str(snapshot)]
    start = time.perf_counter()
    subprocess.run([*program, "--profile-json", str(profile)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start, json.loads(profile.read_text(encoding="utf-8"))


_TWICE = """
import json, sys, time
from datetime import UTC, datetime
begin = time.perf_counter()
from kpreempt.admission import apply_api_defaults
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.load import load_snapshot
cluster = load_snapshot([sys.argv[1]]).cluster
pod = apply_api_defaults(decode_object("Pod", json.loads(sys.argv[2])))
scheduler = KubeScheduler()
prepared = scheduler.prepare(cluster, now=datetime.now(UTC))
scheduler.decide(prepared, pod, records_steps=False)
first = time.perf_counter()
scheduler.decide(prepared, pod, records_steps=False)
print(json.dumps({"first": first - begin, "second": time.perf_counter() - first}))
"""


def _answer_twice(snapshot: Path, flavour: Flavour) -> Seconds:
    """Return the seconds of the first decision, including reading, and of the second one in the same process."""
    arguments = [sys.executable, "-c", _TWICE, str(snapshot), json.dumps(preemptor(flavour))]
    answer: Seconds = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    return answer


def reference_seconds(snapshot: Path, pod: dict[str, Any], runs: int) -> Seconds:
    """Return the seconds of the real scheduler's phases; PreFilter counts toward the filters."""
    bench = reference_bench(snapshot, pod, runs)
    return {
        "filter": bench["preFilter"] + bench["filter"],
        "dryRun": bench["dryRun"],
        "choice": bench["choice"],
    }


def reference_bench(snapshot: Path, pod: dict[str, Any], runs: int) -> Seconds:
    """Return the reference program's phases, each a median of ``runs``, and their processor time."""
    # Builds the program, which only this comparison needs.
    from tests.parity.reference import program  # noqa: PLC0415

    scenario = json.dumps({"name": "", "objects": [], "pod": pod})
    arguments = [str(program("reference")), "-bench", str(runs), "-snapshot", str(snapshot)]
    answer = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True, input=scenario).stdout)
    bench: Seconds = answer["bench"]
    return bench


def _medians(runs: Sequence[Seconds], names: Sequence[str]) -> Seconds:
    return {name: statistics.median(each.get(name, 0.0) for each in runs) for name in names}


def to_table(results: Sequence[dict[str, Any]]) -> str:
    """Print the seconds per phase; ``growth`` is the command's growth relative to the cluster's, against the line
    above.
    """
    headers = ["flavour", "nodes", *PHASES, "whole", "growth", "MB", "first", "second", "real", "ratio"]
    rows = []
    for index, result in enumerate(results):
        before = results[index - 1] if index else {}
        is_series = all(before.get(key) == result[key] for key in ("flavour", "style"))
        growth = (
            (result["wholeProcess"] / before["wholeProcess"]) / (result["nodes"] / before["nodes"])
            if is_series
            else None
        )
        reference = result.get("reference")
        rows.append(
            [
                f"{result['flavour']} {result['style']}",
                f"{result['nodes']:,}",
                *(f"{result['phases'][name]:.3f}" for name in PHASES),
                f"{result['wholeProcess']:.2f}",
                f"{growth:.2f}" if growth else "",
                f"{result['peakMemoryBytes'] / 1e6:.0f}",
                f"{result['firstAnswer']:.2f}",
                f"{result['secondAnswer']:.2f}",
                f"{sum(reference.values()):.3f}" if reference else "",
                f"{result['ratioToReference']:.2f}" if reference else "",
            ]
        )
    return tabulate(rows, headers=headers, disable_numparse=True, colalign=["left"] + ["right"] * (len(headers) - 1))


def _series(results: Sequence[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        decision = sum(result["phases"][name] for name in DECISION)
        series.setdefault(f"{result['flavour']}: whole command", []).append((result["pods"], result["wholeProcess"]))
        series.setdefault(f"{result['flavour']}: decision", []).append((result["pods"], decision))
        load = result["phases"]["read"] + result["phases"]["decode"]
        series.setdefault(f"{result['flavour']}: load", []).append((result["pods"], load))
        gigabytes = result["peakMemoryBytes"] / 1e9
        series.setdefault(f"{result['flavour']}: memory, GB", []).append((result["pods"], gigabytes))
        if "reference" in result:
            real = sum(result["reference"].values())
            series.setdefault(f"{result['flavour']}: real scheduler", []).append((result["pods"], real))
    return series


if __name__ == "__main__":
    main()
