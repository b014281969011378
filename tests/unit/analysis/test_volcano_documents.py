"""What Volcano's webhook and controller make of a job."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kpreempt.analysis.pod_inputs import select, subjects_of
from kpreempt.analysis.volcano.jobs import after_enqueue, as_submitted, job_rejections, read_volcano_job
from kpreempt.analysis.workload_pods import is_volcano_job, pods_of
from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import AnnotatedMeta, ObjectMeta
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PriorityClass
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.model.volcano import PodGroup, Queue, QueueStatus
from kpreempt.snapshot.decode import decode_object

Document = dict[str, Any]

CLASSES = [PriorityClass(ObjectMeta(name="low"), 10), PriorityClass(ObjectMeta(name="high"), 1000)]


def task(name: str = "", replicas: int = 1, *, cpu: str = "1", spec: Document | None = None, **parts: Any) -> Document:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": parts.pop("metadata", {}), "spec": {"containers": [container], **(spec or {})}}
    return {**({"name": name} if name else {}), "replicas": replicas, "template": template, **parts}


def job(*tasks: Document, metadata: Document | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "ml", **(metadata or {})},
        "spec": {"tasks": list(tasks), **spec},
    }


def group_of(document: Document) -> Document:
    return as_submitted(read_volcano_job(document), CLASSES).group


def pods_made(document: Document) -> list[Document]:
    return after_enqueue(read_volcano_job(document), CLASSES).pods


def names(documents: list[Document]) -> list[str]:
    return [each["metadata"]["name"] for each in documents]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(job(task()), True, id="a job of Volcano's"),
        pytest.param({**job(task()), "apiVersion": "batch/v1"}, False, id="a job of Kubernetes"),
        pytest.param({**job(task()), "kind": "Command"}, False, id="another kind of the group"),
        pytest.param({"kind": "Job"}, False, id="no version"),
        pytest.param({"kind": "Job", "apiVersion": ["batch.volcano.sh/v1alpha1"]}, False, id="a version that is none"),
    ],
)
def test_which_objects_are_jobs_of_volcano(document: Document, expected: bool) -> None:
    assert is_volcano_job(document) is expected


@pytest.mark.parametrize(
    ("document", "least", "of_tasks", "queue"),
    [
        pytest.param(job(task(replicas=2), task(replicas=3)), 5, {"default0": 2, "default1": 3}, "default", id="all"),
        pytest.param(
            job(task("a", 4, minAvailable=1), task("b", 2)), 3, {"a": 1, "b": 2}, "default", id="the least of each task"
        ),
        pytest.param(
            job(task("a", 4), minAvailable=2, queue="q"), 2, {"a": 4}, "q", id="the least of the job, and a queue"
        ),
        pytest.param(job(task("a", 4), minAvailable=0), 4, {"a": 4}, "default", id="a least of 0 is none"),
        pytest.param(job(task("a", 4, minAvailable=0)), 0, {"a": 0}, "default", id="a task's least of 0, which counts"),
    ],
)
def test_what_is_not_said_is_filled_in(document: Document, least: int, of_tasks: Document, queue: str) -> None:
    spec = group_of(document)["spec"]
    assert (spec["minMember"], spec["minTaskMember"], spec["queue"]) == (least, of_tasks, queue)


def test_before_it_is_let_in_a_job_is_a_group_without_pods() -> None:
    before = job(task("a", 2), metadata={"uid": "4f", "labels": {"l": "1"}, "annotations": {"n": "2"}})
    document = deepcopy(before)
    read = read_volcano_job(document)
    submitted, enqueued = as_submitted(read, CLASSES), after_enqueue(read, CLASSES)
    assert (submitted.group["status"], submitted.pods) == ({"phase": "Pending"}, [])
    assert (enqueued.group["status"], names(enqueued.pods)) == ({"phase": "Inqueue"}, ["train-a-0", "train-a-1"])
    assert {**enqueued.group, "status": {}} == {**submitted.group, "status": {}}
    assert submitted.group["metadata"] == {
        "name": "train-4f",
        "namespace": "ml",
        "labels": {"l": "1"},
        "annotations": {"n": "2"},
        "ownerReferences": [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "name": "train",
                "uid": "4f",
                "controller": True,
            }
        ],
    }
    assert document == before


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            job(task("a", 2, cpu="500m")),
            {"cpu": "1", "requests.cpu": "1", "pods": "2", "count/pods": "2"},
            id="all pods",
        ),
        pytest.param(job(task("a", 3), task("b", 3, cpu="2"), minAvailable=4), {"cpu": "5"}, id="the first ones"),
        pytest.param(
            job(task("a", 3), task("b", 3, cpu="2", spec={"priorityClassName": "high"}), minAvailable=4),
            {"cpu": "7"},
            id="those of the highest priority first",
        ),
        pytest.param(
            job(task("a", 1, spec={"priorityClassName": "gone"}), task("b", 1, cpu="2"), minAvailable=1),
            {"cpu": "1"},
            id="a class that is not there has priority 0",
        ),
        pytest.param(
            job(task("a"), task("b", cpu="3", spec={"priorityClassName": "system-node-critical"}), minAvailable=1),
            {"cpu": "3"},
            id="the classes of the system are always there",
        ),
        pytest.param(job(task("a", 2, minAvailable=0)), {"cpu": None}, id="nothing for none"),
        pytest.param(
            job(task("a", 2, spec={"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": 2}}}]})),
            {"nvidia.com/gpu": None, "cpu": None, "limits.cpu": "4"},
            id="limits are not requests yet",
        ),
    ],
)
def test_what_a_group_asks_room_for(document: Document, expected: dict[str, str | None]) -> None:
    found = group_of(document)["spec"]["minResources"]
    assert {name: found.get(name) for name in expected} == expected


def test_a_group_without_pods_requests_empty_resources_rather_than_none() -> None:
    decoded = decode_object("PodGroup", group_of(job(task("a", 2, minAvailable=0))))
    assert isinstance(decoded, PodGroup)
    assert decoded.spec.min_resources == {}


def test_a_pod_says_whose_it_is() -> None:
    template = {"labels": {"app": "x"}, "annotations": {"note": "y", "volcano.sh/task-spec": "wrong"}}
    annotations = {
        "volcano.sh/preemptable": "false",
        "volcano.sh/jdb-min-available": "1",
        "volcano.sh/jdb-max-unavailable": "2",
        "example.com/foreign": "stays on the job",
    }
    [pod] = pods_made(
        job(
            task("ps", metadata=template, topologyPolicy="restricted"),
            metadata={"uid": "4f", "annotations": annotations, "labels": {"volcano.sh/preemptable": "true"}},
            queue="q",
        )
    )
    assert pod["metadata"]["annotations"] == {
        "note": "y",
        "scheduling.k8s.io/group-name": "train-4f",
        "volcano.sh/job-name": "train",
        "volcano.sh/job-version": "0",
        "volcano.sh/jdb-min-available": "1",
        "volcano.sh/numa-topology-policy": "restricted",
        "volcano.sh/preemptable": "false",
        "volcano.sh/queue-name": "q",
        "volcano.sh/task-spec": "ps",
        "volcano.sh/template-uid": "train-ps",
    }
    assert pod["metadata"]["labels"] == {
        "app": "x",
        "volcano.sh/job-name": "train",
        "volcano.sh/job-namespace": "ml",
        "volcano.sh/preemptable": "true",
        "volcano.sh/queue-name": "q",
        "volcano.sh/task-spec": "ps",
    }
    decoded = decode_object("Pod", pod)
    assert isinstance(decoded, Pod)
    assert decoded.metadata.annotations is not None
    assert (decoded.metadata.annotations.group_name, decoded.metadata.annotations.preemptable) == ("train-4f", "false")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(job(task()), "volcano", id="Volcano's"),
        pytest.param(job(task(), schedulerName="vip"), "vip", id="the job's"),
        pytest.param(job(task(spec={"schedulerName": "own"}), schedulerName="vip"), "own", id="the template's own"),
    ],
)
def test_which_scheduler_places_the_pods(document: Document, expected: str) -> None:
    assert pods_made(document)[0]["spec"]["schedulerName"] == expected


def test_volumes_are_claims_of_all_pods_each_once() -> None:
    volumes = [
        {"mountPath": "/in", "volumeClaimName": "data"},
        {"mountPath": "/again", "volumeClaimName": "data"},
        {"mountPath": "/out", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
    ]
    own = {"name": "own", "emptyDir": {}}
    gang = after_enqueue(read_volcano_job(job(task("a", 2, spec={"volumes": [own]}), volumes=volumes)), CLASSES)
    for pod in gang.pods:
        first, *others = pod["spec"]["volumes"]
        assert first == own
        assert [each["persistentVolumeClaim"]["claimName"] for each in others] == ["data", "train-pvc-new-2"]
    [claim] = gang.claims
    assert (claim["metadata"]["name"], claim["spec"]) == ("train-pvc-new-2", {"accessModes": ["ReadWriteOnce"]})
    assert isinstance(decode_object("PersistentVolumeClaim", claim), PersistentVolumeClaim)


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param({"svc": [], "env": None}, [80], id="none of svc and env"),
        pytest.param({"mpi": []}, [80, 22], id="22 of mpi"),
        pytest.param({"mpi": ["--master=m", "--port=2022"]}, [80, 2022], id="the one of mpi's flag"),
        pytest.param({"pytorch": ["--master", "m", "-port", "80"]}, [80], id="none of pytorch that is open already"),
        pytest.param({"pytorch": ["--master=m", "--port=x"]}, [80, 23456], id="the default of pytorch for a wrong one"),
        pytest.param({"pytorch": []}, [80], id="none of pytorch without its master task"),
    ],
)
def test_ports_that_plugins_open(plugins: Document, expected: list[int]) -> None:
    spec = {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}
    [pod] = pods_made(job(task("m", spec=spec), plugins=plugins))
    assert [each["containerPort"] for each in pod["spec"]["containers"][0]["ports"]] == expected


@pytest.mark.parametrize(
    ("tasks", "made", "blocked_pods"),
    [
        pytest.param([task("a"), task("b")], ["a", "b"], [], id="nobody waits"),
        pytest.param([task("a"), task("b", dependsOn={"name": ["a"]})], ["a"], ["b"], id="for another to run"),
        pytest.param(
            [task("a", minAvailable=0), task("b", dependsOn={"name": ["a"]})],
            ["a", "b"],
            [],
            id="for another of which none must run",
        ),
        pytest.param(
            [
                task("a", minAvailable=0),
                task("b"),
                task("all", dependsOn={"name": ["a", "b"]}),
                task("any", dependsOn={"name": ["a", "b"], "iteration": "any"}),
            ],
            ["a", "b", "any"],
            ["all"],
            id="for all others, or for any",
        ),
        pytest.param(
            [task("a"), task("b", dependsOn={"name": ["a"], "iteration": "any"})], ["a"], ["b"], id="for any of one"
        ),
    ],
)
def test_pods_of_tasks_that_wait_are_not_made_yet(
    tasks: list[Document], made: list[str], blocked_pods: list[str]
) -> None:
    gang = after_enqueue(read_volcano_job(job(*tasks)), CLASSES)
    assert names(gang.pods) == [f"train-{each}-0" for each in made]
    assert gang.blocked_pods == blocked_pods


def test_as_a_manifest_a_job_asks_for_a_pod_of_each_task() -> None:
    document = job(task("ps", 1), task("worker", 3), task("none", 0))
    found = pods_of(document, source="job.yaml", line=3)
    assert [(each.document["metadata"]["name"], each.replicas) for each in found] == [
        ("train-ps-0", 1),
        ("train-worker-0", 3),
    ]
    assert {(each.kind, each.origin, each.source, each.line) for each in found} == {
        ("Job", "Job ml/train", "job.yaml", 3)
    }
    assert select(found, "job/train") == found


def test_a_job_without_a_namespace_is_in_that_of_the_request() -> None:
    document = job(task("a"))
    del document["metadata"]["namespace"]
    [template] = subjects_of([(document, "", 0, b"")], "lab").templates
    assert template.document["metadata"]["namespace"] == "lab"
    assert as_submitted(read_volcano_job(document, "lab"), []).group["metadata"]["namespace"] == "lab"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param(job(metadata={"name": ""}), "metadata.name: a job needs a name", id="no name"),
        pytest.param({**job(), "spec": []}, "spec: expected a mapping", id="a list for a specification"),
        pytest.param({**job(), "spec": {"tasks": {}}}, "spec.tasks: expected a list", id="a mapping for tasks"),
        pytest.param(
            job(task("a", "2")), "spec.tasks[0].replicas: expected a 32-bit integer", id="a text for a number"
        ),
        pytest.param(
            job(task("a", 2**31)), "spec.tasks[0].replicas: expected a 32-bit integer", id="more than 32 bits"
        ),
        pytest.param(
            job(task("a", 9), task("b", 10**9)), "spec.tasks[1].replicas: results in more than", id="no end of pods"
        ),
        pytest.param(job(task(3)), "spec.tasks[0].name: expected a string", id="a number for a name"),
        pytest.param(job(task("a", dependsOn={"name": "b"})), "dependsOn.name: expected a list", id="no list"),
        pytest.param(job(task("a"), plugins={"svc": "x"}), "spec.plugins.svc: expected a list", id="a plugin's text"),
        pytest.param(job(task("a"), volumes=[3]), "spec.volumes: expected a list of mappings", id="no volume"),
        pytest.param(
            job(task("a", cpu="2 cores")),
            'spec.tasks[0].template.spec.containers[0].resources.requests.cpu: "2 cores" is not a quantity',
            id="no quantity",
        ),
        pytest.param(
            job(task("a", metadata={"labels": {"x": 1}})),
            "spec.tasks[0].template.metadata.labels.x: expected a string",
            id="a number for a label",
        ),
    ],
)
def test_a_job_of_another_shape_is_one_message_with_its_path(document: Document, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        after_enqueue(read_volcano_job(document, source="job.yaml"), [])
    assert problem in str(caught.value)


def queue(name: str, state: str = "") -> Queue:
    return Queue(metadata=AnnotatedMeta(name=name), status=QueueStatus(state=state))


CLUSTER = ClusterSnapshot(queues=[queue("open", "Open"), queue("new"), queue("closed", "Closed")])


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(job(task("a")), [], id="a good one in a queue that need not be there"),
        pytest.param(job(task("a"), queue="open"), [], id="a good one in an open queue"),
        pytest.param(job(task("a"), queue="new"), [], id="a good one in a queue without a state"),
        pytest.param(job(), ["No task specified in job spec"], id="no task"),
        pytest.param(job(task("a"), minAvailable=-1), ["job 'minAvailable' must be >= 0."], id="less than none"),
        pytest.param(
            job(task("a"), plugins={"mpi": []}),
            ["The specified mpi master task was not found"],
            id="mpi alone",
        ),
        pytest.param(
            job(task("master"), plugins={"mpi": ["--worker=w"]}),
            ["The specified mpi worker task was not found"],
            id="mpi without its worker",
        ),
        pytest.param(
            job(task("a", 2, minAvailable=3), task("A"), queue="closed"),
            [
                "'minAvailable' is greater than 'replicas' in task: a, job: train;",
                "the task name A is not a DNS label;",
                "job 'minAvailable' should not be greater than total replicas in tasks;",
                "can only submit job to queue with state `Open`, queue `closed` status is `Closed`;",
            ],
            id="several at once",
        ),
        pytest.param(
            job(task("a", -1)),
            ["job 'minAvailable' must be >= 0."],
            id="a negative number of pods",
        ),
        pytest.param(job(task("a"), task("a")), ["duplicated task name a;"], id="a name twice"),
        pytest.param(
            job(task("a"), queue="gone"),
            ['unable to find job queue: queues.scheduling.volcano.sh "gone" not found;'],
            id="no such queue",
        ),
        pytest.param(job(task("a"), plugins={"tf": []}), ["unable to find job plugin: tf;"], id="no such plugin"),
        pytest.param(
            job(task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})),
            ["job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"],
            id="tasks that wait for each other",
        ),
        pytest.param(
            job(task("a", dependsOn={"name": ["gone"]})),
            ["job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"],
            id="a task that waits for none that is there",
        ),
        pytest.param(
            job(task("a"), volumes=[{"mountPath": "/x"}]),
            ["either VolumeClaim or VolumeClaimName must be specified;"],
            id="a volume of nothing",
        ),
        pytest.param(
            job(task("a"), volumes=[{"mountPath": "/x", "volumeClaimName": "data"}]),
            ["pvc data is not found, the job will be in the Pending state until the PVC is created"],
            id="a claim that is not there",
        ),
        pytest.param(
            job(task("a"), metadata={"name": "x" * 60}),
            [f"create pod with name {'x' * 60}-a-0 validate failed;"],
            id="a name that is too long for pods",
        ),
    ],
)
def test_why_a_job_gets_no_group(document: Document, expected: list[str]) -> None:
    assert job_rejections(read_volcano_job(document), CLUSTER) == expected
