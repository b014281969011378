"""Cluster Autoscaler's status: both of its forms, which ConfigMaps are kept, and what snapshots and redaction keep."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import Event
from kpreempt.model.node import AutoscalerStatus, status_of
from kpreempt.snapshot.load import cluster_from_json, load_snapshot
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.write import DumpHeader, dump_pieces
from tests.factories import redaction_of

ROOT = Path(__file__).resolve().parents[3]
NEW = """
time: 2026-11-21 03:09:50.123456789 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health: {status: Healthy, lastProbeTime: "2026-11-21T03:09:50Z"}
nodeGroups:
- name: asg-a
  health: {status: Healthy, cloudProviderTarget: 3, minSize: 1, maxSize: 3}
  scaleUp: {status: Backoff, backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: too many in secret-project}}
"""
# The form before 1.30.
OLD = """Cluster-autoscaler status at 2026-11-21 03:09:50.5 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=2 unready=0 (resourceUnready=0) notStarted=0 registered=2 longUnregistered=0)
               LastProbeTime:      2026-11-21 03:09:50 +0000 UTC m=+12.3
               LastTransitionTime: 2026-11-20 00:00:00 +0000 UTC m=+1.3
  ScaleUp:     NoActivity (ready=2 registered=2)
               LastProbeTime:      2026-11-21 03:09:50 +0000 UTC m=+12.3

NodeGroups:
  Name:        asg-a
  Health:      Healthy (ready=3 unready=0 (resourceUnready=0) registered=3 cloudProviderTarget=3 (minSize=1, maxSize=3))
               LastProbeTime:      2026-11-21 03:09:50 +0000 UTC m=+12.3
  ScaleUp:     Backoff (ready=3 cloudProviderTarget=3)
               LastProbeTime:      2026-11-21 03:09:50 +0000 UTC m=+12.3
  ScaleDown:   NoCandidates (candidates=0)

