"""What controllers put on and beside the pods that they make, as plain data, before a manifest is decoded.

DaemonSets: tolerations, and the tie to a node. StatefulSets and ephemeral volumes: the claims that are there before
their pod can be scheduled. Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/daemon/util/daemonset_util.go``,
``pkg/controller/statefulset/stateful_set_utils.go`` and ``pkg/controller/volume/ephemeral``.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from kpreempt.analysis.document_reader import Document, DocumentReader

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

_TEMPLATES = "spec.volumeClaimTemplates[]"


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


def stateful_claims(
    spec: Document, pod_name: str, namespace: str, labels: Mapping[str, str], reader: DocumentReader
) -> tuple[list[Document], list[Document]]:
    """The claims of a StatefulSet's pod, and the pod's volumes that use them.

    ``spec`` is the StatefulSet's; ``labels`` are those of its selector, which its claims carry.
    """
    claims, volumes = [], []
    for template in reader.mappings(spec, "volumeClaimTemplates", "spec"):
        metadata = reader.mapping(template, "metadata", _TEMPLATES)
        volume = reader.name(metadata, "name")
        claim_name = f"{volume}-{pod_name}"
        volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": claim_name}})
        claim_labels = {**reader.mapping(metadata, "labels", f"{_TEMPLATES}.metadata"), **labels}
        claim_metadata = {**metadata, "name": claim_name, "namespace": namespace, "labels": claim_labels}
        claims.append(_claim(template, claim_metadata))
    return claims, volumes


def ephemeral_claims(document: Document) -> list[Document]:
    """The claims that are made for the ephemeral volumes of a pod, which is given as plain data and stays as it is."""
    metadata, spec = document["metadata"], document.get("spec")
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    claims = []
    for volume in volumes if isinstance(volumes, list) else []:
        ephemeral = volume.get("ephemeral") if isinstance(volume, dict) else None
        template = ephemeral.get("volumeClaimTemplate") if isinstance(ephemeral, dict) else None
        if not isinstance(template, dict):
            continue
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "uid": metadata.get("uid") or "",
            "controller": True,
        }
        claim_metadata = {
            **(template.get("metadata") or {}),
            "name": f"{metadata['name']}-{volume.get('name')}",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        }
        claims.append(_claim(template, claim_metadata))
    return claims


def _claim(template: Document, metadata: Document) -> Document:
    return {
        **deepcopy(template),
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": deepcopy(metadata),
    }
