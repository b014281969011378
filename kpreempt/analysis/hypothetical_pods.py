"""Pods of a given size and priority that do not exist: what happens, and from which priority on, if one is created.

The scheduler's decision only changes when the new pod's priority passes that of another pod. So it is enough to try the
priorities just above those, from the lowest on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import Any, Literal

import msgspec

from kpreempt.admission import admit
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.single_edits import Edit, appended_toleration, edit_pod
from kpreempt.analysis.what_if import Assignment, Overrides
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, Pod, PodMeta, PodSpec, ResourceRequirements
from kpreempt.model.quantity import quantity
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.framework.resources import has_only_containers, pod_requests, requests_in_units
from kpreempt.verdict import Change, ChangeKind, Outcome
from kpreempt.verdict.at_risk import SizeName, Threshold
from kpreempt.verdict.remedies import RemedyStage

Requests = Mapping[str, int]
NAMESPACE = DEFAULT_NAMESPACE
_NAME = "pod"
_CPU = "cpu"
_SIZES = (_CPU, "memory")
_POLICY: Literal["PreemptLowerPriority"] = "PreemptLowerPriority"

# The priority of system-node-critical, the highest of all.
HIGHEST_PRIORITY = 2_000_001_000
_MAX_TRIED = 32


def requests_of(pod: Pod) -> dict[str, int]:
    """The requests of a pod, in milli-CPU, bytes and units."""
    return requests_in_units(pod_requests(pod))


class RequestsOfMany:
    """``requests_of`` for pods that stay in memory; replicas share containers, which are evaluated once."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, int]] = {}

    def of(self, pod: Pod) -> dict[str, int]:
        """The requests of a pod, in milli-CPU, bytes and units; must not be modified."""
        if not has_only_containers(pod):
            return requests_of(pod)
        known = self._known.get(id(pod.spec.containers))
        if known is None:
            known = self._known[id(pod.spec.containers)] = requests_of(pod)
        return known


def typical_requests(pods: Iterable[Pod]) -> dict[str, int]:
    """The median CPU and memory requests, among pods that request any."""
    amounts: dict[str, list[int]] = {name: [] for name in _SIZES}
    of = RequestsOfMany().of
    for pod in pods:
        requests = of(pod)
        for name, values in amounts.items():
            if requests.get(name):
                values.append(requests[name])
    return {name: median_low(values) for name, values in amounts.items() if values}


def free_amounts_on(pod: Pod, node: Node, pods_on_node: Iterable[Pod]) -> dict[str, int]:
    """The free CPU and memory of the pod's node plus the pod's own requests."""
    free = requests_in_units({name: amount.nano for name, amount in node.status.allocatable.items() if name in _SIZES})
    for other in pods_on_node:
        if other is not pod:
            for name, amount in requests_of(other).items():
                if name in free:
                    free[name] -= amount
    return {name: amount for name, amount in free.items() if amount > 0}


def hypothetical_pod(cluster: ClusterSnapshot, requests: Requests, priority: int) -> Pod:
    """A new pod in namespace ``default`` that requests these amounts, as the scheduler would see it.

    It has no labels or selectors, and may preempt. LimitRanges do not apply to it.
    """
    amounts = {name: quantity(_amount(name, amount)) for name, amount in requests.items()}
    resources = ResourceRequirements(requests=amounts)
    pod = Pod(
        metadata=PodMeta(name=_NAME, namespace=NAMESPACE),
        spec=PodSpec(
            containers=[Container(name="main", resources=resources)], priority=priority, preemption_policy=_POLICY
        ),
    )
    return admit(pod, msgspec.structs.replace(cluster, limit_ranges=[])).pod


def tied_to(pod: Pod, node_name: str) -> Pod:
    """The pod, tied to the node and tolerating its taints."""
    return edit_pod(pod, _tie(node_name))


def options_for(requests: Requests, priority: int, node_name: str = "") -> list[str]:
    """The options of ``kpreempt explain`` for the hypothetical pod, tied to a node if one is given."""
    options = []
    for name, amount in requests.items():
        text = _amount(name, amount)
        options.append(f"--{name}={text}" if name in _SIZES else f"--resource={name}={text}")
    options += [f"--priority={priority}", f"--preemption-policy={_POLICY}"]
    return [*options, *_tie(node_name).options(0)] if node_name else options


