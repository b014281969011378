"""What is never advised, because it does not last or does harm.

Controllers set taints to keep pods away from a node that cannot run them (``k8s.io/kubernetes`` v1.36.3
``pkg/controller/nodelifecycle/node_lifecycle_controller.go``, ``k8s.io/cloud-provider``
``api/well_known_taints.go``), and autoscalers before they remove a node; the repair is on the node. Pods of
controllers, DaemonSets and the kubelet return when they are deleted. Critical pods keep the cluster running.
"""

from __future__ import annotations

from kpreempt.model.meta import controller_of
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.taints import Taint

CORDON_TAINT = "node.kubernetes.io/unschedulable"
_OF_CONDITIONS = frozenset(
    {
        CORDON_TAINT,
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/out-of-service",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)
_OF_AUTOSCALERS = frozenset(
    {
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/disruption",
        "karpenter.sh/disrupted",
        "karpenter.sh/unregistered",
        "cloud.google.com/impending-node-termination",
    }
)
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_STARTUP = ("ignore-taint.cluster-autoscaler.kubernetes.io/", "startup-taint.cluster-autoscaler.kubernetes.io/")
_CRITICAL_CLASSES = ("system-node-critical", "system-cluster-critical")
SYSTEM_NAMESPACE = "kube-system"


def is_set_by_controller(taint: Taint) -> bool:
    """Whether a controller sets the taint while the node is not usable: not ready, cordoned, starting or removed."""
    return taint.key in _OF_CONDITIONS or is_set_by_autoscaler(taint)


def is_set_by_autoscaler(taint: Taint) -> bool:
    """Whether an autoscaler sets or ignores the taint, because the node is about to be removed or is not ready yet."""
    return taint.key in _OF_AUTOSCALERS or taint.key.startswith(_STARTUP)


def is_of_control_plane(taint: Taint) -> bool:
    """Whether the taint reserves a node for the control plane."""
    return taint.key in CONTROL_PLANE


def has_control_plane(node: Node) -> bool:
    """Whether the control plane runs on the node, according to its labels and taints."""
    return any(label in node.labels for label in CONTROL_PLANE) or any(map(is_of_control_plane, node.spec.taints))


def is_critical(pod: Pod) -> bool:
    """Whether the cluster itself may depend on the pod: static, in ``kube-system``, or of a critical priority class."""
    owner = controller_of(pod.metadata)
    return (
        pod.is_mirror
        or pod.metadata.namespace == SYSTEM_NAMESPACE
        or pod.spec.priority_class_name in _CRITICAL_CLASSES
        or (owner is not None and owner.kind == "Node")
    )


def is_device(resource: str) -> bool:
    """Whether a resource is a device such as a GPU, without which the pod could not do its work."""
    return "/" in resource and not resource.startswith("hugepages-")
