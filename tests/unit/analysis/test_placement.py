"""Where pods of a change run without the scheduler, wait for a volume, or get another owner; and nodes it makes up."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.gate_rules import RuleId
from kpreempt.verdict.check import Check, FindingStatus
from kpreempt.verdict.simulation import StepKind
from tests.rollouts import Document, checked, end_of, nodes, planned, priority_class, running, workload

RULES = (
    RuleId.VOLUME_ATTACHED_ELSEWHERE,
    RuleId.BYPASSES_SCHEDULER,
    RuleId.ADOPTED_PODS,
    RuleId.CREATED_NODES,
)
FAILS, WARNS = FindingStatus.FAILS, FindingStatus.WARNS
CRITICAL = priority_class("system-node-critical", 2_000_001_000)
EBS = "ebs.csi.aws.com"


def found_by(check: Check, rule: RuleId) -> list[tuple[str, FindingStatus]]:
    return [(each.subject, each.status) for each in check.findings if each.rule is rule]


def detail_of(check: Check, rule: RuleId) -> str:
    return next(each.detail for each in check.findings if each.rule is rule)


# Volumes.


def claim(*modes: str, volume: str = "pv", class_name: str = "fast") -> Document:
    bound = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "status": {"phase": "Bound"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": {
            "accessModes": list(modes),
            "storageClassName": class_name,
            "resources": {"requests": {"storage": "1Gi"}},
            **({"volumeName": volume} if volume else {}),
        },
        "status": bound["status"] if volume else {"phase": "Pending"},
        "metadata": {"name": "data", "namespace": "shop", **(bound["metadata"] if volume else {})},
    }


def volume_of(*modes: str, **source: Any) -> Document:
    spec = {
        "accessModes": list(modes),
        "capacity": {"storage": "1Gi"},
        "storageClassName": "fast",
        "claimRef": {"namespace": "shop", "name": "data"},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "uid": "uid-pv"},
        "spec": spec | (source or {"csi": {"driver": EBS, "volumeHandle": "v"}}),
        "status": {"phase": "Bound"},
    }


def storage_class(provisioner: str, mode: str = "WaitForFirstConsumer") -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def csi_driver(**spec: Any) -> Document:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": EBS}, "spec": spec}


WITH_DATA = {"pod": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}}
ONCE, MANY, ONE_POD = "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"


def rolled(*storage: Document, strategy: Document | None = None, cpu: str = "1") -> Check:
    """A single replica on a node without room for a second one is rolled."""
    more = {**WITH_DATA, **({"strategy": strategy} if strategy else {})}
    old = workload("Deployment", "db", replicas=1, cpu=cpu, **more)
    new = workload("Deployment", "db", replicas=1, cpu=cpu, image="two", **more)
    return checked([*nodes(2, "1"), *storage, *running(old, ["n1"])], [new])


def test_a_surging_pod_on_another_node_never_gets_a_volume_that_one_node_attaches() -> None:
    check = rolled(claim(ONCE), volume_of(ONCE))
    assert found_by(check, RuleId.VOLUME_ATTACHED_ELSEWHERE) == [("Deployment shop/db", FAILS)]
    assert (
        detail_of(check, RuleId.VOLUME_ATTACHED_ELSEWHERE)
        == "rollout deadlock: the new pod waits for a volume that the old pod shop/db-old-a holds until the new pod is"
        " ready; shop/db-new-1 on n2: volume shop/data can be attached to only one node, and is attached to n1 for"
        " shop/db-old-a"
    )
    assert not end_of(check, "Deployment shop/db").is_done
    assert [each.rule for each in check.findings if each.status is FAILS] == [RuleId.VOLUME_ATTACHED_ELSEWHERE]


@pytest.mark.parametrize(
    ("storage", "is_stuck"),
    [
        pytest.param([claim(ONCE), volume_of(ONCE)], True, id="a CSI driver that nothing is known of"),
        pytest.param([claim(ONCE), volume_of(ONCE), csi_driver()], True, id="one that says nothing"),
        pytest.param([claim(ONCE), volume_of(ONCE), csi_driver(attachRequired=True)], True, id="one that attaches"),
        pytest.param([claim(ONCE), volume_of(ONCE), csi_driver(attachRequired=False)], False, id="one that does not"),
        pytest.param([claim(MANY), volume_of(MANY)], False, id="for many nodes"),
        pytest.param([claim("ReadOnlyMany"), volume_of("ReadOnlyMany")], False, id="to be read by many"),
        pytest.param([claim(ONCE), volume_of(ONCE, MANY)], False, id="the volume's modes count, not the claim's"),
        pytest.param([claim(ONCE), volume_of()], False, id="no modes: the driver decides"),
        pytest.param([claim(ONCE), volume_of(ONCE, nfs={"server": "s", "path": "/"})], False, id="NFS"),
        pytest.param([claim(ONCE), volume_of(ONCE, hostPath={"path": "/d"})], False, id="a folder of the node"),
        pytest.param(
            [claim(ONCE), volume_of(ONCE, awsElasticBlockStore={"volumeID": "v"})], True, id="an in-tree disk"
        ),
        pytest.param([claim(ONCE), volume_of(ONCE, vsphereVolume={"volumePath": "v"})], True, id="a disk of vSphere's"),
        pytest.param(
            [claim(ONCE), volume_of(ONCE, awsElasticBlockStore={"volumeID": "v"}), csi_driver(attachRequired=False)],
            False,
            id="an in-tree disk whose driver does not attach",
        ),
        pytest.param([claim(ONCE, volume=""), storage_class(EBS)], True, id="not bound yet, and of a CSI driver"),
        pytest.param(
            [claim(ONCE, volume=""), storage_class("rancher.io/local-path")], False, id="not bound yet, and no driver"
        ),
        pytest.param(
            [claim(ONCE, volume=""), storage_class("kubernetes.io/aws-ebs")], True, id="not bound yet, and in-tree"
        ),
        pytest.param([claim(MANY, volume=""), storage_class(EBS)], False, id="not bound yet, and for many nodes"),
    ],
)
def test_access_modes_and_drivers_decide_whether_a_volume_is_attached_elsewhere(
    storage: list[Document], is_stuck: bool
) -> None:
    check = rolled(*storage)
    assert bool(found_by(check, RuleId.VOLUME_ATTACHED_ELSEWHERE)) == is_stuck
    assert check.passed != is_stuck


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param({"type": "Recreate"}, id="Recreate"),
        pytest.param({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, id="no surge"),
    ],
)
def test_a_volume_moves_once_the_old_pod_is_gone(strategy: Document) -> None:
    check = rolled(claim(ONCE), volume_of(ONCE), strategy=strategy)
    assert check.passed
    end = end_of(check, "Deployment shop/db")
    assert (end.is_done, end.ready_min, end.ready_after) == (True, 0, 1)


def test_a_pod_on_the_same_node_shares_the_volume() -> None:
    old = workload("Deployment", "db", replicas=1, cpu="100m", **WITH_DATA)
    new = workload("Deployment", "db", replicas=1, cpu="100m", image="two", **WITH_DATA)
    assert checked([*nodes(1), claim(ONCE), volume_of(ONCE), *running(old, ["n1"])], [new]).passed


def test_replicas_on_other_nodes_do_not_share_a_volume_for_one_node() -> None:
    old = workload("Deployment", "db", replicas=1, **WITH_DATA)
    more = workload("Deployment", "db", replicas=3, **WITH_DATA)
    check = checked([*nodes(3, "1"), claim(ONCE), volume_of(ONCE), *running(old, ["n1"])], [more])
    assert found_by(check, RuleId.VOLUME_ATTACHED_ELSEWHERE) == [("Deployment shop/db", FAILS)]
    assert end_of(check, "Deployment shop/db").ready_after == 1


def test_the_first_of_new_replicas_gets_the_volume() -> None:
    new = workload("Deployment", "db", replicas=2, **WITH_DATA)
    check = checked([*nodes(2, "1"), claim(ONCE, volume=""), storage_class(EBS)], [new])
    assert found_by(check, RuleId.VOLUME_ATTACHED_ELSEWHERE) == [("Deployment shop/db", FAILS)]
    assert end_of(check, "Deployment shop/db").ready_after == 1


def test_pods_that_are_ready_on_several_nodes_show_that_the_volume_is_shared() -> None:
    old = workload("Deployment", "db", replicas=2, **WITH_DATA)
    more = workload("Deployment", "db", replicas=3, **WITH_DATA)
    check = checked([*nodes(3, "1"), claim(ONCE), volume_of(ONCE), *running(old, ["n1", "n2"])], [more])
    assert check.passed


def test_a_stateful_set_with_claims_of_its_own_rolls() -> None:
    more: Document = {
        "serviceName": "db",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim(ONCE, volume="")["spec"]}],
    }
    old = workload("StatefulSet", "db", replicas=2, **more)
    new = workload("StatefulSet", "db", replicas=2, image="two", **more)
    check = checked([*nodes(3, "1"), storage_class(EBS), *running(old, ["n1", "n2"])], [new])
    assert check.passed


def test_a_volume_for_one_pod_keeps_a_surging_pod_pending() -> None:
    check = rolled(claim(ONE_POD), volume_of(ONE_POD), cpu="100m")
    assert not check.passed
    assert not end_of(check, "Deployment shop/db").is_done


# Pods that name their node.


def named(node: str, cpu: str = "1", kind: str = "Deployment", **pod: Any) -> Document:
    more = {} if kind in ("DaemonSet", "Job") else {"replicas": 1}
    return workload(kind, "new", cpu=cpu, **more, pod={"nodeName": node, **pod})


def pod(name: str = "new", cpu: str = "1", **spec: Any) -> Document:
    containers = [{"name": "main", "image": "one", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": name}},
        "spec": {"containers": containers, **spec},
    }


def unready(node: Document) -> Document:
    return {**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]}}


CORDONED = {**nodes(1)[0], "spec": {"unschedulable": True}}
UNREACHABLE = {
    **nodes(1)[0],
    "spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]},
}
NO_EXECUTE = {**nodes(1)[0], "spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}}


@pytest.mark.parametrize(
    ("node", "manifest", "detail"),
    [
        pytest.param(nodes(1)[0], named("n2"), "node n2 does not exist", id="no such node"),
        pytest.param(nodes(1)[0], pod(nodeName="n2"), "node n2 does not exist", id="of a plain pod"),
        pytest.param(
            nodes(1)[0], named("n1", "3"), "rejects the pod with OutOfcpu (cpu: 3 requested, 2 free)", id="full"
        ),
        pytest.param(nodes(1)[0], named("n1", "3", "StatefulSet"), "OutOfcpu", id="of a StatefulSet"),
        pytest.param(nodes(1)[0], named("n1", "3", "DaemonSet"), "OutOfcpu", id="of a DaemonSet"),
        pytest.param(nodes(1)[0], named("n1", "3", "Job"), "OutOfcpu", id="of a Job"),
        pytest.param(nodes(1)[0], named("n1", "3", "ReplicaSet"), "OutOfcpu", id="of a ReplicaSet"),
        pytest.param(nodes(1)[0], pod(cpu="3", nodeName="n1"), "OutOfcpu", id="a plain pod on a full node"),
        pytest.param(
            nodes(1)[0], named("n1", nodeSelector={"zone": "a"}), "node selector", id="a selector that does not match"
        ),
        pytest.param(unready(nodes(1)[0]), named("n1"), "node n1 is not ready", id="a node that is not ready"),
        pytest.param(UNREACHABLE, named("n1"), "node n1 is not ready", id="a node that is tainted as unreachable"),
        pytest.param(CORDONED, named("n1"), "node n1 is cordoned", id="a cordoned node"),
        pytest.param(NO_EXECUTE, named("n1"), "does not tolerate the taint gone:NoExecute", id="a taint that evicts"),
    ],
)
def test_a_pod_that_names_a_node_that_does_not_take_it(node: Document, manifest: Document, detail: str) -> None:
    check = checked([node], [manifest])
    name = f"{manifest['kind']} shop/new"
    assert found_by(check, RuleId.BYPASSES_SCHEDULER) == [(name, FAILS)]
    assert detail in detail_of(check, RuleId.BYPASSES_SCHEDULER)
    assert not check.passed


def test_a_mirror_pod_of_a_manifest_is_deleted_by_the_kubelet() -> None:
    mirror = pod(nodeName="n1")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    check = checked(nodes(1), [mirror])
    assert found_by(check, RuleId.BYPASSES_SCHEDULER) == [("Pod shop/new", FAILS)]
    assert "deletes mirror pods" in detail_of(check, RuleId.BYPASSES_SCHEDULER)


def test_a_pod_that_fits_on_the_node_that_it_names_is_a_warning() -> None:
    check = checked(nodes(1), [named("n1")])
    assert (check.passed, found_by(check, RuleId.BYPASSES_SCHEDULER)) == (True, [("Deployment shop/new", WARNS)])
    assert end_of(check, "Deployment shop/new").is_done


@pytest.mark.parametrize("suspended", [False, True])
def test_a_cron_job_whose_pods_name_a_node(suspended: bool) -> None:
    template = {"spec": named("n9", kind="Job")["spec"]}
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "new", "namespace": "shop"},
        "spec": {"schedule": "* * * * *", "suspend": suspended, "jobTemplate": template},
    }
    check = checked(nodes(1), [cron_job])
    assert found_by(check, RuleId.BYPASSES_SCHEDULER) == [("CronJob shop/new", FAILS)]


def test_a_node_name_that_the_cluster_has_already_is_no_news() -> None:
    old = named("n1", "100m")
    new = {**named("n1", "100m"), "metadata": {**old["metadata"], "labels": {"tier": "one"}}}
    new["spec"] = {
        **new["spec"],
        "template": workload("Deployment", "new", image="two", cpu="100m")["spec"]["template"],
    }
    new["spec"]["template"]["spec"]["nodeName"] = "n1"
    check = checked([*nodes(1), *running(old, ["n1"])], [new])
    assert (check.passed, found_by(check, RuleId.BYPASSES_SCHEDULER)) == (True, [])


def test_a_node_name_that_stays_is_an_error_once_its_pods_do_not_fit() -> None:
    old, new = named("n1", "100m"), named("n1", "3")
    check = checked([*nodes(1), *running(old, ["n1"])], [new])
    assert found_by(check, RuleId.BYPASSES_SCHEDULER) == [("Deployment shop/new", FAILS)]


def test_a_kubelet_evicts_pods_for_a_critical_one_without_checking_budgets() -> None:
    cheap = workload("Deployment", "web", replicas=2, cpu="1")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    critical = named("n1", "1", priorityClassName="system-node-critical")
    check = checked([*nodes(2), CRITICAL, budget, *running(cheap, ["n1", "n1"])], [critical])
    assert [each.pod for each in check.simulation.displaced] == ["shop/web-old-a"]
    assert {each.rule for each in check.findings if each.status is FAILS} == {
        RuleId.MAX_PDB_VIOLATIONS,
        RuleId.BYPASSES_SCHEDULER,
    }
    assert "evicts shop/web-old-a" in detail_of(check, RuleId.BYPASSES_SCHEDULER)


def test_a_kubelet_evicts_no_critical_pods_of_the_same_priority() -> None:
    own = workload("Deployment", "dns", replicas=1, cpu="2", pod={"priorityClassName": "system-node-critical"})
    critical = named("n1", "1", priorityClassName="system-node-critical")
    check = checked([*nodes(2), CRITICAL, *running(own, ["n1"], 2_000_001_000)], [critical])
    assert not check.simulation.displaced
    assert "evictions would not free enough" in detail_of(check, RuleId.BYPASSES_SCHEDULER)


# Owners.


def bare(name: str, node: str = "n1", app: str = "bare") -> Document:
    found = pod(name, "100m", nodeName=node, priority=0)
    found["metadata"] |= {"uid": f"uid-{name}", "labels": {"app": app}, "creationTimestamp": "2026-11-20T12:00:00Z"}
    return found | {
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def adopter(kind: str, name: str = "adopter", app: str = "bare", **spec: Any) -> Document:
    manifest = workload(kind, name, cpu="100m")
    manifest["spec"]["template"]["metadata"]["labels"] = {"app": app}
    manifest["spec"] |= {"selector": {"matchLabels": {"app": app}}} | spec
    if kind == "ReplicationController":
        manifest["apiVersion"] = "v1"
        manifest["spec"]["selector"] = spec.get("selector", {"app": "bare"})
    return manifest


PAIR = [bare("bare-0"), bare("bare-1", "n2")]
NOWHERE = adopter("DaemonSet")
NOWHERE["spec"]["template"]["spec"]["nodeSelector"] = {"no": "where"}
BY_EXPRESSION = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["bare"]}]}


@pytest.mark.parametrize(
    ("manifest", "gone"),
    [
        pytest.param(adopter("ReplicaSet", replicas=0), 2, id="a ReplicaSet"),
        pytest.param(adopter("ReplicaSet", replicas=0, selector=BY_EXPRESSION), 2, id="by an expression"),
        pytest.param(adopter("ReplicaSet", replicas=1), 1, id="a ReplicaSet of one"),
        pytest.param(adopter("ReplicationController", replicas=0), 2, id="a ReplicationController"),
        pytest.param(adopter("ReplicationController", replicas=0, selector=None), 2, id="its template's labels"),
        pytest.param(adopter("StatefulSet", "bare", replicas=0, serviceName="b"), 2, id="a StatefulSet"),
        pytest.param(NOWHERE, 2, id="a DaemonSet that runs nowhere"),
        pytest.param(adopter("Job", manualSelector=True, parallelism=0), 2, id="a Job with a selector"),
    ],
)
def test_pods_that_a_new_controller_adopts_and_deletes(manifest: Document, gone: int) -> None:
    check = checked([*nodes(2), *PAIR], [manifest])
    name = f"{manifest['kind']} shop/{manifest['metadata']['name']}"
    assert found_by(check, RuleId.ADOPTED_PODS) == [(name, FAILS)]
    leaving = {step.pod for step in check.simulation.steps if step.kind is StepKind.TERMINATING}
    assert len(leaving & {"shop/bare-0", "shop/bare-1"}) == gone
    assert f"deletes {gone} of them" in detail_of(check, RuleId.ADOPTED_PODS)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(adopter("ReplicaSet", app="other", replicas=0), id="another label"),
        pytest.param(adopter("StatefulSet", "adopter", replicas=0, serviceName="b"), id="other names"),
        pytest.param(adopter("Deployment", replicas=0), id="a Deployment adopts ReplicaSets only"),
        pytest.param(adopter("Job", parallelism=0, selector=None), id="a Job without a selector"),
    ],
)
def test_pods_that_no_controller_adopts(manifest: Document) -> None:
    check = checked([*nodes(2), *PAIR], [manifest])
    assert found_by(check, RuleId.ADOPTED_PODS) == []
    assert not any(step.kind is StepKind.TERMINATING for step in check.simulation.steps)


def test_pods_of_another_controller_are_not_adopted() -> None:
    own = workload("Deployment", "web", replicas=1, cpu="100m")
    other = adopter("ReplicaSet", app="web", replicas=0)
    check = checked([*nodes(1), *running(own, ["n1"])], [other])
    assert found_by(check, RuleId.ADOPTED_PODS) == []


def test_pods_that_are_adopted_and_stay_are_a_warning() -> None:
    check = checked([*nodes(2), *PAIR], [adopter("ReplicaSet", replicas=2)])
    assert (check.passed, found_by(check, RuleId.ADOPTED_PODS)) == (True, [("ReplicaSet shop/adopter", WARNS)])
    assert detail_of(check, RuleId.ADOPTED_PODS).endswith("; the controller keeps them")


def orphans(image: str = "one") -> list[Document]:
    """A ReplicaSet that no Deployment owns, with a pod."""
    owner, *rest = running(adopter("ReplicaSet", "orphan", replicas=1), ["n1"])
    owner["metadata"]["labels"] = {"app": "bare"}
    owner["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return [owner, *rest]


@pytest.mark.parametrize(
    ("replicas", "image", "standing"),
    [
        pytest.param(0, "one", FAILS, id="of no replicas"),
        pytest.param(1, "one", WARNS, id="of the same template"),
        pytest.param(1, "two", FAILS, id="of another template"),
    ],
)
def test_a_deployment_adopts_replica_sets(replicas: int, image: str, standing: FindingStatus) -> None:
    manifest = adopter("Deployment", replicas=replicas)
    check = checked([*nodes(2), *orphans(image)], [manifest])
    assert found_by(check, RuleId.ADOPTED_PODS) == [("Deployment shop/adopter", standing)]
    assert end_of(check, "Deployment shop/adopter").ready_before == 1


def test_a_replication_controller_whose_selector_is_changed_adopts() -> None:
    old = adopter("ReplicationController", replicas=0, selector={"app": "old"})
    new = adopter("ReplicationController", replicas=0)
    check = checked([*nodes(2), *running(old, []), *PAIR], [new])
    assert found_by(check, RuleId.ADOPTED_PODS) == [("ReplicationController shop/adopter", FAILS)]


def test_a_new_pod_that_a_controller_of_the_cluster_adopts_is_one_too_many() -> None:
    there = adopter("ReplicaSet", replicas=1)
    manifest = pod("bare", "100m")
    check = checked([*nodes(1), *running(there, ["n1"])], [manifest])
    assert found_by(check, RuleId.ADOPTED_PODS) == [("ReplicaSet shop/adopter", FAILS)]
    assert detail_of(check, RuleId.ADOPTED_PODS) == "shop/bare; the controller then deletes it"


@pytest.mark.parametrize(
    ("change", "owner", "detail"),
    [
        pytest.param(
            [adopter("ReplicaSet", replicas=0), pod("bare", "100m")],
            "ReplicaSet shop/adopter",
            "shop/bare; the controller then deletes it",
            id="a pod",
        ),
        pytest.param(
            [
                adopter("Deployment", "all", replicas=1),
                adopter("ReplicaSet", "own", replicas=1)
                | {"metadata": {"name": "own", "namespace": "shop", "labels": {"app": "bare"}}},
            ],
            "Deployment shop/all",
            "ReplicaSet shop/own; the controller then scales it to 0 unless its template matches",
            id="a ReplicaSet",
        ),
    ],
)
def test_what_the_change_makes_is_adopted_by_what_it_makes(change: list[Document], owner: str, detail: str) -> None:
    check = checked(nodes(2), change)
    assert found_by(check, RuleId.ADOPTED_PODS) == [(owner, FAILS)]
    assert detail_of(check, RuleId.ADOPTED_PODS) == detail


def test_a_running_pod_that_is_relabeled_is_adopted() -> None:
    there = adopter("ReplicaSet", replicas=1)
    one = bare("one", app="own")
    relabeled = {**one, "metadata": {**one["metadata"], "labels": {"app": "bare"}}}
    check = checked([*nodes(1), *running(there, ["n1"]), one], [relabeled])
    assert found_by(check, RuleId.ADOPTED_PODS) == [("ReplicaSet shop/adopter", FAILS)]


def test_what_a_cluster_shows_without_an_owner_is_not_adopted_by_a_change_of_the_image() -> None:
    there = adopter("ReplicaSet", replicas=2)
    new = adopter("ReplicaSet", replicas=2)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "two"
    check = checked([*nodes(2), *running(there, []), *PAIR], [new])
    assert found_by(check, RuleId.ADOPTED_PODS) == []


# Nodes, and what a manifest says of a status.


def test_a_node_of_the_change_adds_no_capacity() -> None:
    (machine,) = nodes(1, "64")
    machine["metadata"]["name"] = "n9"
    machine["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    tolerant = workload("Deployment", "api", cpu="8", replicas=1, pod={"tolerations": [{"operator": "Exists"}]})
    check = checked(nodes(1), [machine, tolerant])
    assert found_by(check, RuleId.CREATED_NODES) == [("Node n9", FAILS)]
    assert [each.pod for each in check.simulation.pending] == ["shop/api-new-1"]


def test_a_manifest_makes_no_node_bigger() -> None:
    (bigger,) = nodes(1, "64")
    bigger["metadata"]["labels"]["disk"] = "fast"
    check = checked(nodes(1), [bigger, workload("Deployment", "api", cpu="8", replicas=1)])
    assert found_by(check, RuleId.CREATED_NODES) == []
    assert not check.passed


def test_the_status_of_a_manifest_counts_for_nothing() -> None:
    web = workload("Deployment", "web", replicas=1, cpu="2", pod={})
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 100, "observedGeneration": 1, "currentHealthy": 100},
    }
    high = workload("Deployment", "api", replicas=1, cpu="2", pod={"priorityClassName": "high"})
    for before in ([], [budget | {"status": {}}]):
        cluster = [*nodes(1), priority_class("high", 1000), *running(web, ["n1"]), *before]
        check = checked(cluster, [budget, high])
        assert RuleId.MAX_PDB_VIOLATIONS in {each.rule for each in check.findings if each.status is FAILS}


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"phase": "Succeeded"}, id="one that has ended"),
        pytest.param({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, id="one that runs"),
    ],
)
def test_a_pod_whose_manifest_has_a_status_is_scheduled_all_the_same(status: Document) -> None:
    check = checked(nodes(1), [pod("new", "64") | {"status": status}])
    assert [each.pod for each in check.simulation.pending] == ["shop/new"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        pytest.param("Job", {"conditions": [{"type": "Complete", "status": "True"}]}, id="a Job that has ended"),
        pytest.param("StatefulSet", {"currentRevision": "a", "updateRevision": "b"}, id="a StatefulSet"),
        pytest.param("Deployment", {"availableReplicas": 1, "readyReplicas": 1}, id="a Deployment"),
    ],
)
def test_a_workload_whose_manifest_has_a_status_makes_its_pods(kind: str, status: Document) -> None:
    check = checked(nodes(1), [workload(kind, "new", cpu="64") | {"status": status}])
    assert len(check.simulation.pending) == 1


def test_a_volume_of_the_change_is_not_bound_because_it_says_so() -> None:
    plan = planned(nodes(1), [volume_of(ONCE)])
    assert [each.status.phase for each in plan.cluster.persistent_volumes] == ["Available"]


def test_a_quota_of_the_change_says_itself_nothing_of_what_is_used() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "pods", "namespace": "shop"},
        "spec": {"hard": {"pods": "1"}},
        "status": {"hard": {"pods": "100"}, "used": {"pods": "0"}},
    }
    check = checked(nodes(1), [quota, workload("Deployment", "new", cpu="100m", replicas=3)])
    assert RuleId.QUOTA_REJECTIONS in {each.rule for each in check.findings if each.status is FAILS}


# What allows it.


@pytest.mark.parametrize("rule", RULES)
def test_no_change_excuses_damage_by_itself(rule: RuleId) -> None:
    assert rule.row.is_damage
