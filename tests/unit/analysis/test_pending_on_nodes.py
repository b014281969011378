"""Why pods that have a node are still pending: each cause, what is said of it, and how many there are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.pending.on_nodes import NodeReports
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.event import Event, ObjectReference
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.node import Node, NodeCondition
from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolumeClaim, StorageClass
from kpreempt.report.answers import render_answer
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.pending.on_nodes import describe
from kpreempt.verdict.waiting import ClaimState, OnNodeCause, PendingOnNode
from tests.factories import NOW, make_node, make_pod, owned

MINUTE = timedelta(minutes=1)
CLAIMED = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
LATE = StorageClass(metadata=AnnotatedMeta(name="late"), provisioner="x", volume_binding_mode="WaitForFirstConsumer")
NOT_READ = Unread(0, "persistentvolumeclaims")


def pod_on(node: str = "n1", name: str = "web", **status: Any) -> Pod:
    """A pod in phase Pending on a node; the rest is its status in the API's form."""
    pod = make_pod(name, node=node, phase="Pending", cpu="1")
    spec = {"containers": [{"name": "main", "image": "r.example/app:1"}], "initContainers": status.pop("init", [])}
    spec |= {"nodeName": node, "volumes": status.pop("volumes", [])}
    document = {
        "metadata": {"name": name, "namespace": "shop", "uid": pod.metadata.uid, "creationTimestamp": NOW - 9 * MINUTE},
        "spec": spec,
        "status": {"phase": "Pending", **status},
    }
    return msgspec.convert(document, Pod)


def waiting(reason: str, message: str = "", name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}, **more}


def event(reason: str, text: str, minutes: int, pod: str = "web") -> Event:
    subject = ObjectReference("Pod", "shop", pod, f"uid-shop-{pod}")
    return Event(type="Warning", reason=reason, regarding=subject, note=text, event_time=NOW - minutes * MINUTE)


def node(name: str = "n1", ready: str = "True", message: str = "") -> Node:
    condition = NodeCondition("Ready", ready, "", message, NOW - 5 * MINUTE)
    made = make_node(name)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, conditions=[condition]))


def claim(phase: str = "Pending", volume: str = "", selected: str = "") -> PersistentVolumeClaim:
    annotations = {"volume.kubernetes.io/selected-node": selected} if selected else {}
    return msgspec.convert(
        {
            "metadata": {"name": "data", "namespace": "shop", "annotations": annotations},
            "spec": {"storageClassName": "late", "volumeName": volume},
            "status": {"phase": phase},
        },
        PersistentVolumeClaim,
    )


def why(pod: Pod, **parts: Any) -> PendingOnNode:
    cluster = ClusterSnapshot(
        **{"nodes": [node()], "pods": [pod], "storage_classes": [LATE], "listed": ("Node",), **parts}
    )
    return NodeReports(cluster).why(pod)


CREATING = [waiting("ContainerCreating")]
STARTED = pod_on(startTime=NOW - 4 * MINUTE, containerStatuses=CREATING)
INIT = [{"name": "wait-for-db"}]
MOUNT = event("FailedMount", 'MountVolume.SetUp failed for volume "d": secret "tls" not found', 3)
SANDBOX = event("FailedCreatePodSandBox", "no IP addresses available in network", 2)
PULL = event("Failed", 'Failed to pull image "r.example/app:1": not found', 1)


