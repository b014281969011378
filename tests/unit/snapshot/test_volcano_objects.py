"""Volcano's objects are read, written and redacted with all that its scheduler decides by, and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import PodAnnotations
from kpreempt.model.quantity import quantity
from kpreempt.model.volcano import HIERARCHY, HIERARCHY_WEIGHTS, PREEMPTABLE
from kpreempt.snapshot.load import cluster_from_json, load_snapshot
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.redact import Redaction
from kpreempt.snapshot.write import DumpHeader, dump_pieces
from tests.factories import redaction_of

Document = dict[str, Any]

VOLCANO = "scheduling.volcano.sh/v1beta1"
HEADER = DumpHeader(server_version="", taken_at=datetime(2026, 11, 21, tzinfo=UTC), kpreempt_version="0")


def group(name: str = "train", *, annotations: Document | None = None, **parts: Any) -> Document:
    metadata = {"name": name, "namespace": "ml", "annotations": annotations or {}}
    return {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": metadata, **parts}


def queue(name: str = "research", *, annotations: Document | None = None, **spec: Any) -> Document:
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": metadata, "spec": spec}


def untyped(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}


def pod(name: str, labels: Document | None = None, **annotations: str) -> Document:
    metadata = {"name": name, "namespace": "ml", "labels": labels or {}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"schedulerName": "volcano"}}


def cluster_of(*documents: Document) -> ClusterSnapshot:
    return cluster_from_json([msgspec.json.encode(each) for each in documents], "test")


def dumped(cluster: ClusterSnapshot, redaction: Redaction | None = None) -> list[Document]:
    rewrite = redaction.record if redaction else minimized
    text = b"".join(dump_pieces(cluster, HEADER, rewrite, as_lines=False))
    items: list[Document] = msgspec.json.decode(text)["items"]
    return items


def redacted(*documents: Document) -> list[Document]:
    cluster = cluster_of(*documents)
    return dumped(cluster, redaction_of(cluster))


RICH_GROUP = group(
    annotations={PREEMPTABLE: "false", "volcano.sh/sla-waiting-time": "5m"},
    spec={
        "minMember": 3,
        "minTaskMember": {"ps": 1, "worker": 2},
        "queue": "research",
        "priorityClassName": "high",
        "minResources": {"cpu": "4", "nvidia.com/gpu": "2"},
    },
    status={
        "phase": "Inqueue",
        "conditions": [
            {
                "type": "Unschedulable",
                "status": "True",
                "transitionID": "2a6e",
                "lastTransitionTime": "2026-11-21T03:00:00Z",
                "reason": "NotEnoughResources",
                "message": "3/3 tasks in gang unschedulable",
            }
        ],
        "running": 1,
    },
)
RICH_QUEUE = queue(
    annotations={HIERARCHY: "root/dept/research", HIERARCHY_WEIGHTS: "1/2/3.5"},
    weight=4,
    capability={"cpu": "64"},
    reclaimable=False,
    guarantee={"resource": {"cpu": "8"}},
)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("scheduling.x-k8s.io/v1alpha1", "PodGroup", id="the pod group of the scheduler plugins"),
        pytest.param("scheduling.k8s.io/v1alpha1", "PodGroup", id="the pod group of Kubernetes"),
        pytest.param("scheduling.volcano.sh/v1alpha1", "PodGroup", id="another version of Volcano's"),
        pytest.param("batch.volcano.sh/v1alpha1", "Job", id="a job of Volcano's, which its scheduler does not read"),
        pytest.param("messaging.example.com/v1beta1", "Queue", id="a queue of messages"),
        pytest.param("v1", "Queue", id="a queue in the group of pods"),
    ],
)
def test_an_object_of_another_group_is_passed_over(api_version: str, kind: str) -> None:
    cluster = cluster_of({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
    assert (cluster.pod_groups, cluster.queues, cluster.jobs) == ([], [], [])
    assert cluster.skipped == {kind: 1}


def test_jobs_of_both_groups_are_distinguished() -> None:
    job = {"kind": "Job", "metadata": {"name": "x"}}
    cluster = cluster_of({"apiVersion": "batch.volcano.sh/v1alpha1", **job}, {"apiVersion": "batch/v1", **job})
    assert len(cluster.jobs) == 1
    assert cluster.skipped == {"Job": 1}


@pytest.mark.parametrize("form", ["a list", "a typed list", "documents"])
def test_pod_groups_and_queues_are_read_from_files(form: str, tmp_path: Path) -> None:
    contents = {
        "a list": json.dumps({"apiVersion": "v1", "kind": "List", "items": [RICH_GROUP, RICH_QUEUE]}),
        "a typed list": yaml.safe_dump_all(
            {"apiVersion": VOLCANO, "kind": f"{each['kind']}List", "items": [untyped(each)]}
            for each in (RICH_GROUP, RICH_QUEUE)
        ),
        "documents": yaml.safe_dump_all([RICH_GROUP, RICH_QUEUE]),
    }
    (tmp_path / "input").write_text(contents[form])
    cluster = load_snapshot([str(tmp_path / "input")]).cluster
    [found], [found_queue] = cluster.pod_groups, cluster.queues
    assert (found.key, found.status.phase) == ("ml/train", "Inqueue")
    assert found.spec.min_task_member == {"ps": 1, "worker": 2}
    assert found.status.conditions[0].transition_id == "2a6e"
    assert (found_queue.metadata.namespace, found_queue.spec.reclaimable) == ("", False)
    assert found_queue.spec.guarantee.resource == {"cpu": quantity("8")}


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        pytest.param(group(spec={"minMember": "3"}), r"spec\.minMember: expected an integer", id="a text for a number"),
        pytest.param(
            group(spec={"minTaskMember": {"ps": 2**31}}), r"minTaskMember\.ps: .* out of range", id="too much"
        ),
        pytest.param(
            group(spec={"minResources": {"cpu": "2 cores"}}), r"spec\.minResources\.cpu: .* quantity", id="no quantity"
        ),
        pytest.param(group(status={"conditions": {}}), r"status\.conditions: expected a list", id="no list"),
        pytest.param(queue(reclaimable="no"), r"spec\.reclaimable: expected true or false", id="a text for a flag"),
    ],
)
def test_a_wrong_field_is_one_message_with_its_path(bad: Document, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        cluster_of(bad)
    assert caught.match(problem)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, None, id="no resources: let in without a look at the cluster"),
        pytest.param({"minResources": None}, None, id="null is none"),
        pytest.param({"minResources": {}}, {}, id="empty resources"),
    ],
)
def test_missing_and_empty_least_resources_stay_apart(given: Document, expected: object) -> None:
    cluster = cluster_of(group(spec=given))
    for each in (cluster, cluster_of(*dumped(cluster)), cluster_of(*dumped(cluster, redaction_of(cluster)))):
        assert each.pod_groups[0].spec.min_resources == expected


def test_a_dump_has_all_that_was_read() -> None:
    cluster = cluster_of(
        RICH_GROUP,
        RICH_QUEUE,
        pod("train-ps-0", **{"scheduling.k8s.io/group-name": "train", "volcano.sh/task-priority": ""}),
        {"kind": "Namespace", "metadata": {"name": "ml", "annotations": {"scheduling.volcano.sh/queue-name": "q"}}},
    )
    items = dumped(cluster)
    assert cluster_of(*items) == cluster
    assert {each["kind"]: each["apiVersion"] for each in items} == {
        "Pod": "v1",
        "Namespace": "v1",
        "PodGroup": VOLCANO,
        "Queue": VOLCANO,
    }


def test_annotations_that_nothing_reads_are_not_written() -> None:
    secret = {"example.com/token": "s3cret", "kubectl.kubernetes.io/last-applied-configuration": "s3cret"}
    namespace = {"kind": "Namespace", "metadata": {"name": "ml", "annotations": secret}}
    cluster = cluster_of(group(annotations=secret), queue(annotations=secret), pod("p", **secret), namespace)
    assert "s3cret" not in str(dumped(cluster))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"example.com/note": "x"}, None, id="foreign ones only"),
        pytest.param({PREEMPTABLE: ""}, PodAnnotations(preemptable=""), id="an empty one, which is a wrong one"),
        pytest.param(
            {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "ps", "volcano.sh/template-uid": "t"},
            PodAnnotations(group_name="g", task_spec="ps", template_uid="t"),
            id="those of a job's pod",
        ),
    ],
)
def test_of_a_pods_annotations_those_are_kept_that_a_scheduler_reads(
    annotations: dict[str, str], expected: PodAnnotations | None
) -> None:
    assert cluster_of(pod("p", **annotations)).pods[0].metadata.annotations == expected


def test_pods_with_equal_annotations_share_them() -> None:
    annotations = {"scheduling.k8s.io/group-name": "g"}
    first, second = cluster_of(pod("a", **annotations), pod("b", **annotations)).pods
    assert first.metadata.annotations is second.metadata.annotations


def test_redaction_keeps_what_belongs_together() -> None:
    words = {"scheduling.k8s.io/group-name": "train", "volcano.sh/task-spec": "worker"}
    items = redacted(pod("train-worker-11", **words), RICH_GROUP, RICH_QUEUE, queue("default"))
    found_pod, found_group, found_queue, default = items
    annotations = found_pod["metadata"]["annotations"]
    assert annotations["scheduling.k8s.io/group-name"] == found_group["metadata"]["name"]
    assert annotations["volcano.sh/task-spec"] in found_group["spec"]["minTaskMember"]
    assert found_group["spec"]["queue"] == found_queue["metadata"]["name"]
    assert default["metadata"]["name"] == "default"
    assert found_queue["metadata"]["annotations"] == {
        HIERARCHY: "root/branch-0001/branch-0002",
        HIERARCHY_WEIGHTS: "1/2/3.5",
    }
    assert found_group["metadata"]["annotations"] == RICH_GROUP["metadata"]["annotations"]
    assert found_group["status"]["phase"] == "Inqueue"
    assert not [each for each in ("train", "worker", "research", "dept", "high", "2a6e", "gang") if each in str(items)]


@pytest.mark.parametrize(
    ("label", "is_kept"),
    [
        pytest.param("true", True, id="true"),
        pytest.param("0", True, id="Go's zero"),
        pytest.param("not-a-boolean", False, id="what Go takes for neither"),
        pytest.param("TrUe", False, id="a spelling that Go does not know"),
    ],
)
def test_flags_of_volcano_survive_redaction(label: str, is_kept: bool) -> None:
    [found] = redacted(pod("p", labels={PREEMPTABLE: label}, **{PREEMPTABLE: label}))
    for field in ("labels", "annotations"):
        value = found["metadata"][field][PREEMPTABLE]
        assert value == label if is_kept else value.startswith(("value-", "text-"))


@pytest.mark.parametrize(
    ("name", "end"),
    [
        pytest.param("train-worker-7", "-7", id="a pod of a job"),
        pytest.param("train-worker-x", "", id="no number at its end"),
        pytest.param("train-7", "", id="too few parts for Volcano to look at the number"),
        pytest.param("big-train-worker-007", "-007", id="leading zeros"),
    ],
)
def test_the_number_by_which_volcano_orders_a_jobs_pods_survives_redaction(name: str, end: str) -> None:
    with_group = redacted(pod(name), group())[0]["metadata"]["name"]
    assert with_group == f"pod-0001{end}"
    assert redacted(pod(name))[0]["metadata"]["name"] == "pod-0001"
