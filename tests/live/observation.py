"""Observe what the real scheduler does with a pod, through its API server."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.live.plane import ControlPlane, Object

PODS = "/api/v1/pods"
# The idle time: before the decision, and after it, once everything expected has been seen.
PATIENCE_SECONDS = 15.0
QUIET_SECONDS = 0.25


@dataclass
class Observed:
    """The pod's node; or the message, its nominated node, and the evicted pods."""

    bound_to: str = ""
    message: str = ""
    nominated_to: str = ""
    evicted: set[str] = field(default_factory=set)
    event: str = ""

    @property
    def is_decided(self) -> bool:
        """Whether the scheduler has tried the pod."""
        return bool(self.bound_to or self.message)

    @property
    def end(self) -> str:
        """The outcome of the pod, for a count."""
        if self.bound_to:
            return "pods bound"
        return "pods nominated" if self.nominated_to else "pods left pending"


def key_of(pod: Object) -> str:
    """``namespace/name``."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def observe(plane: ControlPlane, pod: Object, expected_victims: set[str]) -> Observed:
    """Create ``pod`` and observe the outcome; wait for the expected victims, and a little for others.

    Raises ``RefusedError`` if the API server rejects the pod.
    """
    before = plane.request("GET", PODS)
    leaving = {key_of(each) for each in before["items"] if "deletionTimestamp" in each["metadata"]}
    watch = plane.watch(PODS, before["metadata"]["resourceVersion"])
    events = plane.watch("/api/v1/events", plane.request("GET", "/api/v1/events")["metadata"]["resourceVersion"])
    try:
        plane.request("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)
        observed, waits = Observed(), True
        while waits:
            waits = False
            seconds = (
                QUIET_SECONDS if observed.is_decided and expected_victims <= observed.evicted else PATIENCE_SECONDS
            )
            for each in watch.objects(seconds):
                waits = True
                if key_of(each) == key_of(pod):
                    _note(observed, each)
                elif "deletionTimestamp" in each["metadata"] and key_of(each) not in leaving:
                    observed.evicted.add(key_of(each))
                break
            if observed.bound_to:
                return observed
            if observed.message and not observed.nominated_to:
                break
        if observed.message:
            observed.event = _event(events.objects(PATIENCE_SECONDS), pod)
        return observed
    finally:
        watch.close()
        events.close()


def _note(observed: Observed, pod: Object) -> None:
    observed.bound_to = pod["spec"].get("nodeName", "")
    if observed.message:
        # Later attempts see the effects of the first one.
        return
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            observed.message = condition["message"]
            observed.nominated_to = pod["status"].get("nominatedNodeName", "")


def _event(events: object, pod: Object) -> str:
    for event in events:  # type: ignore[attr-defined]  # an iterator of events
        if event["reason"] == "FailedScheduling" and event["involvedObject"]["name"] == pod["metadata"]["name"]:
            return str(event["message"])
    return ""
