"""Filters: how they are run on one node, the predicates that 1.8 and 1.13 have in common, and what filters are made of.

``podFitsOnNode`` (``core/generic_scheduler.go``): v1.8.15 runs every predicate on the node alone; v1.13.12 and v1.18.19
stop at the first that fails, and run all twice if pods of equal or higher priority are nominated to the node.

The predicates take the words of a version, and follow ``algorithm/predicates/predicates.go`` of v1.8.15 and v1.13.12,
with ``isVolumeConflict``, ``MaxPDVolumeCountChecker`` and ``VolumeZoneChecker``. The plugins of v1.18.19 that took
their place have the same checks; each version says what a refusal means.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.labels import format_requirement
from kpreempt.model.node import Node
from kpreempt.model.pod import ContainerPort, Pod, Volume
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim
from kpreempt.model.taints import Taint, find_untolerated_taint
from kpreempt.schedulers.legacy.base.node_info import (
    MEMORY_PRESSURE,
    PODS,
    Amounts,
    Cluster,
    NodeInfo,
    PodInfo,
    PortKey,
    bad_conditions,
    is_best_effort,
    is_same_pod,
    is_true,
    names_to_compare,
    shortfalls,
)
from kpreempt.verdict import Code, Detail, Status
from kpreempt.verdict.details import (
    InsufficientResources,
    NodeAffinityMismatch,
    NodeNameMismatch,
    PortConflict,
    Shortfall,
    UntoleratedTaint,
    VolumeConflict,
)


class Metadata(ABC):
    """The pod, what it requests, and what is known beforehand of pods that want each other near or far.

    That is ``predicateMetadata``. ``ignored`` are resources that are left to extenders (1.13).
    """

    def __init__(self, cluster: Cluster, pod: PodInfo, request: Amounts, ignored: frozenset[str] = frozenset()) -> None:
        self.cluster = cluster
        self.pod = pod
        self.request = request
        self.ignored = ignored

    @abstractmethod
    def clone(self) -> Self:
        """A copy that can be changed without touching this one."""

    @abstractmethod
    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was put on the node."""

    @abstractmethod
    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was taken off the node."""

    @abstractmethod
    def check_affinity(self, node_info: NodeInfo) -> Status:
        """Whether the pod's terms hold, and those of the pods that are there."""


# Gets the version's state, which knows the pod, and the node.
Check = Callable[[Any, NodeInfo], Status]


def node_condition(reasons: Mapping[str, str], unschedulable: str) -> Check:
    """The node is ready, has disk and network, and is not cordoned; ``reasons`` are by the type of the condition."""

    def check(_: Metadata, node_info: NodeInfo) -> Status:
        failed = [reasons[condition] for condition in bad_conditions(node_info.node)]
        if node_info.node.spec.unschedulable:
            failed.append(unschedulable)
        return refusal(*failed) if failed else PASSES

    return check


def memory_pressure(reason: str) -> Check:
    """The node has memory to spare, or the pod is not best-effort."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        is_refused = is_true(node_info.node, MEMORY_PRESSURE) and is_best_effort(meta.pod.pod)
        return refusal(reason) if is_refused else PASSES

    return check


def no_pressure(condition: str, reason: str) -> Check:
    """The node does not say that it is under a pressure."""
    return lambda _, node_info: refusal(reason) if is_true(node_info.node, condition) else PASSES


def pod_fits_resources(always: Iterable[str] = ()) -> Check:
    """There is room for one more pod, and enough of everything; see ``insufficient_resources``."""
    compared = tuple(always)

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        short = insufficient_resources(meta.request, node_info, compared, meta.ignored)
        if short is None:
            return PASSES
        return refusal(*(f"Insufficient {each.resource}" for each in short.shortfalls), detail=short)

    return check


def refuses_on(find: Callable[[Pod, NodeInfo], Detail | None], reason: str, code: Code = Code.NONE) -> Check:
    """A check that refuses the node if ``find`` finds something; ``reason`` may format what is found."""

    def check(state: Any, node_info: NodeInfo) -> Status:
        found = find(state.pod.pod, node_info)
        return PASSES if found is None else refusal(reason.format(found), detail=found, code=code)

    return check


def general_predicates(*checks: Check) -> Check:
    """Several predicates as one: the reasons of all that fail."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        failed = [status for each in checks if not (status := each(meta, node_info)).is_success]
        if not failed:
            return PASSES
        return refusal(*(reason for status in failed for reason in status.reasons), detail=failed[0].detail)

    return check


