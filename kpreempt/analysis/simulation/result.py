"""The result of a simulation that has ended.

It has which pods had to go for which and what came in their place (``Chain``), which pods wait, how workloads fared,
and what is worse off without having been evicted: left without pods that it needs (``stranded``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import msgspec

from kpreempt.analysis.simulation.client import Controller
from kpreempt.analysis.simulation.cluster import SimulatedCluster, Workloads
from kpreempt.controllers.actions import tied_node
from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.meta import controller_name, controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import Service
from kpreempt.verdict.simulation import (
    BrokenDependency,
    BrokenDependencyKind,
    Displaced,
    SimulatedWorkload,
    Simulation,
    SimulationEnd,
    SimulationStep,
    StepKind,
    UnscheduledPod,
)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: the pods that came first, when they were bound, and what the scheduler last said of others.

    ``refused`` are pods that a quota does not let be made, each with the one whose place it would take, and why.
    ``held_by`` are the out-of-tree plugins that keep pods out of the queue, by the pod's name. ``done`` says of the
    workloads of the change whether all has come about, ``held`` for whom those wait that have not begun.
    """

    end: SimulationEnd
    first: Sequence[str]
    starts_at: Mapping[str, float]
    messages: Mapping[str, str]
    uncertain: frozenset[str]
    waited_before: frozenset[str]
    held_by: Mapping[str, str]
    draws: int
    done: Mapping[str, bool]
    held: Mapping[str, str] = {}
    refused: Sequence[tuple[Pod, str, str]] = ()


def result_of(
    cluster: SimulatedCluster,
    chain: Chain,
    steps: list[SimulationStep],
    controllers: Sequence[Controller],
    ended: Ended,
) -> Simulation:
    """The whole simulation."""
    workloads = Workloads(cluster.snapshot)
    displaced = [
        msgspec.structs.replace(each, workload=workloads.of(chain.pod(each.pod))) for each in chain.displaced()
    ]
    waiting = _waiting(cluster, chain, workloads, ended)
    simulated = _workloads(cluster, workloads, controllers, Counter(each.workload for each in displaced), ended)
    # How many pods each workload lacks in the end, as far as is known; one at least where it is not done.
    left = dict(Counter(each.workload for each in waiting))
    for each in simulated:
        if each.is_changed and not each.is_done:
            left[each.workload] = max((each.desired_after or 0) - each.ready_after, 1)
    return Simulation(
        end=ended.end,
        seconds=max((step.at for step in steps), default=0.0),
        depth=max((each.depth for each in displaced), default=0),
        starts_at={key: ended.starts_at[key] for key in ended.first if key in ended.starts_at},
        displaced=displaced,
        pending=waiting,
        budgets=cluster.budgets.lows(),
        workloads=simulated,
        rejected=cluster.quotas.told(left),
        broken_dependencies=stranded(cluster, waiting, {each.pod for each in displaced}),
        loop=_loop(steps, displaced_pods={each.pod for each in displaced}, workloads=workloads, chain=chain)
        if ended.end is SimulationEnd.LOOP
        else [],
        draws=ended.draws,
        steps=steps,
    )


def _waiting(cluster: SimulatedCluster, chain: Chain, workloads: Workloads, ended: Ended) -> list[UnscheduledPod]:
    """The pods that were tried, or came, and have no node; then those that a quota still does not let be created."""
    came = {*ended.first, *ended.messages}
    found = []
    for key, pod in cluster.pods.items():
        if pod.spec.node_name or pod.is_terminal or not (key in came or chain.is_replacement(key)):
            continue
        message = ended.messages.get(key, "")
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        if held_by := ended.held_by.get(key):
            message = f"held back by plugin {held_by}"
        elif gates and not message:
            message = f"scheduling gates: {gates}"
        found.append(
            UnscheduledPod(
                pod=key,
                priority=pod.priority,
                owner=controller_name(pod.metadata),
                workload=workloads.of(pod),
                pending_before=key in ended.waited_before,
                message=message,
                was_running=chain.is_replacement(key),
                uncertain=key in ended.uncertain,
            )
        )
    for pod, cause, message in ended.refused:
        found.append(
            UnscheduledPod(
                pod=pod.key,
                priority=pod.priority,
                owner=controller_name(pod.metadata),
                workload=workloads.of(pod),
                message=message,
                was_running=bool(cause),
            )
        )
    return found


