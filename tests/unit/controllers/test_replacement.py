"""The pod that a controller makes in the place of one that is gone."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kpreempt.controllers.actions import DEFAULT_RULES, ControlledPod, controlled_pod
from kpreempt.controllers.replacement import is_replaced, replacement_of
from kpreempt.model.affinity import Affinity
from kpreempt.model.pod import Pod

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BEFORE = "2026-11-20T12:00:00Z"


def owned(kind: str, owner: str = "web", api_version: str = "apps/v1", **labels: str) -> Pod:
    """A pod with every possible status: bound, nominated, ready and terminating."""
    reference = {"kind": kind, "name": owner, "uid": "o", "apiVersion": api_version, "controller": True}
    return msgspec.convert(
        {
            "metadata": {
                "name": f"{owner}-x7k2p",
                "namespace": "shop",
                "uid": "old",
                "resourceVersion": "77",
                "labels": {
                    "app": "web",
                    "topology.kubernetes.io/zone": "a",
                    "topology.kubernetes.io/region": "r",
                    **labels,
                },
                "ownerReferences": [reference],
                "creationTimestamp": BEFORE,
                "deletionTimestamp": BEFORE,
                "deletionGracePeriodSeconds": 30,
                "annotations": {
                    "NominatedNodeName": "n2",
                    "volcano.sh/task-spec": "worker",
                    "controller.kubernetes.io/pod-deletion-cost": "5",
                },
            },
            "spec": {
                "nodeName": "n1",
                "priority": 100,
                "containers": [{"name": "c", "image": "web:1"}],
                "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "init"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}],
            },
            "status": {
                "phase": "Running",
                "startTime": BEFORE,
                "nominatedNodeName": "n2",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": BEFORE}],
                "containerStatuses": [{"name": "c", "restartCount": 2}, {"name": "d", "restartCount": 1}],
                "initContainerStatuses": [{"name": "proxy", "restartCount": 3}, {"name": "init", "restartCount": 9}],
                "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "web-gpu"}],
            },
        },
        Pod,
    )


def replaced(pod: Pod, **options: Any) -> Pod:
    new = replacement_of(pod, suffix="r1", uid="new", now=NOW, **options)
    assert new is not None
    return new


def test_it_is_new_pending_and_nowhere() -> None:
    old = owned("ReplicaSet")
    new = replaced(old)
    assert new.status == msgspec.convert({"phase": "Pending"}, type(new.status))
    assert new.spec == msgspec.structs.replace(old.spec, node_name="")
    meta = new.metadata
    assert (meta.uid, meta.creation_timestamp, meta.deletion_timestamp) == ("new", NOW, None)
    assert (meta.resource_version, meta.deletion_grace_period_seconds) == ("", None)
    assert meta.owner_references == old.metadata.owner_references
    assert meta.annotations is not None
    assert (meta.annotations.nominated_node_name, meta.annotations.task_spec) == ("", "worker")


def test_what_its_node_gave_the_old_one_is_gone() -> None:
    assert replaced(owned("ReplicaSet")).metadata.labels == {"app": "web"}


def test_the_old_one_stays_as_it_was() -> None:
    old = owned("DaemonSet")
    before = msgspec.json.encode(old)
    replaced(old)
    assert msgspec.json.encode(old) == before


INDEX = {"batch.kubernetes.io/job-completion-index": "12"}


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        pytest.param(
            owned("ReplicaSet", "web-6b7c"), "web-6b7c-r1", id="a ReplicaSet's has its owner's name and the suffix"
        ),
        pytest.param(owned("ReplicationController", api_version="v1"), "web-r1", id="so has a ReplicationController's"),
        pytest.param(owned("StatefulSet"), "web-x7k2p", id="a StatefulSet's has its name again"),
        pytest.param(owned("DaemonSet"), "web-r1", id="a DaemonSet's has its owner's name and the suffix"),
        pytest.param(owned("Job", "sum", "batch/v1"), "sum-r1", id="so has a Job's"),
        pytest.param(owned("Job", "sum", "batch/v1", **INDEX), "sum-12-r1", id="of an indexed Job with the index"),
        pytest.param(owned("ReplicaSet", "a" * 63), "a" * 58 + "r1", id="a long name is cut, dash and all"),
        pytest.param(
            owned("Job", "a" * 63, "batch/v1", **INDEX),
            "a" * 54 + "-12-r1",
            id="of a long name with index the index stays",
        ),
        pytest.param(
            owned("ReplicaSet", "web", "apps/v1", **INDEX), "web-r1", id="the label of a Job means nothing elsewhere"
        ),
    ],
)
def test_names(pod: Pod, name: str) -> None:
    assert replaced(pod).metadata.name == name


def test_a_daemon_sets_pod_is_tied_to_its_node_again() -> None:
    new = replaced(owned("DaemonSet"))
    assert controlled_pod(new).target_node == "n1"
    assert not new.spec.node_name
    assert new.spec.selects("n1", {})
    assert not new.spec.selects("n2", {})
    # Once it was pending, only affinity said where it belongs.
    assert controlled_pod(replaced(new)).target_node == "n1"
    assert controlled_pod(replaced(new, node_name="n9")).target_node == "n9"


def test_a_daemon_sets_pod_keeps_what_it_prefers() -> None:
    preferred = {"weight": 1, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": required,
            "preferredDuringSchedulingIgnoredDuringExecution": [preferred],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},
    }
    old = owned("DaemonSet")
    old = msgspec.structs.replace(
        old, spec=msgspec.structs.replace(old.spec, affinity=msgspec.convert(affinity, Affinity))
    )
    new = replaced(old).spec.affinity
    assert new is not None and new.node_affinity is not None and old.spec.affinity is not None
    assert new.pod_anti_affinity == old.spec.affinity.pod_anti_affinity
    assert [each.weight for each in new.node_affinity.preferred] == [1]
    assert replaced(old).spec.selects("n1", {})


def test_a_job_counts_its_new_pod_too() -> None:
    pod = owned("Job", "sum", "batch/v1")
    assert replaced(pod).metadata.finalizers == ["batch.kubernetes.io/job-tracking"]
    assert replaced(replaced(pod)).metadata.finalizers == ["batch.kubernetes.io/job-tracking"]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(Pod(), id="a bare pod"),
        pytest.param(owned("Node", "n1", "v1"), id="a static pod"),
        pytest.param(owned("Foo", api_version="example.com/v1"), id="a controller that is not known"),
        pytest.param(owned("Job", api_version="example.com/v1"), id="another group's kind of the same name"),
    ],
)
def test_nothing_takes_the_place_of(pod: Pod) -> None:
    assert not is_replaced(pod)
    assert replacement_of(pod, suffix="r1", uid="new", now=NOW) is None


def affine(**field: Any) -> Pod:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"], **field}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return msgspec.convert({"spec": {"affinity": {"nodeAffinity": required}}}, Pod)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(affine(), "n1", id="by name"),
        pytest.param(affine(values=["n1", "n2"]), "", id="either of two is no tie"),
        pytest.param(affine(operator="NotIn"), "", id="any other is no tie"),
        pytest.param(Pod(), "", id="without affinity"),
    ],
)
def test_the_node_that_a_pending_pod_is_tied_to(pod: Pod, expected: str) -> None:
    assert controlled_pod(pod).target_node == expected


def test_a_pod_as_controllers_see_it() -> None:
    pod = owned("Job", "sum", "batch/v1", **INDEX, **{"controller-revision-hash": "h"})
    assert controlled_pod(pod) == ControlledPod(
        name="sum-x7k2p",
        uid="old",
        phase="Running",
        node_name="n1",
        is_ready=True,
        ready_since=datetime(2026, 11, 20, 12, tzinfo=UTC),
        created=datetime(2026, 11, 20, 12, tzinfo=UTC),
        is_terminating=True,
        revision="h",
        deletion_cost=5,
        restarts=2,
        sidecar_restarts=3,
        index=12,
        finished_at=datetime(2026, 11, 20, 11, 59, 30, tzinfo=UTC),
        conditions=(("Ready", "True"),),
    )


@pytest.mark.parametrize("index", ["-1", "x", "", "9" * 5000, "0" * 5000])
def test_an_index_that_is_none(index: str) -> None:
    pod = owned("Job", "sum", "batch/v1", **{"batch.kubernetes.io/job-completion-index": index})
    assert controlled_pod(pod).index is None


def test_labels_of_the_node_are_the_template_s_own_where_binding_copies_none() -> None:
    rules = DEFAULT_RULES._replace(pod_topology_labels_admission=False)
    zone = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}
    old = owned("ReplicaSet")
    assert zone.items() <= replaced(old, rules=rules).metadata.labels.items()
    assert not zone.keys() & replaced(old).metadata.labels.keys()


def test_restarts_of_sidecars_count_since_1_32() -> None:
    old = owned("ReplicaSet")
    before = controlled_pod(old, DEFAULT_RULES._replace(counts_restarts_of_sidecars=False))
    assert (before.restarts, before.sidecar_restarts) == (2, 0)
    assert controlled_pod(old).sidecar_restarts == 3
