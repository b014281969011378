"""Performance bounds on realistic clusters, and whether they hold: ``python -m benchmarks.bounds``.

Decisions are compared with the real scheduler's code on the same dump, as a ratio; everything without a counterpart
there is compared with seconds and bytes. Seconds are those of the machine on which bounds were set, where the real code
decides the first case in ``GENUINE_SECONDS``: each row also measures how long that takes here, and ``here`` is the
bound in seconds of this machine. Both sides are measured alternately, as medians of processor time, so that other load
matters little. Ours runs on one core; the real code's time is divided by the cores that it uses, which is a lower bound
for its elapsed time. Commands that use several cores are measured in elapsed time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tabulate import tabulate

from benchmarks import check, volcano
from benchmarks.clusters import write_cluster
from benchmarks.decide import DECISION, reference_bench
from benchmarks.lifelike import FEATURES, Feature, preemptor, waiting, write_lifelike

PODS_PER_NODE = 30
NODES, SMALL = 5_000, 100
WAITING, KINDS = 2_000, 60
LIVE = 110
# Of its 20 namespaces, one has 7,484 pods.
NAMESPACE = "team-04"
# The maximum ratio of a decision to the real scheduler's code.
OF_TIES, OF_OTHERS = 0.2, 0.4
PAGE = Path("docs/performance.md")
# The median ratio when the bounds were set (0.8 to 1.4), for a decision on 5,000 nodes with ties.
GENUINE_SECONDS = 1.1
# Frames the table there.
_BEGIN, _END = "<!-- bounds -->", "<!-- end of bounds -->"
PROGRAM = str(Path(sys.executable).parent / "kpreempt")
# The real scheduler's code uses at most this many goroutines.
_WORKERS = 16
# Decisions this short get more runs.
_RUNS_OF_SMALL = 9


class Figures(NamedTuple):
    """Measurements of a case: ours, and those of the real scheduler's code if compared with it."""

    ours: float
    genuine: float | None = None
    note: str = ""


class Place(NamedTuple):
    """How a case is measured, and how often; ``genuine`` is true if the real code is measured, too."""

    folder: Path
    runs: int
    genuine: bool


class Row(NamedTuple):
    """A case, its bound in ``unit`` (``x``: relative to the real code), and how it is measured."""

    name: str
    case: str
    bound: float
    unit: str
    figures: Callable[[Place], Figures]


def main() -> None:
    rows = _rows()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds", description=__doc__)
    names = ", ".join(row.name for row in rows)
    parser.add_argument("--only", action="append", metavar="ROW", help=f"these rows alone: {names}")
    parser.add_argument("--runs", type=int, default=3, help="times that each is measured")
    parser.add_argument("--without-reference", action="store_true", help="leave the ratios out, which need Go")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}, too")
    options = parser.parse_args()
    unknown = set(options.only or ()) - {row.name for row in rows}
    if unknown:
        parser.error(f"there is no row {sorted(unknown)[0]}: {names}")
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), options.runs, not options.without_reference)
        for row in rows:
            if options.only and row.name not in options.only:
                continue
            print(f"{row.case} ...", file=sys.stderr)
            is_scaled = row.unit == "s" and place.genuine
            before = _slowness(place) if is_scaled else 1.0
            figures = row.figures(place)
            # Other load may change while the row is measured.
            after = _slowness(place) if is_scaled else 1.0
            cells.append(_cells(row, figures, (before + after) / 2))
    headers = ["row", "case", "bound", "here", "real", "ours", "ratio", "holds", ""]
    print(tabulate(cells, headers=headers, disable_numparse=True))
    if options.write:
        table = tabulate(cells, headers=headers, disable_numparse=True, tablefmt="github")
        before, _, after = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
        PAGE.write_text(f"{before}{_BEGIN}\n\n{table}\n\n{_END}{after.partition(_END)[2]}", encoding="utf-8")


def _slowness(place: Place) -> float:
    """Return the slowdown of the real code here and now, relative to when the bounds were set."""
    seconds = reference_bench(_cluster(place, NODES, ()), preemptor(), 1)["cpu"] / _cores()
    return seconds / GENUINE_SECONDS


def _cores() -> int:
    """Return the number of cores that the real code uses."""
    return min(len(os.sched_getaffinity(0)), _WORKERS)


def _cells(row: Row, found: Figures, slowness: float) -> list[str]:
    unit = "s" if row.unit == "x" else row.unit
    bound = row.bound * slowness
    genuine = "" if found.genuine is None else f"{found.genuine:.3g} s"
    ratio = None if found.genuine is None else found.ours / found.genuine
    measured = ratio if row.unit == "x" else found.ours
    holds = "" if measured is None else "yes" if measured <= bound else "NO"
    reported = "" if ratio is None else f"{ratio:.2f}"
    return [
        row.name,
        row.case,
        f"{row.bound:.3g} {row.unit}",
        f"{bound:.3g} s" if row.unit == "s" else "",
        genuine,
        f"{found.ours:.3g} {unit}",
        reported,
        holds,
        found.note,
    ]


