"""Who is put back first, and in which order equal pods end up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import Pod, PodSpec, PodStatus
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.preemption.importance import is_more_important, sort_by_importance
from kpreempt.schedulers.kube.versions import behavior
from tests.conformance.cases import read_lines

NOW = datetime(2026, 11, 21, tzinfo=UTC)
RECORDED = Path(__file__).resolve().parents[4] / "fixtures" / "importance" / "go-sort-slice.jsonl.gz"


def pod_info(name: str, priority: int, started: int | None) -> PodInfo:
    """A pod that started ``started`` seconds into the year, or has not."""
    start = None if started is None else datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=started)
    pod = Pod(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodSpec(priority=priority),
        status=PodStatus(start_time=start),
    )
    return PodInfo(pod, behavior())


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param((2, 5), (1, 1), True, id="a higher priority is more important whatever the start"),
        pytest.param((1, 1), (1, 5), True, id="of equal priority the earlier start is more important"),
        pytest.param((1, 5), (1, 5), False, id="of equal priority and start neither is more important"),
        pytest.param((1, 5), (1, None), True, id="a pod without a start time counts as starting now"),
        pytest.param((1, None), (1, None), True, id="of two without a start time the first asked about wins"),
    ],
)
def test_importance(one: tuple[int, int | None], other: tuple[int, int | None], expected: bool) -> None:
    assert is_more_important(pod_info("one", *one), pod_info("other", *other), NOW) is expected


def test_few_pods_without_a_start_time_come_out_reversed() -> None:
    pods = [pod_info(name, 0, None) for name in "abcd"]
    assert [info.pod.metadata.name for info in sort_by_importance(pods, NOW, has_scheduler_order=True)] == [
        "d",
        "c",
        "b",
        "a",
    ]


def test_the_order_of_equal_pods_is_that_of_go() -> None:
    for case in read_lines(RECORDED):
        pods = [
            pod_info(str(index), priority, None if start < 0 else start)
            for index, (priority, start) in enumerate(case["pods"])
        ]
        assert [
            int(info.pod.metadata.name) for info in sort_by_importance(pods, NOW, has_scheduler_order=True)
        ] == case["order"]
