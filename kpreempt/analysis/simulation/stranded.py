"""Who is worse off after a simulation without having been evicted: left without pods that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import msgspec

from kpreempt.analysis.simulation.cluster import SimulatedCluster
from kpreempt.controllers.pods import tied_node
from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import Service
from kpreempt.verdict.simulation import Stranded, StrandedKind, Waiting

_PODS_NAMED = 5


def stranded(cluster: SimulatedCluster, waiting: Sequence[Waiting], evicted: Set[str]) -> list[Stranded]:
    """Services without a ready pod, pods whose required neighbours are gone, and nodes without a DaemonSet's pod.

    ``evicted`` are the keys of pods that had to go for others. What a change does to its own service for a while, as
    with the strategy Recreate, is meant to be so.
    """
    services = [each for each in _services(cluster) if each.until is None or not evicted.isdisjoint(each.missing)]
    named = [msgspec.structs.replace(each, missing=each.missing[:_PODS_NAMED]) for each in services]
    return [*named, *_lonely(cluster), *_daemons(cluster, waiting)]


def _services(cluster: SimulatedCluster) -> list[Stranded]:
    """Services that had a ready pod, and at some time have none; the longest such time, or the last."""
    touched = {change.pod.metadata.namespace for change in cluster.readiness if change.by < 0}
    found = []
    for service in cluster.snapshot.services:
        if not service.spec.selector or service.metadata.namespace not in touched:
            continue
        gap = _gap(cluster, service)
        if gap is not None:
            found.append(gap)
    return found


def _gap(cluster: SimulatedCluster, service: Service) -> Stranded | None:
    count = sum(pod.key in cluster.ready_at_start and _serves(service, pod) for pod in cluster.at_start)
    if not count:
        return None
    since: float | None = None
    gaps: list[tuple[float, float | None]] = []
    gone: dict[str, None] = {}
    for at, pod, by in cluster.readiness:
        if not _serves(service, pod):
            continue
        count += by
        if by < 0:
            gone[pod.key] = None
        if count == 0:
            since = at
        elif since is not None:
            gaps.append((since, at))
            since = None
    if since is not None:
        gaps.append((since, None))
    gaps = [gap for gap in gaps if gap[1] is None or gap[1] > gap[0]]
    if not gaps:
        return None
    worst = max(gaps, key=lambda gap: float("inf") if gap[1] is None else gap[1] - gap[0])
    return Stranded(
        kind=StrandedKind.SERVICE,
        subject=f"{service.metadata.namespace}/{service.metadata.name}",
        missing=list(gone),
        since=worst[0],
        until=worst[1],
    )


def _serves(service: Service, pod: Pod) -> bool:
    labels = pod.metadata.labels
    return pod.metadata.namespace == service.metadata.namespace and all(
        labels.get(key) == value for key, value in service.spec.selector.items()
    )


def _lonely(cluster: SimulatedCluster) -> list[Stranded]:
    """Running pods that require a pod nearby of which there was one, and is none any more."""
    gone = [change.pod for change in cluster.readiness if change.by < 0 and change.pod.key not in cluster.ready]
    if not gone:
        return []
    zones = {node.name: node.labels for node in cluster.snapshot.nodes}
    found = []
    for pod in cluster.pods.values():
        affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity is not None else None
        if affinity is None or not pod.spec.node_name or pod.metadata.deletion_timestamp is not None or pod.is_terminal:
            continue
        for term in affinity.required:
            place = zones.get(pod.spec.node_name, {}).get(term.topology_key)
            near = [each for each in gone if zones.get(each.spec.node_name, {}).get(term.topology_key) == place]
            missing = [each.key for each in _wanted(term, pod, near) if each.key != pod.key]
            if place is None or not missing:
                continue
            others = (
                each
                for each in cluster.pods.values()
                if each.spec.node_name
                and each.metadata.deletion_timestamp is None
                and zones.get(each.spec.node_name, {}).get(term.topology_key) == place
            )
            if not any(True for _ in _wanted(term, pod, others)):
                found.append(
                    Stranded(
                        kind=StrandedKind.AFFINITY,
                        subject=pod.key,
                        node=pod.spec.node_name,
                        missing=list(dict.fromkeys(missing))[:_PODS_NAMED],
                        since=max(change.at for change in cluster.readiness if change.pod.key in missing),
                    )
                )
                break
    return found


def _wanted(term: PodAffinityTerm, owner: Pod, pods: Iterable[Pod]) -> Iterable[Pod]:
    """The pods that a term is about, as far as namespaces are named; without a selector it is about none."""
    namespaces = term.namespaces or ([owner.metadata.namespace] if term.namespace_selector is None else [])
    for pod in pods:
        in_reach = pod.metadata.namespace in namespaces or term.namespace_selector is not None
        if in_reach and term.label_selector is not None and term.label_selector.matches(pod.metadata.labels):
            yield pod


def _daemons(cluster: SimulatedCluster, waiting: Sequence[Waiting]) -> list[Stranded]:
    """Pods of DaemonSets that ran on their node, and cannot come back to it."""
    found = []
    for each in waiting:
        # One that a quota refuses is not there at all.
        pod = cluster.pods.get(each.pod)
        if each.was_running and each.owner.startswith("DaemonSet "):
            node = tied_node(pod) if pod is not None else ""
            found.append(Stranded(kind=StrandedKind.DAEMON_SET, subject=each.pod, node=node))
    return found
