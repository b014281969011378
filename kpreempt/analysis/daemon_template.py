"""What the DaemonSet controller adds to its pods: tolerations, and the tie to a node.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/daemon/util/daemonset_util.go``. Works on plain data, before a
manifest is decoded.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

Document = dict[str, Any]

_PREFIX = "node.kubernetes.io/"
_EVERYWHERE = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_ON_HOST_NETWORK = ("network-unavailable", "NoSchedule")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def add_daemon_tolerations(tolerations: list[Document], host_network: bool) -> list[Document]:
    """The tolerations with those of every DaemonSet pod; one for the same taint is replaced in its place."""
    result = deepcopy(tolerations)
    for key, effect in (*_EVERYWHERE, *([_ON_HOST_NETWORK] if host_network else [])):
        wanted = {"key": _PREFIX + key, "operator": "Exists", "effect": effect}
        places = [index for index, have in enumerate(result) if _is_same_taint(have, wanted)]
        for index in places:
            result[index] = dict(wanted)
        if not places:
            result.append(wanted)
    return result


def tie_to_node(spec: Document, node_name: str) -> None:
    """Make the pod's required node affinity that one node, in place; what it was has picked the node already."""
    affinity = spec.get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    spec["affinity"] = {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: required}}


def _is_same_taint(have: Document, wanted: Document) -> bool:
    return all((have.get(key) or "") == wanted.get(key, "") for key in ("key", "operator", "effect", "value"))
