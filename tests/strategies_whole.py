"""Random scenarios of every kind, for the comparison with the real scheduler.

Each scenario draws its features, so that most have a few and some have many; a scenario with every feature would
usually end at the first filter.
"""

from __future__ import annotations

from hypothesis import strategies as st

from kpreempt.scheduler_table import DEFAULT_VERSION, PREFIX
from tests.strategies import (
    APPS,
    HOSTNAME,
    NAMESPACE,
    NAMESPACES,
    PORTS,
    PRIORITIES,
    STARTS,
    ZONE,
    Object,
    affinities,
    budgets,
    constraint_identity,
    incoming_pods,
    nodes,
    nominated_pods,
    running_pods,
    spread_constraints,
)
from tests.strategies_configuration import configurations, feature_gates
from tests.strategies_devices import device_objects, without_crash
from tests.strategies_resources import HUGE_PAGES, demands, node_allocatable, resizes
from tests.strategies_volumes import pod_volumes, storage_objects

FEATURES = (
    "affinity",
    "ports",
    "demands",
    "volumes",
    "images",
    "nominated",
    "services",
    "crowd",
    "gates",
    "config",
    "odd",
)
# Slow to draw, and incomplete in a redacted dump: only on request.
DEVICES = "devices"
# Devices had another API before.
DEVICES_SINCE = 34
DECLARED = ("RestartAllContainersOnContainerExits",)
IMAGES = ("img0", "img0:latest", "docker.io/library/img0:latest", "img1:latest", "img1")


host_ports = st.fixed_dictionaries(
    {
        "containerPort": st.just(1),
        "hostPort": st.sampled_from(PORTS),
        "protocol": st.sampled_from(["TCP", "TCP", "UDP"]),
    },
    optional={"hostIP": st.sampled_from(["127.0.0.1", "0.0.0.0"])},
)


@st.composite
def whole_nodes(draw: st.DrawFn, index: int, features: frozenset[str]) -> Object:
    """A node with the additions of the features."""
    node = draw(nodes(index))
    status = node["status"]
    # Most nodes accept pods, or every scenario would be about the first few plugins.
    if draw(st.integers(0, 2)):
        node["spec"] = {}
    if draw(st.integers(0, 3)):
        status["allocatable"] = status["capacity"] = status["allocatable"] | {"pods": "110"}
    if "demands" in features:
        status["allocatable"] = status["capacity"] = status["allocatable"] | draw(node_allocatable())
        if draw(st.booleans()):
            status["declaredFeatures"] = list(DECLARED)
    if "images" in features:
        names = draw(st.lists(st.sampled_from(IMAGES), max_size=3, unique=True))
        status["images"] = [
            {"names": [name], "sizeBytes": draw(st.sampled_from([1, 30, 300, 900, 5000])) * 1_000_000} for name in names
        ]
    if "odd" in features:
        draw(_odd_node(node))
    return node


@st.composite
def _odd_node(draw: st.DrawFn, node: Object) -> None:
    kind = draw(
        st.sampled_from(["", "", "no pods", "no memory", "numeric taint", "region", "beta zone", "huge", "nameless"])
    )
    allocatable = dict(node["status"]["allocatable"])
    if kind == "no pods":
        del allocatable["pods"]
    elif kind == "no memory":
        allocatable["memory"] = "0"
    elif kind == "huge":
        allocatable["memory"] = draw(st.sampled_from(["8Ei", "9223372036854775807", "7E"]))
    elif kind == "numeric taint":
        value = draw(st.sampled_from(["5", "10", "-1", "x"]))
        node["spec"]["taints"] = [{"key": "dedicated", "value": value, "effect": "NoSchedule"}]
    elif kind == "region":
        node["metadata"]["labels"]["topology.kubernetes.io/region"] = draw(st.sampled_from(["r0", "r1"]))
    elif kind == "nameless":
        del node["metadata"]["labels"][HOSTNAME]
    elif kind == "beta zone":
        node["metadata"]["labels"]["failure-domain.beta.kubernetes.io/zone"] = draw(st.sampled_from(["z0", "z1"]))
    node["status"]["allocatable"] = allocatable


@st.composite
def whole_running_pods(draw: st.DrawFn, index: int, node: str, features: frozenset[str]) -> Object:
    """A pod on a node with the additions of the features."""
    pod = draw(running_pods(index, node, rich="affinity" in features))
    spec, status = pod["spec"], pod["status"]
    if "demands" in features and draw(st.booleans()):
        spec |= draw(demands())
        if draw(st.booleans()):
            resized = draw(resizes(spec))
            conditions = status.get("conditions", []) + resized.pop("conditions", [])
            status |= resized | ({"conditions": conditions} if conditions else {})
    if "volumes" in features and draw(st.integers(0, 2)) == 2:
        spec["volumes"] = draw(pod_volumes())
    if "ports" in features and draw(st.integers(0, 2)) == 2:
        spec["containers"][0]["ports"] = [draw(host_ports)]
    if "odd" in features:
        kind = draw(st.sampled_from(["", "", "", "finished", "no priority", "lost", "top"]))
        if kind == "finished":
            status["phase"] = draw(st.sampled_from(["Succeeded", "Failed"]))
        elif kind == "no priority":
            del spec["priority"]
        elif kind == "lost":
            spec["nodeName"] = "gone"
        elif kind == "top":
            spec["priority"] = 2_000_001_000
    return pod