@pytest.mark.parametrize(
    ("pod", "parts", "cause", "status", "said"),
    [
        pytest.param(
            pod_on(), {}, OnNodeCause.NOT_ACCEPTED, "Pending",
            "created 9m ago, and the kubelet of n1 has not reported on it", id="no kubelet has reported",
        ),
        pytest.param(
            STARTED, {}, OnNodeCause.STARTING, "ContainerCreating",
            "the kubelet has been starting it for 4m; the input has no events that say why", id="nothing is known",
        ),
        pytest.param(
            STARTED, {"events": [event("Failed", "x", 1, "other")]},
            OnNodeCause.STARTING, "ContainerCreating",
            "the kubelet has been starting it for 4m; no event in the input says what it waits for",
            id="the events are about other pods",
        ),
        pytest.param(
            pod_on(containerStatuses=CREATING), {"events": [MOUNT]}, OnNodeCause.VOLUME, "ContainerCreating",
            'FailedMount 3m ago: MountVolume.SetUp failed for volume "d": secret "tls" not found', id="a volume",
        ),
        pytest.param(
            pod_on(containerStatuses=CREATING), {"events": [SANDBOX, MOUNT]}, OnNodeCause.SANDBOX, "ContainerCreating",
            "FailedCreatePodSandBox 2m ago: no IP addresses available in network", id="the last report counts",
        ),
        pytest.param(
            pod_on(containerStatuses=[waiting("ErrImagePull", "not found")]), {"events": [MOUNT]},
            OnNodeCause.IMAGE, "ErrImagePull",
            "ErrImagePull (container main, image r.example/app:1): not found", id="an image, which comes after volumes",
        ),
        pytest.param(
            pod_on(containerStatuses=[waiting("ImagePullBackOff", "Back-off pulling image")]), {"events": [PULL]},
            OnNodeCause.IMAGE, "ImagePullBackOff",
            'ImagePullBackOff (container main): Failed to pull image "r.example/app:1": not found',
            id="back-off, whose error only the event has",
        ),
        pytest.param(
            pod_on(containerStatuses=[waiting("CreateContainerConfigError", 'configmap "env" not found')]), {},
            OnNodeCause.CONTAINER, "CreateContainerConfigError",
            'CreateContainerConfigError (container main): configmap "env" not found', id="a missing ConfigMap",
        ),
        pytest.param(
            pod_on(
                init=INIT,
                initContainerStatuses=[
                    waiting(
                        "CrashLoopBackOff", "back-off 5m0s", "wait-for-db", restartCount=6,
                        lastState={"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": NOW - 3 * MINUTE}},
                    )
                ],
                containerStatuses=[waiting("PodInitializing")],
            ),
            {}, OnNodeCause.FAILING_CONTAINER, "Init:CrashLoopBackOff",
            "init container wait-for-db failed with exit code 1 3m ago, 6 restarts: back-off 5m0s",
            id="an init container in a crash loop",
        ),
        pytest.param(
            pod_on(
                init=INIT,
                initContainerStatuses=[{"name": "wait-for-db", "state": {"running": {"startedAt": NOW - 4 * MINUTE}}}],
                containerStatuses=[waiting("PodInitializing")],
            ),
            {}, OnNodeCause.INIT_CONTAINER, "Init:0/1",
            "init container wait-for-db has been running for 4m; the others start after it", id="an init container",
        ),
        pytest.param(
            pod_on(
                init=INIT,
                initContainerStatuses=[{"name": "wait-for-db", "state": {"terminated": {"exitCode": 0}}}],
                containerStatuses=[waiting("ErrImageNeverPull", "is not present")],
            ),
            {}, OnNodeCause.IMAGE, "ErrImageNeverPull",
            "ErrImageNeverPull (container main, image r.example/app:1): is not present",
            id="a completed init container does not count",
        ),
        pytest.param(
            pod_on(),
            {"nodes": [node(ready="Unknown", message="Kubelet stopped posting node status.")]},
            OnNodeCause.NODE_NOT_READY, "Pending",
            "node n1 has not been ready for 5m (Kubelet stopped posting node status); nothing starts there until it is",
            id="a node that is not ready",
        ),
        pytest.param(
            pod_on("gone"), {}, OnNodeCause.NODE_MISSING, "Pending",
            "the cluster has no node gone, so nothing starts the pod", id="a node that does not exist",
        ),
        pytest.param(
            pod_on("gone"), {"listed": ()}, OnNodeCause.NOT_ACCEPTED, "Pending",
            "created 9m ago, and the kubelet of gone has not reported on it",
            id="a node that is not in an input that may lack nodes",
        ),
        pytest.param(
            pod_on(volumes=CLAIMED), {"persistent_volume_claims": [claim()]}, OnNodeCause.UNBOUND_CLAIM, "Pending",
            "the scheduler never sees it, because spec.nodeName is set, so it selects no node for PersistentVolumeClaim"
            " shop/data (class late: WaitForFirstConsumer)",
            id="a claim that waits for the scheduler",
        ),
        pytest.param(
            pod_on(volumes=CLAIMED), {"persistent_volume_claims": [claim(selected="n1")], "events": [MOUNT]},
            OnNodeCause.UNBOUND_CLAIM, "Pending",
            "PersistentVolumeClaim shop/data (class late) is not bound; FailedMount 3m ago: MountVolume.SetUp failed"
            ' for volume "d": secret "tls" not found',
            id="a claim for which a node was selected",
        ),
        pytest.param(
            pod_on(volumes=CLAIMED), {"persistent_volume_claims": [claim("Lost", "pv")]}, OnNodeCause.UNBOUND_CLAIM,
            "Pending", "PersistentVolumeClaim shop/data has lost its volume", id="a lost claim",
        ),
        pytest.param(
            pod_on(volumes=CLAIMED), {}, OnNodeCause.UNBOUND_CLAIM, "Pending",
            "PersistentVolumeClaim shop/data does not exist", id="a missing claim",
        ),
        pytest.param(
            pod_on(volumes=CLAIMED), {"unread": {"PersistentVolumeClaim": NOT_READ}},
            OnNodeCause.NOT_ACCEPTED, "Pending", "created 9m ago, and the kubelet of n1 has not reported on it",
            id="claims that were not read are not missing",
        ),
        pytest.param(
            pod_on(volumes=CLAIMED), {"persistent_volume_claims": [claim("Bound", "pv")]}, OnNodeCause.NOT_ACCEPTED,
            "Pending", "created 9m ago, and the kubelet of n1 has not reported on it", id="a bound claim",
        ),
    ],
)  # fmt: skip
def test_what_a_pod_on_a_node_waits_for(
    pod: Pod, parts: dict[str, Any], cause: OnNodeCause, status: str, said: str
) -> None:
    found = why(pod, **parts)
    assert (found.cause, found.status, describe(found, NOW)) == (cause, status, said)


