"""The number of pods that a selector matches on a node is the same, whether cached or counted again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.versions import behavior
from tests.conformance.cases import NOW
from tests.factories import make_node, make_pod

_Drawn = tuple[str, dict[str, str], str]
NODES = [make_node("a"), make_node("b")]
REST = ClusterSnapshot(nodes=NODES)
labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]))
pods_of = st.lists(
    st.tuples(st.sampled_from(["one", "two"]), labels, st.sampled_from(["a", "b", ""])),
    max_size=8,
)


def made(drawn: list[_Drawn]) -> list[Pod]:
    return [
        make_pod(f"p{index}", namespace=namespace, labels=own, node=node)
        for index, (namespace, own, node) in enumerate(drawn)
    ]


def state(pods: list[Pod], before: ClusterState | None = None) -> ClusterState:
    cluster = before.cluster if before is not None else REST
    parts = {field: getattr(cluster, field) for field in ClusterSnapshot.__struct_fields__}
    made = ClusterSnapshot(**{**parts, "pods": pods})
    return ClusterState(made, behavior(), now=NOW, scheduler_names=frozenset(), before=before)


@given(st.lists(pods_of, min_size=2, max_size=4), labels)
def test_selected_pods_of_clusters_that_follow_one_another(
    clusters: list[list[_Drawn]], wanted: dict[str, str]
) -> None:
    selector = LabelSelector(match_labels=wanted)
    before: ClusterState | None = None
    for drawn in clusters:
        pods = made(drawn)
        before = state(pods, before)
        for namespace in ("one", "two", "none"):
            assert before.selected_pods(namespace, selector) == state(pods).selected_pods(namespace, selector)
    assert before is not None
    assert before.follows_closely
