"""ResourceClaims, ResourceSlices and DeviceClasses for tests, as in manifests."""

from __future__ import annotations

from typing import Any

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, PodResourceClaim
from kpreempt.snapshot.decode import decode_object
from tests.factories import make_node, make_pod

DRIVER = "gpu.example.com"


def record(kind: str, **document: Any) -> Any:
    """An object as the snapshot reader returns it."""
    return decode_object(kind, {"kind": kind, **document})


def gpu_class(name: str = "gpu", **spec: Any) -> DeviceClass:
    """A class of all devices, unless ``spec`` selects some."""
    found: DeviceClass = record("DeviceClass", metadata={"name": name}, spec=spec)
    return found


def gpus(node: str, *devices: str | dict[str, Any], **spec: Any) -> ResourceSlice:
    """The devices of a node, in a pool with its name."""
    stated = [{"name": each} if isinstance(each, str) else each for each in devices]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    whole = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": stated, **spec}
    found: ResourceSlice = record("ResourceSlice", metadata={"name": f"{node}-{DRIVER}"}, spec=whole)
    return found


def exactly(name: str = "gpu", **request: Any) -> dict[str, Any]:
    """A request for one device, with API defaults."""
    stated = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **request}
    return {"name": name, "exactly": stated}


def claim(
    name: str,
    *requests: dict[str, Any],
    held: str = "",
    users: tuple[str, ...] = (),
    namespace: str = "shop",
    constraints: tuple[dict[str, Any], ...] = (),
) -> ResourceClaim:
    """A claim; with ``held`` (``node/device``) it has that device, reserved for these pods."""
    document: dict[str, Any] = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": list(requests or (exactly(),)), "constraints": list(constraints)}},
    }
    if held:
        node, _, device = held.partition("/")
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
        document["status"] = {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
            },
            "reservedFor": [{"resource": "pods", "name": user, "uid": f"uid-{namespace}-{user}"} for user in users],
        }
    found: ResourceClaim = record("ResourceClaim", **document)
    return found


def template(name: str, *requests: dict[str, Any]) -> ResourceClaimTemplate:
    """A template in the namespace ``shop``."""
    spec = {"spec": {"devices": {"requests": list(requests or (exactly(),))}}}
    found: ResourceClaimTemplate = record(
        "ResourceClaimTemplate", metadata={"name": name, "namespace": "shop"}, spec=spec
    )
    return found


def claiming(name: str, *claims: str, **more: Any) -> Pod:
    """A pod that uses these claims."""
    uses = [PodResourceClaim(name=each, resource_claim_name=each) for each in claims]
    return make_pod(name, resource_claims=uses, **more)


def devices_cluster(
    *slices: ResourceSlice, claims: tuple[ResourceClaim, ...] = (), pods: tuple[Pod, ...] = (), **more: Any
) -> ClusterSnapshot:
    """A cluster with a node for each slice that names one, and the class ``gpu``."""
    nodes: list[Node] = [make_node(name) for name in dict.fromkeys(each.spec.node_name for each in slices) if name]
    cluster = ClusterSnapshot(
        nodes=nodes,
        pods=list(pods),
        resource_slices=list(slices),
        resource_claims=list(claims),
        device_classes=[gpu_class()],
    )
    return msgspec.structs.replace(cluster, **more)
