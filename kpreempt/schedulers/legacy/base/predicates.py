"""Filters: running them on a node and in a dry run, the predicates shared by 1.8 and 1.13, and their building blocks.

``podFitsOnNode`` (``core/generic_scheduler.go``): v1.8.15 runs every predicate on the node alone; v1.13.12 and v1.18.19
stop at the first that fails, and run all twice if pods of equal or higher priority are nominated to the node.

The predicates take the messages of a version, and follow ``algorithm/predicates/predicates.go`` of v1.8.15 and
v1.13.12, with ``isVolumeConflict``, ``MaxPDVolumeCountChecker`` and ``VolumeZoneChecker``. The plugins of v1.18.19 that
replaced them have the same checks; each version interprets rejections.

The dry run (``selectVictimsOnNode``) removes every pod of lower priority from a copy of the node. If the pod does not
fit then, the node is not a candidate. Otherwise the pods are reprieved, starting with those whose eviction violates a
PDB, in order of importance; a pod that would prevent the incoming pod from fitting is removed again and becomes a
victim. A node without victims is still a candidate. When an eviction violates a PDB differs between versions
(``BudgetRule``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.labels import format_requirement
from kpreempt.model.node import Node
from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim
from kpreempt.model.taints import Taint, find_untolerated_taint
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.choice import FEWEST_VICTIMS, CandidateVictims, Criterion, select_nodes
from kpreempt.schedulers.disks import excludes
from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from kpreempt.schedulers.legacy.base.node_info import (
    ALWAYS_COUNTED,
    NETWORK_UNAVAILABLE,
    OUT_OF_DISK,
    PODS,
    READY,
    Amounts,
    Cluster,
    NodeInfo,
    PodInfo,
    PortKey,
    is_best_effort,
    is_true,
)
from kpreempt.verdict import BudgetUse, Code, Detail, Reprieve, Selection, Status
from kpreempt.verdict.details import (
    InsufficientResources,
    NodeAffinityMismatch,
    NodeNameMismatch,
    PortConflict,
    Shortfall,
    UntoleratedTaint,
    VolumeConflict,
    VolumeLimitExceeded,
)


class Metadata:
    """The pod, its requests, and precomputed data about pod affinity.

    This is ``predicateMetadata``. ``ignored`` are resources that are left to extenders (1.13).
    """

    def __init__(self, cluster: Cluster, pod: PodInfo, request: Amounts, ignored: frozenset[str] = frozenset()) -> None:
        self.cluster = cluster
        self.pod = pod
        self.request = request
        self.ignored = ignored


# Called with the version's state, which has the pod, and the node.
Check = Callable[[Any, NodeInfo], Status]


# The status that conditions must have for a node to accept pods. A missing condition rejects no pod.
_EXPECTED_STATUS = {READY: "True", OUT_OF_DISK: "False", NETWORK_UNAVAILABLE: "False"}


def node_condition(reasons: Mapping[str, str], unschedulable: str) -> Check:
    """The node is ready, has disk and network, and is not cordoned; ``reasons`` are by condition type."""

    def check(_: Metadata, node_info: NodeInfo) -> Status:
        failed = [
            reasons[condition.type]
            for condition in node_info.node.status.conditions
            if condition.type in reasons and condition.status != _EXPECTED_STATUS[condition.type]
        ]
        if node_info.node.spec.unschedulable:
            failed.append(unschedulable)
        return rejection(*failed) if failed else PASSES

    return check


def not_cordoned(reason: str, code: Code = Code.NONE) -> Check:
    """The node is not cordoned, or the pod tolerates the corresponding taint."""
    taint = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")

    def check(state: Any, node_info: NodeInfo) -> Status:
        is_rejected = node_info.node.spec.unschedulable and not any(
            toleration.tolerates(taint) for toleration in state.pod.pod.spec.tolerations
        )
        return rejection(reason, code=code) if is_rejected else PASSES

    return check


def no_pressure(condition: str, reason: str, *, only_best_effort: bool = False) -> Check:
    """The node has no such pressure, or only best-effort pods are rejected and the pod is not one."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        is_rejected = is_true(node_info.node, condition) and not (only_best_effort and not is_best_effort(meta.pod.pod))
        return rejection(reason) if is_rejected else PASSES

    return check


