"""Requests about the past: what evicted a pod (``kpreempt who-evicted``), and recorded ``history``."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.analysis.pod_inputs import pod_name
from kpreempt.cli.clusters import load_cluster, reading_in
from kpreempt.cli.requests import HistoryRequest, WhoEvictedRequest
from kpreempt.cli.runner import CommandRun, check_selection
from kpreempt.errors import UsageError
from kpreempt.library.explain import PodName, parse_pod_name
from kpreempt.library.handlers import answer
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.recordings import subject_of
from kpreempt.library.schedulers import Context, default_scheduler
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.decode import Record
from kpreempt.snapshot.recording.as_of import namespaces_in, time_of_eviction
from kpreempt.snapshot.recording.segments import is_recording


def who_evicted(request: WhoEvictedRequest) -> int:
    """Answer the request and return the exit code."""
    check_selection(request)
    run = CommandRun(request)
    factory = run.read_scheduler()
    now = run.now()
    live = run.connect()
    recording = next(filter(is_recording, request.snapshots), None)
    target = parse_pod_name(request, "")
    at = None
    if recording is not None and request.at is None and isinstance(target, PodName):
        name = pod_name(target.name)
        found_in = [target.namespace] if target.namespace else [*namespaces_in(recording, "Pod", name)]
        at = time_of_eviction(recording, found_in[0], name) if len(found_in) == 1 else None
    scope = target.namespace if target is not None else request.namespace or ""
    needs = Needs(
        # Their managed fields say what changed them.
        keep_document=lambda kind, record: _may_explain(kind, record, scope),
        extra_fields=factory.extra_fields,
        with_events=True,
        with_evictions=True,
    )
    live = reading_in(live, [scope])
    loaded = run.load(live, needs, at=at)

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
    audit = None
    if request.audit_logs:
        from kpreempt.snapshot.audit_log import read_audit_log

        audit = read_audit_log(request.audit_logs, request.input_limits)
    found = answer(context, request.having(read_before=read_before, audit=audit)).record
    run.write_once(found, context.at)
    return 0


_OWNERS = ("ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job")


def _may_explain(kind: str, record: Record, namespace: str) -> bool:
    """Return whether a change of the object may have ended a pod in the namespace, or in any if it is empty."""
    if kind == "Node":
        return bool(record.spec.unschedulable)
    return kind in _OWNERS and namespace in ("", record.metadata.namespace)


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