class LegacyError(Exception):
    """What upstream returns as an error where it is not a refusal: the attempt ends, and nobody is preempted."""


class State(Protocol):
    """What a version computes once for a pod and keeps right in a dry run: predicate metadata, or the cycle state."""

    def clone(self) -> Self:
        """A copy that can be changed without touching this one."""

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was put on the node."""

    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was taken off the node."""


class Filter(NamedTuple):
    """A predicate or filter plugin by its name. ``check`` may raise ``LegacyError``.

    It gets the version's state, which knows the pod, and the node. The node passes with a status that has neither a
    code nor reasons; refusals are to have a code where the version has codes.
    """

    name: str
    check: Callable[[Any, NodeInfo], Status]


class FilterRun:
    """Runs the filters for one pod.

    ``stops_at_first`` ends with the first refusal, otherwise the reasons of all are given together. With
    ``counts_nominated`` the pod has to fit beside the pods that are nominated to the node as well as without them.
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
        """What the filters say of the node; raises ``LegacyError``."""
        for run_state, run_node in self.situations(state, node_info):
            status = self._run(run_state, run_node)
            if not status.is_success:
                break
        return status

    def situations(self, state: State, node_info: NodeInfo) -> list[tuple[State, NodeInfo]]:
        """The node with nominated pods that count, if there are any, then as it is."""
        nominated = self.nominated_pods(node_info.name)
        if not nominated:
            return [(state, node_info)]
        beside_state, beside_node = state.clone(), node_info.clone()
        for info in nominated:
            beside_node.add_pod(info)
            beside_state.add_pod(info, beside_node)
        return [(beside_state, beside_node), (state, node_info)]

    def nominated_pods(self, node_name: str) -> list[PodInfo]:
        """Other pods of equal or higher priority that are nominated to the node."""
        if not self._counts_nominated:
            return []
        return [
            info
            for info in self._cluster.nominated_pods.get(node_name, ())
            if info.priority >= self.pod.priority and not is_same_pod(info.pod, self.pod.pod)
        ]

    def _run(self, state: State, node_info: NodeInfo) -> Status:
        refusals = []
        for each in self.filters:
            status = each.check(state, node_info)
            if not status.is_success:
                refusals.append(status.of_plugin(each.name))
                if self._stops_at_first:
                    break
        if len(refusals) == 1:
            return refusals[0]
        if not refusals:
            return Status(Code.NONE)
        is_final = any(status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in refusals)
        return Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE if is_final else refusals[0].code,
            [reason for status in refusals for reason in status.reasons],
            refusals[0].plugin,
            refusals[0].detail,
        )


ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (the address that pods ask for, not one to bind to)
DEFAULT_PROTOCOL = "TCP"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_EFFECTS_THAT_REPEL = frozenset(("NoSchedule", "NoExecute"))

PASSES = Status(Code.NONE)


def refusal(*reasons: str, detail: Detail | None = None, code: Code = Code.NONE) -> Status:
    """The status of a node that is refused."""
    return Status(code, list(reasons), detail=detail)


def insufficient_resources(
    request: Amounts, node_info: NodeInfo, always: Iterable[str] = (), ignored: frozenset[str] = frozenset()
) -> InsufficientResources | None:
    """What the node has too little of, the number of pods first, or ``None``; see ``names_to_compare``."""
    names = names_to_compare(request, always, ignored)
    short = shortfalls(request, node_info.requested, node_info.allocatable, names)
    count = len(node_info.pods)
    if count + 1 > node_info.allowed_pods:
        short.insert(0, Shortfall(PODS, 1, count, node_info.allowed_pods, exceeds_node=node_info.allowed_pods < 1))
    return InsufficientResources(short, count) if short else None


def untolerated_taint(pod: Pod, node_info: NodeInfo) -> UntoleratedTaint | None:
    """The first taint that keeps the pod off the node, or ``None``."""
    taint = find_untolerated_taint(node_info.node.spec.taints, pod.spec.tolerations, _EFFECTS_THAT_REPEL)
    return UntoleratedTaint(taint.key, taint.value, taint.effect) if taint else None


def tolerates_unschedulable(pod: Pod) -> bool:
    """Whether the pod tolerates the taint that goes with ``spec.unschedulable``."""
    taint = Taint(UNSCHEDULABLE_TAINT, effect="NoSchedule")
    return any(toleration.tolerates(taint) for toleration in pod.spec.tolerations)


def name_mismatch(pod: Pod, node_info: NodeInfo) -> NodeNameMismatch | None:
    """The node that the pod names, if it names another one, or ``None``."""
    wanted = pod.spec.node_name
    return NodeNameMismatch(wanted) if wanted not in ("", node_info.name) else None


def selector_mismatch(pod: Pod, node_info: NodeInfo) -> NodeAffinityMismatch | None:
    """What of the pod's node selector, or else of its required node affinity, the node lacks, or ``None``."""
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
    """The host ports of the pod's containers, init containers left out."""
    return [port for container in pod.spec.containers for port in container.ports if port.host_port > 0]