def pod_fits_resources(*always: str) -> Check:
    """The node has capacity for one more pod and for all its requests; see ``insufficient_resources``."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        short = insufficient_resources(meta.request, node_info, always, meta.ignored)
        if short is None:
            return PASSES
        return rejection(*(f"Insufficient {each.resource}" for each in short.shortfalls), detail=short)

    return check


def rejects_on(find: Callable[[Pod, NodeInfo], Detail | None], reason: str, code: Code = Code.NONE) -> Check:
    """Return a check that rejects the node if ``find`` returns something, which ``reason`` may format."""

    def check(state: Any, node_info: NodeInfo) -> Status:
        found = find(state.pod.pod, node_info)
        return PASSES if found is None else rejection(reason.format(found), detail=found, code=code)

    return check


def general_predicates(*checks: Check) -> Check:
    """Combine several predicates into one that reports the reasons of all failures."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        failed = [status for each in checks if not (status := each(meta, node_info)).is_success]
        if not failed:
            return PASSES
        return rejection(*(reason for status in failed for reason in status.reasons), detail=failed[0].detail)

    return check


class LegacyError(Exception):
    """An upstream error that is not a rejection: the attempt ends, and no pod is preempted."""


class State(Protocol):
    """A version's state for a pod, which is updated in a dry run: predicate metadata, or the cycle state."""

    def clone(self) -> Self:
        """Return a copy that can be changed independently."""

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Add a pod to the node."""

    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Remove a pod from the node."""


class Filter(NamedTuple):
    """A predicate or filter plugin by name. ``check`` may raise ``LegacyError``.

    It is called with the version's state, which has the pod, and the node. The node passes if the status has neither a
    code nor reasons; rejections must have a code if the version has codes.
    """

    name: str
    check: Callable[[Any, NodeInfo], Status]


class FilterRun:
    """Runs the filters for one pod.

    ``stops_at_first`` ends at the first rejection; otherwise the reasons of all are reported. With ``counts_nominated``
    the pod must fit both with and without the pods nominated to the node.
    """

    def __init__(
        self,
        filters: Sequence[Filter],
        cluster: Cluster,
        pod: PodInfo,
        *,
        stops_at_first: bool,
        counts_nominated: bool,
    ) -> None:
        self.filters = filters
        self.pod = pod
        self._cluster = cluster
        self._stops_at_first = stops_at_first
        self._counts_nominated = counts_nominated

    def __call__(self, state: State, node_info: NodeInfo) -> Status:
        """Return the filters' result for the node; raise ``LegacyError``."""
        for run_state, run_node in self.situations(state, node_info):
            status = self._run(run_state, run_node)
            if not status.is_success:
                break
        return status

    def status(self, state: State, node_info: NodeInfo) -> Status:
        """Return the filters' result for the node, with an error as the status."""
        try:
            return self(state, node_info)
        except LegacyError as error:
            return Status(Code.ERROR, [str(error)])

    def situations(self, state: State, node_info: NodeInfo) -> list[tuple[State, NodeInfo]]:
        """Return the node with the nominated pods that count, if there are any, then without them."""
        nominated = self.nominated_pods(node_info.name)
        if not nominated:
            return [(state, node_info)]
        next_to_state, next_to_node = state.clone(), node_info.clone()
        for info in nominated:
            next_to_node.add_pod(info)
            next_to_state.add_pod(info, next_to_node)
        return [(next_to_state, next_to_node), (state, node_info)]

    def nominated_pods(self, node_name: str) -> list[PodInfo]:
        """Return other pods of equal or higher priority that are nominated to the node."""
        uid = self.pod.pod.metadata.uid
        if not self._counts_nominated:
            return []
        return [
            info
            for info in self._cluster.nominated_pods.get(node_name, ())
            # Upstream compares UIDs; pods without a UID are compared by name.
            if info.priority >= self.pod.priority
            and (info.pod.metadata.uid != uid or (not uid and info.key != self.pod.key))
        ]

    def _run(self, state: State, node_info: NodeInfo) -> Status:
        rejections = []
        for each in self.filters:
            status = each.check(state, node_info)
            if not status.is_success:
                rejections.append(status.of_plugin(each.name))
                if self._stops_at_first:
                    break
        if len(rejections) == 1:
            return rejections[0]
        if not rejections:
            return Status(Code.NONE)
        is_final = any(status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in rejections)
        return Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE if is_final else rejections[0].code,
            [reason for status in rejections for reason in status.reasons],
            rejections[0].plugin,
            rejections[0].detail,
        )


ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (the address that pods request, not one to bind to)
DEFAULT_PROTOCOL = "TCP"