def _rows() -> list[Row]:
    big = f"{NODES:,} nodes, {NODES * PODS_PER_NODE:,} pods"
    return [
        Row("ties", f"decision, {big}, 200 budgets, ties", OF_TIES, "x", partial(_decision, NODES, ())),
        *(Row(name, f"the same with {name}", OF_OTHERS, "x", partial(_decision, NODES, (name,))) for name in FEATURES),
        Row("small", f"decision, {SMALL} nodes", OF_OTHERS, "x", partial(_decision, SMALL, ())),
        Row("small-seconds", f"decision, {SMALL} nodes", 0.01, "s", partial(_decision, SMALL, ())),
        Row("explain", "whole explain, lean JSON, ties", 2.0, "s", lambda place: Figures(_explain(place)[0])),
        Row("explain-memory", "its highest memory", 350, "MB", lambda place: Figures(_explain(place)[1])),
        Row("prepare", "records to a scheduler that can answer", 0.4, "s", partial(_of_ties, "prepare")),
        Row("memory", "resident, when it can answer", 250, "MB", partial(_of_ties, "megabytes")),
        Row("check", "check, 500 replicas that evict (1,000 nodes, 20,000 pods)", 8.0, "s", _rollout),
        Row("pending", f"pending, {WAITING:,} pods of {KINDS} kinds, {big}", 15.0, "s", _pending),
        Row("at-risk", f"at-risk, a namespace of 7,500 pods, {big}", 3.0, "s", _at_risk),
        Row("volcano", "Volcano session, 1,000 nodes, 20,200 pods, 200 waiting", 2.0, "x", _volcano),
        Row("live", f"explain of a live cluster, {LIVE} nodes", 0.6, "s", _live),
        Row("help", "--help", 0.09, "s", _help),
    ]


_DECIDE = """
import gc, json, sys, time
from contextlib import contextmanager
from datetime import UTC, datetime
from kpreempt.admission import apply_api_defaults, complete_cluster
from kpreempt.cli.process import COLLECTION_THRESHOLDS
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.load import load_snapshot
class Clock(dict):
    @contextmanager
    def phase(self, name):
        start = time.process_time()
        yield
        self[name] = self.get(name, 0.0) + time.process_time() - start
    part = phase
gc.set_threshold(*COLLECTION_THRESHOLDS)
cluster, _ = complete_cluster(load_snapshot([sys.argv[1]]).cluster)
pod = apply_api_defaults(decode_object("Pod", json.loads(sys.argv[2])))
# As every command does.
gc.freeze()
scheduler, clock = KubeScheduler(), Clock()
with clock.phase("prepare"):
    prepared = scheduler.prepare(cluster, now=datetime.now(UTC))
clock["megabytes"] = int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) / 1e3
scheduler.decide(prepared, pod, records_steps=False, phases=clock)
print(json.dumps(clock))
"""


@cache
def _measured(place: Place, nodes: int, features: Sequence[Feature]) -> tuple[dict[str, float], float | None]:
    """Return the medians of our phases and of the real code's decision, measured alternately."""
    cluster, pod = _cluster(place, nodes, features), preemptor(features)
    phases, genuine = [], []
    command = [sys.executable, "-c", _DECIDE, str(cluster), json.dumps(pod)]
    # As in every command. Otherwise NumPy's unused linear algebra threads spin for some milliseconds.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    runs = place.runs if nodes > SMALL else max(place.runs, _RUNS_OF_SMALL)
    for _ in range(runs):
        run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        phases.append(json.loads(run.stdout))
        if place.genuine:
            genuine.append(reference_bench(cluster, pod, 3)["cpu"] / _cores())
    ours = {name: statistics.median(each.get(name, 0.0) for each in phases) for name in phases[0]}
    return ours, statistics.median(genuine) if genuine else None


def _cluster(place: Place, nodes: int, features: Sequence[Feature]) -> Path:
    path = place.folder / f"{nodes}-{'-'.join(features)}.json"
    if not path.exists():
        write_lifelike(path, nodes=nodes, pods_per_node=PODS_PER_NODE, features=features)
    return path


def _decision(nodes: int, features: Sequence[Feature], place: Place) -> Figures:
    ours, genuine = _measured(place, nodes, features)
    return Figures(sum(ours.get(name, 0.0) for name in DECISION), genuine)


def _of_ties(name: str, place: Place) -> Figures:
    return Figures(_measured(place._replace(genuine=False), NODES, ())[0][name])


