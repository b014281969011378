"""What removes a gate, and which algorithm answers for a pod of another scheduler."""

from __future__ import annotations

import pytest

from kpreempt.report.pending.hints import gates_hint, scheduler_hint

ADMITTED = "Kueue removes it when it admits the pod's Workload (kpreempt pending --algorithm kueue-0.19)"
UNKNOWN = "the controller that set it has to remove it (kubectl get pod -o yaml --show-managed-fields names it)"


@pytest.mark.parametrize(
    ("gates", "hint"),
    [
        pytest.param(["kueue.x-k8s.io/admission"], ADMITTED, id="Kueue's gate"),
        pytest.param(
            ["kueue.x-k8s.io/topology"],
            "Kueue removes it when the pod's Workload is admitted and has a topology assignment",
            id="Kueue's gate for topologies",
        ),
        pytest.param(["kueue.x-k8s.io/elastic-job"], ADMITTED, id="any other gate of Kueue"),
        pytest.param(["example.com/wait"], UNKNOWN, id="a gate of an unknown controller"),
        pytest.param(["example.com/a", "example.com/b"], UNKNOWN, id="two gates with one answer"),
        pytest.param(
            ["kueue.x-k8s.io/admission", "example.com/a"],
            f"kueue.x-k8s.io/admission: {ADMITTED}; example.com/a: {UNKNOWN}",
            id="gates of two controllers",
        ),
    ],
)
def test_what_removes_gates(gates: list[str], hint: str) -> None:
    assert gates_hint(gates) == hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        pytest.param(
            "volcano", "kpreempt answers for Volcano with --algorithm volcano-1.8", id="a simulated scheduler"
        ),
        pytest.param(
            "default-schedular",
            "did you mean default-scheduler? schedulerName cannot be changed: recreate the pod",
            id="a misspelled name",
        ),
        pytest.param(
            "gpu-scheduler",
            "if it is a profile of kube-scheduler, pass its configuration with --scheduler-config",
            id="an unknown name",
        ),
    ],
)
def test_what_answers_for_another_scheduler(name: str, hint: str) -> None:
    assert scheduler_hint(name) == hint