_EFFECTS_THAT_REPEL = frozenset(("NoSchedule", "NoExecute"))

PASSES = Status(Code.NONE)


def rejection(*reasons: str, detail: Detail | None = None, code: Code = Code.NONE) -> Status:
    """Return the status of a node that is rejected."""
    return Status(code, list(reasons), detail=detail)


def insufficient_resources(
    request: Amounts, node_info: NodeInfo, always: Sequence[str] = (), ignored: frozenset[str] = frozenset()
) -> InsufficientResources | None:
    """Return the insufficient resources, or ``None``: pods, then CPU, memory, storage, ``always``, others.

    The first ones are compared even if the pod does not request them, but nothing is if it requests nothing at all: so
    an overcommitted node rejects a pod that requests only something else, including ``ignored`` resources.
    """
    compared = (*ALWAYS_COUNTED, *always)
    others = [name for name in request if name not in compared]
    names = [*compared, *(name for name in others if name not in ignored)] if others or any(request.values()) else []
    used, allocatable = node_info.requested, node_info.allocatable
    short = [
        Shortfall(
            resource=name,
            requested=request.get(name, 0),
            used=used.get(name, 0),
            allocatable=allocatable.get(name, 0),
            exceeds_node=request.get(name, 0) > allocatable.get(name, 0),
        )
        for name in names
        if allocatable.get(name, 0) < request.get(name, 0) + used.get(name, 0)
    ]
    count = len(node_info.pods)
    if count + 1 > node_info.allowed_pods:
        short.insert(0, Shortfall(PODS, 1, count, node_info.allowed_pods, exceeds_node=node_info.allowed_pods < 1))
    return InsufficientResources(short, count) if short else None


def untolerated_taint(pod: Pod, node_info: NodeInfo) -> UntoleratedTaint | None:
    """Return the first taint that the pod does not tolerate, or ``None``."""
    taint = find_untolerated_taint(node_info.node.spec.taints, pod.spec.tolerations, _EFFECTS_THAT_REPEL)
    return UntoleratedTaint(taint.key, taint.value, taint.effect) if taint else None


def name_mismatch(pod: Pod, node_info: NodeInfo) -> NodeNameMismatch | None:
    """Return the node that the pod names, if it is another one, or ``None``."""
    wanted = pod.spec.node_name
    return NodeNameMismatch(wanted) if wanted not in ("", node_info.name) else None


def selector_mismatch(pod: Pod, node_info: NodeInfo) -> NodeAffinityMismatch | None:
    """Return the mismatch of the pod's node selector or required node affinity, or ``None``."""
    if pod.spec.selects(node_info.name, node_info.labels):
        return None
    selector = pod.spec.node_selector
    unmet = [f"{key}={value}" for key, value in sorted(selector.items()) if node_info.labels.get(key) != value]
    if unmet:
        return NodeAffinityMismatch("nodeSelector", unmet)
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    terms = required.node_selector_terms if required else []
    return NodeAffinityMismatch(
        "nodeAffinity",
        [
            ",".join(
                format_requirement(each.key, each.operator, each.values)
                for each in (*term.match_expressions, *term.match_fields)
            )
            for term in terms
        ],
    )


