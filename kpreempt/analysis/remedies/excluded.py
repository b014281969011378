"""What is never advised, because it does not last or does harm.

Controllers set taints to keep pods away from a node that cannot run them (``k8s.io/kubernetes`` v1.36.3
``pkg/controller/nodelifecycle/node_lifecycle_controller.go``, ``k8s.io/cloud-provider``
``api/well_known_taints.go``), and autoscalers before they remove a node; the repair is on the node. Pods of
controllers, DaemonSets and the kubelet return when they are deleted. Critical pods keep the cluster running.
"""

from __future__ import annotations

from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.taints import Taint

_CONDITIONS = "node.kubernetes.io/"
_CLOUD_PROVIDER = "node.cloudprovider.kubernetes.io/"
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
_STARTUP = ("ignore-taint.cluster-autoscaler.kubernetes.io/", "startup-taint.cluster-autoscaler.kubernetes.io/")
_CRITICAL_CLASSES = ("system-node-critical", "system-cluster-critical")
SYSTEM_NAMESPACE = "kube-system"


def is_set_by_controller(taint: Taint) -> bool:
    """Whether a controller sets the taint while the node is not usable: not ready, cordoned, starting or removed."""
    return (
        taint.key.startswith((_CONDITIONS, _CLOUD_PROVIDER)) or taint.key in _OF_AUTOSCALERS or is_startup_taint(taint)
    )


def is_startup_taint(taint: Taint) -> bool:
    """Whether an autoscaler ignores the taint, because a node has it only until it is ready."""
    return taint.key.startswith(_STARTUP)


def is_critical(pod: Pod) -> bool:
    """Whether the cluster itself may depend on the pod: static, in ``kube-system``, or of a critical priority class."""
    owner = controller_of(pod.metadata)
    return (
        pod.is_mirror
        or pod.metadata.namespace == SYSTEM_NAMESPACE
        or pod.spec.priority_class_name in _CRITICAL_CLASSES
        or (owner is not None and owner.kind == "Node")
    )


def comes_back(pod: Pod) -> bool:
    """Whether a controller or the kubelet creates the pod again after its deletion."""
    return pod.is_mirror or controller_of(pod.metadata) is not None


def is_device(resource: str) -> bool:
    """Whether a resource is a device such as a GPU, without which the pod could not do its work."""
    return "/" in resource and not resource.startswith("hugepages-")
