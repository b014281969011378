"""VolumeZone: the zone and region labels of volumes against those of nodes."""

from __future__ import annotations

import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict.details import VolumeConflict
from tests.factories import decide, make_node, make_pod
from tests.volume_factories import ZONE, make_claim, make_volume, uses

REASON = "node(s) had no available volume zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def cluster(volume_labels: dict[str, str], node_labels: dict[str, str]) -> ClusterSnapshot:
    return ClusterSnapshot(
        nodes=[make_node("a", labels=node_labels)],
        persistent_volume_claims=[make_claim("data", volume="pv")],
        persistent_volumes=[make_volume("pv", labels=volume_labels)],
    )


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "fits"),
    [
        pytest.param({ZONE: "east"}, {ZONE: "east"}, True, id="the same zone"),
        pytest.param({ZONE: "east"}, {ZONE: "west"}, False, id="another zone"),
        pytest.param({ZONE: "east"}, {}, True, id="a node without zone and region takes every volume"),
        pytest.param({ZONE: "east"}, {REGION: "north"}, False, id="a node with a region but no zone"),
        pytest.param({ZONE: "east__west"}, {ZONE: "west"}, True, id="one of the volume's zones"),
        pytest.param({ZONE: "east____west"}, {ZONE: "south"}, True, id="a zone list with a gap is ignored"),
        pytest.param({BETA_ZONE: "east"}, {ZONE: "east"}, True, id="an old label on the volume, a new one on the node"),
        pytest.param(
            {ZONE: "east"}, {BETA_ZONE: "east"}, False, id="a new label on the volume, an old one on the node"
        ),
        pytest.param(
            {ZONE: "east", REGION: "n"}, {ZONE: "east", REGION: "s"}, False, id="the right zone in another region"
        ),
    ],
)
def test_labels_of_a_bound_volume(volume_labels: dict[str, str], node_labels: dict[str, str], fits: bool) -> None:
    verdict = decide(cluster(volume_labels, node_labels), make_pod("new", volumes=uses("data")))
    assert verdict.filter["a"].reasons == ([] if fits else [REASON])


def test_the_refusal_says_what_the_volume_wants_and_the_node_has() -> None:
    verdict = decide(cluster({ZONE: "east"}, {ZONE: "west"}), make_pod("new", volumes=uses("data")))
    assert verdict.filter["a"].detail == VolumeConflict(
        claim="shop/data", volume="pv", problem=f"needs {ZONE}=east, but the node has west"
    )


def test_a_claim_bound_to_a_volume_that_does_not_exist_refuses_the_pod() -> None:
    snapshot = ClusterSnapshot(nodes=[make_node("a")], persistent_volume_claims=[make_claim("data", volume="gone")])
    verdict = decide(snapshot, make_pod("new", volumes=uses("data")))
    assert verdict.message == '0/1 nodes are available: persistentvolume "gone" not found. not found'
