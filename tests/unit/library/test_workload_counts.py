"""``pending`` counts Kueue's Workloads, and does not depend on them."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.library.reading import LoadedCluster
from kpreempt.library.workload_counts import with_optional_workloads, with_workload_counts
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report.answers import render_answer
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.pending import PendingPods, WorkloadCounts

KIND = "Workload.kueue.x-k8s.io"


def workload(namespace: str, *conditions: str) -> dict[str, Any]:
    status = {"conditions": [{"type": each, "status": "True"} for each in conditions]}
    return {"kind": "Workload", "metadata": {"name": "w", "namespace": namespace}, "status": status}


def loaded(*workloads: dict[str, Any], assumptions: list[Assumption] | None = None) -> LoadedCluster:
    return LoadedCluster(ClusterSnapshot(documents={KIND: list(workloads)}), assumptions or [])


MIXED = [
    workload("a"),
    workload("a", "QuotaReserved", "Admitted"),
    workload("b"),
    workload("a", "Admitted", "Finished"),
]


@pytest.mark.parametrize(
    ("namespace", "counts"),
    [
        pytest.param("", WorkloadCounts(2, 1), id="all namespaces, without those that are finished"),
        pytest.param("b", WorkloadCounts(1, 0), id="one namespace"),
    ],
)
def test_workloads_are_counted(namespace: str, counts: WorkloadCounts) -> None:
    found = with_workload_counts(PendingPods(namespace=namespace), loaded(*MIXED))
    assert found.workloads == counts


def test_the_count_is_shown_with_how_to_see_them() -> None:
    text = render_answer(with_workload_counts(PendingPods(), loaded(*MIXED)), "text", RenderOptions(width=200))
    assert text.startswith("No pod is pending, but 2 Workloads of Kueue are.")
    assert "2 Workloads are pending, 1 admitted; kpreempt pending --algorithm kueue-0.19 shows them" in text


def test_without_workloads_nothing_is_said() -> None:
    assert with_workload_counts(PendingPods(), loaded()) == PendingPods()
    assert with_workload_counts(PendingPods(), LoadedCluster(ClusterSnapshot(), [])) == PendingPods()


def test_workloads_that_were_not_read_fail_no_gate() -> None:
    denied = Assumption(KIND, "list", "cannot be listed (403)", AssumptionKind.UNREADABLE)
    not_kept = Assumption(KIND, "snapshot", "a kpreempt dump keeps none")
    other = Assumption("Node", "list", "cannot be listed (403)", AssumptionKind.UNREADABLE)
    found = with_optional_workloads(loaded(assumptions=[denied, not_kept, other])).assumptions
    assert [(each.subject, each.kind) for each in found] == [
        (KIND, AssumptionKind.INFORMATIONAL),
        ("Node", AssumptionKind.UNREADABLE),
    ]