def addressed_ports(pod: Pod) -> list[PortKey]:
    """The pod's host ports by address, protocol and number (1.13 and 1.18)."""
    return [
        (port.host_ip or ANY_ADDRESS, port.protocol or DEFAULT_PROTOCOL, port.host_port) for port in host_ports(pod)
    ]


def port_conflict(pod: Pod, node_info: NodeInfo) -> PortConflict | None:
    """The pod's first host port that is taken: 0.0.0.0 conflicts with any address (1.13 and 1.18), or ``None``."""
    for address, protocol, number in addressed_ports(pod):
        for used in node_info.used_ports:
            is_same_port = used[1:] == (protocol, number)
            if is_same_port and (address == used[0] or ANY_ADDRESS in (address, used[0])):
                holders = [info.key for info in node_info.pods if used in info.ports]
                return PortConflict(number, protocol, address, holders)
    return None


def term_selects(owner: Pod, term: PodAffinityTerm, pod: Pod) -> bool:
    """Whether a pod affinity term of ``owner`` selects ``pod``, topology aside.

    A term without namespaces means its owner's. Namespace selectors came later and are passed over.
    """
    namespaces = term.namespaces or (owner.metadata.namespace,)
    selector = term.label_selector
    return (
        pod.metadata.namespace in namespaces
        and selector is not None
        and selector.is_valid()
        and selector.matches(pod.metadata.labels)
    )


BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
CSI_LIMIT_PREFIX = "attachable-volumes-csi-"
_LONGEST_LIMIT_KEY = 63
ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
_ZONE_DELIMITER = "__"


class DiskType(NamedTuple):
    """A kind of disk whose number on a node is limited: its identity in a pod's volume and in a persistent volume."""

    name: str
    of_volume: Callable[[Volume], str | None]
    of_persistent_volume: Callable[[PersistentVolume], str | None]


