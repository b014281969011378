from __future__ import annotations

import pytest

from kpreempt.report.evidence import describe, describe_shortage, join_names
from kpreempt.verdict import Code, Detail, Status
from kpreempt.verdict.details import (
    AffinityConflict,
    ClaimUnavailable,
    DeviceHolder,
    InsufficientDevices,
    InsufficientResources,
    MissingFeatures,
    NodeAffinityMismatch,
    NodeNameMismatch,
    PortConflict,
    RejectingSelector,
    Shortfall,
    SpreadConflict,
    UntoleratedTaint,
    VolumeConflict,
    VolumeLimitExceeded,
)

MI, GI = 1024**2, 1024**3
CPU = Shortfall("cpu", requested=2000, used=3500, allocatable=4000)
MEMORY = Shortfall("memory", requested=GI, used=8 * GI, allocatable=8 * GI)
SLOTS = Shortfall("pods", requested=1, used=110, allocatable=110)


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        pytest.param(
            InsufficientResources([CPU], pods=6),
            "cpu: requests 2, 500m free of 4 (3.5 used by 6 pods)",
            id="one resource is short",
        ),
        pytest.param(
            InsufficientResources([CPU, MEMORY], pods=1),
            "cpu: requests 2, 500m free of 4 (3.5 used); memory: requests 1Gi, 0 free of 8Gi (8Gi used); 1"
            " pod on the node",
            id="two resources are short",
        ),
        pytest.param(
            InsufficientResources([SLOTS], pods=110), "110 of 110 pod slots used", id="no slot for another pod"
        ),
        pytest.param(
            InsufficientResources([Shortfall("cpu", 2000, 500, 1000, exceeds_node=True)]),
            "cpu: requests 2, the node has 1 in total",
            id="more than the node has",
        ),
        pytest.param(
            InsufficientResources([Shortfall("nvidia.com/gpu", 1, 0, 0, exceeds_node=True)]),
            "nvidia.com/gpu: requests 1, the node has none",
            id="a device that the node does not have",
        ),
        pytest.param(
            InsufficientResources([Shortfall("cpu", 1000, 5000, 4000)]),
            "cpu: requests 1, 0 free of 4 (5 used)",
            id="an overcommitted node has nothing free",
        ),
        pytest.param(
            InsufficientResources([Shortfall("memory", GI, 0, GI - 1)]),
            "memory: requests 1Gi, 1073741823 free of 1073741823 (0 used)",
            id="amounts that would look equal are exact",
        ),
        pytest.param(
            UntoleratedTaint("dedicated", "gpu", "NoSchedule"), "taint dedicated=gpu:NoSchedule", id="a taint"
        ),
        pytest.param(UntoleratedTaint("spot", "", "NoExecute"), "taint spot:NoExecute", id="a taint without a value"),
        pytest.param(
            NodeAffinityMismatch("nodeSelector", ["disk=ssd"]), "nodeSelector requires disk=ssd", id="a node selector"
        ),
        pytest.param(NodeNameMismatch("node-x"), "spec.nodeName is node-x", id="another node is named"),
        pytest.param(
            PortConflict(443, "TCP", "0.0.0.0", ["shop/a"]),
            "host port 443/TCP is used by shop/a",
            id="a port on all addresses",
        ),
        pytest.param(
            PortConflict(53, "UDP", "10.0.0.1", ["a", "b", "c", "d"]),
            "host port 10.0.0.1:53/UDP is used by a, b, c and 1 more",
            id="a port on one address",
        ),
        pytest.param(
            AffinityConflict("affinity", "zone", "z1", "app=db"),
            "no pod matches the pod's required affinity (app=db) in zone=z1",
            id="no pod to be with",
        ),
        pytest.param(
            AffinityConflict("antiAffinity", "zone", "z1", "app=api", ["shop/api-1"]),
            "the pod's anti-affinity (app=api) conflicts with shop/api-1 in zone=z1",
            id="a pod to stay away from",
        ),
        pytest.param(
            AffinityConflict("existingAntiAffinity", "zone", "z1", "app=api", ["shop/api-1", "shop/api-2"]),
            "the anti-affinity of shop/api-1 and shop/api-2 (app=api) conflicts with the pod in zone=z1",
            id="pods that keep it away",
        ),
        pytest.param(
            SpreadConflict("zone", "z1", count=3, self_match=1, minimum=1, skew=3, max_skew=1),
            "zone=z1 would have 4 pods and the minimum is 1: skew 3 exceeds maxSkew 1",
            id="too many in one zone",
        ),
        pytest.param(SpreadConflict("zone", ""), "the node has no label zone", id="no topology label"),
        pytest.param(
            VolumeConflict("shop/data", "pv-1", "in another zone"),
            "claim shop/data volume pv-1: in another zone",
            id="a volume elsewhere",
        ),
        pytest.param(
            VolumeLimitExceeded("ebs.csi.aws.com", used=24, requested=2, limit=25),
            "ebs.csi.aws.com: 24 of 25 volumes attached; the pod adds 2",
            id="too many volumes",
        ),
        pytest.param(MissingFeatures(["Swap"]), "the node does not declare Swap", id="a missing feature"),
        pytest.param(
            InsufficientDevices("shop/c", "gpu", "gpu.example.com", requested=2, matching=0),
            "claim shop/c, request gpu for 2 of gpu.example.com: no device matches",
            id="a node without such devices",
        ),
        pytest.param(
            InsufficientDevices(
                *("shop/c", "gpu", "gpu"),
                requested=1,
                matching=0,
                published=3,
                rejecting=[
                    RejectingSelector("device.x", 1, is_of_class=True),
                    RejectingSelector("device.y", 2, values={"d/product": {"L40S": 1, "": 1}}),
                ],
            ),
            "claim shop/c, request gpu for 1 of gpu: no device matches; the class's selector rejects 1 device; the"
            " claim's selector rejects 2 devices: product is L40S (1) and missing (1)",
            id="selectors that reject devices",
        ),
        pytest.param(
            InsufficientDevices("shop/c", "gpu", "gpu", requested=1, matching=0, published=0),
            "claim shop/c, request gpu for 1 of gpu: no ResourceSlice has a device for the node",
            id="a node without devices",
        ),
        pytest.param(
            InsufficientDevices(
                "shop/c",
                "gpu",
                "gpu",
                requested=1,
                matching=8,
                allocated=7,
                allocated_to_lower=6,
                tainted=1,
                holders=[DeviceHolder("d/a/g0", "shop/x", ["shop/p"], is_lower=True)],
            ),
            "claim shop/c, request gpu for 1 of gpu: 8 devices match; 7 are allocated, 6 of them to lower-priority"
            " pods; 1 has an untolerated taint; used by shop/p",
            id="devices that are taken",
        ),
        pytest.param(
            InsufficientDevices(
                "shop/<extended-resources>",
                "container-0-request-1",
                "gpu",
                requested=1,
                matching=1,
                allocated=1,
                allocated_to_lower=1,
            ),
            "request container-0-request-1 for 1 of gpu: 1 device matches; 1 is allocated, to lower-priority pods",
            id="devices for an extended resource",
        ),
        pytest.param(
            InsufficientDevices("shop/c", "gpu", "gpu", requested=0, matching=0, alternatives=2, updating=["d/a"]),
            "claim shop/c, request gpu for one of 2 alternatives: no device matches; pool d/a is being updated",
            id="a pool that is being written",
        ),
        pytest.param(
            ClaimUnavailable("shop/c", ["d/a/g0"], ["metadata.name In a"]),
            "the devices of claim shop/c are reachable only from metadata.name In a",
            id="devices elsewhere",
        ),
        pytest.param(
            ClaimUnavailable("shop/c", ["d/a/g0"]),
            "the devices of claim shop/c could not be prepared",
            id="devices that are not ready",
        ),
        pytest.param(None, "", id="nothing recorded"),
    ],
)
def test_evidence_reads_as_a_phrase_with_numbers_and_names(detail: Detail | None, expected: str) -> None:
    assert describe(detail) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            Status(Code.UNSCHEDULABLE, ["Insufficient cpu"], detail=InsufficientResources([CPU, MEMORY])),
            "needs 1.5 more cpu and 1Gi more memory",
            id="resources",
        ),
        pytest.param(
            Status(Code.UNSCHEDULABLE, ["Too many pods"], detail=InsufficientResources([SLOTS, CPU])),
            "no pod slot left, needs 1.5 more cpu",
            id="slots and resources",
        ),
        pytest.param(
            Status(Code.UNSCHEDULABLE, ["taken"], detail=PortConflict(443, "TCP", "", [])),
            "host port 443/TCP is in use",
            id="something else",
        ),
        pytest.param(Status(Code.UNSCHEDULABLE, ["some reason"]), "some reason", id="only the scheduler's words"),
        pytest.param(Status(Code.ERROR), "Error", id="not even those"),
    ],
)
def test_a_shortage_says_how_much_is_missing(status: Status, expected: str) -> None:
    assert describe_shortage(status) == expected


def test_names_are_joined_and_the_rest_is_counted() -> None:
    assert join_names(["a"]) == "a"
    assert join_names(["a", "b"]) == "a and b"
    assert join_names(["a", "b", "c"]) == "a, b and c"
    assert join_names([str(number) for number in range(1500)]) == "0, 1, 2 and 1,497 more"
