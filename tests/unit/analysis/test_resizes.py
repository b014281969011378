"""In-place resizes that are pending: what they need, and whether preemption would help."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.pending.resizes import pending_resizes
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import ContainerStatus, Pod, PodCondition, PodStatus
from kpreempt.model.quantity import quantity
from kpreempt.report.blocks import text_of
from kpreempt.report.pending.resizes import needs_in_words, resize_section
from kpreempt.verdict.waiting import PendingResize, ResizePreemption, ResizeState
from tests.factories import NOW, make_node, make_pod

GATE = "InPlacePodVerticalScalingSchedulerPreemption"


def resizing(
    reason: str = "Deferred", *, cpu: str = "3", allocated: str = "1", old: bool = False, **fields: Any
) -> Pod:
    pod = make_pod("db", cpu=cpu, node="node-a", priority=100, **fields)
    condition = PodCondition("PodResizePending", "True", reason, "Node didn't have enough resource: cpu")
    container = pod.spec.containers[0].name
    status = PodStatus(
        phase="Running",
        conditions=[] if old else [condition],
        resize=reason if old else "",
        container_statuses=[ContainerStatus(container, allocated_resources={"cpu": quantity(allocated)})],
    )
    return msgspec.structs.replace(pod, status=status)


def of(pod: Pod, *others: Pod, algorithm: str = "kube-1.36", gates: dict[str, bool] | None = None) -> PendingResize:
    cluster = ClusterSnapshot(nodes=[make_node("node-a", cpu="4")], pods=[pod, *others])
    (found,) = pending_resizes(cluster.pods, cluster, scheduler_for(algorithm, None, gates or {}), NOW)
    return found


LOW = make_pod("low", cpu="2", node="node-a", priority=0)
HIGH = make_pod("high", cpu="500m", node="node-a", priority=200)


def test_what_is_missing_is_what_other_pods_leave() -> None:
    found = of(resizing(), LOW, HIGH)
    (need,) = found.needs
    assert (need.resource, need.requested, need.allocated, need.allocatable) == ("cpu", 3000, 1000, 4000)
    assert (need.used, need.used_by_lower, need.missing) == (2500, 2000, 1500)
    assert needs_in_words(found) == "its in-place resize was deferred: it needs 1.5 more cpu than node-a has free"


def test_other_pods_count_with_what_they_have() -> None:
    """A resize that is pending, too, has not been granted."""
    other = msgspec.structs.replace(resizing(cpu="3", allocated="500m"), metadata=LOW.metadata)
    cluster = ClusterSnapshot(nodes=[make_node("node-a", cpu="4")], pods=[resizing(), other])
    found = pending_resizes(cluster.pods, cluster, scheduler_for("kube-1.36"), NOW)
    assert [each.needs[0].used for each in found] == [500, 1000]


@pytest.mark.parametrize(
    ("algorithm", "gates", "preemption"),
    [
        ("kube-1.31", {}, ResizePreemption.NOT_IN_VERSION),
        ("kube-1.36", {}, ResizePreemption.NOT_IN_VERSION),
        ("kube-1.37", {}, ResizePreemption.GATE_OFF),
        ("kube-1.37", {GATE: True}, ResizePreemption.GATE_ON),
    ],
)
def test_preemption_depends_on_the_version_and_its_gate(
    algorithm: str, gates: dict[str, bool], preemption: ResizePreemption
) -> None:
    found = of(resizing(), LOW, HIGH, algorithm=algorithm, gates=gates)
    assert (found.preemption, found.fits_without_lower) == (preemption, True)


@pytest.mark.parametrize(
    ("pod", "others", "fits"),
    [
        pytest.param(resizing(), [LOW, HIGH], True, id="lower pods have enough"),
        pytest.param(resizing(cpu="3800m"), [LOW, HIGH], False, id="they have too little"),
        pytest.param(resizing(), [HIGH], False, id="it fits already"),
        pytest.param(resizing("Infeasible"), [LOW, HIGH], False, id="the kubelet never grants it"),
        pytest.param(resizing(preemption_policy="Never"), [LOW, HIGH], False, id="the pod evicts no others"),
    ],
)
def test_lower_pods_help_only_if_they_have_enough(pod: Pod, others: list[Pod], fits: bool) -> None:
    assert of(pod, *others).fits_without_lower is fits


def test_older_versions_have_a_field() -> None:
    found = of(resizing("Infeasible", old=True, cpu="5"), algorithm="kube-1.31")
    assert (found.state, found.needs[0].exceeds_node) == (ResizeState.INFEASIBLE, True)
    section = resize_section(found, 1)
    assert "no version evicts pods for an infeasible resize" in " ".join(
        text_of(line) for block in section.blocks for item in getattr(block, "items", ()) for line in item
    )


def test_a_node_that_is_not_in_the_input_says_nothing() -> None:
    pod = resizing()
    (found,) = pending_resizes([pod], ClusterSnapshot(), scheduler_for("kube-1.36"), NOW)
    assert found.needs == []
    assert needs_in_words(found).endswith("deferred: Node didn't have enough resource: cpu")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("a", node="node-a"), id="no resize"),
        pytest.param(resizing("Proposed", old=True), id="not answered yet"),
        pytest.param(msgspec.structs.replace(resizing(), status=PodStatus(phase="Succeeded")), id="finished"),
    ],
)
def test_other_pods_are_left_out(pod: Pod) -> None:
    assert pending_resizes([pod], ClusterSnapshot(), scheduler_for("kube-1.36"), NOW) == []
