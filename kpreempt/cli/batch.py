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
    from kpreempt.cli.batch_run import run_batch

    return run_batch(request)
