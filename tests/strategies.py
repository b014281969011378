"""Random scheduling scenarios, as plain objects in the format of ``kpreempt batch``.

Clusters are small on purpose: few names, labels and sizes, so that ties, conflicts and full nodes are common.
Strategies are shared by the property tests and by the comparison with the real scheduler.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Object = dict[str, Any]

NAMESPACE = "default"
ZONES = ("z0", "z1", "z2")
APPS = ("web", "db", "batch", "cache")
PRIORITIES = (-10, 0, 0, 10, 100, 1000)
STARTS = ("2026-11-02T00:00:00Z", "2026-11-02T07:00:00Z", "2026-11-03T00:00:00Z", "2026-11-09T00:00:00Z")
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
TOPOLOGY_KEYS = (HOSTNAME, ZONE, "rack")
PORTS = (80, 443, 8080)
EXTENDED = "example.com/gpu"


def maybe(strategy: st.SearchStrategy[Any], *, one_in: int = 3) -> st.SearchStrategy[Any]:
    """The strategy once in ``one_in`` draws, otherwise ``None``; shrinks to ``None``."""
    return st.integers(0, one_in - 1).flatmap(lambda n: strategy if n == one_in - 1 else st.none())


def without_none(document: Object) -> Object:
    """The document without the fields that were not drawn."""
    return {key: value for key, value in document.items() if value is not None}


cpu = st.sampled_from(["100m", "250m", "0.5", "1", "1500m", "2"])
memory = st.sampled_from(["128Mi", "256Mi", "512Mi", "1Gi", "1500M"])
labels = st.fixed_dictionaries(
    {"app": st.sampled_from(APPS)},
    optional={"tier": st.sampled_from(["x", "y"]), "version": st.sampled_from(["1", "2"])},
)
selectors = st.one_of(
    st.fixed_dictionaries({"matchLabels": st.fixed_dictionaries({"app": st.sampled_from(APPS)})}),
    st.sampled_from(
        [
            {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["batch"]}]},
            {},
        ]
    ),
)


@st.composite
def taints(draw: st.DrawFn) -> list[Object]:
    """Usually no taint, otherwise one or two."""
    drawn = draw(
        maybe(
            st.lists(
                st.fixed_dictionaries(
                    {
                        "key": st.sampled_from(["dedicated", "gpu"]),
                        "value": st.sampled_from(["a", "b"]),
                        "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
                    }
                ),
                min_size=1,
                max_size=2,
            ),
            one_in=4,
        )
    )
    return drawn or []


@st.composite
def nodes(draw: st.DrawFn, index: int) -> Object:
    """One node."""
    name = f"n{index}"
    node_labels = {HOSTNAME: name, "disk": draw(st.sampled_from(["ssd", "hdd"])), "gen": draw(st.sampled_from("123"))}
    if draw(st.integers(0, 4)):
        node_labels[ZONE] = draw(st.sampled_from(ZONES))
    if draw(st.booleans()):
        node_labels["rack"] = draw(st.sampled_from("ab"))
    allocatable = {
        "cpu": draw(st.sampled_from(["2", "4", "3500m"])),
        "memory": draw(st.sampled_from(["2Gi", "4Gi", "8G"])),
        "pods": draw(st.sampled_from(["110", "6", "4"])),
    }
    if draw(st.integers(0, 2)) == 2:
        allocatable[EXTENDED] = draw(st.sampled_from(["1", "2"]))
    spec: Object = without_none({"taints": draw(taints()) or None})
    if draw(st.integers(0, 7)) == 7:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": node_labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


@st.composite
def containers(draw: st.DrawFn, name: str, *, has_ports: bool = True) -> Object:
    """One container with some requests, and sometimes a host port."""
    requests = without_none(
        {
            "cpu": draw(maybe(cpu, one_in=2)) or draw(maybe(cpu, one_in=2)),
            "memory": draw(maybe(memory, one_in=2)),
            EXTENDED: draw(maybe(st.just("1"), one_in=8)),
        }
    )
    container: Object = {"name": name, "image": draw(st.sampled_from(["img0", "img1"])), "resources": {}}
    if requests:
        container["resources"] = {"requests": requests}
    if has_ports and draw(st.integers(0, 5)) == 5:
        container["ports"] = [{"containerPort": 80, "hostPort": draw(st.sampled_from(PORTS)), "protocol": "TCP"}]
    return container


pod_affinity_terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(TOPOLOGY_KEYS), "labelSelector": selectors},
    optional={
        "namespaces": st.just([NAMESPACE, "other"]),
        "namespaceSelector": st.sampled_from([{}, {"matchLabels": {"team": "a"}}]),
    },
)


@st.composite
def affinities(draw: st.DrawFn) -> Object:
    """Pod affinity and anti-affinity, required and preferred."""

    def rules(*, required: int, preferred: int) -> Object:
        document: Object = {}
        if required:
            document["requiredDuringSchedulingIgnoredDuringExecution"] = [
                draw(pod_affinity_terms) for _ in range(required)
            ]
        if preferred:
            document["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": draw(st.sampled_from([1, 10, 100])), "podAffinityTerm": draw(pod_affinity_terms)}
                for _ in range(preferred)
            ]
        return document

    affinity: Object = {}
    for key in draw(st.sampled_from([("podAntiAffinity",), ("podAffinity",), ("podAntiAffinity", "podAffinity")])):
        required, preferred = draw(st.integers(0, 2)), draw(st.integers(0, 1))
        affinity[key] = rules(required=required or (not preferred), preferred=preferred)
    return affinity


@st.composite
def node_affinities(draw: st.DrawFn) -> Object:
    """Required and preferred node affinity."""
    expressions = st.sampled_from(
        [
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
            {"key": ZONE, "operator": "Exists"},
            {"key": ZONE, "operator": "DoesNotExist"},
            {"key": "gen", "operator": "Gt", "values": ["1"]},
            {"key": "gen", "operator": "Lt", "values": ["3"]},
        ]
    )
    affinity: Object = {}
    if draw(st.booleans()):
        terms = [{"matchExpressions": [draw(expressions)]} for _ in range(draw(st.integers(1, 2)))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if not affinity or draw(st.booleans()):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw(st.sampled_from([1, 50])), "preference": {"matchExpressions": [draw(expressions)]}}
        ]
    return affinity


@st.composite
def spread_constraints(draw: st.DrawFn) -> Object:
    """One topology spread constraint."""
    constraint = {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(st.sampled_from(TOPOLOGY_KEYS)),
        "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
        "labelSelector": draw(selectors),
        "nodeAffinityPolicy": draw(maybe(st.sampled_from(["Honor", "Ignore"]))),
        "nodeTaintsPolicy": draw(maybe(st.sampled_from(["Honor", "Ignore"]))),
        "matchLabelKeys": draw(maybe(st.just(["version"]), one_in=5)),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule":
        constraint["minDomains"] = draw(maybe(st.integers(1, 4), one_in=4))
    return without_none(constraint)


tolerations = st.sampled_from(
    [
        {"operator": "Exists"},
        {"key": "dedicated", "operator": "Exists"},
        {"key": "gpu", "operator": "Equal", "value": "a"},
        {"key": "dedicated", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    ]
)


@st.composite
def placement(draw: st.DrawFn, *, rich: bool) -> Object:
    """The parts of a pod's spec that restrict its nodes."""
    spec: Object = {}
    affinity: Object = {}
    if draw(st.integers(0, 5)) == 5:
        affinity["nodeAffinity"] = draw(node_affinities())
    if rich and draw(st.integers(0, 3)) == 3:
        affinity |= draw(affinities())
    if affinity:
        spec["affinity"] = affinity
    if draw(st.integers(0, 3)) == 3:
        spec["tolerations"] = draw(st.lists(tolerations, min_size=1, max_size=2))
    if rich and draw(st.integers(0, 3)) == 3:
        keys = st.lists(spread_constraints(), min_size=1, max_size=2, unique_by=constraint_identity)
        spec["topologySpreadConstraints"] = draw(keys)
    if draw(st.integers(0, 9)) == 9:
        spec["nodeSelector"] = {"disk": draw(st.sampled_from(["ssd", "hdd"]))}
    return spec


