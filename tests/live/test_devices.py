"""A real scheduler allocates devices, or rejects pods that need them, as kpreempt predicted just before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.live import cluster
from tests.live.observation import Observed, observe
from tests.live.plane import VERSION, ControlPlane, Object, RefusedError
from tests.live.prediction import disagreements, expected_victims, predict

pytestmark = pytest.mark.skipif(
    tuple(map(int, VERSION.split("."))) < (1, 34), reason="resource.k8s.io/v1 is served from 1.34 on"
)

API = "resource.k8s.io/v1"
CLASSES, SLICES = f"/apis/{API}/deviceclasses", f"/apis/{API}/resourceslices"
CLAIMS = f"/apis/{API}/namespaces/default/resourceclaims"
DRIVER = "gpu.example.com"


@dataclass
class Scenario:
    """Devices of nodes by name, and pods created one after the other, each with the requests of its claim."""

    devices: dict[str, list[Object]]
    pods: list[tuple[Object, list[Object]]]
    device_class: Object = field(default_factory=dict)


def device(name: str, memory: str = "40Gi", **more: Any) -> Object:
    return {"name": name, "capacity": {"memory": {"value": memory}}, "attributes": {"index": {"int": 0}}, **more}


def request(count: int = 1, expression: str = "", **more: Any) -> Object:
    selectors = {"selectors": [{"cel": {"expression": expression}}]} if expression else {}
    return {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **selectors, **more}


def exactly(name: str, **options: Any) -> Object:
    return {"name": name, "exactly": request(**options)}


def pod(priority: int = 0, **requests: str) -> Object:
    resources = {"requests": requests, "limits": requests}
    return {
        "priorityClassName": cluster.priority_class(priority, "PreemptLowerPriority"),
        "terminationGracePeriodSeconds": 3600,
        "containers": [{"name": "main", "image": "registry.example/main:1", "resources": resources}],
    }


LARGE = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('60Gi')) >= 0"
SCENARIOS = {
    "a claim finds the only node with enough devices": Scenario(
        {"gpu-1": [device("a")], "gpu-2": [device("a"), device("b")]}, [(pod(), [exactly("gpus", count=2)])]
    ),
    "a selector chooses by capacity, and the next pod finds none": Scenario(
        {"gpu-1": [device("a")], "gpu-2": [device("a"), device("b", "80Gi")]},
        [(pod(), [exactly("large", expression=LARGE)]), (pod(), [exactly("large", expression=LARGE)])],
    ),
    "evicting pods of lower priority frees no device": Scenario(
        {"gpu-1": [device("a"), device("b")]},
        [(pod(cpu="1"), [exactly("gpus", count=2)]), (pod(1000, cpu="1"), [exactly("gpus")])],
    ),
    "an eviction makes room for a pod whose devices are free": Scenario(
        {"gpu-1": [device("a"), device("b")]},
        [(pod(cpu="3"), [exactly("gpus")]), (pod(1000, cpu="3"), [exactly("gpus")])],
    ),
    "the second alternative is taken where the first cannot be met": Scenario(
        {"gpu-1": [device("a"), device("b")]},
        [
            (
                pod(),
                [
                    {
                        "name": "gpus",
                        "firstAvailable": [
                            {"name": "one-large", **request(expression=LARGE)},
                            {"name": "two-small", **request(2)},
                        ],
                    }
                ],
            )
        ],
    ),
    "an extended resource is served by a device class": Scenario(
        {"gpu-1": [device("a")], "gpu-2": []},
        [(pod(cpu="1", **{"example.com/gpu": "1"}), []), (pod(cpu="1", **{"example.com/gpu": "1"}), [])],
        {"extendedResourceName": "example.com/gpu"},
    ),
}


@pytest.fixture
def emptied(plane: ControlPlane) -> Iterator[ControlPlane]:
    yield plane
    cluster.clear(plane)
    for path in (CLAIMS, SLICES, CLASSES):
        for each in plane.request("GET", path)["items"]:
            name = f"{path}/{each['metadata']['name']}"
            # No controller removes the protection here.
            plane.request("PATCH", name, {"metadata": {"finalizers": None}})
            with suppress(RefusedError):
                plane.request("DELETE", name)


def fill(plane: ControlPlane, scenario: Scenario) -> None:
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    spec = {"selectors": [selector], **scenario.device_class}
    plane.request(
        "POST", CLASSES, {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}
    )
    for name, devices in scenario.devices.items():
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
        labels = {"kubernetes.io/hostname": name}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
        cluster.create(plane, node)
        if devices:
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
            metadata = {"name": f"{name}-slice"}
            plane.request(
                "POST", SLICES, {"apiVersion": API, "kind": "ResourceSlice", "metadata": metadata, "spec": spec}
            )


@pytest.mark.live
def test_a_pod_without_its_claim_is_not_tried(emptied: ControlPlane, tmp_path: Path) -> None:
    fill(emptied, Scenario({"gpu-1": [device("a")]}, []))
    spec = pod() | {"resourceClaims": [{"name": "devices", "resourceClaimName": "missing"}]}
    metadata = {"name": "train", "namespace": "default"}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    verdict = predict(emptied, manifest, tmp_path)
    assert (verdict["outcome"], verdict["heldBy"]) == ("NotScheduled", "DynamicResources")
    observed = observe(emptied, manifest, set())
    assert (observed.bound_to, observed.message) == ("", "")


@pytest.mark.live
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_scheduler_allocates_as_predicted(
    emptied: ControlPlane, tmp_path: Path, compared: Counter[str], scenario: Scenario
) -> None:
    fill(emptied, scenario)
    for number, (spec, requests) in enumerate(scenario.pods):
        body = dict(spec)
        name = f"train-{number}"
        metadata = {"name": name, "namespace": "default"}
        if requests:
            claim = {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata}
            emptied.request("POST", CLAIMS, {**claim, "spec": {"devices": {"requests": requests}}})
            body["resourceClaims"] = [{"name": "devices", "resourceClaimName": name}]
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}
        verdict = predict(emptied, manifest, tmp_path)
        observed = observe(emptied, manifest, expected_victims(verdict))
        assert disagreements(verdict, observed) == []
        assert devices_of(emptied, name, observed) == predicted_devices(verdict, observed)
        compared[observed.end] += 1
        compared["evictions"] += len(observed.evicted)


def devices_of(plane: ControlPlane, name: str, observed: Observed) -> set[tuple[str, str]]:
    """The pod's devices, each with its node: those of its own claim and of the one that the scheduler created."""
    if not observed.bound_to:
        return set()
    found = set()
    for claim in plane.request("GET", CLAIMS)["items"]:
        owners = [each["name"] for each in claim["metadata"].get("ownerReferences", [])]
        if name in (claim["metadata"]["name"], *owners):
            results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
            found |= {(each["pool"], each["device"]) for each in results}
    return found


def predicted_devices(verdict: Object, observed: Observed) -> set[tuple[str, str]]:
    reported = verdict.get("devices", {}).get(observed.bound_to, []) if observed.bound_to else []
    return {(each["pool"], each["device"]) for each in reported}