EBS = DiskType(
    "EBS",
    lambda volume: None if (disk := volume.aws_elastic_block_store) is None else disk.volume_id,
    lambda volume: None if (disk := volume.spec.aws_elastic_block_store) is None else disk.volume_id,
)
GCE_PD = DiskType(
    "GCE",
    lambda volume: None if (disk := volume.gce_persistent_disk) is None else disk.pd_name,
    lambda volume: None if (disk := volume.spec.gce_persistent_disk) is None else disk.pd_name,
)
AZURE_DISK = DiskType(
    "AzureDisk",
    lambda volume: None if (disk := volume.azure_disk) is None else disk.disk_name,
    lambda volume: None if (disk := volume.spec.azure_disk) is None else disk.disk_name,
)


def disk_conflict(pod: Pod, node_info: NodeInfo) -> VolumeConflict | None:
    """A disk of the pod that another pod on the node uses in a way that excludes it, or ``None``."""
    for volume in pod.spec.volumes:
        holders = [
            info.key for info in node_info.pods if any(_excludes(volume, other) for other in info.pod.spec.volumes)
        ]
        if holders:
            return VolumeConflict(volume=volume.name, problem="the disk is in use", holders=holders)
    return None


def _excludes(volume: Volume, other: Volume) -> bool:
    """Two users of one disk: never for EBS, only where both only read for the others."""
    disk, used_disk = volume.gce_persistent_disk, other.gce_persistent_disk
    block, used_block = volume.aws_elastic_block_store, other.aws_elastic_block_store
    target, used_target = volume.iscsi, other.iscsi
    if disk and used_disk and disk.pd_name == used_disk.pd_name and not (disk.read_only and used_disk.read_only):
        return True
    if block and used_block and block.volume_id == used_block.volume_id:
        return True
    if target and used_target and target.iqn == used_target.iqn:
        return not (target.read_only and used_target.read_only)
    image, used = volume.rbd, other.rbd
    if image is None or used is None or (image.pool, image.image) != (used.pool, used.image):
        return False
    return not set(image.monitors).isdisjoint(used.monitors) and not (image.read_only and used.read_only)


def claim_names(pod: Pod) -> Iterator[str]:
    """The names of the claims that the pod's volumes refer to."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def claim_of(cluster: Cluster, pod: Pod, name: str) -> PersistentVolumeClaim | None:
    """The pod's claim of that name, or ``None``."""
    return cluster.persistent_volume_claims.get(f"{pod.metadata.namespace}/{name}")


def check_claims(cluster: Cluster, pod: Pod) -> None:
    """All claims are there and stay (``podPassesBasicChecks``); raises ``LegacyError``."""
    for name in claim_names(pod):
        claim = claim_of(cluster, pod, name)
        if claim is None:
            raise LegacyError(f'persistentvolumeclaim "{name}" not found')
        if claim.metadata.deletion_timestamp is not None:
            raise LegacyError(f'persistentvolumeclaim "{name}" is being deleted')


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The storage class that the claim asks for; empty where it names none."""
    annotated = claim.metadata.annotations.get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """The storage class of the volume."""
    return volume.metadata.annotations.get(BETA_STORAGE_CLASS, volume.spec.storage_class_name)


def zone_conflict(volume: PersistentVolume, node: Node) -> str | None:
    """The zone label of the volume whose values the node's is not among, or ``None``; nodes without zones take all."""
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
    """Whether a node with these labels reaches the volume (``CheckNodeAffinity``).

    The node's name is not handed over: a term that asks for a certain name never holds, one that forbids a name does.
    """
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    return required is None or any(
        term.matches("", node_labels) and all(field.operator == "NotIn" for field in term.match_fields)
        for term in required.node_selector_terms
    )


def csi_limit_key(driver: str) -> str:
    """The resource that limits a driver's volumes (``GetCSIAttachLimitKey``); a name that is too long is hashed."""
    if len(CSI_LIMIT_PREFIX) + len(driver) < _LONGEST_LIMIT_KEY:
        return CSI_LIMIT_PREFIX + driver
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{CSI_LIMIT_PREFIX}{driver[:23]}{digest[:16]}"