def constraint_identity(constraint: Object) -> tuple[str, str]:
    return constraint["topologyKey"], constraint["whenUnsatisfiable"]


@st.composite
def running_pods(draw: st.DrawFn, index: int, node: str, *, rich: bool) -> Object:
    """A pod on a node: usually started, sometimes without a start time, terminating or already preempted."""
    spec: Object = {
        "priority": draw(st.sampled_from(PRIORITIES)),
        "schedulerName": "default-scheduler",
        "nodeName": node,
        "containers": [draw(containers("c0"))],
    }
    if rich and draw(st.integers(0, 4)) == 4:
        spec["affinity"] = draw(affinities())
    status: Object = {"phase": "Running"}
    if draw(st.integers(0, 4)):
        status["startTime"] = draw(st.sampled_from(STARTS))
    metadata: Object = {
        "name": f"p{index}",
        "namespace": draw(st.sampled_from([NAMESPACE, NAMESPACE, NAMESPACE, "other"])),
        "uid": f"uid-{index}",
        "labels": draw(labels),
    }
    if draw(st.integers(0, 9)) == 9:
        metadata["deletionTimestamp"] = "2026-11-20T00:00:00Z"
        if draw(st.booleans()):
            status["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


@st.composite
def budgets(draw: st.DrawFn, index: int) -> Object:
    """A PodDisruptionBudget with a status."""
    status: Object = {
        "disruptionsAllowed": draw(st.integers(0, 2)),
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
    }
    if draw(st.integers(0, 5)) == 5:
        status["disruptedPods"] = {"p0": "2026-11-20T00:00:00Z"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{index}", "namespace": draw(st.sampled_from([NAMESPACE, NAMESPACE, "other"]))},
        "spec": {"selector": draw(selectors), "minAvailable": 1},
        "status": status,
    }


@st.composite
def nominated_pods(draw: st.DrawFn, index: int, num_nodes: int) -> Object:
    """A pending pod that is nominated to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"nominated-{index}",
            "namespace": NAMESPACE,
            "uid": f"uid-nominated-{index}",
            "labels": draw(labels),
        },
        "spec": {
            "priority": draw(st.sampled_from([0, 100, 1000, 5000])),
            "schedulerName": "default-scheduler",
            "containers": [draw(containers("c0"))],
        },
        "status": {"phase": "Pending", "nominatedNodeName": f"n{draw(st.integers(0, num_nodes - 1))}"},
    }


@st.composite
def incoming_pods(draw: st.DrawFn, num_nodes: int, *, rich: bool) -> Object:
    """The incoming pod."""
    spec: Object = {
        "priority": draw(st.sampled_from([0, 50, 500, 1000, 2000])),
        "schedulerName": "default-scheduler",
        "containers": [draw(containers(f"c{index}")) for index in range(draw(st.integers(1, 2)))],
    }
    spec |= draw(placement(rich=rich))
    if draw(st.integers(0, 5)) == 5:
        spec["initContainers"] = [draw(containers("i0", has_ports=False))]
        if draw(st.booleans()):
            spec["initContainers"][0]["restartPolicy"] = "Always"
    if draw(st.integers(0, 11)) == 11:
        spec["preemptionPolicy"] = "Never"
    status: Object = {"phase": "Pending"}
    if draw(st.integers(0, 9)) == 9:
        status["nominatedNodeName"] = f"n{draw(st.integers(0, num_nodes - 1))}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "incoming", "namespace": NAMESPACE, "uid": "uid-incoming", "labels": draw(labels)},
        "spec": spec,
        "status": status,
    }


NAMESPACES: list[Object] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"team": "a"}}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "b"}}},
]


@st.composite
def scenarios(draw: st.DrawFn, *, rich: bool = True, max_nodes: int = 4, max_pods: int = 6) -> Object:
    """A complete scenario. ``rich`` adds pod affinity and topology spread."""
    num_nodes = draw(st.integers(1, max_nodes))
    objects = [draw(nodes(index)) for index in range(num_nodes)]
    objects += NAMESPACES
    index = 0
    for node in range(num_nodes):
        for _ in range(draw(st.integers(0, max_pods))):
            objects.append(draw(running_pods(index, f"n{node}", rich=rich)))
            index += 1
    objects += [draw(budgets(number)) for number in range(draw(st.integers(0, 2)))]
    objects += [draw(nominated_pods(number, num_nodes)) for number in range(draw(st.integers(0, 1)))]
    return {"name": "drawn", "objects": objects, "pod": draw(incoming_pods(num_nodes, rich=rich)), "queued": True}
