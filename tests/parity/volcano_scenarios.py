"""Random sessions of the Volcano scheduler, in the format of ``kpreempt batch``.

Clusters are small and mostly full, so that jobs compete: each scenario draws an aim (the main subject of its session),
and some features, each of which adds one special case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.parity.volcano_configurations import AIMS, configurations
from tests.strategies import (
    APPS,
    HOSTNAME,
    NAMESPACES,
    PORTS,
    ZONE,
    ZONES,
    Object,
    affinities,
    constraint_identity,
    maybe,
    node_affinities,
    spread_constraints,
    taints,
    tolerations,
    without_none,
)
from tests.strategies_volumes import pod_volumes, storage_objects

GPU = "nvidia.com/gpu"
FEATURES = (
    "affinity",
    "bare pods",
    "best effort",
    "capability",
    "conditions",
    "disks",
    "gone",
    "gpu",
    "images",
    "init",
    "missing",
    "node affinity",
    "oversubscription",
    "overfull",
    "pod limit",
    "ports",
    "preemptable",
    "releasing",
    "scalars",
    "spread",
    "system",
    "taints",
    "task minimum",
    "task priority",
    "unready",
)
# Only drawn on request: each takes the real scheduler a tenth of a second.
SLOW_FEATURES = ("disks",)
IMAGES = ("img0:latest", "img1:latest", "registry.example.com/img2:v1")
# How a pod requests each, and the units in which Room counts it.
SCALARS = {"ephemeral-storage": ("5Gi", 5), "hugepages-2Mi": ("4Mi", 2), "example.com/foo": ("1", 1)}
FILLERS = 16
SCHEDULING = "scheduling.volcano.sh/v1beta1"
CLASSES = {"low": 10, "mid": 100, "high": 1000}

Draw = st.DrawFn


@dataclass
class Room:
    """The free capacity of a node while pods are placed: CPU in milli, memory in Mi, scalars in units."""

    name: str
    left: dict[str, int]

    def take(self, requested: dict[str, int]) -> bool:
        """Reserve capacity for a pod; return False, and reserve nothing, if there is too little."""
        if any(amount > self.left.get(name, 0) for name, amount in requested.items()):
            return False
        for name, amount in requested.items():
            self.left[name] = self.left.get(name, 0) - amount
        return True


@dataclass
class Plan:
    """The parts of a scenario."""

    aim: str
    features: frozenset[str]
    rooms: list[Room] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)

    def has(self, feature: str) -> bool:
        """Return whether the scenario has a feature."""
        return feature in self.features


def _one_in(draw: Draw, number: int) -> bool:
    return draw(st.integers(0, number - 1)) == number - 1


def _time(seconds: int) -> str:
    return f"2024-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"


@st.composite
def _nodes(draw: Draw, plan: Plan, index: int) -> Object:
    name = f"n{index}"
    cpu, memory = draw(st.sampled_from([(4, 8), (2, 4), (8, 16), (16, 32), (4, 4)]))
    left = {"cpu": cpu * 1000, "memory": memory * 1024}
    allocatable = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "110"}
    metadata: Object = {"name": name, "labels": {HOSTNAME: name}}
    spec: Object = {}
    status: Object = {}
    if plan.has("gpu") and not _one_in(draw, 3):
        left[GPU] = draw(st.sampled_from([4, 2, 8]))
        allocatable[GPU] = str(left[GPU])
    if plan.has("scalars"):
        left |= {"ephemeral-storage": 20, "hugepages-2Mi": 8, "example.com/foo": 3}
        allocatable |= {"ephemeral-storage": "20Gi", "hugepages-2Mi": "16Mi", "example.com/foo": "3"}
        if _one_in(draw, 4):
            allocatable.pop("hugepages-2Mi")
            left.pop("hugepages-2Mi")
    if plan.has("pod limit") and draw(st.booleans()):
        limit = draw(st.sampled_from(["3", "5", None]))
        allocatable = without_none(allocatable | {"pods": limit})
    if plan.features & {"affinity", "node affinity", "spread", "disks"}:
        if draw(st.integers(0, 4)):
            metadata["labels"][ZONE] = draw(st.sampled_from(ZONES))
        metadata["labels"] |= {"disk": draw(st.sampled_from(["ssd", "hdd"])), "gen": draw(st.sampled_from("123"))}
    if plan.has("taints"):
        spec |= without_none({"taints": draw(taints()) or None})
    status |= _state(draw, plan, spec)
    if plan.has("oversubscription") and draw(st.booleans()):
        metadata["labels"]["volcano.sh/oversubscription"] = draw(st.sampled_from(["true", "false"]))
        metadata["annotations"] = {
            "volcano.sh/oversubscription-cpu": draw(st.sampled_from(["2000", "500"])),
            "volcano.sh/oversubscription-memory": draw(st.sampled_from(["1073741824", "0"])),
        }
    plan.rooms.append(Room(name, left))
    status |= {"allocatable": allocatable, "capacity": allocatable}
    return without_none(
        {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec or None, "status": status}
    )


@st.composite
def _queues(draw: Draw, plan: Plan) -> list[Object]:
    if plan.aim == "hierarchy":
        drawn = draw(st.lists(st.sampled_from(_BRANCHES), min_size=2, max_size=3, unique=True))
        spec: Object = {"weight": 1}
        queues = [
            (path.replace("/", "-"), spec, {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights})
            for path, weights in drawn
        ]
    else:
        count = draw(st.sampled_from([2, 3] if plan.aim == "reclaim" else [1, 1, 2, 3]))
        queues = [(f"q{number}", draw(_queue_specs(plan)), {}) for number in range(1, count + 1)]
    plan.queues = [name for name, _, _ in queues]
    return [
        without_none(
            {
                "apiVersion": SCHEDULING,
                "kind": "Queue",
                "metadata": without_none(
                    {"name": name, "creationTimestamp": _time(draw(st.integers(0, 2))), "annotations": marks or None}
                ),
                "spec": spec,
            }
        )
        for name, spec, marks in queues
    ]


def _state(draw: Draw, plan: Plan, spec: Object) -> Object:
    """Parts of a node's status. Whether it is cordoned goes to its spec."""
    status: Object = {}
    if plan.has("unready"):
        if _one_in(draw, 4):
            spec["unschedulable"] = True
        if _one_in(draw, 4):
            status["conditions"] = [{"type": "Ready", "status": draw(st.sampled_from(["False", "Unknown", "True"]))}]
    if plan.has("images"):
        names = draw(st.lists(st.sampled_from(IMAGES), max_size=2, unique=True))
        sizes = st.sampled_from([30, 300, 900, 5000])
        status["images"] = [{"names": [image], "sizeBytes": draw(sizes) * 1_000_000} for image in names]
    return status


