"""Requests about the past: which pod evicted another (``kpreempt who-evicted``), and recorded ``history``."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.analysis.pod_inputs import pod_name
from kpreempt.cli.clusters import default_namespace, load_cluster
from kpreempt.cli.requests import HistoryRequest, WhoEvictedRequest
from kpreempt.cli.runner import CommandRun
from kpreempt.errors import UsageError
from kpreempt.library.handlers import answer
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.recordings import subject_of
from kpreempt.library.schedulers import Context, default_scheduler
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.recording.as_of import time_of_eviction
from kpreempt.snapshot.recording.segments import is_recording


def who_evicted(request: WhoEvictedRequest) -> int:
    """Answer the request and return the exit code."""
    name = pod_name(request.pod)
    run = CommandRun(request)
    factory = run.read_scheduler()
    now = run.now()
    live = run.connect()
    namespace = request.namespace or default_namespace(live)
    recording = next(filter(is_recording, request.snapshots), None)
    at = time_of_eviction(recording, namespace, name) if recording is not None and request.at is None else None
    loaded = run.load(live, Needs(extra_fields=factory.extra_fields, with_events=True), at=at)

    def read_before(preemptors: Sequence[str]) -> LoadedCluster | None:
        """Load the cluster before the eviction: from ``--before``, or from before the preemptor's creation."""
        of_recording = [recording] if recording is not None and preemptors else []
        before = request.before or of_recording
        if not before:
            return None
        moment = None if request.before else f"pod/{preemptors[0]}"
        return load_cluster(
            msgspec.structs.replace(run.source(None), paths=before, at=moment), Needs(extra_fields=factory.extra_fields)
        )

    context = run.context(loaded, factory, now, live)
    found = answer(context, request.having(read_before=read_before)).record
    run.write_once(found, context.at)
    return 0


def history(request: HistoryRequest) -> int:
    """Answer the request and return the exit code."""
    subject_of(request)
    if len(request.snapshots) != 1:
        raise UsageError("history needs one recording", hint="--snapshot DIR, of kpreempt record --to DIR")
    run = CommandRun(request)
    context = Context(LoadedCluster(ClusterSnapshot(), []), default_scheduler(), run.now())
    found = answer(context, request.having(recording=request.snapshots[0])).record
    run.write_once(found, found.ends)
    return 0