def test_a_terminating_pod_is_not_said_to_wait() -> None:
    pod = pod_on(containerStatuses=[waiting("ErrImagePull")])
    metadata = msgspec.structs.replace(
        pod.metadata, deletion_timestamp=NOW, deletion_grace_period_seconds=30, finalizers=["example.com/hold"]
    )
    found = why(msgspec.structs.replace(pod, metadata=metadata))
    assert (found.cause, found.status) == (OnNodeCause.TERMINATING, "Terminating")
    assert describe(found, NOW) == "it is terminating for 30s; finalizer example.com/hold"


def test_a_claim_that_waits_for_the_scheduler_is_told_from_others() -> None:
    assert why(pod_on(volumes=CLAIMED), persistent_volume_claims=[claim()]).claim_state is ClaimState.NO_NODE_SELECTED


def ask(*pods: Pod, is_selected: Any = lambda _: True, namespace: str = "", **parts: Any) -> str:
    cluster = ClusterSnapshot(nodes=[node()], pods=list(pods), **parts)
    context = AnalysisContext(cluster, scheduler_for(), NOW, at=NOW)
    found = explain_pending(context, is_selected=is_selected, namespace=namespace, draws=DRAWS)
    return render_answer(found, "text", RenderOptions(extent=Extent.SCREEN, width=200))


def test_pods_on_nodes_are_counted_after_those_that_wait_for_the_scheduler() -> None:
    pulls = [
        owned(pod_on(name=f"web-{i}", containerStatuses=[waiting("ErrImagePull")]), "ReplicaSet", "web") for i in (1, 2)
    ]
    text = ask(make_pod("new", cpu="1"), *pulls, pod_on(name="cold"))
    assert (
        "3 more are pending on their nodes: 2 can't pull an image, 1 is not accepted by the kubelet yet."
        in text.splitlines()[0]
    )
    assert "shop/web-1 +1" in text


def test_without_pods_in_the_queue_the_first_sentence_says_so() -> None:
    two = [pod_on(name="a"), pod_on(name="b")]
    assert ask(*two).startswith("No pod waits for the scheduler; 2 pods are pending on their nodes: 2 are not accepted")
    assert ask(two[0]).startswith("No pod waits for the scheduler; shop/a is pending on its node n1: created 9m ago")
    text = ask(*two, is_selected=lambda pod: pod.metadata.namespace == "other", namespace="other")
    assert "2 pods are pending in another namespace: shop (2)" in text


def test_running_and_finished_pods_are_not_pending() -> None:
    assert ask(make_pod("a", node="n1"), make_pod("b", node="n1", phase="Failed")).startswith("No pod is pending.")


def test_the_wide_table_has_the_pods_on_nodes_as_well() -> None:
    cluster = ClusterSnapshot(nodes=[node()], pods=[pod_on(name="cold"), make_pod("new", cpu="1")])
    found = explain_pending(AnalysisContext(cluster, scheduler_for(), NOW, at=NOW), draws=DRAWS)
    lines = render_answer(found, "wide", RenderOptions()).splitlines()
    assert any(line.split()[:3] == ["shop/cold", "n1", "Pending"] for line in lines)
