"""VolumeRestrictions: in-line disks that are in use, and claims for one pod at a time."""

from __future__ import annotations

import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import AWSElasticBlockStore, GCEPersistentDisk, ISCSIVolume, RBDVolume, Volume
from kpreempt.verdict import Code, Outcome
from kpreempt.verdict.details import VolumeConflict
from tests.factories import decide, make_node, make_pod
from tests.volume_factories import make_claim, make_volume, uses

REASON_DISK = "node(s) had no available disk"
REASON_ONE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def gce(name: str, *, read_only: bool) -> Volume:
    return Volume(gce_persistent_disk=GCEPersistentDisk(name, read_only))


def iscsi(iqn: str, *, read_only: bool) -> Volume:
    return Volume(iscsi=ISCSIVolume(iqn, read_only))


def rbd(monitors: str, image: str, *, read_only: bool, pool: str = "rbd") -> Volume:
    return Volume(rbd=RBDVolume(list(monitors), image, pool, read_only))


def aws(volume_id: str, *, read_only: bool = False) -> Volume:
    return Volume(aws_elastic_block_store=AWSElasticBlockStore(volume_id, read_only))


@pytest.mark.parametrize(
    ("wanted", "existing", "conflicts"),
    [
        pytest.param(gce("d", read_only=False), gce("d", read_only=True), True, id="a GCE disk that one pod writes"),
        pytest.param(gce("d", read_only=True), gce("d", read_only=True), False, id="a GCE disk that all only read"),
        pytest.param(gce("d", read_only=False), gce("e", read_only=False), False, id="two GCE disks"),
        pytest.param(aws("v", read_only=True), aws("v", read_only=True), True, id="an EBS volume, even read-only"),
        pytest.param(iscsi("q", read_only=True), iscsi("q", read_only=False), True, id="an iSCSI target, one writes"),
        pytest.param(iscsi("q", read_only=True), iscsi("q", read_only=True), False, id="an iSCSI target, all read"),
        pytest.param(
            rbd("ab", "i", read_only=False),
            rbd("bc", "i", read_only=False),
            True,
            id="an RBD image, one monitor shared",
        ),
        pytest.param(
            rbd("ab", "i", read_only=False), rbd("cd", "i", read_only=False), False, id="RBD images of two clusters"
        ),
        pytest.param(
            rbd("ab", "i", read_only=False),
            rbd("ab", "i", read_only=False, pool="p"),
            False,
            id="RBD images of two pools",
        ),
        pytest.param(gce("v", read_only=False), aws("v"), False, id="disks of two kinds with one name"),
    ],
)
def test_in_line_disks_on_one_node(wanted: Volume, existing: Volume, conflicts: bool) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a")], pods=[make_pod("old", node="a", volumes=[existing])])
    status = decide(cluster, make_pod("new", volumes=[wanted])).filter["a"]
    assert status.reasons == ([REASON_DISK] if conflicts else [])
    assert status.code == (Code.UNSCHEDULABLE if conflicts else Code.SUCCESS)


def test_a_disk_in_use_names_the_pods_that_hold_it() -> None:
    holder = make_pod("old", node="a", volumes=[aws("vol-1")])
    verdict = decide(ClusterSnapshot(nodes=[make_node("a")], pods=[holder]), make_pod("new", volumes=[aws("vol-1")]))
    assert verdict.filter["a"].detail == VolumeConflict(
        volume="EBS volume vol-1", problem="in use on the node", holders=["shop/old"]
    )


def one_pod_cluster(*, holder_priority: int = 0) -> ClusterSnapshot:
    """Nodes ``a`` and ``b``; a pod on ``a`` holds the only claim, which is for one pod at a time."""
    return ClusterSnapshot(
        nodes=[make_node("a"), make_node("b")],
        pods=[make_pod("old", node="a", priority=holder_priority, volumes=uses("data"))],
        persistent_volume_claims=[make_claim("data", volume="pv", modes=["ReadWriteOncePod"])],
        persistent_volumes=[make_volume("pv")],
    )


def test_a_claim_for_one_pod_in_use_refuses_every_node() -> None:
    verdict = decide(one_pod_cluster(holder_priority=100), make_pod("new", priority=10, volumes=uses("data")))
    assert [status.reasons for status in verdict.filter.values()] == [[REASON_ONE_POD]] * 2
    assert verdict.filter["b"].detail == VolumeConflict(
        claim="shop/data", problem="ReadWriteOncePod (one pod at a time)", holders=["shop/old"]
    )


def test_evicting_the_holder_frees_a_claim_for_one_pod_on_its_node_only() -> None:
    verdict = decide(one_pod_cluster(), make_pod("new", priority=10, volumes=uses("data")))
    assert verdict.outcome == Outcome.PREEMPTS
    assert [(each.node, each.victims) for each in verdict.candidates] == [("a", ["shop/old"])]


def test_a_pod_of_another_namespace_with_a_claim_of_the_same_name_is_no_holder() -> None:
    cluster = one_pod_cluster()
    other = ClusterSnapshot(
        nodes=cluster.nodes,
        pods=[make_pod("old", namespace="bank", node="a", volumes=uses("data"))],
        persistent_volume_claims=cluster.persistent_volume_claims,
        persistent_volumes=cluster.persistent_volumes,
    )
    assert decide(other, make_pod("new", volumes=uses("data"))).outcome == Outcome.LANDS


def test_a_missing_claim_refuses_the_pod_before_any_node_is_looked_at() -> None:
    verdict = decide(ClusterSnapshot(nodes=[make_node("a")]), make_pod("new", volumes=uses("data")))
    assert verdict.pre_filter is not None
    assert verdict.pre_filter.plugin == "VolumeRestrictions"
    assert verdict.message == '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