def _workloads(
    cluster: SimulatedCluster,
    workloads: Workloads,
    controllers: Sequence[Controller],
    victims: Counter[str],
    ended: Ended,
) -> list[SimulatedWorkload]:
    changed = {controller.workload: controller for controller in controllers}
    told = dict.fromkeys([*changed, *victims])
    before: dict[str, list[Pod]] = {name: [] for name in told}
    after: dict[str, list[Pod]] = {name: [] for name in told}
    for pods, there in ((cluster.at_start, before), (cluster.pods.values(), after)):
        for pod in pods:
            name = workloads.of(pod)
            if name in told and not pod.is_terminal and pod.metadata.deletion_timestamp is None:
                there[name].append(pod)
    ready = {name: sum(pod.key in cluster.ready_at_start for pod in before[name]) for name in told}
    count, least = dict(ready), {name: (number, 0.0) for name, number in ready.items()}
    moments: dict[str, float] = {}
    for at, pod, by in cluster.readiness:
        name = workloads.of(pod)
        if name not in told:
            continue
        count[name] += by
        moments[name] = at
        if count[name] < least[name][0]:
            least[name] = (count[name], at)
    return [
        SimulatedWorkload(
            workload=name,
            is_changed=name in changed,
            is_done=ended.done.get(name, not any(not pod.spec.node_name for pod in after[name])),
            desired_before=workloads.size_of(name),
            desired_after=changed[name].desired if name in changed else workloads.size_of(name),
            ready_before=ready[name],
            ready_min=least[name][0],
            ready_min_at=least[name][1],
            ready_after=count[name],
            pending_after=sum(not pod.spec.node_name for pod in after[name]),
            victims=victims[name],
            held_by=ended.held.get(name, ""),
            nodes_before=_by_node(before[name]),
            nodes_after=_by_node(after[name]),
        )
        for name in told
    ]


def _by_node(pods: Iterable[Pod]) -> dict[str, int]:
    return dict(sorted(Counter(pod.spec.node_name for pod in pods if pod.spec.node_name).items()))


