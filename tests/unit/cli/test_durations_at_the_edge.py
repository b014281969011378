"""Numbers that become durations: at the edges of what Go, Python and a calendar hold."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kpreempt.model.durations import go_seconds
from kpreempt.schedulers.kube.queue.backoff import BackoffQueue
from tests.unit.cli.conftest import Kpreempt

EDGES = (2**63 - 1, 2**62, 2**55, 10**14, 9_223_372_037, 9_223_372_036, 2**31)
ON_CALL = Path(__file__).parents[3] / "fixtures" / "on-call" / "cluster.yaml"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}},
}
CONTAINERS = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [
        (0, timedelta(0)),
        (10, timedelta(seconds=10)),
        (-10, timedelta(seconds=-10)),
        (9_223_372_036, timedelta(seconds=9_223_372_036)),
        pytest.param(9_223_372_037, timedelta(microseconds=-9_223_372_036_709_552), id="the first that wraps around"),
        pytest.param(2**55, timedelta(0), id="one that wraps around to nothing"),
        pytest.param(2**63 - 1, timedelta(seconds=-1), id="the largest"),
        pytest.param(10**14, timedelta(microseconds=200_376_420_520_689), id="many"),
    ],
)
def test_seconds_are_what_go_makes_of_them(seconds: int, duration: timedelta) -> None:
    assert go_seconds(seconds) == duration


@pytest.mark.parametrize("initial", [*map(go_seconds, EDGES), timedelta(0), timedelta(seconds=1)], ids=str)
@pytest.mark.parametrize("longest", [*map(go_seconds, EDGES), timedelta(0), timedelta(seconds=10)], ids=str)
def test_a_backoff_is_a_duration_after_any_number_of_failures(initial: timedelta, longest: timedelta) -> None:
    queue = BackoffQueue(initial, longest, pops=True)
    assert all(abs(queue.duration(count)) <= timedelta(days=200 * 365) * 2 for count in (0, 1, 2, 10, 60, 100, 10**6))


@pytest.mark.parametrize("initial", [1, *EDGES])
@pytest.mark.parametrize("command", [("queue",), ("pending", "-A"), ("explain", "pod/api", "-n", "shop")], ids=" ".join)
def test_a_scheduler_with_any_backoff_is_read(
    kpreempt: Kpreempt, tmp_path: Path, command: tuple[str, ...], initial: int
) -> None:
    config = tmp_path / "scheduler.json"
    document = {
        **{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
        **{"podInitialBackoffSeconds": initial, "podMaxBackoffSeconds": 2**63 - 1},
    }
    config.write_text(json.dumps(document), encoding="utf-8")
    run = kpreempt(
        *command, "--scheduler-config", str(config), "--snapshot", str(ON_CALL), "--now", "2026-11-21T12:00:00Z"
    )
    assert run.returncode == 0 or "not found" in run.stderr


def a_pod(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "shop", **fields.pop("metadata", {})}
    spec = {"containers": CONTAINERS, **fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seconds", [*EDGES, 10**30, -(2**63), -1])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda seconds: a_pod(
                nodeName="n",
                metadata={"deletionGracePeriodSeconds": seconds, "deletionTimestamp": "2026-11-21T11:00:00Z"},
            ),
            id="a pod on its way out",
        ),
        pytest.param(lambda seconds: a_pod(nodeName="n", terminationGracePeriodSeconds=seconds), id="a grace period"),
        pytest.param(lambda seconds: a_pod(activeDeadlineSeconds=seconds), id="a deadline"),
        pytest.param(
            lambda seconds: a_pod(
                tolerations=[{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]
            ),
            id="a toleration",
        ),
        pytest.param(
            lambda seconds: {
                **{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "shop"}},
                "spec": {
                    **{
                        "activeDeadlineSeconds": seconds,
                        "ttlSecondsAfterFinished": 2**31 - 1,
                        "backoffLimit": 2**31 - 1,
                    },
                    "template": {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}},
                },
            },
            id="a Job",
        ),
        pytest.param(
            lambda seconds: {
                **{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "shop"}},
                "spec": {
                    **{"minReadySeconds": min(seconds, 2**31 - 2), "progressDeadlineSeconds": seconds},
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}},
                },
            },
            id="a Deployment",
        ),
    ],
)
def test_seconds_of_objects_are_refused_with_their_field_or_simulated(
    kpreempt: Kpreempt, tmp_path: Path, make: Any, seconds: int
) -> None:
    cluster, change = tmp_path / "cluster.json", tmp_path / "change.json"
    cluster.write_text(f"{json.dumps(NODE)}\n{json.dumps(make(seconds))}", encoding="utf-8")
    change.write_text(json.dumps(make(seconds)), encoding="utf-8")
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(NODE), encoding="utf-8")
    now = ("--now", "2026-11-21T12:00:00Z")
    for words in (
        ("pending", "-A", "--snapshot", str(cluster)),
        ("queue", "--snapshot", str(cluster)),
        ("drain", "n", "--force", "--snapshot", str(cluster)),
        ("explain", "-f", str(change), "--aftermath", "--snapshot", str(bare)),
        ("check", "-f", str(change), "--snapshot", str(bare)),
        ("check", "-f", str(change), "--snapshot", str(cluster)),
    ):
        run = kpreempt(*words, *now)
        assert run.returncode in (0, 1, 3), (words, run.stderr)
        assert run.returncode != 3 or "Seconds" in run.stderr, (words, run.stderr)


@pytest.mark.parametrize("interval", ["inf", "1e308", "9" * 30, "nan", "0", "-1"])
def test_an_interval_has_an_end(kpreempt: Kpreempt, interval: str) -> None:
    run = kpreempt("pending", "-A", "-w", f"--interval={interval}", "--snapshot", str(ON_CALL))
    assert run.returncode == 2
    assert "at most 86,400" in run.stderr
