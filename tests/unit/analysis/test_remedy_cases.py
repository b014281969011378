"""Cases that users report, each with the remedy that an expert would name first, and its outcome once applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from kpreempt.model.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodAntiAffinity,
)
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector, NodeSelectorRequirement
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.node import Node
from kpreempt.model.pod import (
    Container,
    ContainerPort,
    Pod,
    PodCondition,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from kpreempt.model.quantity import quantity
from kpreempt.model.storage import SELECTED_NODE_ANNOTATION
from kpreempt.model.taints import Taint
from kpreempt.model.workloads import Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdate
from kpreempt.report.quoting import plain
from kpreempt.report.remedies import action, cause_in_words, result
from kpreempt.verdict import ChangeKind, Outcome
from kpreempt.verdict.remedies import CauseKind, Remedy
from tests.factories import make_node, make_pod, owned
from tests.remedies import applied, destinations, explain
from tests.volume_factories import make_claim, make_class, uses

HOSTNAME = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"
API = LabelSelector(match_labels={"app": "api"})
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

RECREATE = "set strategy.type: Recreate in Deployment shop/api"
ROLLING = "set strategy.rollingUpdate: {maxSurge: 0, maxUnavailable: 1} in Deployment shop/api"


def with_devices(node: Node, allocatable: int, capacity: int) -> Node:
    amounts = {
        "allocatable": {**node.status.allocatable, GPU: quantity(str(allocatable))},
        "capacity": {**node.status.capacity, GPU: quantity(str(capacity))},
    }
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, **amounts))


def requesting(requests: Mapping[str, str], *, port: int = 0) -> list[Container]:
    ports = [ContainerPort(container_port=port, host_port=port)] if port else []
    resources = ResourceRequirements(requests={name: quantity(amount) for name, amount in requests.items()})
    return [Container(name="main", resources=resources, ports=ports)]


def of_revision(name: str, revision: str, **spec: Any) -> Pod:
    """A pod of a revision of the Deployment ``shop/api``."""
    labels = {"app": "api", "pod-template-hash": revision}
    return owned(make_pod(name, labels=labels, **spec), "ReplicaSet", f"api-{revision}")


def deployment(
    *, surge: int | str | None = None, unavailable: int | str | None = None, kind: str = "RollingUpdate"
) -> Deployment:
    rolling = RollingUpdate(unavailable, surge) if kind == "RollingUpdate" else None
    return Deployment(
        metadata=ObjectMeta(name="api", namespace="shop"),
        spec=DeploymentSpec(selector=API, replicas=1, strategy=DeploymentStrategy(kind, rolling)),
    )


AWAY_FROM_API = Affinity(pod_anti_affinity=PodAntiAffinity(required=[PodAffinityTerm(HOSTNAME, API)]))
PORT = {"containers": requesting({"cpu": "1"}, port=8080)}
ONE_GPU = {"containers": requesting({GPU: "1"})}
ALONE = {"cpu": "1", "affinity": AWAY_FROM_API}


def rollout(
    spec: dict[str, Any], *, nodes: Sequence[Node] = (make_node("a"),), strategy: Deployment | None = None
) -> tuple[ClusterSnapshot, Pod]:
    """A rollout on a cluster that the old pod occupies: the new pod waits."""
    new = of_revision("api-2-x", "2", **spec)
    old = of_revision("api-1-x", "1", node=nodes[0].name, **spec)
    return ClusterSnapshot(nodes=list(nodes), pods=[old, new], deployments=[strategy or deployment()]), new


@pytest.mark.parametrize(
    ("case", "held"),
    [
        pytest.param(rollout(PORT), "host port 8080/TCP", id="a host port"),
        pytest.param(rollout(ONE_GPU, nodes=[with_devices(make_node("a"), 1, 1)]), GPU, id="the only GPU"),
        pytest.param(rollout(ALONE), "the hostname that anti-affinity excludes", id="required anti-affinity"),
        pytest.param(rollout({"cpu": "3"}), "cpu", id="most of a node"),
    ],
)
def test_a_rollout_deadlock_is_recognized_and_ended(case: tuple[ClusterSnapshot, Pod], held: str) -> None:
    cluster, pod = case
    verdict = explain(cluster, pod, proposes=True)
    assert verdict.outcome is Outcome.UNSCHEDULABLE
    assert cause_in_words(verdict.causes[0]) == (
        f"rollout deadlock of Deployment shop/api: the old shop/api-1-x holds {held} on a and stays until the new pod"
        " is ready"
    )
    assert [action(each) for each in verdict.remedies[:2]] == [ROLLING, RECREATE]
    for remedy in verdict.remedies[:2]:
        assert plain(result(remedy)) == "lands on a once shop/api-1-x has stopped"
        assert remedy.stops == ["shop/api-1-x"]
        changed, pod = applied(cluster, pod, remedy)
        after = explain(changed, pod)
        assert (after.outcome, after.lands_on) == (Outcome.LANDS, ["a"])
        # The strategy alone ends the deadlock: the controller stops the old pod.
        waits = explain(msgspec.structs.replace(changed, pods=cluster.pods), pod, proposes=True)
        assert not any(each.kind is CauseKind.ROLLOUT_DEADLOCK for each in waits.causes)


def unready(pod: Pod) -> Pod:
    conditions = [PodCondition(type="Ready", status="False")]
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=conditions))


def with_unready_old_pod() -> tuple[ClusterSnapshot, Pod]:
    cluster, new = rollout(PORT)
    return msgspec.structs.replace(cluster, pods=[unready(cluster.pods[0]), new]), new


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(rollout(PORT, strategy=deployment(surge=0, unavailable=1)), id="maxUnavailable is 1"),
        pytest.param(rollout(PORT, strategy=deployment(kind="Recreate")), id="the strategy is Recreate"),
        pytest.param(with_unready_old_pod(), id="the old pod is not ready, and removed first"),
        pytest.param(rollout({"cpu": "5"}), id="the pod would not fit without the old one either"),
    ],
)
def test_what_is_no_rollout_deadlock(case: tuple[ClusterSnapshot, Pod]) -> None:
    verdict = explain(*case, proposes=True)
    assert verdict.outcome is Outcome.UNSCHEDULABLE
    assert not any(each.kind is CauseKind.ROLLOUT_DEADLOCK for each in verdict.causes)
    assert not any(each.stops for each in verdict.remedies)


def test_an_assumed_strategy_is_said_to_be_assumed() -> None:
    cluster, pod = rollout(PORT)
    verdict = explain(msgspec.structs.replace(cluster, deployments=[]), pod, proposes=True)
    assert verdict.causes[0].is_assumed
    assert action(verdict.remedies[0]) == ROLLING


SPREAD = TopologySpreadConstraint(
    max_skew=1, topology_key=HOSTNAME, when_unsatisfiable="DoNotSchedule", label_selector=API
)
RESERVED = Taint("dedicated", "gpu", "NoSchedule")


def with_selector(value: str) -> Affinity:
    term = NodeSelectorTerm(match_expressions=[NodeSelectorRequirement("disk", "In", [value])])
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector([term])))


def one(pod: Pod, *nodes: Node, pods: Sequence[Pod] = (), **objects: Any) -> tuple[ClusterSnapshot, Pod]:
    return ClusterSnapshot(nodes=list(nodes), pods=list(pods), **objects), pod


def unhealthy(name: str, key: str, effect: str = "NoSchedule") -> Node:
    return make_node(name, taints=[Taint(key, "", effect)])


NEW = make_pod("new", cpu="2")
FULL = make_pod("full", node="full", cpu="4", priority=2**30)
SSD = make_node("a", labels={"disk": "ssd"})


@pytest.mark.parametrize(
    ("case", "first", "outcome"),
    [
        pytest.param(
            one(make_pod("new", node_selector={"disk": "sdd"}), SSD, make_node("b", labels={"disk": "hdd"})),
            "require disk=ssd instead of sdd",
            "lands on a; no pod is evicted",
            id="a misspelled label in the node selector",
        ),
        pytest.param(
            one(make_pod("new", affinity=with_selector("sdd")), SSD, make_node("b")),
            "require disk=ssd instead of sdd",
            "lands on a; no pod is evicted",
            id="a misspelled label in node affinity",
        ),
        pytest.param(
            one(
                make_pod("new", **ONE_GPU),
                with_devices(make_node("a"), 0, 8),
                with_devices(make_node("b"), 1, 1),
                pods=[make_pod("busy", node="b", priority=2**30, **ONE_GPU)],
            ),
            f"make {GPU} on a allocatable",
            "lands on a; no pod is evicted",
            id="GPUs that are not allocatable",
        ),
        pytest.param(
            one(NEW, make_node("full"), make_node("idle", unschedulable=True), pods=[FULL]),
            "uncordon idle",
            "lands on idle; no pod is evicted",
            id="a cordoned node, and the others are full",
        ),
        pytest.param(
            one(NEW, make_node("full"), unhealthy("idle", "node.kubernetes.io/unreachable"), pods=[FULL]),
            "repair idle, whose kubelet does not respond",
            "lands on idle; no pod is evicted",
            id="an unreachable node",
        ),
        pytest.param(
            one(NEW, make_node("full"), unhealthy("idle", "node.kubernetes.io/disk-pressure"), pods=[FULL]),
            "free disk space on idle",
            "lands on idle; no pod is evicted",
            id="a node with disk pressure",
        ),
        pytest.param(
            one(NEW, unhealthy("idle", "node.cloudprovider.kubernetes.io/uninitialized")),
            "wait until the cloud controller manager has initialized idle",
            "lands on idle; no pod is evicted",
            id="a node that is not initialized",
        ),
        pytest.param(
            one(
                make_pod("new", volumes=uses("data")),
                make_node("a"),
                persistent_volume_claims=[make_claim("data", annotations={SELECTED_NODE_ANNOTATION: "gone"})],
                storage_classes=[make_class(provisioner="csi.example.com")],
            ),
            "remove the annotation volume.kubernetes.io/selected-node from PersistentVolumeClaim shop/data",
            "lands on a; no pod is evicted",
            id="a stale annotation of a claim",
        ),
        pytest.param(
            one(NEW, make_node("a", taints=[RESERVED])),
            "tolerate the taint dedicated=gpu:NoSchedule",
            "lands on a; no pod is evicted",
            id="a taint that a user has set",
        ),
    ],
)
def test_the_first_remedy_and_its_outcome(case: tuple[ClusterSnapshot, Pod], first: str, outcome: str) -> None:
    cluster, pod = case
    verdict = explain(cluster, pod, proposes=True)
    assert verdict.outcome is Outcome.UNSCHEDULABLE
    remedy = verdict.remedies[0]
    assert (action(remedy), plain(result(remedy))) == (first, outcome)
    after = explain(*applied(cluster, pod, remedy))
    assert (after.outcome, destinations(after)) == (Outcome.LANDS, remedy.nodes)


def test_a_domain_that_the_pods_cannot_use_is_left_out_of_their_spread() -> None:
    nodes = [make_node("a"), make_node("b"), make_node("c", taints=[RESERVED])]
    waiting = [
        owned(
            make_pod(f"api-{index}", cpu="1", labels={"app": "api"}, topology_spread_constraints=[SPREAD]),
            "ReplicaSet",
            "api-1",
        )
        for index in range(4)
    ]
    running = [make_pod(f"old-{name}", node=name, cpu="1", labels={"app": "api"}) for name in "ab"]
    cluster = ClusterSnapshot(nodes=nodes, pods=[*running, *waiting])
    verdict = explain(cluster, waiting[0], proposes=True)
    remedy = verdict.remedies[0]
    assert action(remedy) == f"set nodeTaintsPolicy: Honor for app=api over {HOSTNAME}"
    assert plain(result(remedy)) == "lands on a or b; no pod is evicted; 4 of 4 replicas land"
    assert [cause_in_words(each) for each in verdict.causes] == [
        f"c counts as a domain of {HOSTNAME} with the fewest pods, although the pod cannot run there"
    ]
    for pod in waiting:
        changed, landing = applied(cluster, pod, remedy)
        after = explain(changed, landing)
        assert (after.outcome, destinations(after)) == (Outcome.LANDS, ["a", "b"])


def test_a_gpu_that_no_node_offers_is_not_dropped() -> None:
    verdict = explain(*one(make_pod("new", **ONE_GPU), make_node("a"), make_node("b")), proposes=True)
    assert verdict.remedies == []
    assert [cause_in_words(each) for each in verdict.causes] == [
        f"no node offers {GPU}: its driver or device plugin is missing or has not registered"
    ]


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(unhealthy("idle", "karpenter.sh/disrupted"), id="Karpenter removes the node"),
        pytest.param(unhealthy("idle", "ToBeDeletedByClusterAutoscaler"), id="the Cluster Autoscaler removes the node"),
        pytest.param(unhealthy("idle", "node-role.kubernetes.io/control-plane"), id="the control plane"),
    ],
)
def test_a_node_that_is_not_for_the_pod_is_left_alone(node: Node) -> None:
    cluster, pod = one(NEW, make_node("full"), node, pods=[FULL])
    changes = [change for each in explain(cluster, pod, proposes=True).remedies for change in each.changes]
    assert [change.kind for change in changes] == [ChangeKind.ADD_NODE]


def test_the_taint_of_the_control_plane_is_tolerated_if_there_are_no_other_nodes() -> None:
    cluster, pod = one(NEW, unhealthy("only", "node-role.kubernetes.io/control-plane"))
    assert "control-plane" in action(explain(cluster, pod, proposes=True).remedies[0])


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/out-of-service",
        "node.kubernetes.io/unschedulable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    ],
)
def test_taints_of_controllers_are_never_tolerated(key: str) -> None:
    cluster, pod = one(NEW, unhealthy("a", key))
    for verdict in (explain(cluster, pod, proposes=True), explain(cluster, pod, node_name="a")):
        remedies: list[Remedy] = verdict.remedies or (verdict.node_report.remedies if verdict.node_report else [])
        assert remedies
        assert not any(change.kind is ChangeKind.TOLERATION for each in remedies for change in each.changes)


@pytest.mark.parametrize("namespace", ["kube-system", "shop"])
def test_no_remedy_removes_a_pod(namespace: str) -> None:
    other = make_pod("other", node="a", cpu="4", priority=2**30, namespace=namespace)
    cluster, pod = one(NEW, make_node("a"), pods=[other])
    for verdict in (explain(cluster, pod, proposes=True), explain(cluster, pod, node_name="a")):
        remedies: list[Remedy] = verdict.remedies or (verdict.node_report.remedies if verdict.node_report else [])
        for remedy in remedies:
            changed, _ = applied(cluster, pod, remedy)
            assert other in changed.pods


def test_the_parts_of_a_request_that_is_not_the_sum_of_the_containers() -> None:
    setup = Container(name="setup", resources=ResourceRequirements(requests={"cpu": quantity("5")}))
    pod = make_pod("new", cpu="1", init_containers=[setup], overhead={"cpu": quantity("250m")})
    verdict = explain(*one(pod, make_node("a")), proposes=True)
    assert [cause_in_words(each) for each in verdict.causes] == [
        "no node is large enough: the pod requests 5.25 cpu, and the largest node has 4",
        "the pod requests 5.25 cpu: 5 (init container setup) + 250m (overhead)",
    ]
    assert action(verdict.remedies[0]) == "request 4 cpu instead of 5.25"
    after = explain(*applied(*one(pod, make_node("a")), verdict.remedies[0]))
    assert after.lands_on == ["a"]


SIDECAR = Container(
    name="proxy", restart_policy="Always", resources=ResourceRequirements(requests={"cpu": quantity("500m")})
)
SETUP = Container(name="setup", resources=ResourceRequirements(requests={"cpu": quantity("5")}))


@pytest.mark.parametrize(
    ("init", "parts"),
    [
        pytest.param([SIDECAR], "4.5 cpu: 4 (containers) + 500m (sidecars)", id="a sidecar"),
        pytest.param(
            [SIDECAR, SETUP], "5.5 cpu: 5 (init container setup) + 500m (sidecars)", id="an init container after it"
        ),
        pytest.param([SETUP, SIDECAR], "5 cpu: 5 (init container setup)", id="an init container before it"),
    ],
)
def test_sidecars_are_part_of_a_request(init: list[Container], parts: str) -> None:
    pod = make_pod("new", cpu="4", init_containers=init)
    causes = explain(*one(pod, make_node("a")), proposes=True).causes
    assert [cause_in_words(each) for each in causes if each.kind is CauseKind.PARTS] == [f"the pod requests {parts}"]


def test_devices_that_are_free_on_several_nodes_are_fragmented() -> None:
    nodes = [with_devices(make_node(name), 4, 4) for name in "ab"]
    pods = [make_pod(f"on-{node.name}", node=node.name, containers=requesting({GPU: "3"})) for node in nodes]
    verdict = explain(*one(make_pod("new", containers=requesting({GPU: "2"})), *nodes, pods=pods), proposes=True)
    assert [cause_in_words(each) for each in verdict.causes] == [
        f"the pod needs 2 {GPU}: 2 free in total, but at most 1 on a node (a)"
    ]


ZONE = "topology.kubernetes.io/zone"
AWAY = Affinity(pod_anti_affinity=PodAntiAffinity(required=[PodAffinityTerm(ZONE, API)]))


def test_a_pod_on_another_node_is_named_with_its_node() -> None:
    nodes = [make_node(name, labels={ZONE: "z"}) for name in "ab"]
    old = make_pod("old", node="a", labels={"app": "api"})
    verdict = explain(*one(make_pod("new", affinity=AWAY), *nodes, pods=[old]), proposes=True)
    assert [cause_in_words(each) for each in verdict.causes] == [
        f"shop/old on a keeps it out of {ZONE}=z; preemption on other nodes there can't evict it"
    ]


def test_a_pod_on_the_only_node_of_a_domain_can_be_evicted_there() -> None:
    old = make_pod("old", node="a", labels={"app": "api"})
    verdict = explain(
        *one(make_pod("new", affinity=AWAY), make_node("a", labels={ZONE: "z"}), pods=[old]), proposes=True
    )
    assert verdict.outcome is Outcome.UNSCHEDULABLE
    assert verdict.causes == []


def test_pods_that_count_for_a_spread_are_named_with_their_nodes() -> None:
    nodes = [make_node(name, labels={ZONE: zone}) for name, zone in (("a", "x"), ("b", "x"), ("c", "y"))]
    spread = msgspec.structs.replace(SPREAD, topology_key=ZONE)
    old = [make_pod(f"old-{name}", node="a", labels={"app": "api"}) for name in "12"]
    full = make_pod("full", node="c", cpu="4", priority=2**30)
    pod = make_pod("new", cpu="1", labels={"app": "api"}, topology_spread_constraints=[spread])
    words = [cause_in_words(each) for each in explain(*one(pod, *nodes, pods=[*old, full]), proposes=True).causes]
    assert words == [
        f"shop/old-1 on a and shop/old-2 on a keep it out of {ZONE}=x; preemption on other nodes there can't evict them"
    ]


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        pytest.param(
            make_pod("new", node_selector={HOSTNAME: "gone"}),
            f"the pod can only run on gone ({HOSTNAME})",
            id="a selector",
        ),
        pytest.param(
            make_pod(
                "new",
                affinity=Affinity(
                    node_affinity=NodeAffinity(
                        required=NodeSelector(
                            [NodeSelectorTerm(match_fields=[NodeSelectorRequirement("metadata.name", "In", ["gone"])])]
                        )
                    )
                ),
            ),
            "the pod can only run on gone (metadata.name)",
            id="a DaemonSet's affinity",
        ),
        pytest.param(
            make_pod("new", cpu="9", nominated="gone"),
            "the pod is nominated to gone",
            id="a nomination",
        ),
    ],
)
def test_a_node_that_does_not_exist_is_named(pod: Pod, words: str) -> None:
    causes = explain(*one(pod, make_node("a")), proposes=True).causes
    assert cause_in_words(causes[0]) == f"{words}, which does not exist"


def test_nodes_are_not_said_to_be_gone_if_some_are_not_in_the_input() -> None:
    cluster, pod = one(make_pod("new", node_selector={HOSTNAME: "gone"}), make_node("a"))
    causes = explain(msgspec.structs.replace(cluster, lacks_nodes=True), pod, proposes=True).causes
    assert CauseKind.NODE_GONE not in [each.kind for each in causes]


def test_a_rolling_update_is_spread_by_revision() -> None:
    nodes = [make_node("a"), make_node("b", cpu="1")]
    old = [of_revision(f"old-{index}", "1", node="a", cpu="1") for index in range(2)]
    full = make_pod("full", node="b", cpu="1", priority=2**30)
    new = of_revision("new", "2", cpu="1", topology_spread_constraints=[SPREAD])
    verdict = explain(ClusterSnapshot(nodes=nodes, pods=[*old, full, new]), new, proposes=True)
    actions = [action(each) for each in verdict.remedies]
    assert f"add pod-template-hash to matchLabelKeys for app=api over {HOSTNAME}" in actions
