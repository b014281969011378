"""``explain``, ``pending`` and ``batch`` have one result for one input, whatever fields its objects omit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.one_input import Object, ask_all_ways

AMOUNTS = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(["500m", "1", "2", "3"]), "memory": st.sampled_from(["1Gi", "3Gi", "1500m"])}
)
RESOURCES = st.fixed_dictionaries({}, optional={"requests": AMOUNTS, "limits": AMOUNTS})
PORTS = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.sampled_from([80, 81])},
        optional={"hostPort": st.sampled_from([0, 80]), "protocol": st.sampled_from(["", "TCP", "UDP"])},
    ),
    max_size=1,
)
CONTAINERS = st.fixed_dictionaries({"name": st.just("c")}, optional={"resources": RESOURCES, "ports": PORTS})
CLASSES = ("low", "high", "quiet", "gone", "system-cluster-critical")
SPECS = st.fixed_dictionaries(
    {"containers": st.lists(CONTAINERS, min_size=1, max_size=2)},
    optional={
        "initContainers": st.lists(CONTAINERS, min_size=1, max_size=1),
        "hostNetwork": st.booleans(),
        "priority": st.sampled_from([0, 5, 100]),
        "priorityClassName": st.sampled_from(CLASSES),
        "preemptionPolicy": st.sampled_from(["Never", "PreemptLowerPriority"]),
        "restartPolicy": st.just("Always"),
        "schedulerName": st.just("default-scheduler"),
        "terminationGracePeriodSeconds": st.sampled_from([0, 5, 60]),
        "overhead": AMOUNTS,
        "resources": RESOURCES,
    },
)
NODE_STATUS = st.sampled_from(["allocatable", "capacity"]).map(
    lambda field: {field: {"cpu": "4", "memory": "4Gi", "pods": "3"}}
)
BUDGET_SPECS = st.fixed_dictionaries(
    {"selector": st.just({"matchLabels": {"app": "old"}})},
    optional={"minAvailable": st.sampled_from([0, 1, "50%"])},
)


@st.composite
def inputs(draw: st.DrawFn) -> list[Object]:
    """A cluster written by hand, with a pending pod named ``new``."""

    def named(kind: str, name: str, version: str = "v1", **rest: Any) -> Object:
        metadata: Object = {"name": name, "labels": {"app": name.rstrip("0123456789")}}
        if kind in ("Pod", "PodDisruptionBudget"):
            metadata |= {"namespace": "default", "uid": name}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}

    nodes = [named("Node", "n0", status=draw(NODE_STATUS))]
    classes = [
        named("PriorityClass", "low", "scheduling.k8s.io/v1", value=1, globalDefault=draw(st.booleans())),
        named("PriorityClass", "high", "scheduling.k8s.io/v1", value=1000),
        named("PriorityClass", "quiet", "scheduling.k8s.io/v1", value=500, preemptionPolicy="Never"),
    ]
    running = [
        named(
            "Pod",
            f"old{index}",
            spec={**draw(SPECS), "nodeName": "n0"},
            status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        )
        for index in range(draw(st.integers(0, 3)))
    ]
    budgets = [named("PodDisruptionBudget", "b", "policy/v1", spec=draw(BUDGET_SPECS))] if draw(st.booleans()) else []
    return [*nodes, *draw(st.sampled_from([classes, []])), *running, *budgets, named("Pod", "new", spec=draw(SPECS))]


@given(inputs())
@settings(max_examples=25)
def test_one_input_has_one_answer(objects: list[Object]) -> None:
    with TemporaryDirectory() as directory:
        answers = ask_all_ways(objects, Path(directory))
    # Objects passed with --with are new, and get the global default.
    if any(each.get("globalDefault") for each in objects):
        del answers["--with"]
    assert all(each == answers["explain"] for each in answers.values()), answers