def _loop(steps: Sequence[SimulationStep], displaced_pods: set[str], workloads: Workloads, chain: Chain) -> list[str]:
    """The workloads of which pods had to go the second time or later."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for step in steps:
        if step.kind is not StepKind.TERMINATING or not step.cause or step.pod not in displaced_pods:
            continue
        name = workloads.of(chain.pod(step.pod))
        if name in seen:
            found[name] = None
        seen.add(name)
    return list(found)


_PODS_NAMED = 5


def stranded(cluster: SimulatedCluster, waiting: Sequence[UnscheduledPod], evicted: Set[str]) -> list[BrokenDependency]:
    """Services without a ready pod, pods whose required neighbours are gone, and nodes without a DaemonSet's pod.

    ``evicted`` are the keys of pods that had to go for others. What a change does to its own service for a while, as
    with the strategy Recreate, is meant to be so.
    """
    services = [each for each in _services(cluster) if each.until is None or not evicted.isdisjoint(each.missing)]
    named = [msgspec.structs.replace(each, missing=each.missing[:_PODS_NAMED]) for each in services]
    # Pods of DaemonSets that ran on their node, and cannot come back to it.
    daemons = []
    for each in waiting:
        # One that a quota refuses is not there at all.
        pod = cluster.pods.get(each.pod)
        if each.was_running and each.owner.startswith("DaemonSet "):
            node = tied_node(pod) if pod is not None else ""
            daemons.append(BrokenDependency(kind=BrokenDependencyKind.DAEMON_SET, subject=each.pod, node=node))
    return [*named, *_without_pods(cluster), *daemons]


def _services(cluster: SimulatedCluster) -> list[BrokenDependency]:
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


def _gap(cluster: SimulatedCluster, service: Service) -> BrokenDependency | None:
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
    return BrokenDependency(
        kind=BrokenDependencyKind.SERVICE,
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


def _without_pods(cluster: SimulatedCluster) -> list[BrokenDependency]:
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
                    BrokenDependency(
                        kind=BrokenDependencyKind.AFFINITY,
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


_Name = tuple[str, int]
_NOBODY: _Name = ("", 0)


class _Victim(NamedTuple):
    """A pod that had to go, and how often one of its key had by then."""

    pod: Pod
    violated: list[str]
    time: int
    is_drained: bool
    is_with_node: bool


class Chain:
    """Victims by the pod that they left for, and replacements by the pod that they took the place of.

    Keys come again, since a StatefulSet's pods keep their names: a pod is named by its key and by how many of that key
    came before it, a victim by its key and how often a pod of that key was evicted. So nobody follows from itself.
    """

    def __init__(self) -> None:
        self._victims: dict[_Name, list[_Victim]] = {}
        self._times: dict[str, int] = {}
        self._came: dict[str, int] = {}
        self._replacements: dict[_Name, _Name] = {}
        self._replaced: set[_Name] = set()
        self._were_replaced: set[str] = set()
        self._nodes: dict[_Name, str] = {}
        self._pods: dict[str, Pod] = {}
        self.evictions = 0

    def evicted(
        self, pod: Pod, cause: str, violated: Sequence[str], *, is_drained: bool = False, is_with_node: bool = False
    ) -> None:
        """A pod had to go for ``cause``: another pod, or its node (``Node n1``), which is drained or is gone."""
        self.evictions += 1
        self._pods[pod.key] = pod
        time = self._times[pod.key] = self._times.get(pod.key, 0) + 1
        victim = _Victim(pod, list(violated), time, is_drained, is_with_node)
        self._victims.setdefault(self._latest(cause), []).append(victim)

    def was_evicted(self, key: str) -> bool:
        """Whether a pod of that key had to go."""
        return key in self._times

    def came(self, key: str) -> None:
        """A pod is made that takes no victim's place."""
        self._came[key] = self._came.get(key, 0) + 1

    def replaced(self, key: str, replacement: str) -> None:
        """A pod is made in the place of the one that went last under that key."""
        self.came(replacement)
        name = self._replacements[key, self._times[key]] = self._latest(replacement)
        self._replaced.add(name)
        self._were_replaced.add(replacement)

    def is_replacement(self, key: str) -> bool:
        """Whether a pod of that key took the place of another."""
        return key in self._were_replaced

    def landed(self, key: str, node: str) -> None:
        """A pod was bound."""
        self._nodes[self._latest(key)] = node

    def pod(self, key: str) -> Pod:
        """A pod that had to go, as it was."""
        return self._pods[key]

    def displaced(self) -> list[Displaced]:
        """All victims, each followed by those that had to go for what took its place."""
        found: list[Displaced] = []
        causes = [cause for cause in self._victims if cause not in self._replaced]
        # Whoever had to go for whom, the first on top. A chain may be as long as there are pods: no recursion.
        left = [(cause, victim, 1) for cause in causes for victim in self._victims.get(cause, [])][::-1]
        while left:
            cause, victim, depth = left.pop()
            pod = victim.pod
            replacement = self._replacements.get((pod.key, victim.time), _NOBODY)
            found.append(
                Displaced(
                    pod=pod.key,
                    priority=pod.priority,
                    node=pod.spec.node_name,
                    cause=cause[0],
                    depth=depth,
                    owner=controller_name(pod.metadata),
                    violated=victim.violated,
                    replacement=replacement[0],
                    lands_on=self._nodes.get(replacement, ""),
                    with_node=victim.is_with_node,
                    drained=victim.is_drained,
                    lost=controller_of(pod.metadata) is None,
                )
            )
            left += [(replacement, each, depth + 1) for each in self._victims.get(replacement, [])][::-1]
        return found

    def _latest(self, key: str) -> _Name:
        return (key, self._came.get(key, 0))
