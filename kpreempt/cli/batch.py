"""``kpreempt batch``: scenarios as JSON lines in, verdicts as JSON lines out."""

from __future__ import annotations

from typing import Annotated

import typer

from kpreempt.cli.options import After, ClusterRequest, Extending, Jobs, Now, ProfileJson, Strict


class BatchRequest(ClusterRequest):
    """What the options of ``kpreempt batch`` ask for."""

    file: Annotated[str, typer.Argument(metavar="FILE", help="Scenarios as JSON lines; - is standard input.")] = "-"
    extensions: Annotated[Extending, After("snapshots")]
    outputs: Annotated[
        list[str], typer.Option("-o", "--output", metavar="jsonl[=FILE]", help="Write to FILE, whole or not.")
    ] = []
    strict: Annotated[Strict, After("skip_bad_objects")] = False
    now: Now = None
    jobs: Jobs = None
    profile_json: ProfileJson = None


def batch(request: BatchRequest) -> int:
    """Answer many scenarios, one JSON line each, in order.

    A line in: {"name": ..., "objects": [...], "pod": {...}}, and optionally "algorithm", "config" (a
    KubeSchedulerConfiguration as text), "featureGates" and "queued" (true: pending pods wait in the scheduler's queue,
    so that nominated ones keep their room). All objects are taken as they are stored: the API's own defaults are filled
    in, the priority of a class and the status of a budget where it is not stated, and nothing else. With --snapshot, or
    an option that names a live cluster (--context, --kubeconfig, ...), that cluster is read once, and each line's
    objects are laid over it.

    With "algorithm": "volcano-1.8" the answer is a whole session, "conf" is Volcano's configuration as text (empty: the
    default one), and the pod may be left out.

    With "algorithm": "kueue-0.19" the answer is what Kueue's scheduler does from "now" on, in at most "cycles" cycles
    with its controllers played in between. "workload" is the key of the one Workload that is queued, or "all", and
    "config" has the manager's fairSharing, featureGates and quotaCheckStrategy. There is no pod.

    A line out: {"name": ..., "verdict": {...}}, or {"name": ..., "error": {"message": ...}} for a bad one; the others
    are answered, and the exit code is 3.
    """
    import msgspec

    from kpreempt.cli.answering import time_of_answer
    from kpreempt.cli.batch_run import Answerer, writing
    from kpreempt.cli.clusters import live_connection, load_cluster, single_use_of_stdin
    from kpreempt.cli.output import parse_outputs
    from kpreempt.cli.profile import Stopwatch, check_profile_path
    from kpreempt.cli.scenarios import opened, read_lines, source_of
    from kpreempt.cli.terminal import EXIT_BUG, EXIT_GATE, EXIT_INPUT
    from kpreempt.cli.workers import Spread

    stopwatch = Stopwatch()
    outputs = parse_outputs(request.outputs, ("jsonl",))
    check_profile_path(request.profile_json, outputs)
    single_use_of_stdin({"FILE": [request.file], "--snapshot": request.snapshots})
    now = time_of_answer(request.now)
    source = source_of(request.file)
    with opened(request.file) as stream:
        base = None
        if request.snapshots or request.connection.given():
            live = live_connection(request.snapshots, request.connection)
            skips = request.skip_bad_objects
            # Which configurations the lines have is not known yet.
            wanted = request.extensions.wanted
            base = load_cluster(
                request.snapshots,
                live=live,
                skip_bad_objects=skips,
                assume_none=request.assume_none,
                phases=stopwatch,
                wanted=wanted,
                intake=request.intake,
                at=request.at,
            )
            # As in a line, the order is that in which a scheduler was handed the objects.
            known = msgspec.structs.replace(base.cluster, has_scheduler_order=True)
            assumptions = [each for each in base.assumptions if not each.lists_files]
            base = msgspec.structs.replace(base, cluster=known, assumptions=assumptions)
        answerer = Answerer(base, now, source, stopwatch, request.extensions)
        spread = Spread(stopwatch, request.jobs)
        has_bugs = has_errors = has_assumptions = False
        with writing(outputs) as write:
            for answer in spread(read_lines(stream, source), answerer.answer):
                has_bugs |= answer.is_bug
                has_errors |= answer.is_error
                has_assumptions |= answer.has_assumptions
                if not write(answer.line):
                    break
    if request.profile_json:
        stopwatch.write(request.profile_json)
    if has_bugs:
        return EXIT_BUG
    if has_errors:
        return EXIT_INPUT
    return EXIT_GATE if request.strict and has_assumptions else 0
