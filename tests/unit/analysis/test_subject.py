"""The pods that manifests, names and flags ask for."""

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.pod_inputs import (
    ExplainInputs,
    in_namespace,
    input_in_cluster,
    inputs_of,
    pod_from_flags,
    pod_in_cluster,
    select,
    subjects_of,
)
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import pods_of
from kpreempt.errors import InputError, NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PriorityClass
from kpreempt.model.quantity import quantity
from kpreempt.model.storage import PersistentVolumeClaim, StorageClass
from kpreempt.model.workloads import ReplicaSet

RECORDS = {"Pod": Pod, "PersistentVolumeClaim": PersistentVolumeClaim, "ReplicaSet": ReplicaSet}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}


def read(record: type, document: dict[str, Any]) -> Any:
    return msgspec.convert(document, record, dec_hook=lambda _, text: quantity(str(text)))


def decode(kind: str, document: dict[str, Any], *, source: str = "", line: int = 0) -> object:
    return read(RECORDS[kind], document)


def workload(kind: str, name: str = "web", template: Any = TEMPLATE, namespace: str = "shop", **spec: Any) -> Any:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": deepcopy(template), **spec}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def ask(*documents: dict[str, Any], cluster: ClusterSnapshot | None = None, **overrides: Any) -> ExplainInputs:
    templates = subjects_of((document, "f.yaml", 1, b"") for document in documents).templates
    return inputs_of(cluster or ClusterSnapshot(), templates, Overrides(**overrides), decode)


CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"jobTemplate": {"spec": {"template": TEMPLATE, "parallelism": 3}}},
}
POD_TEMPLATE = {"kind": "PodTemplate", "metadata": {"name": "web", "namespace": "shop"}, "template": TEMPLATE}
POD = {"kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": TEMPLATE["spec"]}


@pytest.mark.parametrize(
    ("document", "name", "owner", "replicas"),
    [
        pytest.param(POD, "web", None, 1, id="a pod is itself"),
        pytest.param(
            workload("Deployment", replicas=3),
            "web-new",
            "ReplicaSet web-new",
            3,
            id="a Deployment owns by a ReplicaSet",
        ),
        pytest.param(workload("ReplicaSet", replicas=2), "web-new", "ReplicaSet web", 2, id="a ReplicaSet"),
        pytest.param(workload("ReplicationController"), "web-new", "ReplicationController web", 1, id="a controller"),
        pytest.param(workload("StatefulSet"), "web-0", "StatefulSet web", 1, id="a StatefulSet starts at 0"),
        pytest.param(
            workload("StatefulSet", ordinals={"start": 5}), "web-5", "StatefulSet web", 1, id="or at its first ordinal"
        ),
        pytest.param(workload("DaemonSet"), "web-new", "DaemonSet web", 1, id="a DaemonSet"),
        pytest.param(workload("Job", parallelism=4), "web-new", "Job web", 4, id="a Job counts its parallelism"),
        pytest.param(CRON_JOB, "web-new", "Job web-new", 3, id="a CronJob owns by a Job"),
        pytest.param(POD_TEMPLATE, "web-new", None, 1, id="a PodTemplate owns nothing"),
        pytest.param(workload("Rollout"), "web-new", "Rollout web", 1, id="any other kind with a pod template"),
        pytest.param(
            {"kind": "Pod", "metadata": {"generateName": "web-", "namespace": "shop"}},
            "web-new",
            None,
            1,
            id="a pod to name",
        ),
    ],
)
def test_the_pod_of_each_kind(document: dict[str, Any], name: str, owner: str | None, replicas: int) -> None:
    before = deepcopy(document)
    (template,) = pods_of(document)
    metadata = template.document["metadata"]
    owners = [f"{each['kind']} {each['name']}" for each in metadata.get("ownerReferences", [])]
    assert (metadata["name"], metadata["namespace"], template.replicas) == (name, "shop", replicas)
    assert owners == ([owner] if owner else [])
    assert template.origin == ("" if document["kind"] == "Pod" else f"{document['kind']} shop/web")
    assert document == before


