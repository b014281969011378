"""NodeVolumeLimits: how many volumes of a CSI driver a node takes."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import AnnotatedMeta, ObjectMeta, OwnerReference
from kpreempt.model.pod import AWSElasticBlockStore, EphemeralVolume, GCEPersistentDisk, Pod, Volume
from kpreempt.model.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSIPersistentVolume,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import Outcome, Verdict
from kpreempt.verdict.details import VolumeLimitExceeded
from tests.factories import NOW, decide, make_node, make_pod
from tests.volume_factories import DRIVER, make_claim, make_class, make_csi_node, make_volume, uses

REASON = "node(s) exceed max volume count"
EBS = "ebs.csi.aws.com"


def bound(*names: str) -> tuple[list[PersistentVolumeClaim], list[PersistentVolume]]:
    """Claims, each bound to a separate volume."""
    return [make_claim(name, volume=f"pv-{name}") for name in names], [make_volume(f"pv-{name}") for name in names]


def cluster(*running: Pod, limit: int | None = 2, **more: Any) -> ClusterSnapshot:
    """Node ``a``, which takes ``limit`` volumes; claims ``one`` to ``four`` are bound, to different volumes."""
    claims, volumes = bound("one", "two", "three", "four")
    more.setdefault("csi_nodes", [make_csi_node("a", {DRIVER: limit})])
    more["persistent_volume_claims"] = [*claims, *more.pop("claims", [])]
    more["persistent_volumes"] = [*volumes, *more.pop("volumes", [])]
    return ClusterSnapshot(nodes=[make_node("a")], pods=list(running), **more)


def attached(volume: str, node: str = "a") -> VolumeAttachment:
    return VolumeAttachment(
        ObjectMeta(name=f"att-{volume}"), VolumeAttachmentSpec(DRIVER, node, VolumeAttachmentSource(volume))
    )


def reasons(verdict: Verdict) -> list[str]:
    return verdict.filter["a"].reasons


OLD = make_pod("old", node="a", volumes=uses("one", "two"))


@pytest.mark.parametrize(
    ("snapshot", "claims", "fits"),
    [
        pytest.param(cluster(OLD), ["three"], False, id="one more than the limit"),
        pytest.param(cluster(OLD, limit=3), ["three"], True, id="exactly the limit"),
        pytest.param(cluster(OLD), ["one", "two"], True, id="volumes that the node has already are not new"),
        pytest.param(cluster(OLD, limit=None), ["three", "four"], True, id="a driver without a limit takes any number"),
        pytest.param(cluster(OLD, csi_nodes=[]), ["three"], True, id="a node without CSINode has no limits"),
        pytest.param(
            cluster(volume_attachments=[attached("pv-one"), attached("pv-two")]),
            ["three"],
            False,
            id="volumes that are attached without a pod count",
        ),
        pytest.param(
            cluster(OLD, limit=3, volume_attachments=[attached("pv-one"), attached("pv-two")]),
            ["three"],
            True,
            id="attached volumes of pods count once",
        ),
        pytest.param(
            cluster(volume_attachments=[attached("pv-three", "b"), attached("pv-four", "b")]),
            ["one", "two"],
            True,
            id="attachments of other nodes do not count",
        ),
        pytest.param(
            cluster(
                OLD,
                claims=[make_claim("new", storage_class="fast")],
                storage_classes=[make_class("fast", provisioner=DRIVER)],
            ),
            ["new"],
            False,
            id="a claim without a volume counts as one of its provisioner's",
        ),
        pytest.param(
            cluster(
                OLD,
                claims=[make_claim("new", volume="pv-new")],
                volumes=[make_volume("pv-new", csi=CSIPersistentVolume("other.example.com", "h"))],
            ),
            ["new"],
            True,
            id="volumes of another driver do not count",
        ),
        pytest.param(
            cluster(make_pod("lost", node="a", volumes=uses("gone", "one"))),
            ["two"],
            True,
            id="missing claims of running pods do not count",
        ),
    ],
)
def test_volumes_against_the_limit(snapshot: ClusterSnapshot, claims: list[str], fits: bool) -> None:
    assert reasons(decide(snapshot, make_pod("new", volumes=uses(*claims)))) == ([] if fits else [REASON])


def test_the_refusal_says_how_many_volumes_there_are_and_would_be() -> None:
    verdict = decide(cluster(OLD, limit=3), make_pod("new", volumes=uses("three", "four")))
    assert verdict.filter["a"].detail == VolumeLimitExceeded(driver=DRIVER, used=2, requested=2, limit=3)


def test_evicting_a_pod_frees_its_volumes() -> None:
    verdict = decide(cluster(OLD), make_pod("new", priority=10, volumes=uses("three")))
    assert verdict.outcome == Outcome.PREEMPTS
    assert verdict.candidates[0].victims == ["shop/old"]


def test_in_line_disks_count_for_the_driver_that_took_their_place() -> None:
    disks = [
        Volume(name="one", aws_elastic_block_store=AWSElasticBlockStore("aws://zone/vol-1")),
        Volume(name="two", aws_elastic_block_store=AWSElasticBlockStore("vol-2")),
    ]
    small = cluster(csi_nodes=[make_csi_node("a", {EBS: 1})])
    detail = decide(small, make_pod("new", volumes=disks)).filter["a"].detail
    assert detail == VolumeLimitExceeded(driver=EBS, used=0, requested=2, limit=1)


def test_an_in_tree_volume_and_its_csi_counterpart_are_one() -> None:
    csi = PersistentVolume(
        AnnotatedMeta(name="pv-csi"),
        PersistentVolumeSpec(csi=CSIPersistentVolume("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/z/disks/d")),
    )
    in_tree = make_volume(
        "pv-tree", gce_persistent_disk=GCEPersistentDisk("d"), labels={"topology.kubernetes.io/zone": "z"}
    )
    snapshot = cluster(
        make_pod("old", node="a", volumes=uses("csi")),
        claims=[make_claim("csi", volume="pv-csi"), make_claim("tree", volume="pv-tree")],
        volumes=[csi, in_tree],
        csi_nodes=[make_csi_node("a", {"pd.csi.storage.gke.io": 1})],
    )
    assert reasons(decide(snapshot, make_pod("new", volumes=uses("tree")))) == []


def test_an_ephemeral_claim_of_another_pod_ends_in_an_error() -> None:
    owner = OwnerReference(kind="Pod", name="other", uid="uid-other", controller=True)
    running = make_pod("old", node="a", volumes=[Volume(name="tmp", ephemeral=EphemeralVolume())])
    snapshot = cluster(running, claims=[make_claim("old-tmp", volume="pv-one", owner_references=[owner])])
    verdict = decide(snapshot, make_pod("new", volumes=uses("two")))
    assert verdict.message == (
        'running "NodeVolumeLimits" filter plugin: PVC shop/old-tmp was not created for pod shop/old (pod is not owner)'
    )


@pytest.mark.parametrize("is_on", [True, False], ids=["with the gate on", "with the gate off"])
def test_a_driver_that_must_be_installed_holds_pods_back_only_under_its_gate(is_on: bool) -> None:
    snapshot = cluster(
        csi_nodes=[make_csi_node("a")],
        csi_drivers=[CSIDriver(ObjectMeta(name=DRIVER), CSIDriverSpec(prevent_pod_scheduling_if_missing=True))],
    )
    scheduler = KubeScheduler(behavior=behavior(gates={"VolumeLimitScaling": is_on}))
    verdict = scheduler.decide(scheduler.prepare(snapshot, now=NOW), make_pod("new", volumes=uses("one")))
    assert reasons(verdict) == ([f"{DRIVER} CSI driver is not installed on the node"] if is_on else [])
