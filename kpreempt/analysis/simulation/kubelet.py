"""Whether a kubelet starts a pod that bypassed the scheduler, or that has to wait for a volume.

The former follows ``pkg/kubelet/lifecycle/predicate.go`` and ``pkg/kubelet/preemption/preemption.go`` of v1.36.3. A
kubelet checks resources, the pod's required node affinity, host ports and NoExecute taints. It preempts only for
critical pods, evicts pods that are not critical or have a lower priority, and checks no PodDisruptionBudget.

Volumes follow ``pkg/controller/volume/attachdetach/reconciler`` of v1.36.3 (``attachDesiredVolumes``) and
``IsMultiAttachAllowed`` in ``pkg/volume/util``: the attach/detach controller does not attach a volume to a second node
unless its access modes include ReadWriteMany or ReadOnlyMany. A pod on that node does not start until the volume is
detached from the first node, when no pod uses it there. Volumes that are not attached (NFS, local disks, CSI drivers
with ``attachRequired: false``) have no such limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kpreempt.admission.admit import NOT_READY, UNREACHABLE
from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import quantity_text
from kpreempt.model.storage import class_of_claim
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.assumptions import qos_class
from kpreempt.schedulers.kube.framework.csi_translation import DRIVERS, PORTWORX, in_tree_plugin
from kpreempt.schedulers.kube.framework.node_info import HostPorts, host_ports_of
from kpreempt.schedulers.kube.framework.resources import is_extended_resource, pod_requests

# Pods with at least this priority are critical (``SystemCriticalPriority``).
_CRITICAL_PRIORITY = 2_000_000_000
_PODS = "pods"
_ONE_POD = 10**9
_NOT_READY = (NOT_READY, UNREACHABLE)
_NO_EXECUTE = frozenset({"NoExecute"})
# The status reason of a pod that is rejected for lack of a resource.
_REASONS = {
    "cpu": "OutOfcpu",
    "memory": "OutOfmemory",
    "ephemeral-storage": "OutOfephemeral-storage",
    _PODS: "OutOfpods",
}
# Amounts in billionths, the API's smallest unit.
_Nano = Mapping[str, int]


class KubeletAnswer(NamedTuple):
    """Why the pod does not run (``problem``, empty if it does), and the ``victims`` evicted for it."""

    problem: str = ""
    victims: Sequence[Pod] = ()


def admit_pod(pod: Pod, node: Node | None, others: Iterable[Pod]) -> KubeletAnswer:
    """What the kubelet of ``node`` does with a pod that is bound to it; ``others`` are the pods on the node.

    ``node`` is ``None`` if the pod's node does not exist.
    """
    name = pod.spec.node_name
    if node is None:
        return KubeletAnswer(f"node {name} does not exist, and pod garbage collection deletes the pod")
    if pod.is_mirror:
        return KubeletAnswer(f"the kubelet of {name} deletes mirror pods for which it has no static pod")
    if is_not_ready(node):
        return KubeletAnswer(f"node {name} is not ready and starts no pods")
    running = [each for each in others if each.key != pod.key and not each.is_terminal]
    if misfit := _misfit(pod, node, running):
        return KubeletAnswer(f"the kubelet of {name} rejects the pod: {misfit}")
    short = _shortages(pod, node, running)
    if not short:
        return KubeletAnswer()
    words = ", ".join(
        f"{resource}: {quantity_text(requested)} requested, {quantity_text(free)} free"
        for resource, requested, free in short
    )
    if not _is_critical(pod):
        return KubeletAnswer(
            f"the kubelet of {name} rejects the pod with {_REASONS.get(short[0][0], 'OutOf')} ({words})"
        )
    victims = _pods_to_evict(pod, running, {resource: requested - free for resource, requested, free in short})
    if victims is None:
        return KubeletAnswer(
            f"the kubelet of {name} rejects the pod, because evictions would not free enough ({words})"
        )
    return KubeletAnswer(victims=victims)


def is_not_ready(node: Node) -> bool:
    """Whether the node's condition, or a taint of the node controller, shows that its kubelet is not working."""
    has_condition = any(each.type == "Ready" and each.status != "True" for each in node.status.conditions)
    return has_condition or any(each.key in _NOT_READY for each in node.spec.taints)


