"""Which pods a request means: one, those of a workload, or all of a namespace, those that are gone included."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.evictions.reader import EvictionReader, unread_for_evictions
from kpreempt.analysis.preempted_by import location_of
from kpreempt.analysis.workload.in_cluster import (
    pods_of_workload,
    record_of_workload,
    unknown_workload,
)
from kpreempt.errors import NotFoundError
from kpreempt.model.audit import AuditLog
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import ObjectName
from kpreempt.verdict.unread import missing, why_unread
from kpreempt.verdict.who_evicted import EvictedPod, EvictedPods, EvictionsOfPod, PodLocation, PodPhase

_NAMES_OFFERED = 3
# The letters of generated names (``k8s.io/apimachinery/pkg/util/rand``, v0.36.3).
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
# What follows the name of a workload in its pods' names.
_SUFFIXES = {
    "Deployment": rf"{_RANDOM}{{1,10}}-{_RANDOM}{{5}}",
    "StatefulSet": r"\d+",
    "CronJob": rf"\d+-(?:\d+-)?{_RANDOM}{{5}}",
    "Job": rf"(?:\d+-)?{_RANDOM}{{5}}",
}


def evictions_of_pod(
    cluster: ClusterSnapshot,
    namespace: str,
    name: str,
    audit: AuditLog | None = None,
    documents: Iterable[Document] = (),
) -> EvictionsOfPod:
    """The end of a pod, which may be gone. Raises ``NotFoundError`` if nothing in the input is about it.

    ``audit`` is an audit log, and ``documents`` are complete owners and nodes, for this and the other queries.
    """
    reader = EvictionReader(cluster, audit, documents)
    key = f"{namespace}/{name}"
    if not reader.knows(key):
        raise _unknown(cluster, reader, namespace, name)
    return reader.read(key)


def evictions_everywhere(
    cluster: ClusterSnapshot, name: str, audit: AuditLog | None = None, documents: Iterable[Document] = ()
) -> EvictionsOfPod | EvictedPods:
    """The end of the pod of this name in any namespace, or of all of them. Raises ``NotFoundError``."""
    reader = EvictionReader(cluster, audit, documents)
    keys = _keys_of(reader, name)
    if not keys:
        raise _unknown(cluster, reader, "", name)
    return reader.read(keys[0]) if len(keys) == 1 else _answer(cluster, reader, keys, f"pods named {name}", ())


def evictions_of_workload(
    cluster: ClusterSnapshot, workload: ObjectName, audit: AuditLog | None = None, documents: Iterable[Document] = ()
) -> EvictedPods:
    """The ends of a workload's pods; those that are gone are known by their names.

    Raises ``NotFoundError`` if neither the workload nor a pod of it is known.
    """
    reader = EvictionReader(cluster, audit, documents)
    own = [pod.key for pod in pods_of_workload(cluster, workload)]
    suffix = _SUFFIXES.get(workload.kind, rf"{_RANDOM}{{5}}")
    is_own = re.compile(rf"{re.escape(workload.namespace)}/{re.escape(workload.name)}-{suffix}").fullmatch
    gone = [key for key in reader.all_keys() if reader.pod(key) is None and is_own(key)]
    if not own and not gone and record_of_workload(cluster, workload) is None:
        raise unknown_workload(cluster, workload)
    return _answer(cluster, reader, [*own, *gone], str(workload), gone)


def all_evictions(
    cluster: ClusterSnapshot, namespace: str, audit: AuditLog | None = None, documents: Iterable[Document] = ()
) -> EvictedPods:
    """The ends of all pods in a namespace, or in all if it is empty."""
    reader = EvictionReader(cluster, audit, documents)
    keys = [key for key in reader.all_keys() if not namespace or key.startswith(f"{namespace}/")]
    return _answer(cluster, reader, keys, f"namespace {namespace}" if namespace else "", ())


def _answer(
    cluster: ClusterSnapshot, reader: EvictionReader, keys: Iterable[str], selection: str, by_name: Iterable[str]
) -> EvictedPods:
    named, found, running = frozenset(by_name), [], 0
    for key in dict.fromkeys(keys):
        pod, items = reader.pod(key), reader.terminations(key)
        running += pod is not None and pod.is_active and bool(pod.spec.node_name)
        if items:
            victim = location_of(pod) if pod is not None else PodLocation(pod=key, phase=PodPhase.NOT_FOUND)
            found.append(EvictedPod(victim=victim, is_by_name=key in named, items=items))

    def time_of(each: EvictedPod) -> float:
        times = [item.at.timestamp() for item in each.items if item.at is not None]
        return max(times, default=0.0)

    return EvictedPods(
        selection=selection,
        running=running,
        items=sorted(found, key=time_of, reverse=True),
        sources=reader.sources(),
        assumptions=unread_for_evictions(cluster, [item for each in found for item in each.items]),
    )


def _keys_of(reader: EvictionReader, name: str) -> list[str]:
    return sorted({key for key in reader.all_keys() if key.partition("/")[2] == name})


def _unknown(cluster: ClusterSnapshot, reader: EvictionReader, namespace: str, name: str) -> NotFoundError:
    """The error for a pod about which the input has nothing: where else there is one of that name, or why not."""
    elsewhere = [key.partition("/")[0] for key in _keys_of(reader, name)]
    where = f' in namespace "{namespace}"' if namespace else ""
    problem = missing(cluster, "Pod", f'pod "{name}"{where}')
    if elsewhere:
        hint = f"it is in {', '.join(elsewhere[:_NAMES_OFFERED])}: -n {elsewhere[0]}"
        return NotFoundError(problem, hint=hint)
    names = {key.partition("/")[2] for key in reader.all_keys() if not namespace or key.startswith(f"{namespace}/")}
    near = difflib.get_close_matches(name, sorted(names), n=_NAMES_OFFERED)
    unread = cluster.unread.get("Event")
    has_events = reader.sources().has_events
    why = (
        f"events {why_unread(unread)}"
        if unread is not None and not has_events
        else "API servers keep events for an hour by default"
        if has_events
        else "the input has no events; add kubectl get events -A to the dump"
    )
    return NotFoundError(f"{problem}, and no event is about it: {why}", hint=", ".join(near))