_BRANCHES = (
    ("root/eng/dev", "100/50/50"),
    ("root/eng/prod", "100/50/25"),
    ("root/sci", "100/100"),
    ("root/ops", "100/25"),
    ("root/sci/deep", "100/100/3"),
)


@st.composite
def _queue_specs(draw: Draw, plan: Plan) -> Object:
    spec: Object = {"weight": draw(st.sampled_from([1, 1, 2, 3]))}
    if plan.has("capability"):
        spec |= without_none({"reclaimable": draw(st.sampled_from([None, True, False]))})
        if draw(st.booleans()):
            spec["capability"] = draw(_amounts(plan, most=8))
        if _one_in(draw, 3):
            spec["guarantee"] = {"resource": draw(_amounts(plan, most=2))}
    return spec


@st.composite
def _amounts(draw: Draw, plan: Plan, most: int) -> Object:
    amounts: Object = without_none(
        {
            "cpu": draw(maybe(st.integers(0, most).map(str), one_in=2)),
            "memory": draw(maybe(st.integers(0, most).map(lambda size: f"{size}Gi"), one_in=2)),
        }
    )
    if plan.has("gpu"):
        amounts |= without_none({GPU: draw(maybe(st.integers(0, 3).map(str)))})
    return amounts


@dataclass(frozen=True)
class Task:
    """A pod's requests, twice: as in a manifest, and for placing it."""

    name: str
    requests: Object
    requested: dict[str, int]
    spec: Object
    labels: Object
    annotations: Object


