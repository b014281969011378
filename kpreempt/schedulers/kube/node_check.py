"""The look at a node that came or changed which the scheduling queue takes where it asks no queueing hints.

Follows ``preCheckForNode`` and ``AdmissionCheck`` in ``pkg/scheduler/eventhandlers.go`` of v1.31.14: pods that do not
fit on the node as it is stay aside, whatever plugin refused them. What a profile configures has no part in it, and
nominated pods have none.
"""

from __future__ import annotations

from kpreempt.model.pod import Pod
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.framework.host_ports import host_ports_of
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resources import Resource, pod_requests
from kpreempt.schedulers.kube.versions import Behaviour

_REPELLING = frozenset(("NoSchedule",))


def fits_on(pod: Pod, node_info: NodeInfo, behaviour: Behaviour) -> bool:
    """Whether resources, required node affinity, the node's name, host ports and taints let the pod onto the node."""
    node = node_info.node
    return (
        _has_room(pod, node_info, behaviour)
        and pod.spec.selects(node.name, node.labels)
        and pod.spec.node_name in ("", node.name)
        and not any(
            node_info.used_ports.conflicts(port.host_ip, port.protocol, port.host_port)
            for port in host_ports_of(pod, counts_sidecars=behaviour.counts_ports_of_sidecars)
        )
        and find_untolerated_taint(node.spec.taints, pod.spec.tolerations, _REPELLING) is None
    )


def _has_room(pod: Pod, node_info: NodeInfo, behaviour: Behaviour) -> bool:
    wanted = Resource.from_nano(pod_requests(pod, pod_level=behaviour.pod_level_resources))
    total, used = node_info.allocatable, node_info.requested
    amounts = [
        (wanted.milli_cpu, used.milli_cpu, total.milli_cpu),
        (wanted.memory, used.memory, total.memory),
        (wanted.ephemeral_storage, used.ephemeral_storage, total.ephemeral_storage),
        *((want, used.scalar.get(name, 0), total.scalar.get(name, 0)) for name, want in wanted.scalar.items()),
    ]
    return node_info.num_pods < total.allowed_pod_number and all(
        want == 0 or want <= whole - there for want, there, whole in amounts
    )