@st.composite
def small_pods(draw: st.DrawFn, index: int, node: str) -> Object:
    """A pod in a crowd, with few draws; crowds test sorting."""
    priority, start = draw(st.sampled_from(PRIORITIES)), draw(st.sampled_from((*STARTS, None)))
    requests = {"cpu": draw(st.sampled_from(["100m", "250m"]))}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p{index}",
            "namespace": NAMESPACE,
            "uid": f"uid-{index}",
            "labels": {"app": draw(st.sampled_from(APPS))},
        },
        "spec": {
            "priority": priority,
            "schedulerName": "default-scheduler",
            "nodeName": node,
            "containers": [{"name": "c0", "image": "img0", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"} | ({"startTime": start} if start else {}),
    }


@st.composite
def whole_nominated_pods(draw: st.DrawFn, index: int, num_nodes: int, features: frozenset[str]) -> Object:
    """A nominated pod, sometimes one that waits elsewhere or is gated."""
    pod = draw(nominated_pods(index, num_nodes))
    if "affinity" in features and draw(st.integers(0, 2)) == 2:
        pod["spec"]["affinity"] = draw(affinities())
    if "volumes" in features and draw(st.integers(0, 2)) == 2:
        pod["spec"]["volumes"] = draw(pod_volumes())
    kind = draw(st.sampled_from(["", "", "", "gated", "other scheduler", "deleted", "gone"]))
    if kind == "gated":
        pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    elif kind == "other scheduler":
        pod["spec"]["schedulerName"] = "other-scheduler"
    elif kind == "deleted":
        pod["metadata"]["deletionTimestamp"] = "2026-11-20T00:00:00Z"
    elif kind == "gone":
        pod["status"]["nominatedNodeName"] = "gone"
    return pod


@st.composite
def services(draw: st.DrawFn, index: int) -> Object:
    """A Service, or a controller, whose selector spreads its pods by default."""
    kind, api_version = draw(
        st.sampled_from(
            [("Service", "v1"), ("ReplicationController", "v1"), ("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1")]
        )
    )
    selector: Object = {"app": draw(st.sampled_from(APPS))}
    if api_version == "apps/v1":
        selector = {"matchLabels": selector}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": f"owner-{index}", "namespace": NAMESPACE, "uid": f"uid-owner-{index}"},
        "spec": {"selector": selector},
    }


@st.composite
def whole_incoming_pods(draw: st.DrawFn, num_nodes: int, features: frozenset[str], owners: list[Object]) -> Object:
    """The incoming pod with the additions of the features."""
    pod = draw(incoming_pods(num_nodes, rich="affinity" in features))
    spec = pod["spec"]
    # Usually important, and sometimes big, so that evictions are needed.
    spec["priority"] = draw(st.sampled_from([2000, 2000, 1000, 1000, 500, 50, 0]))
    if draw(st.integers(0, 2)) == 2:
        spec["containers"][0]["resources"] = {"requests": {"cpu": draw(st.sampled_from(["1500m", "1800m", "3"]))}}
    if "demands" in features:
        spec |= draw(demands())
    if "volumes" in features:
        spec["volumes"] = draw(pod_volumes())
    if "ports" in features:
        spec["containers"][0]["ports"] = draw(st.lists(host_ports, min_size=1, max_size=2))
    if "affinity" in features:
        draw(_neighbours(spec))
    controllers = [each for each in owners if each["kind"] != "Service"]
    if controllers and draw(st.booleans()):
        owner = draw(st.sampled_from(controllers))
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
        pod["metadata"]["ownerReferences"] = [reference | {"uid": owner["metadata"]["uid"], "controller": True}]
    if "odd" in features:
        draw(_odd_incoming(pod))
    return pod


@st.composite
def _neighbours(draw: st.DrawFn, spec: Object) -> None:
    """Usually, constraints relative to other pods."""
    if draw(st.integers(0, 3)):
        spec["affinity"] = spec.get("affinity", {}) | draw(affinities())
    if draw(st.booleans()):
        constraints = st.lists(spread_constraints(), min_size=1, max_size=2, unique_by=constraint_identity)
        spec["topologySpreadConstraints"] = draw(constraints)


@st.composite
def _odd_incoming(draw: st.DrawFn, pod: Object) -> None:
    kind = draw(
        st.sampled_from(["", "field", "port address", "toleration", "other", "gone", "broken", "gated", "host network"])
    )
    spec = pod["spec"]
    if kind == "field":
        names = draw(st.lists(st.sampled_from(["n0", "n1", "n9"]), min_size=1, max_size=2, unique=True))
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": names[:1]}]}
        terms = [term, {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}][: len(names)]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec.setdefault("affinity", {})["nodeAffinity"] = required
    elif kind == "port address":
        port = {"containerPort": 1, "hostPort": 80, "hostIP": draw(st.sampled_from(["127.0.0.1", "0.0.0.0"]))}
        spec["containers"][0]["ports"] = [port | {"protocol": draw(st.sampled_from(["TCP", "UDP"]))}]
    elif kind == "toleration":
        operator = draw(st.sampled_from(["Lt", "Gt"]))
        value = draw(st.sampled_from(["7", "0"]))
        spec["tolerations"] = [{"key": "dedicated", "operator": operator, "value": value, "effect": "NoSchedule"}]
    elif kind == "other":
        spec["schedulerName"] = "other-scheduler"
    elif kind == "gone":
        pod["status"]["nominatedNodeName"] = "gone"
    elif kind == "broken":
        expression = {"key": "disk", "operator": "In", "values": ["not a label"]}
        terms = [{"matchExpressions": [expression]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec.setdefault("affinity", {})["nodeAffinity"] = required
    elif kind == "gated":
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    elif kind == "host network":
        spec["hostNetwork"] = True
        spec["containers"][0]["ports"] = [{"containerPort": draw(st.sampled_from(PORTS))}]


@st.composite
def whole_budgets(draw: st.DrawFn, index: int) -> Object:
    """A budget, sometimes with a selector that matches nothing."""
    budget = draw(budgets(index))
    kind = draw(st.sampled_from(["", "", "", "", "none", "broken", "expressions"]))
    if kind == "none":
        del budget["spec"]["selector"]
    elif kind == "broken":
        budget["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
    elif kind == "expressions":
        budget["spec"]["selector"] = {
            "matchLabels": {"app": draw(st.sampled_from(APPS))},
            "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}],
        }
    return budget


@st.composite
def _pods_on_nodes(draw: st.DrawFn, num_nodes: int, max_pods: int, features: frozenset[str]) -> list[Object]:
    pods: list[Object] = []
    crowded = draw(st.integers(0, num_nodes - 1)) if "crowd" in features else -1
    for node in range(num_nodes):
        if node == crowded:
            count = draw(st.integers(10, 18))
            pods += [draw(small_pods(len(pods) + number, f"n{node}")) for number in range(count)]
            continue
        count = draw(st.integers(0, max_pods))
        for _ in range(count):
            pods.append(draw(whole_running_pods(len(pods), f"n{node}", features)))  # numbered as it grows
    return pods


@st.composite
def whole_scenarios(
    draw: st.DrawFn,
    *,
    among: tuple[str, ...] = FEATURES,
    max_nodes: int = 5,
    max_pods: int = 5,
    version: str = DEFAULT_VERSION,
    always: frozenset[str] = frozenset(),
) -> Object:
    """A scenario with drawn features from ``among``, with or without a scheduling queue.

    It is for a minor ``version`` of kube-scheduler, whose gates it may set. It always has the features of ``always``.
    """
    features = always | frozenset(name for name in among if draw(st.integers(0, 2)) == 2)
    num_nodes = min(draw(st.sampled_from([1, 2, 3, 4, 4, 5, 5])), max_nodes)
    objects = [draw(whole_nodes(index, features)) for index in range(num_nodes)]
    objects += NAMESPACES
    owners = [draw(services(index)) for index in range(draw(st.integers(1, 2)))] if "services" in features else []
    objects += owners
    if "volumes" in features:
        objects += draw(storage_objects(num_nodes))
    objects += draw(_pods_on_nodes(num_nodes, max_pods, features))
    objects += [draw(whole_budgets(number)) for number in range(draw(st.integers(0, 3)))]
    if "nominated" in features:
        count = draw(st.integers(1, 3))
        objects += [draw(whole_nominated_pods(number, num_nodes, features)) for number in range(count)]
    incoming = draw(whole_incoming_pods(num_nodes, features, owners))
    if DEVICES in features and int(version.partition(".")[2]) >= DEVICES_SINCE:
        pods = [each for each in objects if each["kind"] == "Pod"]
        objects += draw(device_objects(num_nodes, pods, incoming, version))
    scenario: Object = {
        "name": "drawn",
        "objects": objects,
        "pod": incoming,
        "queued": draw(st.booleans()),
    }
    if scenario["queued"] and features & {"volumes", "odd"}:
        # Unlike a running scheduler, the reference program does not check a nominated node that PreFilter excluded.
        scenario["pod"]["status"].pop("nominatedNodeName", None)
    if "gates" in features:
        scenario["featureGates"] = draw(feature_gates(version))
    if "config" in features:
        scenario["config"] = draw(configurations())
        without_crash(objects)
    if version != DEFAULT_VERSION:
        scenario["algorithm"] = f"{PREFIX}{version}"
    if version == "1.32":
        _take_huge_pages_from_whole_pods([*objects, scenario["pod"]])
    return scenario


def _take_huge_pages_from_whole_pods(objects: list[Object]) -> None:
    """The API server of 1.32 rejects such pods (``IsSupportedPodLevelResource``), so none is ever scheduled."""
    for part in (each[name] for each in objects for name in ("spec", "status") if name in each):
        for amounts in part.get("resources", {}).values():
            amounts.pop(HUGE_PAGES, None)