def _requests(draw: Draw, plan: Plan) -> tuple[Object, dict[str, int]]:
    """A container's requests, and the capacity they need."""
    requests: Object = {}
    requested: dict[str, int] = {}
    if not (plan.has("best effort") and draw(st.booleans())):
        cpu, memory = draw(st.sampled_from([(1000, 1024), (2000, 2048), (1000, 2048), (500, 512), (3000, 1024)]))
        requests = {"cpu": f"{cpu}m" if cpu % 1000 else str(cpu // 1000), "memory": f"{memory}Mi"}
        requested = {"cpu": cpu, "memory": memory}
        if _one_in(draw, 8):
            dropped = draw(st.sampled_from(["cpu", "memory"]))
            del requests[dropped], requested[dropped]
    if plan.has("gpu") and draw(st.booleans()):
        requested[GPU] = draw(st.sampled_from([1, 2, 0]))
        requests[GPU] = str(requested[GPU])
    if plan.has("scalars"):
        for scalar, (amount, pieces) in SCALARS.items():
            if _one_in(draw, 3):
                requests[scalar], requested[scalar] = amount, pieces
        if _one_in(draw, 4):
            requests[draw(st.sampled_from(["requests.cpu", "count/pods", "storage", "attachable-volumes-x"]))] = "1"
    return requests, requested


@st.composite
def _tasks(draw: Draw, plan: Plan, name: str, *, running: bool) -> Task:
    requests, requested = _requests(draw, plan)
    spec = draw(_placement(plan, running=running))
    container = _container(requests)
    if plan.has("images"):
        container["image"] = draw(st.sampled_from(IMAGES))
    if plan.has("ports") and draw(st.booleans()):
        container["ports"] = [{"containerPort": 80, "hostPort": draw(st.sampled_from(PORTS)), "protocol": "TCP"}]
    spec["containers"] = [container]
    if plan.has("init") and draw(st.booleans()):
        amount = {"requests": {"cpu": draw(st.sampled_from(["2", "100m"])), "memory": "64Mi"}}
        spec["initContainers"] = [{"name": "i", "image": "busybox", "resources": amount}]
    if plan.has("init") and _one_in(draw, 3):
        spec["overhead"] = {"cpu": "100m", "memory": "10Mi"}
    return Task(name, requests, requested, spec, *_marks(draw, plan))


def _marks(draw: Draw, plan: Plan) -> tuple[Object, Object]:
    """Labels and annotations of a task's pods."""
    annotations: Object = {}
    labels: Object = {"app": draw(st.sampled_from(APPS))} if plan.features & {"affinity", "spread"} else {}
    if plan.has("preemptable"):
        mark = draw(st.sampled_from([None, None, "true", "false", "maybe", "0"]))
        location = annotations if draw(st.booleans()) else labels
        location |= without_none({"volcano.sh/preemptable": mark})
    if plan.has("task priority") and draw(st.booleans()):
        annotations["volcano.sh/task-priority"] = draw(st.sampled_from(["5", "1000", "-3", "much"]))
    return labels, annotations


@st.composite
def _placement(draw: Draw, plan: Plan, *, running: bool) -> Object:
    spec: Object = {}
    affinity: Object = {}
    if plan.has("affinity") and draw(st.booleans()):
        affinity |= draw(affinities())
    if plan.has("node affinity") and not running:
        if draw(st.booleans()):
            affinity["nodeAffinity"] = draw(node_affinities())
        if _one_in(draw, 4):
            spec["nodeSelector"] = {"disk": draw(st.sampled_from(["ssd", "hdd"]))}
    if affinity:
        spec["affinity"] = affinity
    if plan.has("spread") and draw(st.booleans()):
        keys = st.lists(spread_constraints(), min_size=1, max_size=2, unique_by=constraint_identity)
        spec["topologySpreadConstraints"] = draw(keys)
    if plan.has("taints") and draw(st.booleans()):
        spec["tolerations"] = draw(st.lists(tolerations, min_size=1, max_size=2))
    if plan.has("disks") and draw(st.booleans()):
        spec["volumes"] = draw(pod_volumes())
    return spec


@dataclass(frozen=True)
class Job:
    """The shared parts of a job's pods. Those of a ``running`` job are on nodes, as far as they fit."""

    name: str
    namespace: str
    priority_class: str | None
    created: int
    running: bool

    @property
    def metadata(self) -> Object:
        """The metadata of its pod group."""
        return {"name": self.name, "namespace": self.namespace, "creationTimestamp": _time(self.created)}


@st.composite
def _jobs(draw: Draw, plan: Plan, name: str, *, running: bool) -> list[Object]:
    """A pod group and its pods."""
    namespaces = ["default"] * 4 + (["kube-system", "team-a"] if plan.has("system") else [])
    job = Job(
        name,
        draw(st.sampled_from(namespaces)),
        draw(st.sampled_from(["low", "low", "mid", None] if running else ["high", "high", "low", None])),
        draw(st.integers(0, 3)) * 10 + (0 if running else 300),
        running,
    )
    tasks = [
        draw(_tasks(plan, each, running=running))
        for each in draw(st.sampled_from([["w"], ["w"], ["w"], ["ps", "w"], ["w", "be"]]))
    ]
    drawn = [
        draw(_pods(plan, job, task, number))
        for task in tasks
        for number in range(draw(st.integers(1, 5 if running else 4)))
    ]
    pods = [each for each in drawn if each]
    spec = draw(_group_specs(plan, job, tasks, len(pods)))
    if plan.aim == "enqueue" and not running:
        phases = ["Pending", "Pending", "Inqueue", ""]
    elif running:
        phases = ["Running"] * 5 + ["Unknown", "Inqueue"]
    else:
        phases = ["Inqueue"] * 3 + ["Pending"] * 2 + ["Running", ""]
    status: Object = {"phase": draw(st.sampled_from(phases))}
    if plan.has("conditions"):
        drawn_conditions = st.lists(st.sampled_from(_CONDITIONS), max_size=2, unique_by=lambda each: each["type"])
        status["conditions"] = draw(drawn_conditions)
    group = {"apiVersion": SCHEDULING, "kind": "PodGroup", "metadata": job.metadata, "spec": spec, "status": status}
    return [group, *pods]


@st.composite
def _fillers(draw: Draw, plan: Plan) -> list[Object]:
    """A running job with small pods wherever they fit, so that others must evict."""
    job = Job("f", "default", draw(st.sampled_from(["low", None, "mid"])), 0, running=True)
    size = draw(st.sampled_from([1000, 2000]))
    requests = {"cpu": f"{size}m", "memory": "1024Mi"}
    task = Task("w", requests, {"cpu": size, "memory": 1024}, {"containers": [_container(requests)]}, {}, {})
    pods = []
    for room in plan.rooms:
        while len(pods) < FILLERS and room.take(task.requested):
            pods.append(_pod(job, task, len(pods), room.name))
    spec = draw(_group_specs(plan, job, [task], len(pods)))
    if draw(st.integers(0, 3)):
        spec["minMember"] = draw(st.integers(0, 2))
    status = {"phase": "Running"}
    return [
        {"apiVersion": SCHEDULING, "kind": "PodGroup", "metadata": job.metadata, "spec": spec, "status": status},
        *pods,
    ]


@st.composite
def _group_specs(draw: Draw, plan: Plan, job: Job, tasks: list[Task], count: int) -> Object:
    minimum = draw(st.sampled_from([1, 1, count, max(count - 1, 0), 0, count + 1]))
    spec: Object = {"minMember": minimum, "queue": draw(st.sampled_from(plan.queues))}
    if plan.has("missing") and _one_in(draw, 3):
        spec["queue"] = draw(st.sampled_from(["", "gone", "default"]))
    spec |= without_none({"priorityClassName": job.priority_class})
    if plan.has("missing") and _one_in(draw, 4):
        spec["priorityClassName"] = "gone"
    if plan.has("task minimum") and draw(st.booleans()):
        names = [*(task.name for task in tasks), *draw(_OTHER_SPECS)]
        spec["minTaskMember"] = {each: draw(st.integers(0, 3)) for each in names}
    if draw(st.integers(0, 4)):
        spec["minResources"] = _least(tasks[0].requests, max(minimum, 1))
    return spec


_OTHER_SPECS = st.sampled_from([[], [], ["other"]])
_CONDITIONS = (
    {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "before",
        "transitionID": "x",
    },
    {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled", "transitionID": "x"},
    {"type": "Other", "status": "False"},
)


def _least(requests: Object, times: int) -> Object:
    """The requests of ``times`` such pods, in whole units."""
    least: Object = {}
    for name, amount in requests.items():
        if name == "cpu":
            milli = int(amount[:-1]) if amount.endswith("m") else int(amount) * 1000
            least[name] = f"{milli * times}m"
        elif name == "memory":
            least[name] = f"{int(amount.removesuffix('Mi')) * times}Mi"
        elif amount.isdigit():
            least[name] = str(int(amount) * times)
    return least


def _container(requests: Object) -> Object:
    return {"name": "c", "image": "busybox", "resources": {"requests": requests}}


def _pod(job: Job, task: Task, number: int, node: str | None) -> Object:
    """A pod of a job, which runs if it is on a node."""
    # Without dashes, the name has no number that orders tasks.
    separators = ("", "x") if job.name.endswith("odd") else ("-", "-")
    name = f"{job.name}{separators[0]}{task.name}{separators[1]}{number}"
    annotations = {"scheduling.k8s.io/group-name": job.name, "volcano.sh/task-spec": task.name}
    metadata = job.metadata | {
        "name": name,
        "uid": f"{job.namespace}-{name}",
        "annotations": annotations | task.annotations,
        "labels": task.labels or None,
    }
    spec: Object = {"schedulerName": "volcano", "nodeName": node, **task.spec}
    if job.priority_class:
        spec |= {"priority": CLASSES[job.priority_class], "priorityClassName": job.priority_class}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": without_none(metadata),
        "spec": without_none(spec),
        "status": {"phase": "Running" if node else "Pending"},
    }


@st.composite
def _pods(draw: Draw, plan: Plan, job: Job, task: Task, number: int) -> Object | None:
    """A pod of a job with additions of features. None if it should run and fits on no node."""
    node = None
    if job.running and not _one_in(draw, 8):
        node = _room(draw, plan, task.requested)
        if node is None:
            return None
    pod = _pod(job, task, number, node)
    if plan.has("system") and _one_in(draw, 6):
        pod["spec"] |= {"priority": 2_000_000_000, "priorityClassName": "system-node-critical"}
    if node and _one_in(draw, 10):
        pod["status"]["phase"] = "Pending"
    if node and plan.has("gone") and _one_in(draw, 5):
        pod["status"]["phase"] = draw(st.sampled_from(["Succeeded", "Failed", "Unknown"]))
    if plan.has("releasing") and _one_in(draw, 5):
        pod["metadata"] |= {"deletionTimestamp": _time(900), "deletionGracePeriodSeconds": 30}
    return pod


def _room(draw: Draw, plan: Plan, requested: dict[str, int]) -> str | None:
    """A node with capacity, starting at a drawn one; sometimes one without, or a missing one."""
    start = draw(st.integers(0, len(plan.rooms) - 1))
    if plan.has("overfull") and _one_in(draw, 12):
        return plan.rooms[start].name
    if plan.has("missing") and _one_in(draw, 8):
        return "gone"
    for room in plan.rooms[start:] + plan.rooms[:start]:
        if room.take(requested):
            return room.name
    return None


@st.composite
def _bare_pods(draw: Draw, plan: Plan, number: int) -> Object | None:
    """A pod without a group, of this scheduler or another."""
    scheduler = draw(st.sampled_from(["default-scheduler", "volcano"]))
    spec: Object = {"schedulerName": scheduler, "containers": [_container({"cpu": "1", "memory": "1Gi"})]}
    status = {"phase": "Pending"}
    if draw(st.integers(0, 3)):
        node = _room(draw, plan, {"cpu": 1000, "memory": 1024})
        if node is None:
            return None
        spec["nodeName"] = node
        status = {"phase": "Running"}
    metadata = {"name": f"bare-{number}", "namespace": "other", "uid": f"other-bare-{number}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _priority_classes(plan: Plan, draw: Draw) -> list[Object]:
    names = CLASSES | {"system-node-critical": 2_000_000_000}
    if plan.has("missing") and draw(st.booleans()):
        names["fallback"] = 50
    return [
        without_none(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "globalDefault": True if name == "fallback" else None,
            }
        )
        for name, value in names.items()
    ]


@st.composite
def volcano_scenarios(draw: Draw, *, without: frozenset[str] = frozenset(SLOW_FEATURES)) -> dict[str, Any]:
    """A scenario for one session, without the named features."""
    aim = draw(st.sampled_from(AIMS))
    features = draw(
        st.lists(st.sampled_from([each for each in FEATURES if each not in without]), max_size=4, unique=True)
    )
    plan = Plan(aim, frozenset(features))
    nodes = [draw(_nodes(plan, index)) for index in range(1, draw(st.integers(1, 4)) + 1)]
    plan.objects = [*nodes, *draw(_queues(plan)), *_priority_classes(plan, draw)]
    if plan.features & {"affinity", "spread"}:
        plan.objects += NAMESPACES
    if plan.has("disks"):
        plan.objects += draw(storage_objects(len(nodes)))
    jobs: list[Object] = []
    for number in range(draw(st.integers(0, 1 if aim in ("allocate", "enqueue") else 3))):
        jobs += draw(_jobs(plan, f"v{number}", running=True))
    if aim not in ("allocate", "enqueue") and draw(st.integers(0, 3)):
        jobs += draw(_fillers(plan))
    for number in range(draw(st.integers(1, 3))):
        odd = "odd" if _one_in(draw, 8) else ""
        jobs += draw(_jobs(plan, f"p{number}{odd}", running=False))
    if plan.has("bare pods"):
        jobs += [pod for number in range(draw(st.integers(1, 3))) if (pod := draw(_bare_pods(plan, number)))]
    objects = plan.objects + jobs
    return {
        "name": "volcano",
        "algorithm": "volcano-1.8",
        "conf": draw(configurations(aim)),
        "objects": objects,
    }