def _misfit(pod: Pod, node: Node, others: Iterable[Pod]) -> str:
    """The reason that evictions cannot fix; empty if there is none."""
    if not pod.spec.selects(node.name, node.labels):
        return "its node selector or required node affinity does not match"
    used = HostPorts()
    for port in (port for each in others for port in host_ports_of(each)):
        used.add(port.host_ip, port.protocol, port.host_port)
    for port in host_ports_of(pod):
        if used.conflicts(port.host_ip, port.protocol, port.host_port):
            return f"host port {port.host_port} is in use"
    taint = find_untolerated_taint(node.spec.taints, pod.spec.tolerations, _NO_EXECUTE)
    return f"it does not tolerate the taint {taint}" if taint is not None else ""


def _shortages(pod: Pod, node: Node, others: Iterable[Pod]) -> list[tuple[str, int, int]]:
    """The resources that the pod lacks on the node, with the amounts requested and free."""
    allocatable = {name: amount.nano for name, amount in node.status.allocatable.items()}
    free = dict(allocatable)
    for each in others:
        for name, amount in _requests(each).items():
            free[name] = free.get(name, 0) - amount
    return [
        (name, amount, max(free.get(name, 0), 0))
        for name, amount in _requests(pod).items()
        # Devices of the cluster may provide resources that the node does not list.
        if amount > 0 and amount > free.get(name, 0) and not (is_extended_resource(name) and name not in allocatable)
    ]


def _requests(pod: Pod) -> dict[str, int]:
    return {**pod_requests(pod), _PODS: _ONE_POD}


def _is_critical(pod: Pod) -> bool:
    return pod.is_mirror or pod.priority >= _CRITICAL_PRIORITY


