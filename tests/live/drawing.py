"""Random scenarios that an API server accepts, drawn with the strategies of the other comparisons."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.live.plane import Object
from tests.strategies_whole import whole_incoming_pods, whole_scenarios

# Storage needs controllers and drivers to proceed; the other features are about configurations and broken objects.
FEATURES = ("affinity", "ports", "demands", "images", "services", "crowd")


@st.composite
def live_scenarios(draw: st.DrawFn) -> Object:
    """A cluster of running pods, and one or two pods that are created one after the other.

    The second one sees the effects of the first: the pod itself, or its nomination and terminating victims.
    """
    scenario = draw(whole_scenarios(among=FEATURES, max_pods=7))
    nodes = [each for each in scenario["objects"] if each["kind"] == "Node"]
    objects = [each for each in scenario["objects"] if each["kind"] != "Namespace"]
    pods = [scenario["pod"]]
    if draw(st.booleans()):
        pods.append(draw(whole_incoming_pods(len(nodes), frozenset(FEATURES[:2]), [])))
    for pod in pods:
        pod["status"].pop("nominatedNodeName", None)
        if draw(st.booleans()):
            # Usually big enough to need evictions.
            pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": draw(st.sampled_from(["1500m", "1800m"]))}}
            pod["spec"]["priority"] = 2000
    return {"objects": objects, "pods": pods}


def drawn(count: int, start: int) -> list[Object]:
    """The first ``count`` scenarios from the seed ``start``."""
    found: list[Object] = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(live_scenarios())
    def collect(scenario: Object) -> None:
        found.append(scenario)

    collect()
    return found