def test_what_the_server_sets_itself_is_not_taken_from_a_pod_manifest() -> None:
    metadata = {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    (template,) = pods_of({"kind": "Pod", "metadata": metadata, "status": {"nominatedNodeName": "n"}})
    assert template.document == {"kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}


def test_a_deployments_replica_set_is_laid_over_the_cluster_with_its_hash() -> None:
    requested = ask(workload("Deployment"))
    (replica_set,) = requested.cluster.replica_sets
    assert replica_set.metadata.owner_references[0].kind == "Deployment"
    assert replica_set.spec.selector.matches(requested.inputs[0].pod.metadata.labels)
    assert not replica_set.spec.selector.matches({"app": "web"})


CLAIM_TEMPLATE = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}


def test_a_stateful_sets_claims_are_made_and_said() -> None:
    fast = read(
        StorageClass,
        {"metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
    )
    template = deepcopy(TEMPLATE)
    template["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    document = workload("StatefulSet", template=template, volumeClaimTemplates=[CLAIM_TEMPLATE])
    requested = ask(document, cluster=ClusterSnapshot(storage_classes=[fast]))
    (claim,) = requested.cluster.persistent_volume_claims
    assert (claim.key, claim.spec.storage_class_name) == ("shop/data-web-0", "fast")
    (explain_input,) = requested.inputs
    assert [volume.name for volume in explain_input.pod.spec.volumes] == ["data", "tmp"]
    assert explain_input.pod.spec.volumes[0].persistent_volume_claim.claim_name == "data-web-0"
    said = explain_input.admission[0]
    assert (said.path, said.value, said.reason) == (
        "PersistentVolumeClaim shop/data-web-0",
        "storage class fast",
        "created for StatefulSet shop/web",
    )


def test_a_claim_that_is_there_is_not_made_again() -> None:
    there = read(
        PersistentVolumeClaim,
        {"metadata": {"name": "data-web-0", "namespace": "shop"}, "spec": {"volumeName": "pv-1"}},
    )
    document = workload("StatefulSet", volumeClaimTemplates=[CLAIM_TEMPLATE])
    requested = ask(document, cluster=ClusterSnapshot(persistent_volume_claims=[there]))
    assert requested.cluster.persistent_volume_claims == [there]
    assert not any("PersistentVolumeClaim" in change.path for change in requested.inputs[0].admission)


def test_an_ephemeral_volume_gets_its_claim() -> None:
    pod = deepcopy(POD)
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    (claim,) = ask(pod).cluster.persistent_volume_claims
    assert claim.key == "shop/web-scratch"
    assert (claim.metadata.owner_references[0].kind, claim.metadata.owner_references[0].controller) == ("Pod", True)


def node(name: str, taint: str = "") -> Node:
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    return read(Node, {"metadata": {"name": name}, "spec": {"taints": taints}})


def test_a_daemon_set_is_explained_once_per_node_that_it_runs_on() -> None:
    nodes = [node("a"), node("b", "dedicated"), node("c", "node.kubernetes.io/unschedulable")]
    requested = ask(workload("DaemonSet"), cluster=ClusterSnapshot(nodes=nodes))
    assert [explain_input.pod.metadata.name for explain_input in requested.inputs] == ["web-a", "web-c"]
    (term,) = requested.inputs[1].pod.spec.affinity.node_affinity.required.node_selector_terms
    assert (term.match_fields[0].key, term.match_fields[0].values) == ("metadata.name", ["c"])
    tolerated = {(each.key, each.effect, each.toleration_seconds) for each in requested.inputs[0].pod.spec.tolerations}
    prefix = "node.kubernetes.io/"
    assert tolerated == {
        (f"{prefix}not-ready", "NoExecute", None),
        (f"{prefix}unreachable", "NoExecute", None),
        (f"{prefix}disk-pressure", "NoSchedule", None),
        (f"{prefix}memory-pressure", "NoSchedule", None),
        (f"{prefix}pid-pressure", "NoSchedule", None),
        (f"{prefix}unschedulable", "NoSchedule", None),
    }


def test_a_daemon_set_that_runs_nowhere_is_said() -> None:
    cluster = ClusterSnapshot(nodes=[node("b", "dedicated")])
    (explain_input,) = ask(workload("DaemonSet"), cluster=cluster).inputs
    assert "no pod on any of the 1 nodes" in explain_input.assumptions[0].message


def test_objects_without_a_pod_are_noted() -> None:
    service = {"kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": {}}}
    subjects = subjects_of([(service, "f.yaml", 1, b""), (POD, "f.yaml", 9, b"")])
    assert subjects.notes == ["Service shop/web has no pod template and is ignored"]
    assert [(template.name, template.line) for template in subjects.templates] == [("web", 9)]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            {"kind": "ConfigMap", "metadata": {"name": "x"}},
            "f.yaml: no pod found: expected one of Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, "
            "ReplicationController, Job, CronJob, PodTemplate",
            id="no pod at all",
        ),
        pytest.param(
            {"kind": "Deployment", "metadata": {"name": "x"}, "spec": {}},
            "f.yaml:7: Deployment x: spec.template: expected a pod template",
            id="no template",
        ),
        pytest.param(
            {"kind": "Deployment", "metadata": {"name": "x"}, "spec": {"template": {"metadata": {"labels": "x"}}}},
            "f.yaml:7: Deployment x: spec.template.metadata.labels: expected a mapping",
            id="labels that are a text",
        ),
        pytest.param(
            {"kind": "Pod", "metadata": {}},
            "f.yaml:7: Pod without a name: metadata.name: a pod must have a name",
            id="no name",
        ),
        pytest.param(
            {"kind": "Pod", "metadata": {"name": 5}},
            "f.yaml:7: Pod 5: metadata.name: expected a string, got 5",
            id="a name that is a number",
        ),
        pytest.param(
            {"kind": "Job", "metadata": {"name": "x"}, "spec": {"template": {}, "parallelism": "two"}},
            "f.yaml:7: Job x: spec.parallelism: expected a non-negative integer, got 'two'",
            id="a count that is a text",
        ),
        pytest.param({"kind": ["Pod"]}, "f.yaml: no pod found: expected one of", id="a kind that is a list"),
    ],
)
def test_manifests_that_cannot_be_read(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        subjects_of([(document, "f.yaml", 7, b"")])
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("wanted", ["Deployment/web", "deploy/web", "deployments/web", "deployment.apps/web"])
def test_select_takes_kinds_as_kubectl_does(wanted: str) -> None:
    templates = [*pods_of(workload("Deployment")), *pods_of(workload("StatefulSet"))]
    assert [template.kind for template in select(templates, wanted)] == ["Deployment"]


def test_select_lists_what_there_is() -> None:
    with pytest.raises(NotFoundError) as caught:
        select([*pods_of(workload("Deployment")), *pods_of(POD)], "deployment/wbe")
    assert caught.value.message == '"deployment/wbe" not found; available: deployment/web, pod/web'
    assert caught.value.hint == "deployment/web"


def test_select_needs_a_kind() -> None:
    with pytest.raises(UsageError):
        select(pods_of(POD), "web")


def test_another_namespace_moves_all_that_belongs_to_the_pod() -> None:
    (template,) = pods_of(workload("StatefulSet", volumeClaimTemplates=[CLAIM_TEMPLATE]))
    moved = in_namespace(template, "test")
    assert (moved.origin, moved.document["metadata"]["namespace"]) == ("StatefulSet test/web", "test")
    assert [claim["metadata"]["namespace"] for claim in moved.claims] == ["test"]
    assert template.document["metadata"]["namespace"] == "shop"


def test_a_pod_from_flags() -> None:
    template = pod_from_flags(cpu="2", memory="4Gi", resources={"nvidia.com/gpu": "1"}, priority_class="high")
    pod = read(Pod, template.document)
    requests = {name: str(amount) for name, amount in pod.spec.containers[0].resources.requests.items()}
    assert requests == {"nvidia.com/gpu": "1", "cpu": "2", "memory": "4Gi"}
    assert (pod.key, pod.spec.priority_class_name) == ("default/pod", "high")


RUNNING = read(
    Pod,
    {
        "metadata": {"name": "web-1", "namespace": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": "a", "priority": 7, "priorityClassName": "low"},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
    },
)
PENDING = read(
    Pod,
    {"metadata": {"name": "web-2", "namespace": "shop"}, "status": {"phase": "Pending", "nominatedNodeName": "a"}},
)
CLUSTER = ClusterSnapshot(
    pods=[RUNNING, PENDING],
    priority_classes=[read(PriorityClass, {"metadata": {"name": "high"}, "value": 1000})],
)


def test_a_running_pod_is_explained_as_if_pending_without_itself() -> None:
    found = pod_in_cluster(CLUSTER, "pod/web-1", "shop")
    assert (found.pod.spec.node_name, found.pod.status.start_time, found.pod.metadata.deletion_timestamp) == (
        "",
        None,
        None,
    )
    assert found.pod.spec.priority == 7
    assert found.cluster.pods == [PENDING]
    assert found.changes[0].reason == "Running on a; explained as if it was pending, in the cluster without it"
    assert len(CLUSTER.pods) == 2


def test_a_pending_pod_keeps_its_nomination_and_is_not_admitted_again() -> None:
    requested = input_in_cluster(pod_in_cluster(CLUSTER, "web-2", "shop"), Overrides(), decode)
    assert requested.inputs[0].pod == PENDING
    assert requested.inputs[0].admission == []


def test_a_pod_of_the_cluster_takes_overrides() -> None:
    found = pod_in_cluster(CLUSTER, "web-1", "shop")
    requested = input_in_cluster(found, Overrides(priority_class="high"), decode)
    assert requested.inputs[0].pod.spec.priority == 1000
    requested = input_in_cluster(found, Overrides(priority=5), decode)
    assert (requested.inputs[0].pod.spec.priority, requested.inputs[0].pod.spec.priority_class_name) == (5, "low")


@pytest.mark.parametrize(
    ("name", "namespace", "hint"),
    [
        pytest.param("web-1", "default", "it is in shop: -n shop", id="a name of another namespace"),
        pytest.param("wbe-1", "shop", "web-1", id="a misspelt name"),
        pytest.param("zzz", "shop", "", id="a name like none"),
    ],
)
def test_a_pod_that_is_not_there(name: str, namespace: str, hint: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        pod_in_cluster(CLUSTER, name, namespace)
    assert caught.value.message == f'pod "{name}" in namespace "{namespace}" not found'
    assert caught.value.hint.startswith(hint)


def test_only_pods_are_taken_by_name() -> None:
    with pytest.raises(UsageError):
        pod_in_cluster(CLUSTER, "deploy/web", "shop")


def test_a_manifest_pod_that_exists_is_explained_without_its_namesake() -> None:
    pod = {**POD, "metadata": {"name": "web-1", "namespace": "shop"}}
    requested = ask(pod, cluster=CLUSTER)
    assert requested.cluster.pods == [PENDING]
    assert requested.inputs[0].assumptions[0].subject == "Pod shop/web-1"
