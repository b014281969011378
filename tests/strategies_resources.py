"""Random requests of every kind: limits, huge pages, init containers and sidecars, overhead, pod level, resizes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.strategies import EXTENDED, Object, cpu, maybe, memory, without_none

HUGE_PAGES = "hugepages-2Mi"
OTHER_EXTENDED = "example.com/disk"
storage = st.sampled_from(["1Gi", "5Gi"])
RESTARTS_ALL = {
    "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
}


@st.composite
def node_allocatable(draw: st.DrawFn) -> Object:
    """More resources of a node, sometimes zero."""
    return without_none(
        {
            "ephemeral-storage": draw(st.sampled_from(["10Gi", "6Gi", "20Gi", None])),
            HUGE_PAGES: draw(st.sampled_from(["4Mi", "8Mi", "20Mi", None])),
            OTHER_EXTENDED: draw(st.sampled_from(["3", "1", None])),
            EXTENDED: draw(st.sampled_from(["2", "4", None])),
        }
    )


@st.composite
def requirements(draw: st.DrawFn, *, is_pod: bool = False) -> Object:
    """Requests and limits of a container, or of a pod."""
    requests = without_none(
        {
            "cpu": draw(maybe(cpu, one_in=2)),
            "memory": draw(maybe(memory, one_in=2)),
            HUGE_PAGES: draw(maybe(st.sampled_from(["2Mi", "4Mi"]), one_in=6)),
        }
    )
    if not is_pod:
        requests |= without_none(
            {
                "ephemeral-storage": draw(maybe(storage, one_in=4)),
                EXTENDED: draw(maybe(st.sampled_from(["0", "1", "2"]), one_in=5)),
                OTHER_EXTENDED: draw(maybe(st.just("1"), one_in=6)),
            }
        )
    limits = {name: amount for name, amount in requests.items() if name in (EXTENDED, OTHER_EXTENDED, HUGE_PAGES)}
    if draw(st.integers(0, 5)) == 5:
        # A missing request defaults to the limit.
        limits["cpu"] = draw(st.sampled_from(["1", "2"]))
        requests.pop("cpu", None)
    return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}


@st.composite
def demanding_containers(draw: st.DrawFn, name: str) -> Object:
    """One container that requests anything."""
    return {"name": name, "image": draw(st.sampled_from(["img0", "img1"])), "resources": draw(requirements())}


@st.composite
def demands(draw: st.DrawFn) -> Object:
    """The parts of a pod's spec with resource requests."""
    spec: Object = {"containers": [draw(demanding_containers(f"c{n}")) for n in range(draw(st.integers(1, 2)))]}
    init = [draw(demanding_containers(f"i{number}")) for number in range(draw(st.sampled_from([0, 0, 1, 2, 3])))]
    for container in init:
        if draw(st.booleans()):
            container["restartPolicy"] = "Always"
    if init:
        spec["initContainers"] = init
    if draw(st.integers(0, 4)) == 4:
        spec["overhead"] = without_none({"cpu": draw(cpu), "memory": draw(maybe(memory))})
    if draw(st.integers(0, 3)) == 3:
        spec["resources"] = draw(requirements(is_pod=True))
    if draw(st.integers(0, 11)) == 11:
        spec["containers"][0] |= RESTARTS_ALL
    return spec


def _statuses(draw: st.DrawFn, containers: list[Any]) -> list[Object]:
    return [
        without_none(
            {
                "name": container["name"],
                "resources": draw(maybe(requirements(), one_in=2)),
                "allocatedResources": (draw(maybe(requirements(), one_in=2)) or {}).get("requests"),
            }
        )
        for container in containers
        if draw(st.integers(0, 3))
    ]


@st.composite
def resizes(draw: st.DrawFn, spec: Object) -> Object:
    """The parts of a running pod's status that in-place resize writes."""
    status: Object = {"containerStatuses": _statuses(draw, spec["containers"])}
    if "initContainers" in spec:
        status["initContainerStatuses"] = _statuses(draw, spec["initContainers"])
    reason = draw(maybe(st.sampled_from(["Infeasible", "Deferred"]), one_in=2))
    if reason:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    if "resources" in spec and draw(st.booleans()):
        status["resources"] = draw(requirements(is_pod=True))
        # An API server never stores an empty one.
        if allocated := draw(requirements(is_pod=True)).get("requests"):
            status["allocatedResources"] = allocated
    return status
