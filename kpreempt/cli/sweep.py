"""``kpreempt sweep``: from the options to the dataset, with a line per cluster on standard error and a summary."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kpreempt.cli.output import Output, atomic_file, parse_outputs, write_stdout
from kpreempt.cli.runner import time_of_answer
from kpreempt.cli.terminal import (
    EXIT_BUG,
    EXIT_GATE,
    EXIT_INPUT,
    terminal_width,
    wants_color,
    write_to_stderr,
)
from kpreempt.errors import UsageError
from kpreempt.fleet import imported
from kpreempt.fleet.dataset import Dataset, summary_of
from kpreempt.fleet.engine import Workers, connected, swept
from kpreempt.fleet.plan import Plan, PlanOverrides, make_plan
from kpreempt.fleet.sources import Target, targets_of
from kpreempt.report.amounts import count
from kpreempt.report.answers import format_names
from kpreempt.report.escape import printable
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.snapshot.archives import parse_size

if TYPE_CHECKING:
    from kpreempt.cli.requests import SweepRequest
    from kpreempt.fleet.work import Done
    from kpreempt.verdict.sweep import Sweep

_REPORT = "report"


def sweep(request: SweepRequest) -> int:
    """Run the sweep, or report on a dataset, and return the exit code."""
    words = request.words or []
    if words[:1] == [_REPORT]:
        paths = words[1:]
        if len(paths) != 1:
            raise UsageError("sweep report: expected the directory of one dataset", hint="kpreempt sweep report DIR")
        outputs = parse_outputs(
            request.outputs, ("html", *(each for each in format_names(request.answer) if each != "html"))
        )
        answer = summary_of(Dataset(paths[0]))
        if not answer.items:
            raise UsageError(f"{paths[0]}: not a sweep dataset", hint="kpreempt sweep PLAN --to DIR")
        _write(answer, outputs, request)
        return 0
    if len(words) > 1:
        raise UsageError(f"expected one plan, not {len(words)}", hint="kpreempt sweep PLAN --to DIR")
    outputs = parse_outputs(request.outputs, format_names(request.answer))
    plan = make_plan(words[0] if words else "", _given(request))
    if not request.to:
        raise UsageError("--to is required", hint="--to DIR")
    for each in ("dask", "distributed", "pyarrow"):
        imported(each)
    memory = parse_size(request.worker_memory, "--worker-memory") if request.worker_memory else 0
    if request.scheduler and (request.workers or memory):
        raise UsageError(
            "--scheduler cannot be used with --workers or --worker-memory: the Dask cluster has its own workers"
        )
    workers = Workers(request.scheduler or "", request.workers or 0, memory)
    targets = targets_of(plan.snapshots, plan.contexts, plan.kubeconfig)
    dataset = Dataset(request.to)
    dataset.begin(resumes=request.resume)
    # The clusters that failed, or that have no complete partition for this plan and their snapshot.
    digest = plan.digest
    marks = {each.name: dataset.mark(each.name) for each in targets}
    strange = [each for each in marks.values() if each is not None and each.plan != digest]
    if strange or set(dataset.folders()) - {dataset.folder_of(each.name) for each in targets}:
        raise UsageError(f"--resume: {dataset.name} belongs to another plan", hint="--to DIR, another directory")
    missing = [
        each
        for each in targets
        if (mark := marks[each.name]) is None or mark.has_failed or mark.fingerprint != each.fingerprint
    ]
    if request.resume:
        _report(f"{count(len(targets) - len(missing), 'cluster')} already done")
    has_bugs = _run_queries(request, plan, missing, dataset, workers)
    answer = summary_of(dataset)
    _write(answer, outputs, request)
    if has_bugs:
        return EXIT_BUG
    if answer.num_failures:
        return EXIT_INPUT
    return EXIT_GATE if request.strict and answer.uncertain else 0


def _run_queries(
    request: SweepRequest, plan: Plan, targets: Sequence[Target], dataset: Dataset, workers: Workers
) -> bool:
    """Query the clusters, write each partition when it is done, and return whether a bug occurred."""
    has_bugs = False
    if not targets:
        return has_bugs
    try:
        with connected(workers, len(targets), _report) as client:
            for number, done in enumerate(swept(client, plan, targets), 1):
                dataset.write(done.cluster, done.files)
                has_bugs |= done.bugs > 0
                if not request.quiet:
                    _report(f"[{number}/{len(targets)}] {_line(done)}")
    finally:
        dataset.end()
    return has_bugs


def _line(done: Done) -> str:
    if done.has_failed:
        return f"{done.cluster}: failed, {done.seconds:.1f}s"
    failed = f", {count(done.failures, 'failure')}" if done.failures else ""
    peak = f", {done.peak_bytes >> 20:,} MiB" if done.peak_bytes else ""
    return f"{done.cluster}: {count(done.answers, 'answer')}{failed}, {done.seconds:.1f}s{peak}"


def _report(line: str) -> None:
    write_to_stderr(f"{printable(line)}\n")


def _given(request: SweepRequest) -> PlanOverrides:
    size = request.max_unpacked
    try:
        priorities = [int(each) for each in _listed(request.priorities)]
    except ValueError:
        problem = f"--priorities {str(request.priorities)[:40]}: expected numbers"
        raise UsageError(problem, hint="--priorities 0,1000") from None
    return PlanOverrides(
        snapshots=request.snapshots,
        contexts=_listed(request.contexts),
        kubeconfig=request.kubeconfig or "",
        algorithms=_listed(request.algorithms),
        manifests=request.files,
        priorities=priorities,
        kinds=request.query,
        now=time_of_answer(request.now) if request.now is not None else None,
        max_unpacked=None if size is None else parse_size(size),
        skip_bad_objects=request.skip_bad_objects,
    )


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [each.strip() for each in text.split(",") if each.strip()]


def _write(answer: Sweep, outputs: Sequence[Output], request: SweepRequest) -> None:
    for output in outputs:
        extent = Extent.REPORT if request.verbose or output.path else Extent.SCREEN
        color = wants_color(request.color, sys.stdout) and not output.path
        options = RenderOptions(width=terminal_width(), verbose=request.verbose, extent=extent, color=color)
        text = output.render(answer, options)
        if output.path:
            with atomic_file(output.path) as file:
                file.write(text)
        else:
            write_stdout(text)
