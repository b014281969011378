"""A node whose pods are replaced has the same data as one created with these pods."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import PodsByLabels
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from tests.conformance.cases import pod_of
from tests.factories import make_node

# Values computed for a node, perhaps before its pods are replaced.
COMPUTED = (
    *("pods", "pods_with_affinity", "pods_with_required_anti_affinity", "requested", "non_zero_milli_cpu"),
    *("non_zero_memory", "used_ports", "pvc_ref_counts", "labels_by_namespace"),
)
NODE = make_node("a")
TERM = {"topologyKey": "zone", "labelSelector": {}}
# Several pods, so that a removed one may leave a port, a claim or a resource to another, or to none.
SPECS: tuple[dict[str, Any], ...] = (
    {},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}},
    {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}},
)
SELECTORS = (
    LabelSelector(),
    LabelSelector(match_labels={"app": "web"}),
    LabelSelector(match_labels={"app": "db"}),
)
REQUESTS: tuple[dict[str, str], ...] = ({}, {"cpu": "500m"}, {"memory": "1Gi"}, {"cpu": "1", "example.com/gpu": "2"})


@st.composite
def drawn_pods(draw: st.DrawFn) -> list[Pod]:
    """Pods of one node."""
    documents = []
    for index in range(draw(st.integers(0, 5))):
        ports = draw(st.sampled_from(((), (), (80,), (80, 443))))
        container: dict[str, Any] = {"name": "c", "resources": {"requests": draw(st.sampled_from(REQUESTS))}}
        container["ports"] = [{"hostPort": port, "containerPort": port} for port in ports]
        metadata: dict[str, Any] = {"name": f"p{index}", "namespace": draw(st.sampled_from("xy"))}
        metadata["labels"] = draw(st.sampled_from(({}, {"app": "web"}, {"app": "db"})))
        if draw(st.integers(0, 3)) == 0:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        spec = {"nodeName": "a", "containers": [container], **draw(st.sampled_from(SPECS))}
        documents.append({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
    return [pod_of(each) for each in documents]


@settings(max_examples=300, deadline=None)
@given(drawn_pods(), drawn_pods(), st.data())
def test_what_is_known_of_a_node_is_brought_up_to_date(
    before: list[Pod], others: list[Pod], data: st.DataObject
) -> None:
    staying = data.draw(st.lists(st.sampled_from(before), unique_by=id) if before else st.just([]))
    now = data.draw(st.permutations([*staying, *others]))
    node_info = NodeInfo(NODE, before)
    looked_at = data.draw(st.lists(st.sampled_from(COMPUTED), unique=True))
    for name in looked_at:
        getattr(node_info, name)
    was = seen(NodeInfo(NODE, before))
    changed = node_info.with_pods(now)
    event("knows its pods" if "pods" in looked_at or "requested" in looked_at else "knows little")
    assert seen(changed) == seen(NodeInfo(NODE, now))
    assert seen(node_info) == was
    # Side by side, as in a dry run.
    copy = changed.snapshot()
    for info in list(copy.pods):
        copy.remove_pod(info)
    assert seen(changed) == seen(NodeInfo(NODE, now))


@settings(max_examples=200, deadline=None)
@given(drawn_pods(), drawn_pods(), st.data())
def test_counts_by_labels_follow_the_pods(before: list[Pod], others: list[Pod], data: st.DataObject) -> None:
    staying = data.draw(st.lists(st.sampled_from(before), unique_by=id) if before else st.just([]))
    now = [*staying, *others]
    counts = PodsByLabels([NodeInfo(NODE, before)])
    was = counted(counts)
    assert counted(counts.followed([("a", before, now)])) == counted(PodsByLabels([NodeInfo(NODE, now)]))
    assert counted(counts) == was


def seen(node_info: NodeInfo) -> list[object]:
    """All values computed for a node."""
    pods = [
        [info.key for info in infos]
        for infos in (node_info.pods, node_info.pods_with_affinity, node_info.pods_with_required_anti_affinity)
    ]
    requested, ports = node_info.requested, node_info.used_ports
    return [
        *pods,
        [requested.milli_cpu, requested.memory, requested.ephemeral_storage, requested.scalar],
        [node_info.non_zero_milli_cpu, node_info.non_zero_memory, node_info.num_pods],
        [ports.conflicts("", "TCP", port) for port in (80, 443)],
        node_info.pvc_ref_counts,
        node_info.labels_by_namespace,
    ]


def counted(counts: PodsByLabels) -> list[dict[str, int]]:
    """How many pods each of some selectors selects."""
    return [counts.selected(namespace, selector) for namespace in "xy" for selector in SELECTORS]
