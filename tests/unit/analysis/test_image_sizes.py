"""Sizes of images in a redacted dump: no more exact than the scores of its pods need, which stay the same."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.analysis.algorithms import AnalysisContext
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.image_sizes import ImageSizes
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import ContainerImage, Node
from kpreempt.model.pod import Container, ImageVolume, Pod, Volume
from kpreempt.model.volcano import Queue
from kpreempt.scheduler_table import RELEASES
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import Handle
from kpreempt.schedulers.kube.plugins.image_locality import ImageLocality
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import AssumptionKind
from tests.factories import NOW, make_node, make_pod

MIB = 2**20
NAMES = ("a:1", "b:1", "c:latest", "d:1", "e:1")
_sizes = st.one_of(st.integers(1, 3000 * MIB), st.sampled_from((23 * MIB, 1000 * MIB, 2**24, 5, 0)))


def node_with(name: str, *images: ContainerImage) -> Node:
    node = make_node(name)
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, images=list(images)))


def pod_of(name: str, *images: str, init: tuple[str, ...] = (), volumes: tuple[str, ...] = ()) -> Pod:
    return make_pod(
        name,
        containers=[Container(name=f"c{index}", image=each) for index, each in enumerate(images)],
        init_containers=[Container(name=f"i{index}", image=each) for index, each in enumerate(init)],
        volumes=[Volume(name=f"v{index}", image=ImageVolume(each)) for index, each in enumerate(volumes)],
    )


def rounded(cluster: ClusterSnapshot) -> ClusterSnapshot:
    sizes = ImageSizes(cluster)
    nodes = [
        msgspec.structs.replace(
            each, status=msgspec.structs.replace(each.status, images=sizes.rounded(each.status.images))
        )
        for each in cluster.nodes
    ]
    return msgspec.structs.replace(cluster, nodes=nodes)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    of_name = {name: draw(_sizes) for name in NAMES}
    of_node = st.builds(
        lambda name, own: ContainerImage([name], own or of_name[name]),
        st.sampled_from(NAMES),
        st.one_of(st.none(), st.none(), st.none(), _sizes),
    )
    images = st.lists(of_node, max_size=4, unique_by=lambda image: image.names[0])
    nodes = [node_with(f"n{index}", *draw(images)) for index in range(draw(st.integers(1, 5)))]
    some = st.lists(st.sampled_from((*NAMES, "c", "nowhere")), max_size=3).map(tuple)
    pods = [pod_of(f"p{index}", *draw(some), init=draw(some), volumes=draw(some)) for index in range(3)]
    return ClusterSnapshot(nodes=nodes, pods=pods)


@given(clusters(), st.sampled_from(list(RELEASES)), st.booleans())
def test_every_score_stays_and_is_known(cluster: ClusterSnapshot, version: str, is_queued: bool) -> None:
    reported = []
    for each in (cluster, rounded(cluster)):
        facts = behavior(version)
        state = ClusterState(each, facts, now=NOW, scheduler_names=frozenset(), is_queued=is_queued)
        rater = ImageLocality({}, Handle(state, facts))
        pairs = [(pod, node_info) for pod in each.pods for node_info in state.node_infos]
        assert all(rater.is_certain(*pair) for pair in pairs)
        reported.append([rater.score(CycleState(), *pair) for pair in pairs])
    assert reported[0] == reported[1]


@given(clusters())
def test_what_is_rounded_once_stays_so(cluster: ClusterSnapshot) -> None:
    once = rounded(cluster)
    assert rounded(once) == once


def test_images_that_no_pod_names_are_left_out() -> None:
    images = [ContainerImage(["unused:1"], 7), ContainerImage(["used@sha256:0", "used:latest", "used"], 50 * MIB)]
    cluster = rounded(ClusterSnapshot(nodes=[node_with("n", *images)], pods=[pod_of("p", "used")]))
    assert [each.names for each in cluster.nodes[0].status.images] == [["used:latest"]]


def test_sizes_are_rounded_to_mebibytes() -> None:
    sizes = [5_157_106 + number * 7_654_321 for number in range(100)]
    cells = []
    for size in sizes:
        node = node_with("n", ContainerImage(["a:1"], size))
        [image] = rounded(ClusterSnapshot(nodes=[node], pods=[pod_of("p", "a:1")])).nodes[0].status.images
        assert image.size_bytes <= size <= image.size_bytes_up_to
        cells.append(image.size_bytes_up_to - image.size_bytes + 1)
    assert sorted(cells)[len(cells) // 2] == 4 * MIB
    assert sum(cell < MIB for cell in cells) < len(cells) // 5


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(
            ClusterSnapshot(
                nodes=[node_with("n", ContainerImage(["a:1"], 55_157_106)), node_with("m", ContainerImage(["a:1"], 7))]
            ),
            id="nodes that do not agree",
        ),
        pytest.param(
            ClusterSnapshot(nodes=[node_with("n", ContainerImage(["a:1"], 55_157_106))], queues=[Queue()]),
            id="Volcano, which scores over other nodes",
        ),
    ],
)
def test_sizes_stay_exact_where_scores_cannot_be_foreseen(cluster: ClusterSnapshot) -> None:
    cluster = msgspec.structs.replace(cluster, pods=[pod_of("p", "a:1")])
    assert rounded(cluster) == cluster


def assumed(cluster: ClusterSnapshot, pod: Pod) -> list[str]:
    verdict = explain_pods(AnalysisContext(cluster, KubeScheduler(), NOW), [ExplainInput(pod=pod)])[0]
    return [each.message for each in verdict.assumptions if each.kind is AssumptionKind.UNCERTAIN]


def test_a_score_over_other_nodes_that_depends_on_rounding_is_uncertain() -> None:
    pod = pod_of("p", "a:1")
    nodes = [node_with("n", ContainerImage(["a:1"], 700 * MIB)), node_with("m")]
    nodes = rounded(ClusterSnapshot(nodes=nodes, pods=[pod])).nodes
    assert assumed(ClusterSnapshot(nodes=nodes), pod) == []
    more = ClusterSnapshot(nodes=[*nodes, *map(make_node, "xyz")])
    message = "image sizes are rounded in a redacted snapshot; with the real sizes another node might score best"
    assert assumed(more, pod) == [message]
    # A single node is taken without scores.
    assert assumed(ClusterSnapshot(nodes=nodes[:1]), pod) == []