"""


def config_map(status: str, *, name: str = "cluster-autoscaler-status", annotated: bool = True) -> dict[str, Any]:
    updated = {"cluster-autoscaler.kubernetes.io/last-updated": "2026-11-21 03:09:50 +0000 UTC", "team": "secret"}
    metadata = {"name": name, "namespace": "kube-system", **({"annotations": updated} if annotated else {})}
    data = {"status": status, "other": "secret"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def cluster_of(*documents: dict[str, Any]) -> ClusterSnapshot:
    return cluster_from_json([json.dumps(each).encode() for each in documents], "test")


def only_status(cluster: ClusterSnapshot) -> AutoscalerStatus:
    [found] = cluster.config_maps
    return status_of(found)


@pytest.mark.parametrize("text", [pytest.param(NEW, id="YAML"), pytest.param(OLD, id="text")])
def test_both_forms_say_the_same(text: str) -> None:
    status = only_status(cluster_of(config_map(text)))
    assert status.time is not None
    assert status.time.replace(microsecond=0) == datetime(2026, 11, 21, 3, 9, 50, tzinfo=UTC)
    assert status.cluster_wide.health.status == "Healthy"
    [group] = status.node_groups
    health = group.health
    assert (group.name, health.status, group.scale_up.status) == ("asg-a", "Healthy", "Backoff")
    assert (health.cloud_provider_target, health.min_size, health.max_size) == (3, 1, 3)


def test_the_error_of_a_node_group_is_read() -> None:
    [group] = only_status(cluster_of(config_map(NEW))).node_groups
    assert group.scale_up.backoff_info.error_code == "QUOTA_EXCEEDED"
    assert group.scale_up.backoff_info.error_message == "too many in secret-project"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Initializing", id="not yet"),
        pytest.param("", id="empty"),
        pytest.param("[1, 2", id="broken"),
        pytest.param("- 1", id="a list"),
        pytest.param("nodeGroups: 7", id="of another type"),
        pytest.param("autoscalerStatus: Initializing\ntime: never", id="initializing"),
        pytest.param("time: '2026-11-21T03:09:50'", id="a time without an offset"),
        pytest.param("time: 9999-12-31 23:59:59 -0900 UTC", id="a time that is too late"),
        pytest.param("Cluster-autoscaler status at 9999-99-99 99:99:99 +9999 x:", id="a time that is none"),
    ],
)
def test_a_status_without_content_has_no_groups(text: str) -> None:
    status = only_status(cluster_of(config_map(text)))
    assert status.node_groups == []


def test_only_the_config_map_with_the_status_is_kept() -> None:
    others = [
        config_map("secret", name="app", annotated=False),
        config_map("cluster-autoscaler.kubernetes.io/last-updated", name="about", annotated=False),
    ]
    cluster = cluster_of(*others, config_map(NEW, name="autoscaler-two"))
    assert [each.metadata.name for each in cluster.config_maps] == ["autoscaler-two"]
    assert cluster.skipped == {"ConfigMap": 2}
    assert b'secret"' not in json.dumps([each.data for each in cluster.config_maps]).encode()


HEADER = DumpHeader(
    taken_at=datetime(2026, 11, 21, 3, 10, tzinfo=UTC), server_version="v1.36.3", kpreempt_version="0", listed=()
)


def fixture(name: str) -> ClusterSnapshot:
    return load_snapshot([str(ROOT / "fixtures" / "autoscaling" / name)]).cluster


@pytest.mark.parametrize("name", ["karpenter.yaml", "cluster-autoscaler.yaml"])
def test_a_snapshot_keeps_what_autoscalers_report(name: str, tmp_path: Path) -> None:
    cluster = fixture(name)
    path = tmp_path / "dump.json"
    path.write_bytes(b"".join(dump_pieces(cluster, HEADER, minimized, as_lines=False)))
    again = load_snapshot([str(path)]).cluster
    assert (again.node_pools, again.node_claims) == (cluster.node_pools, cluster.node_claims)
    assert again.config_maps == cluster.config_maps
    reported = [each for each in cluster.events if each.reporter != "default-scheduler"]
    assert [each for each in again.events if each.reporter != "default-scheduler"] == reported


def event(message: str, reason: str = "NotTriggerScaleUp", component: str = "cluster-autoscaler") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "canary.1", "namespace": "canary"},
        "involvedObject": {"kind": "Pod", "namespace": "canary", "name": "canary", "uid": "canary"},
        "reason": reason,
        "message": message,
        "source": {"component": component},
        "reportingComponent": component,
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            event("pod didn't trigger scale-up: 2 max node group size reached, 1 node(s) had canary"),
            "pod didn't trigger scale-up: 2 max node group size reached, 1 text-0001",
            id="reasons that are known, and one that is not",
        ),
        pytest.param(
            event("pod triggered scale-up: [{canary 1->2 (max: 4)}]", "TriggeredScaleUp"),
            "pod triggered scale-up: [{nodegroup-0001 1->2 (max: 4)}]",
            id="a node group",
        ),
        pytest.param(
            event("Pod should schedule on: nodeclaim/canary-x, node/canary", "Nominated", "karpenter"),
            "Pod should schedule on: nodeclaim/nodeclaim-0001, node/node-0001",
            id="a claim and its node",
        ),
        pytest.param(
            event(
                'Failed to schedule pod, incompatible with nodepool "canary", daemonset overhead={}, did not tolerate'
                " canary=x:NoSchedule; all available instance types exceed limits for nodepool (NodePool=canary)",
                "FailedScheduling",
                "karpenter",
            ),
            "Failed to schedule pod, did not tolerate (NodePool=nodepool-0001);"
            " all available instance types exceed limits for nodepool (NodePool=nodepool-0001)",
            id="Karpenter's errors",
        ),
        pytest.param(event("canary", "FailedScheduling", "default-scheduler"), "", id="the scheduler's message"),
        pytest.param(event("scale canary", "ScaleUpFailed"), "", id="an error of a cloud"),
    ],
)
def test_redaction_keeps_what_programs_say_without_names(document: dict[str, Any], expected: str) -> None:
    cluster = cluster_of(document)
    redaction = redaction_of(cluster)
    found: Event = redaction.record(cluster.events[0])
    assert found.message == expected
    assert "canary" not in str(found)


def test_a_redacted_status_has_sizes_and_states_but_no_names() -> None:
    cluster = cluster_of(config_map(NEW.replace("asg-a", "canary")))
    redaction = redaction_of(cluster)
    found = redaction.record(cluster.config_maps[0])
    status = status_of(found)
    [group] = status.node_groups
    assert (group.name, group.health.max_size, group.scale_up.status) == ("nodegroup-0001", 3, "Backoff")
    assert "secret" not in str(found)
    assert "canary" not in str(found)


def test_the_fixtures_are_as_kubectl_prints_them() -> None:
    for path in (ROOT / "fixtures" / "autoscaling").iterdir():
        assert all(each["apiVersion"] for each in yaml.safe_load_all(path.read_text(encoding="utf-8")))
