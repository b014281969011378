"""What is remembered of a node does not hide what changed elsewhere."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import replace_in
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import Outcome, Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.factories import make_node, make_pod

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
Object = dict[str, Any]
WEB = {"matchLabels": {"app": "web"}}


def node(name: str, zone: str) -> Object:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    labels = {HOSTNAME: name, ZONE: zone}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}


def pod(name: str, *, on: str = "", labels: Object | None = None, owner: str = "", **spec: Any) -> Object:
    metadata: Object = {"name": name, "namespace": "shop", "uid": name, "labels": labels or {"app": "web"}}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        ]
    container = {"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": on, "schedulerName": "default-scheduler", "containers": [container], **spec},
        "status": {"phase": "Running" if on else "Pending"},
    }


def claim(mode: str = "ReadWriteOnce", *, volume: str = "volume", storage_class: str = "fast") -> Object:
    spec = {"accessModes": [mode], "volumeName": volume, "storageClassName": storage_class}
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    metadata = {"name": "data", "namespace": "shop", "uid": "data", "annotations": annotations}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec | {"resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(zone: str) -> Object:
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": "volume"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"name": "data", "namespace": "shop", "uid": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
        "status": {"phase": "Bound"},
    }


def near(rule: str, weight: int = 0) -> Object:
    """A pod affinity (or ``podAntiAffinity``) to the pods of the app in the zone; with a weight a mere preference."""
    term: Object = {"labelSelector": WEB, "topologyKey": ZONE}
    if weight:
        return {
            rule: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}
        }
    return {rule: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(key: str, action: str) -> list[Object]:
    return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": WEB}]


NODES = [node("n0", "a"), node("n1", "a"), node("n2", "b")]
USES_CLAIM: list[Object] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
DB = {"app": "db"}
BIG = [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]


@pytest.mark.parametrize(
    ("requested", "common", "before", "after"),
    [
        pytest.param(
            pod("asked", affinity=near("podAffinity")), [], [pod("x", on="n0")], [pod("x", on="n2")],
            id="required affinity, and what it wants is in another zone",
        ),
        pytest.param(
            pod("asked", affinity=near("podAntiAffinity")), [], [pod("x", on="n0")], [pod("x", on="n2")],
            id="required anti-affinity, and what it refuses is in another zone",
        ),
        pytest.param(
            pod("asked"), [], [pod("x", on="n0", labels=DB, affinity=near("podAntiAffinity"))],
            [pod("x", on="n2", labels=DB, affinity=near("podAntiAffinity"))],
            id="the anti-affinity of another pod, which is in another zone",
        ),
        pytest.param(
            pod("asked", affinity=near("podAffinity", 10)), [], [pod("x", on="n0")], [pod("x", on="n2")],
            id="preferred affinity, and what it wants is in another zone",
        ),
        pytest.param(
            pod("asked"), [], [pod("x", on="n0", labels=DB, affinity=near("podAffinity", 10))],
            [pod("x", on="n2", labels=DB, affinity=near("podAffinity", 10))],
            id="the preference of another pod, which is in another zone",
        ),
        pytest.param(
            pod("asked", topologySpreadConstraints=spread(ZONE, "DoNotSchedule")), [], [pod("x", on="n0")],
            [pod("x", on="n2")],
            id="a hard constraint, and the zone that is full is another",
        ),
        pytest.param(
            pod("asked", topologySpreadConstraints=spread(ZONE, "ScheduleAnyway")), [], [pod("x", on="n0")],
            [pod("x", on="n2")],
            id="a soft constraint over zones, and the crowded zone is another",
        ),
        pytest.param(
            pod("asked", topologySpreadConstraints=spread(HOSTNAME, "ScheduleAnyway")), [], [pod("x", on="n0")],
            [pod("x", on="n2")],
            id="a soft constraint over hosts, and the crowded host is another",
        ),
        pytest.param(
            pod("asked", volumes=USES_CLAIM), [claim("ReadWriteOncePod"), volume("a")],
            [pod("x", on="n2", volumes=USES_CLAIM)], [pod("x", on="n2")],
            id="a claim for one pod that another no longer uses",
        ),
        pytest.param(
            pod("asked", volumes=USES_CLAIM), [claim()], [volume("a")], [volume("b")],
            id="a volume that is in another zone",
        ),
        pytest.param(
            pod("asked"), [], [], [pod("x", priority=1000, containers=BIG) | {"status": {"nominatedNodeName": "n1"}}],
            id="a pod nominated to a node whose pods stay",
        ),
        pytest.param(
            pod("asked", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": WEB, "topologyKey": ZONE, "namespaceSelector": {"matchLabels": {"team": "x"}}}
            ]}}),
            [pod("x", on="n0") | {"metadata": {"name": "x", "namespace": "far", "uid": "x", "labels": {"app": "web"}}}],
            [{"kind": "Namespace", "metadata": {"name": "far", "labels": {"team": "x"}}}],
            [{"kind": "Namespace", "metadata": {"name": "far", "labels": {"team": "y"}}}],
            id="a namespace that a selector no longer picks",
        ),
    ],
)  # fmt: skip
def test_what_changed_elsewhere_counts(
    requested: Object, common: list[Object], before: list[Object], after: list[Object]
) -> None:
    first, second = following([*NODES, *common], before, after)
    old, again, fresh = decided(first, second, pod_of(requested))
    assert again == fresh
    # Or nothing would be shown.
    assert again != old


def test_the_controller_of_a_pod_counts() -> None:
    replica_sets = [
        {
            "kind": "ReplicaSet",
            "metadata": {"name": app, "namespace": "shop", "uid": app},
            "spec": {"selector": {"matchLabels": {"app": app}}},
        }
        for app in ("web", "db")
    ]
    cluster, _ = following([*NODES, *replica_sets, pod("x", on="n0"), pod("y", on="n2", labels=DB)], [], [])
    web, db = (pod_of(pod("asked", owner=app)) for app in ("web", "db"))
    old, again, fresh = decided(cluster, cluster, web, db)
    assert again == fresh
    assert again.plugin_scores != old.plugin_scores


def test_scores_of_storage_are_not_remembered() -> None:
    gates = gates_of({"StorageCapacityScoring": True})
    storage_class = {
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    driver = {"kind": "CSIDriver", "metadata": {"name": "disk.example.com"}, "spec": {"storageCapacity": True}}
    capacities = [
        {
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"capacity-{zone}", "namespace": "shop"},
            "storageClassName": "fast",
            "nodeTopology": {"matchLabels": {ZONE: zone}},
            "capacity": size,
        }
        for zone, size in (("a", "10Gi"), ("b", "2Gi"))
    ]
    rest = [*NODES, storage_class, driver, *capacities, claim(volume="")]
    requested = pod_of(pod("asked", volumes=USES_CLAIM, affinity=near("podAntiAffinity")))
    # A pod on the one node keeps the other one from being scored, until it is gone.
    first, second = following(rest, [pod("x", on="n1")], [])
    _, again, fresh = decided(first, second, requested, behavior=gates)
    assert again == fresh
    assert {scores["VolumeBinding"] for scores in again.plugin_scores.values()} != {0}


PLACES = st.none() | st.tuples(st.sampled_from(["on", "nominated"]), st.sampled_from(["n0", "n1", "n2"]))
STEPS = st.lists(
    st.tuples(st.lists(PLACES, min_size=5, max_size=5), st.integers(0, 4), st.booleans()), min_size=2, max_size=8
)


@given(STEPS, st.booleans())
def test_pods_that_move_and_are_nominated_count_for_every_pod(steps: list[Any], has_affinity: bool) -> None:
    """Five pods of three priorities and two sizes come, go, are nominated; one asks, and a new one like it."""
    kube = KubeScheduler()
    prepared, first = None, cluster_of(NODES)
    for places, number, is_new_first in steps:
        pods = [mover(index, place, has_affinity=has_affinity) for index, place in enumerate(places)]
        cluster = msgspec.structs.replace(first, pods=cluster_of([*NODES, *pods]).pods)
        prepared = kube.prepare(cluster, now=NOW, before=prepared, expects_equivalent_pods=True)
        own = pods[number]
        new = {**own, "metadata": {**own["metadata"], "name": "new", "uid": "new", "labels": DB}, "status": {}}
        new["spec"] = {**own["spec"], "nodeName": ""}
        for requested in [new, own, new] if is_new_first else [own, new]:
            if not requested["spec"]["nodeName"]:
                again = kube.decide(prepared, pod_of(requested), records_steps=False)
                assert again == kube.decide(kube.prepare(cluster, now=NOW), pod_of(requested), records_steps=False)


def mover(index: int, place: tuple[str, str] | None, *, has_affinity: bool) -> Object:
    how, where = place or ("", "")
    requests = {"cpu": str(2 + index % 2), "memory": "1Gi"}
    spec: Object = {"priority": 10 * (index % 3), "containers": [{"name": "main", "resources": {"requests": requests}}]}
    if has_affinity and index == 0:
        spec["affinity"] = near("podAntiAffinity")
    made = pod(f"p{index}", on=where if how == "on" else "", **spec)
    if how == "nominated":
        made["status"]["nominatedNodeName"] = where
    return made


def following(rest: list[Object], before: list[Object], after: list[Object]) -> tuple[ClusterSnapshot, ClusterSnapshot]:
    """Two clusters that share every list in which they have the same."""
    first = cluster_of([*rest, *before])
    second = cluster_of([*rest, *after])
    same = [field for field in ClusterSnapshot.__struct_fields__ if getattr(first, field) == getattr(second, field)]
    return first, msgspec.structs.replace(second, **{field: getattr(first, field) for field in same})


def decided(
    first: ClusterSnapshot,
    second: ClusterSnapshot,
    requested: Pod,
    then: Pod | None = None,
    behavior: Behavior | None = None,
) -> tuple[Verdict, Verdict, Verdict]:
    """The verdict on the first cluster, once it is remembered; on the second with that memory, and without it."""
    kube = KubeScheduler(behavior=behavior)
    prepared = None
    for _ in range(4):
        prepared = kube.prepare(first, now=NOW, before=prepared)
        old = kube.decide(prepared, requested)
    again = kube.decide(kube.prepare(second, now=NOW, before=prepared), then or requested)
    return old, again, kube.decide(kube.prepare(second, now=NOW), then or requested)


def test_a_pod_that_waits_for_victims_does_not_fail_as_an_equal_one() -> None:
    victim = make_pod("victim", node="n", cpu="2", priority=-10)
    leaving = replace_in(victim, "metadata", deletion_timestamp=NOW)
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    leaving = replace_in(leaving, "status", conditions=[condition])
    cluster = ClusterSnapshot(nodes=[make_node("n", cpu="2")], pods=[leaving, make_pod("low", node="n", cpu="2")])
    kube = KubeScheduler()
    prepared = kube.prepare(cluster, now=NOW, expects_equivalent_pods=True)
    brief = {"records_steps": False, "records_scores": False, "records_nodes": False}
    equal, waiting = make_pod("equal", cpu="1"), make_pod("waiting", cpu="1", nominated="n")
    assert kube.decide(prepared, equal, **brief).outcome is Outcome.UNSCHEDULABLE
    assert kube.decide(prepared, waiting, **brief).outcome is Outcome.WAITS_FOR_VICTIMS
