"""The result of a simulation.

It shows which pods were evicted for which, and their replacements (``Chain``), which pods are pending, what happened to
workloads, and what lost pods it depends on without being evicted (``broken_dependencies``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import msgspec

from kpreempt.analysis.simulation.client import Controller
from kpreempt.analysis.simulation.cluster import OwnerKey, SimulatedCluster, Workloads, owner_key
from kpreempt.controllers.actions import tied_node
from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.meta import controller_name
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
    """The state at the end: the first pods, when they were bound, and the scheduler's last messages about others.

    ``rejected`` are pods that a quota rejects, each with the pod it replaces and the message. ``held_by`` are the
    out-of-tree plugins that keep pods out of the queue, by pod. ``done`` has whether each changed workload is
    complete, ``held`` maps workloads that have not started to the one they wait for.
    """

    end: SimulationEnd
    first: Sequence[str]
    starts_at: Mapping[str, float]
    messages: Mapping[str, str]
    uncertain: frozenset[str]
    waited_before: frozenset[str]
    held_by: Mapping[str, str]
    draws: int
    attempts: int
    done: Mapping[str, bool]
    held: Mapping[str, str] = {}
    rejected: Sequence[tuple[Pod, str, str]] = ()


def result_of(
    cluster: SimulatedCluster,
    chain: Chain,
    steps: list[SimulationStep],
    controllers: Sequence[Controller],
    ended: Ended,
) -> Simulation:
    """Assemble the result."""
    workloads = Workloads(cluster.snapshot)
    displaced = [
        msgspec.structs.replace(each, workload=workloads.of(chain.pod(each.pod))) for each in chain.displaced()
    ]
    waiting = _waiting(cluster, chain, workloads, ended)
    simulated = _workloads(cluster, workloads, controllers, Counter(each.workload for each in displaced), ended)
    # The number of pods that each workload lacks at the end, as far as known; at least one if it is not done.
    missing_pods = dict(Counter(each.workload for each in waiting))
    for each in simulated:
        if each.is_changed and not each.is_done:
            missing_pods[each.workload] = max((each.desired_after or 0) - each.ready_after, 1)
    return Simulation(
        end=ended.end,
        seconds=max((step.at for step in steps), default=0.0),
        depth=max((each.depth for each in displaced), default=0),
        starts_at={key: ended.starts_at[key] for key in ended.first if key in ended.starts_at},
        displaced=displaced,
        pending=waiting,
        budgets=cluster.budgets.lows(),
        workloads=simulated,
        rejected=cluster.quotas.rejection_records(missing_pods),
        broken_dependencies=broken_dependencies(cluster, waiting, {each.pod for each in displaced}),
        loop=_loop(steps, displaced_pods={each.pod for each in displaced}, workloads=workloads, chain=chain)
        if ended.end is SimulationEnd.LOOP
        else [],
        draws=ended.draws,
        attempts=ended.attempts,
        steps=steps,
    )


def _waiting(cluster: SimulatedCluster, chain: Chain, workloads: Workloads, ended: Ended) -> list[UnscheduledPod]:
    """The pods that were created or tried and have no node, then those that a quota still rejects."""
    known_pods = {*ended.first, *ended.messages}
    found = []
    for key, pod in cluster.pods.items():
        if pod.spec.node_name or pod.is_terminal or not (key in known_pods or chain.is_replacement(key)):
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
    for pod, cause, message in ended.rejected:
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
    names = dict.fromkeys([*changed, *victims])
    before: dict[str, list[Pod]] = {name: [] for name in names}
    after: dict[str, list[Pod]] = {name: [] for name in names}
    for pods, by_workload in ((cluster.at_start, before), (cluster.pods.values(), after)):
        for pod in pods:
            name = workloads.of(pod)
            if name in names and not pod.is_terminal and pod.metadata.deletion_timestamp is None:
                by_workload[name].append(pod)
    ready = {name: sum(pod.key in cluster.ready_at_start for pod in before[name]) for name in names}
    count, minimum = dict(ready), {name: (number, 0.0) for name, number in ready.items()}
    changed_at: dict[str, float] = {}
    for at, pod, by in cluster.readiness:
        name = workloads.of(pod)
        if name not in names:
            continue
        count[name] += by
        changed_at[name] = at
        if count[name] < minimum[name][0]:
            minimum[name] = (count[name], at)
    return [
        SimulatedWorkload(
            workload=name,
            is_changed=name in changed,
            is_done=ended.done.get(name, not any(not pod.spec.node_name for pod in after[name])),
            desired_before=workloads.size_of(name),
            desired_after=changed[name].desired if name in changed else workloads.size_of(name),
            ready_before=ready[name],
            ready_min=minimum[name][0],
            ready_min_at=minimum[name][1],
            ready_after=count[name],
            pending_after=sum(not pod.spec.node_name for pod in after[name]),
            victims=victims[name],
            held_by=ended.held.get(name, ""),
            nodes_before=_by_node(before[name]),
            nodes_after=_by_node(after[name]),
        )
        for name in names
    ]


def _by_node(pods: Iterable[Pod]) -> dict[str, int]:
    return dict(sorted(Counter(pod.spec.node_name for pod in pods if pod.spec.node_name).items()))


def _loop(steps: Sequence[SimulationStep], displaced_pods: set[str], workloads: Workloads, chain: Chain) -> list[str]:
    """The workloads whose pods were evicted more than once, and those that were evicted in between in the end."""
    names = [
        workloads.of(chain.pod(step.pod))
        for step in steps
        if step.kind is StepKind.TERMINATING and step.cause and step.pod in displaced_pods
    ]
    if not names:
        return []
    *earlier, last = names
    since = len(earlier) - 1 - earlier[::-1].index(last) if last in earlier else 0
    number = Counter(names)
    return [name for name in number if number[name] > 1 or name in names[since:]]


_PODS_LISTED = 5


def broken_dependencies(
    cluster: SimulatedCluster, waiting: Sequence[UnscheduledPod], evicted: Set[str]
) -> list[BrokenDependency]:
    """Services without a ready pod, pods without the pods they require nearby, and nodes without a DaemonSet's pod.

    ``evicted`` are the keys of pods that were evicted for others. A temporary outage of the changed workload's own
    Service, as with strategy Recreate, is intended.
    """
    services = [each for each in _services(cluster) if each.until is None or not evicted.isdisjoint(each.missing)]
    services_shown = [msgspec.structs.replace(each, missing=each.missing[:_PODS_LISTED]) for each in services]
    # Pods of DaemonSets that ran on their node, and cannot return to it.
    daemons = []
    for each in waiting:
        # A pod that a quota rejects does not exist.
        pod = cluster.pods.get(each.pod)
        if each.was_running and each.owner.startswith("DaemonSet "):
            node = tied_node(pod) if pod is not None else ""
            daemons.append(BrokenDependency(kind=BrokenDependencyKind.DAEMON_SET, subject=each.pod, node=node))
    return [*services_shown, *_unmet_affinities(cluster), *daemons]


def _services(cluster: SimulatedCluster) -> list[BrokenDependency]:
    """Services that had a ready pod and lose all of them; with the longest gap, or the last."""
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
    at_start = count = sum(
        pod.key in cluster.ready_at_start and service.selects(pod.metadata) for pod in cluster.at_start
    )
    if not count:
        return None
    since: float | None = None
    gaps: list[tuple[float, float | None]] = []
    removed: dict[str, None] = {}
    for at, pod, by in cluster.readiness:
        if not service.selects(pod.metadata):
            continue
        count += by
        if by < 0:
            removed[pod.key] = None
        if count == 0:
            since = at
        elif since is not None:
            gaps.append((since, at))
            since = None
    if since is not None:
        gaps.append((since, None))
    # While a single pod moves, there is a gap, however short the simulation makes it.
    gaps = [gap for gap in gaps if at_start == 1 or gap[1] is None or gap[1] > gap[0]]
    if not gaps:
        return None
    worst = max(gaps, key=lambda gap: float("inf") if gap[1] is None else gap[1] - gap[0])
    return BrokenDependency(
        kind=BrokenDependencyKind.SERVICE,
        subject=f"{service.metadata.namespace}/{service.metadata.name}",
        missing=list(removed),
        since=worst[0],
        until=worst[1],
        ready_before=at_start,
    )


def _unmet_affinities(cluster: SimulatedCluster) -> list[BrokenDependency]:
    """Running pods whose required affinity was met by a pod that is gone, and is no longer met."""
    removed = [change.pod for change in cluster.readiness if change.by < 0 and change.pod.key not in cluster.ready]
    if not removed:
        return []
    zones = {node.name: node.labels for node in cluster.snapshot.nodes}
    found = []
    for pod in cluster.pods.values():
        affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity is not None else None
        if affinity is None or not pod.spec.node_name or pod.metadata.deletion_timestamp is not None or pod.is_terminal:
            continue
        for term in affinity.required:
            domain = zones.get(pod.spec.node_name, {}).get(term.topology_key)
            near = [each for each in removed if zones.get(each.spec.node_name, {}).get(term.topology_key) == domain]
            missing = [each.key for each in _matching(term, pod, near) if each.key != pod.key]
            if domain is None or not missing:
                continue
            others = (
                each
                for each in cluster.pods.values()
                if each.spec.node_name
                and each.metadata.deletion_timestamp is None
                and zones.get(each.spec.node_name, {}).get(term.topology_key) == domain
            )
            if not any(True for _ in _matching(term, pod, others)):
                found.append(
                    BrokenDependency(
                        kind=BrokenDependencyKind.AFFINITY,
                        subject=pod.key,
                        node=pod.spec.node_name,
                        missing=list(dict.fromkeys(missing))[:_PODS_LISTED],
                        since=max(change.at for change in cluster.readiness if change.pod.key in missing),
                    )
                )
                break
    return found


def _matching(term: PodAffinityTerm, owner: Pod, pods: Iterable[Pod]) -> Iterable[Pod]:
    """The pods that a term matches, as far as namespaces are listed; without a selector it matches none."""
    namespaces = term.namespaces or ([owner.metadata.namespace] if term.namespace_selector is None else [])
    for pod in pods:
        in_reach = pod.metadata.namespace in namespaces or term.namespace_selector is not None
        if in_reach and term.label_selector is not None and term.label_selector.matches(pod.metadata.labels):
            yield pod


_Name = tuple[str, int]
_NO_NAME: _Name = ("", 0)


class _Victim(NamedTuple):
    """An evicted pod, and the number of evictions of its key until then."""

    pod: Pod
    violated: list[str]
    time: int
    is_drained: bool
    is_with_node: bool


class Chain:
    """Victims by the pod they were evicted for, and replacements by the pod they replace.

    Keys recur, because a StatefulSet's pods keep their names: a pod is identified by its key and the number of pods
    with that key before it, a victim by its key and the number of evictions of that key. So no pod follows from itself.
    """

    def __init__(self, missing_owners: Collection[OwnerKey] = ()) -> None:
        """Nothing recreates the pods of ``missing_owners``."""
        self._missing_owners = missing_owners
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
        """Record that a pod was evicted for ``cause``: another pod, or its drained or deleted node (``Node n1``)."""
        self.evictions += 1
        self._pods[pod.key] = pod
        time = self._times[pod.key] = self._times.get(pod.key, 0) + 1
        victim = _Victim(pod, list(violated), time, is_drained, is_with_node)
        self._victims.setdefault(self._latest(cause), []).append(victim)

    def is_recreated(self, pod: Pod) -> bool:
        """Whether the pod has a controller, which exists as far as is known."""
        owner = owner_key(pod)
        return owner is not None and owner not in self._missing_owners

    def was_evicted(self, key: str) -> bool:
        """Whether a pod with that key was evicted."""
        return key in self._times

    def created(self, key: str) -> None:
        """Record a new pod that replaces no victim."""
        self._came[key] = self._came.get(key, 0) + 1

    def replaced(self, key: str, replacement: str) -> None:
        """Record a new pod that replaces the last victim with that key."""
        self.created(replacement)
        name = self._replacements[key, self._times[key]] = self._latest(replacement)
        self._replaced.add(name)
        self._were_replaced.add(replacement)

    def is_replacement(self, key: str) -> bool:
        """Whether a pod with that key is a replacement."""
        return key in self._were_replaced

    def bound(self, key: str, node: str) -> None:
        """Record that a pod was bound."""
        self._nodes[self._latest(key)] = node

    def pod(self, key: str) -> Pod:
        """An evicted pod, in its last state."""
        return self._pods[key]

    def displaced(self) -> list[Displaced]:
        """All victims, each followed by those that were evicted for its replacement."""
        found: list[Displaced] = []
        causes = [cause for cause in self._victims if cause not in self._replaced]
        # Iterative, because a chain may be as long as there are pods.
        stack = [(cause, victim, 1) for cause in causes for victim in self._victims.get(cause, [])][::-1]
        while stack:
            cause, victim, depth = stack.pop()
            pod = victim.pod
            replacement = self._replacements.get((pod.key, victim.time), _NO_NAME)
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
                    lost=not self.is_recreated(pod),
                )
            )
            stack += [(replacement, each, depth + 1) for each in self._victims.get(replacement, [])][::-1]
        return found

    def _latest(self, key: str) -> _Name:
        return (key, self._came.get(key, 0))