def _tie(node_name: str) -> Edit:
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return Edit(
        stage=RemedyStage.REQUESTER,
        changes=[Change(ChangeKind.PIN, subject=node_name)],
        overrides=Overrides(
            assignments=[
                Assignment("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", required),
                Assignment(appended_toleration(0), {"operator": "Exists"}),
            ]
        ),
    )


def _amount(name: str, amount: int) -> str:
    return f"{amount}m" if name == _CPU else str(amount)


class _Answer(msgspec.Struct, frozen=True):
    """The relevant part of a verdict: the outcome, and the victims on every node that may be chosen."""

    outcome: Outcome
    nodes: list[str]
    victims: frozenset[str]


class PrioritySearch:
    """Verdicts on hypothetical pods in one cluster, each computed once."""

    def __init__(
        self, cluster: ClusterSnapshot, scheduler: Scheduler, prepared: Any, *, phases: Phases = NO_PHASES
    ) -> None:
        self._cluster, self._scheduler, self._prepared = cluster, scheduler, prepared
        self._phases = phases
        self._answers: dict[tuple[str, tuple[tuple[str, int], ...], int], _Answer] = {}
        counting = [pod for pod in cluster.pods if not pod.is_terminal]
        self._priorities = sorted({pod.priority for pod in counting})
        self._on_node: dict[str, set[int]] = {}
        for pod in counting:
            node = pod.spec.node_name or pod.status.nominated_node_name
            self._on_node.setdefault(node, set()).add(pod.priority)

    def threshold(self, pod: Pod, size: SizeName, requests: Requests) -> Threshold:
        """The lowest priorities at which pods of that size evict ``pod``, on any node or tied to its node."""
        node = pod.spec.node_name
        anywhere, last = self._lowest(pod, requests, "", priorities_to_try(self._priorities, pod.priority))
        priorities = priorities_to_try(sorted(self._on_node.get(node, ())), pod.priority)
        on_node, last_on_node = self._lowest(pod, requests, node, priorities)
        return Threshold(
            size=size,
            requests=dict(requests),
            anywhere=anywhere,
            on_node=on_node,
            highest=max(priorities, default=pod.priority),
            outcome=last.outcome if last else None,
            outcome_on_node=last_on_node.outcome if last_on_node else None,
            nodes=last.nodes if last else [],
            options=[] if anywhere is None else options_for(requests, anywhere),
            options_on_node=[] if on_node is None else options_for(requests, on_node, node),
        )

    def _lowest(
        self, pod: Pod, requests: Requests, node: str, priorities: Sequence[int]
    ) -> tuple[int | None, _Answer | None]:
        """The first of ``priorities`` at which the pod is evicted, with the verdict there, or the last one tried."""
        answer = None
        for priority in priorities:
            answer = self._verdict_on(requests, priority, node)
            if pod.key in answer.victims:
                return priority, answer
            if answer.outcome == Outcome.LANDS:
                # At a higher priority, fewer nominated pods count, so it still fits.
                break
        return None, answer

    def _verdict_on(self, requests: Requests, priority: int, node: str) -> _Answer:
        key = node, tuple(requests.items()), priority
        known = self._answers.get(key)
        if known is None:
            pod = hypothetical_pod(self._cluster, requests, priority)
            pod = tied_to(pod, node) if node else pod
            verdict = self._scheduler.decide(self._prepared, pod, records_steps=False, phases=self._phases)
            known = self._answers[key] = _Answer(
                verdict.outcome,
                verdict.nominated_nodes or verdict.lands_on,
                frozenset(pod for pods in verdict.pods_at_stake.values() for pod in pods),
            )
        return known


def priorities_to_try(priorities: Iterable[int], above: int) -> list[int]:
    """The lowest priorities just above those of ``priorities`` that are at least ``above``, in ascending order."""
    return [priority + 1 for priority in priorities if above <= priority < HIGHEST_PRIORITY][:_MAX_TRIED]