@cache
def _explain(place: Place) -> tuple[float, float]:
    """Return the seconds and peak megabytes of a complete ``explain`` on the big cluster with ties."""
    cluster, pod, profile = _cluster(place, NODES, ()), place.folder / "pod.json", place.folder / "profile.json"
    pod.write_text(json.dumps(preemptor()), encoding="utf-8")
    command = ["explain", "--algorithm", "kube-1.36", "-f", str(pod), "--snapshot", str(cluster)]
    seconds, peaks = [], []
    for _ in range(place.runs):
        seconds.append(_seconds(place, [*command, "--profile-json", str(profile)]).processor)
        peaks.append(json.loads(profile.read_text(encoding="utf-8"))["peakMemoryBytes"] / 1e6)
    return statistics.median(seconds), max(peaks)


def _rollout(place: Place) -> Figures:
    cluster, manifest = place.folder / "rollout.json", place.folder / "change.json"
    write_cluster(cluster, nodes=1_000, pods_per_node=20, style="json", fat=False, flavour="budgets")
    manifest.write_text(json.dumps(check.deployment("displaces", 500)), encoding="utf-8")
    arguments = ["check", "--algorithm", "kube-1.36", "-f", str(manifest), "--snapshot", str(cluster)]
    return _command(place._replace(runs=1), arguments, by_clock=True)


def _pending(place: Place) -> Figures:
    pods = place.folder / "waiting.json"
    items = list(waiting(WAITING, KINDS))
    pods.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    snapshots = ["--snapshot", str(_cluster(place, NODES, ())), "--snapshot", str(pods)]
    return _command(place, ["pending", "--algorithm", "kube-1.36", *snapshots], by_clock=True)


def _at_risk(place: Place) -> Figures:
    cluster = str(_cluster(place, NODES, ()))
    return _command(place, ["at-risk", "-n", NAMESPACE, "--algorithm", "kube-1.36", "--snapshot", cluster])


def _volcano(place: Place) -> Figures:
    """Measure both as complete commands, including reading the cluster."""
    cluster, configuration = place.folder / "volcano.json", place.folder / "volcano.yaml"
    items = list(volcano.cluster(1_000))
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    configuration.write_text(yaml.safe_dump(volcano.CONFIGURATION), encoding="utf-8")
    options = ["--snapshot", str(cluster), "--scheduler-config", str(configuration), "--now", volcano.NOW]
    ours = _command(place, ["volcano", *options])
    if not place.genuine:
        return ours
    # Builds the program, which only this comparison needs.
    from tests.parity.volcano_reference import volcano_program  # noqa: PLC0415

    scenario = json.dumps({"name": "", "objects": items, "conf": configuration.read_text(encoding="utf-8")})
    run = partial(subprocess.run, [volcano_program()], check=True, input=scenario.encode(), stdout=subprocess.DEVNULL)
    genuine = statistics.median(_timed(run).processor for _ in range(place.runs)) / _cores()
    return ours._replace(genuine=genuine)


def _live(place: Place) -> Figures:
    """Measure a server in this process, whose own time only counts in elapsed time."""
    # Only a checkout has the tests.
    from tests.fake_api import FakeApi, FakeCluster, objects_by_kind  # noqa: PLC0415

    items = json.loads(_cluster(place, LIVE, ()).read_text(encoding="utf-8"))["items"]
    pod = place.folder / "pod.json"
    pod.write_text(json.dumps(preemptor()), encoding="utf-8")
    with FakeApi(FakeCluster(objects_by_kind(items))) as server:
        return _command(place, ["explain", "-f", str(pod), "--server", server.url])


def _help(place: Place) -> Figures:
    return _command(place._replace(runs=max(5, place.runs)), ["--help"])


class Seconds(NamedTuple):
    """The processor time and the elapsed time of a command."""

    processor: float
    clock: float


def _command(place: Place, arguments: Sequence[str], *, by_clock: bool = False) -> Figures:
    """Return the median of processor time with elapsed time as a note, or vice versa."""
    runs = [_seconds(place, arguments) for _ in range(place.runs)]
    processor = statistics.median(run.processor for run in runs)
    clock = statistics.median(run.clock for run in runs)
    if by_clock:
        return Figures(clock, note=f"{processor:.3g} s of all cores")
    return Figures(processor, note=f"{clock:.3g} s by the clock")


def _seconds(place: Place, arguments: Sequence[str]) -> Seconds:
    """Return the command's time; its output is ignored. It is compiled, as if installed."""
    compiled = place.folder / "compiled"
    environment: dict[str, Any] = {**os.environ, "PYTHONPYCACHEPREFIX": str(compiled)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("KUBECONFIG", None)
    command = [PROGRAM, *arguments]
    run = partial(subprocess.run, command, check=False, stdout=subprocess.DEVNULL, env=environment)
    if not (compiled / arguments[0]).exists():
        run()
        (compiled / arguments[0]).touch()
    return _timed(run)


def _timed(run: Callable[[], object]) -> Seconds:
    """Return the time of the processes that ``run`` starts and waits for."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run()
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return Seconds(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock)


if __name__ == "__main__":
    main()
