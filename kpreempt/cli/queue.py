"""``kpreempt queue``: the scheduling queue in order, what moves its pods, and files with queue events."""

from __future__ import annotations

from kpreempt.analysis.algorithms import AUTO
from kpreempt.cli.clusters import standard_input
from kpreempt.cli.requests import QueueRequest
from kpreempt.cli.runner import CommandRun
from kpreempt.cli.workers import Spread
from kpreempt.errors import UsageError
from kpreempt.library.handlers import answer
from kpreempt.library.queue import check_modeled
from kpreempt.library.reading import LoadedCluster
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.manifest import read_plain_records


def queue(request: QueueRequest) -> int:
    """Answer the request and return the exit code."""
    named = request.algorithm or AUTO
    if named != AUTO:
        check_modeled(named)
    run = CommandRun(request)
    factory = run.read_scheduler()
    now = run.now()
    # The cluster, or an empty one if only events are given.
    if request.events and not request.snapshots and not request.connection.as_arguments():
        if request.without or request.additions or any(request.node_changes):
            problem = "--events starts with an empty cluster, in which there is nothing to change"
            raise UsageError(problem, hint="--snapshot PATH or --context NAME selects a cluster")
        live, loaded = None, LoadedCluster(ClusterSnapshot(), [])
    else:
        live = run.connect()
        loaded = run.load(live, Needs(extra_fields=factory.extra_fields, with_events=True))
    context = run.context(loaded, factory, now, live)._replace(spread=Spread(run.stopwatch, request.jobs))
    if path := request.events:
        stdin = standard_input() if path == "-" else None
        request = request.having(records=list(read_plain_records(path, stdin=stdin, input_limits=request.input_limits)))
    found = answer(context, request).record
    run.write_once(found, found.at)
    return run.exit_code(found.assumptions)