def host_ports(pod: Pod) -> list[ContainerPort]:
    """Return the host ports of the pod's containers, without init containers."""
    return [port for container in pod.spec.containers for port in container.ports if port.host_port > 0]


def addressed_ports(pod: Pod) -> list[PortKey]:
    """Return the pod's host ports by address, protocol and number (1.13 and 1.18)."""
    return [
        (port.host_ip or ANY_ADDRESS, port.protocol or DEFAULT_PROTOCOL, port.host_port) for port in host_ports(pod)
    ]


def port_conflict(pod: Pod, node_info: NodeInfo) -> PortConflict | None:
    """Return the pod's first conflicting host port, or ``None``; 0.0.0.0 conflicts with any address (1.13 and 1.18)."""
    for address, protocol, number in addressed_ports(pod):
        for used in node_info.used_ports:
            is_same_port = used[1:] == (protocol, number)
            if is_same_port and (address == used[0] or ANY_ADDRESS in (address, used[0])):
                holders = [info.key for info in node_info.pods if used in info.ports]
                return PortConflict(number, protocol, address, holders)
    return None


def term_selects(owner: Pod, term: PodAffinityTerm, pod: Pod) -> bool:
    """Return whether a pod affinity term of ``owner`` selects ``pod``, regardless of topology.

    A term without namespaces selects its owner's. Namespace selectors are newer and ignored.
    """
    namespaces = term.namespaces or (owner.metadata.namespace,)
    selector = term.label_selector
    return (
        pod.metadata.namespace in namespaces
        and selector is not None
        and selector.is_valid()
        and selector.matches(pod.metadata.labels)
    )


ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
_ZONE_DELIMITER = "__"


def too_many_disks(
    name: str, disks_of: Callable[[Pod], set[str]], pod: Pod, node_info: NodeInfo, limit: int
) -> VolumeLimitExceeded | None:
    """Return the excess of distinct disks of the node and the pod over the limit, or ``None``."""
    wanted = disks_of(pod)
    if not wanted:
        return None
    there = {disk for info in node_info.pods for disk in disks_of(info.pod)}
    if len(there | wanted) <= limit:
        return None
    return VolumeLimitExceeded(name, len(there), len(wanted - there), limit)


def disk_conflict(pod: Pod, node_info: NodeInfo) -> VolumeConflict | None:
    """Return a disk of the pod that conflicts with its use by another pod on the node, or ``None``."""
    for volume in pod.spec.volumes:
        holders = [
            info.key for info in node_info.pods if any(excludes(volume, other) for other in info.pod.spec.volumes)
        ]
        if holders:
            return VolumeConflict(volume=volume.name, problem="the disk is in use", holders=holders)
    return None


def claim_names(pod: Pod) -> Iterator[str]:
    """Yield the names of the claims that the pod's volumes reference."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def claim_of(cluster: Cluster, pod: Pod, name: str) -> PersistentVolumeClaim | None:
    """Return the pod's claim of that name, or ``None``."""
    return cluster.persistent_volume_claims.get(f"{pod.metadata.namespace}/{name}")


def check_claims(cluster: Cluster, pod: Pod) -> None:
    """Check that all claims exist and are not being deleted (``podPassesBasicChecks``); raise ``LegacyError``."""
    for name in claim_names(pod):
        claim = claim_of(cluster, pod, name)
        if claim is None:
            raise LegacyError(f'persistentvolumeclaim "{name}" not found')
        if claim.metadata.deletion_timestamp is not None:
            raise LegacyError(f'persistentvolumeclaim "{name}" is being deleted')


def zone_conflict(volume: PersistentVolume, node: Node) -> str | None:
    """Return the volume's zone label that does not match the node, or ``None``; nodes without zones match all."""
    zones = {key: node.metadata.labels[key] for key in ZONE_LABELS if key in node.metadata.labels}
    if not zones:
        return None
    for key in ZONE_LABELS:
        value = volume.metadata.labels.get(key)
        allowed = [] if value is None else [zone.strip() for zone in value.split(_ZONE_DELIMITER)]
        if allowed and all(allowed) and zones.get(key, "") not in allowed:
            return key
    return None