def _pods_to_evict(pod: Pod, others: Iterable[Pod], short: _Nano) -> list[Pod] | None:
    """``getPodsToPreempt``: best-effort pods before burstable and guaranteed ones; ``None`` if all free too little."""
    by_class: dict[str, list[Pod]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for each in others:
        if not _is_critical(each) or each.priority < pod.priority:
            by_class[qos_class(each)].append(each)
    best_effort, burstable, guaranteed = by_class.values()
    if _less(short, [*best_effort, *burstable, *guaranteed]):
        return None
    last = _nearest(guaranteed, _less(short, [*best_effort, *burstable]))
    middle = _nearest(burstable, _less(short, [*best_effort, *last]))
    return [*_nearest(best_effort, _less(short, [*middle, *last])), *middle, *last]


def _nearest(pods: Iterable[Pod], short: _Nano) -> list[Pod]:
    """``getPodsToPreemptByDistance``: pick one by one the pod that frees the most of what is still missing."""

    def rank(pod: Pod) -> tuple[float, int, int]:
        """The distance to freeing what is missing, then the pod's size."""
        requests = _requests(pod)
        distance = sum((max(amount - requests.get(name, 0), 0) / amount) ** 2 for name, amount in short.items())
        return distance, requests.get("memory", 0), requests.get("cpu", 0)

    remaining, found = list(pods), []
    while short and remaining:
        chosen = min(remaining, key=rank)
        remaining.remove(chosen)
        found.append(chosen)
        short = _less(short, [chosen])
    return found


def _less(short: _Nano, pods: Iterable[Pod]) -> dict[str, int]:
    """What is still missing without these pods."""
    missing = dict(short)
    for pod in pods:
        for name, amount in _requests(pod).items():
            if name in missing:
                missing[name] -= amount
    return {name: amount for name, amount in missing.items() if amount > 0}


_FOR_MANY_NODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_VSPHERE = "kubernetes.io/vsphere-volume"
# The in-tree plugins that attach volumes. Portworx volumes are mounted without attaching.
_ATTACHING_PLUGINS = frozenset({_VSPHERE, *DRIVERS} - {PORTWORX})


class Holders(NamedTuple):
    """The pods that use a volume on the node that has it attached; ``volume`` is its display name."""

    volume: str
    node: str
    pods: list[str]


class Attachments:
    """Volumes that can be attached to only one node at a time, with the pods that use them in order of creation."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        """Read the pods that have a node; volumes already used on several nodes are left out."""
        self._claims = _claims_for_one_node(cluster)
        # The node of each pod, by volume and pod. The volume is attached to the first pod's node.
        self._users: dict[str, dict[str, str]] = {}
        serving: dict[str, set[str]] = {}
        for pod in cluster.pods if self._claims else ():
            if pod.spec.node_name and not pod.is_terminal:
                self.use(pod)
                if is_serving(pod):
                    for volume in self._volumes_of(pod):
                        serving.setdefault(volume, set()).add(pod.spec.node_name)
        self._claims -= {volume for volume, nodes in serving.items() if len(nodes) > 1}

    def use(self, pod: Pod) -> None:
        """Record that a pod has a node, where its volumes are to be attached."""
        for volume in self._volumes_of(pod):
            self._users.setdefault(volume, {})[pod.key] = pod.spec.node_name

    def release(self, pod: Pod) -> bool:
        """Record that a pod's containers have ended; returns whether another node may now attach one of its volumes."""
        used = [self._users.get(volume, {}).pop(pod.key, None) for volume in self._volumes_of(pod)]
        return any(used)

    def bound_elsewhere(self, pod: Pod) -> Holders | None:
        """The pods that use one of the pod's volumes on another node, if any."""
        for volume in self._volumes_of(pod):
            users = self._users.get(volume, {})
            node = next(iter(users.values()), pod.spec.node_name)
            if node != pod.spec.node_name:
                return Holders(volume, node, [key for key, other_node in users.items() if other_node == node])
        return None

    def _volumes_of(self, pod: Pod) -> Iterator[str]:
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                claim = f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
                if claim in self._claims:
                    yield claim
            elif volume.azure_disk is not None:
                yield volume.azure_disk.disk_uri
            elif volume.cinder is not None:
                yield volume.cinder.volume_id


def _claims_for_one_node(cluster: ClusterSnapshot) -> frozenset[str]:
    """The claims whose volumes are attached to one node at a time."""
    volumes = {each.metadata.name: each for each in cluster.persistent_volumes}
    classes = {each.metadata.name: each for each in cluster.storage_classes}
    unattached = {each.metadata.name for each in cluster.csi_drivers if each.spec.attach_required is False}
    found = set()
    for claim in cluster.persistent_volume_claims:
        volume = volumes.get(claim.spec.volume_name)
        modes = volume.spec.access_modes if volume is not None else claim.spec.access_modes
        # Without modes, upstream leaves it to the driver.
        if not modes or _FOR_MANY_NODES.intersection(modes):
            continue
        # The CSI driver or the in-tree plugin; empty if nothing attaches the volume.
        driver: str | None = None
        if volume is not None and volume.spec.csi is not None:
            driver = volume.spec.csi.driver
        elif volume is not None and volume.spec.vsphere_volume is not None:
            driver = _VSPHERE
        elif volume is not None:
            # A volume that the API server has not stored yet will be provisioned by its class.
            driver = in_tree_plugin(volume.spec) or ("" if volume.metadata.uid else None)
        if driver is None:
            storage_class = classes.get(class_of_claim(claim))
            driver = storage_class.provisioner if storage_class is not None else ""
        # A CSI driver attaches volumes unless its CSIDriver says otherwise; names of other provisioners contain a
        # slash.
        if "/" in driver:
            attaches = driver in _ATTACHING_PLUGINS and DRIVERS.get(driver) not in unattached
        else:
            attaches = bool(driver) and driver not in unattached
        if attaches:
            found.add(claim.key)
    return frozenset(found)