def is_reachable(volume: PersistentVolume, node_labels: Mapping[str, str]) -> bool:
    """Return whether a node with these labels can reach the volume (``CheckNodeAffinity``).

    The node's name is not passed: a term that requires a name never matches, one that excludes a name always does.
    """
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    return required is None or any(
        term.matches("", node_labels) and all(field.operator == "NotIn" for field in term.match_fields)
        for term in required.node_selector_terms
    )


# Whether the first pod is reprieved before the second.
Importance = Callable[[PodInfo, PodInfo], bool]


class Victims(NamedTuple):
    """The victims on a node in the order in which they were found, and the number of PDB violations."""

    pods: list[PodInfo]
    num_violations: int
    steps: list[Reprieve]
    # All reprieved pods, in that order.
    candidates: Sequence[PodInfo] = ()


class DryRun(NamedTuple):
    """The parameters of a version's dry runs: the filters, and the order of importance."""

    fits: FilterRun
    is_more_important: Importance
    rule: BudgetRule
    budgets: SelectingBudgets

    def select_victims(self, state: State, node_info: NodeInfo) -> Victims | Status:
        """Return the victims on the node, or why preemption does not help there; inputs are not changed."""
        state, node_info = state.clone(), node_info.clone()
        potential = [info for info in node_info.pods if info.priority < self.fits.pod.priority]
        for info in potential:
            node_info.remove_pod(info)
            state.remove_pod(info, node_info)
        # A dry run treats an error as a rejection.
        status = self.fits.status(state, node_info)
        if not status.is_success:
            return status
        ordered = reprieve_order(sorted_as_before_go_1_19(potential, self.is_more_important), self.rule, self.budgets)
        steps = [self._reprieve(state, node_info, each) for each in ordered]
        return Victims(
            [each.pod_info for each, step in zip(ordered, steps, strict=True) if not step.is_reprieved],
            sum(step.violates_budget and not step.is_reprieved for step in steps),
            steps,
            [each.pod_info for each in ordered],
        )

    def _reprieve(self, state: State, node_info: NodeInfo, each: PodWithBudgets) -> Reprieve:
        info = each.pod_info
        node_info.add_pod(info)
        state.add_pod(info, node_info)
        status = self.fits.status(state, node_info)
        if not status.is_success:
            node_info.remove_pod(info)
            state.remove_pod(info, node_info)
        return Reprieve(
            pod=info.key,
            priority=info.priority,
            is_reprieved=status.is_success,
            start_time=info.start,
            violates_budget=each.violates,
            budgets=each.budgets,
            blocked_by=None if status.is_success else status,
        )


def reprieve_order(pods: list[PodInfo], rule: BudgetRule, budgets: SelectingBudgets) -> list[PodWithBudgets]:
    """Sort pods, given in order of importance, in the order in which they are reprieved."""
    counted = rule(pods, budgets)
    return [*(each for each in counted if each.violates), *(each for each in counted if not each.violates)]


def choose(candidates: Mapping[str, Victims], criteria: Sequence[Criterion]) -> Selection:
    """Choose by a version's rules (``pickOneNodeForPreemption``); a candidate without victims wins at once."""
    if any(not victims.pods for victims in candidates.values()):
        criteria = [FEWEST_VICTIMS]
    victims_of = {
        node: CandidateVictims([info.pod for info in victims.pods], victims.num_violations)
        for node, victims in candidates.items()
    }
    return select_nodes(victims_of, criteria)


class PodWithBudgets(NamedTuple):
    """A pod that may be evicted, whether that would violate a PDB, and the budgets it counts against."""

    pod_info: PodInfo
    violates: bool
    budgets: list[BudgetUse]


# Marks which pods' evictions would violate a PDB; pods are in order of importance.
BudgetRule = Callable[[Sequence[PodInfo], SelectingBudgets], list[PodWithBudgets]]
