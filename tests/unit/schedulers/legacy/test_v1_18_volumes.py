"""kube-scheduler 1.18: claims and volumes, and how many of them a node takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import AWSElasticBlockStore, GCEPersistentDisk, Volume
from kpreempt.model.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kpreempt.schedulers.disks import csi_limit_key
from kpreempt.schedulers.legacy.factory import legacy_scheduler
from kpreempt.verdict import Assumption, AssumptionKind, Code, Verdict
from tests.factories import NOW, make_node, make_pod
from tests.volume_factories import (
    DRIVER,
    SELECTED_NODE,
    ZONE,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    uses,
)

FINAL, MENDABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
NOWHERE = "node(s) didn't find available persistent volumes to bind"
ELSEWHERE = "node(s) had volume node affinity conflict"
TOO_MANY = "node(s) exceed max volume count"


def decide(
    claims: list[PersistentVolumeClaim],
    volumes: list[PersistentVolume],
    *,
    node: Node | None = None,
    mounts: list[Volume] | None = None,
    **cluster: Any,
) -> Verdict:
    """The verdict on a pod that uses all claims, in a cluster of one node."""
    cluster.setdefault("storage_classes", [make_class()])
    snapshot = ClusterSnapshot(
        nodes=[node or make_node("n1", labels={ZONE: "a", BETA_ZONE: "a"})],
        persistent_volume_claims=claims,
        persistent_volumes=volumes,
        **cluster,
    )
    names = [claim.metadata.name for claim in claims if claim.metadata.name != "other"]
    scheduler = legacy_scheduler("kube-1.18")
    pod = make_pod("p", priority=9, volumes=mounts if mounts is not None else uses(*names))
    return scheduler.decide(scheduler.prepare(snapshot, now=NOW), pod)


def gce(name: str) -> Volume:
    return Volume(name=name, gce_persistent_disk=GCEPersistentDisk(name))


def kept_for(name: str) -> ObjectReference:
    return ObjectReference("shop", name)


FITTING: list[tuple[str, dict[str, Any]]] = [
    ("a bound volume in reach", {"claims": [make_claim("c", volume="v")], "volumes": [make_volume("v", zone="a")]}),
    ("a claim finds a volume", {"claims": [make_claim("c")], "volumes": [make_volume("v", zone="a")]}),
    (
        "two claims find one each, the small one the small one",
        {
            "claims": [make_claim("c", size="5Gi"), make_claim("d", size="1Gi")],
            "volumes": [make_volume("v", size="5Gi"), make_volume("w", size="1Gi")],
        },
    ),
    (
        "a volume that is kept for the claim need not be available",
        {"claims": [make_claim("c")], "volumes": [make_volume("v", phase="Bound", claim_ref=kept_for("c"))]},
    ),
    (
        "a volume can be made",
        {"claims": [make_claim("c")], "volumes": [], "storage_classes": [make_class(provisioner=DRIVER, zones=["a"])]},
    ),
    (
        "the volume is to be made here",
        {
            "claims": [make_claim("c", annotations={SELECTED_NODE: "n1"})],
            "volumes": [],
            "storage_classes": [make_class(provisioner=DRIVER)],
        },
    ),
    (
        "a volume in several zones",
        {
            "claims": [make_claim("c", volume="v")],
            "volumes": [make_volume("v", labels={BETA_ZONE: "b__a"})],
        },
    ),
    (
        "a node without zones takes volumes of any",
        {
            "claims": [make_claim("c", volume="v")],
            "volumes": [make_volume("v", labels={BETA_ZONE: "b"})],
            "node": make_node("n1"),
        },
    ),
    ("sixteen GCE disks", {"claims": [], "volumes": [], "mounts": [gce(f"d{index}") for index in range(16)]}),
    (
        "a driver's limit that is not reached",
        {
            "claims": [make_claim("c", volume="v")],
            "volumes": [make_volume("v")],
            "csi_nodes": [make_csi_node("n1", {DRIVER: 1})],
        },
    ),
]

REFUSED: list[tuple[str, dict[str, Any], Code, list[str]]] = [
    (
        "a bound volume out of reach",
        {"claims": [make_claim("c", volume="v")], "volumes": [make_volume("v", zone="b")]},
        FINAL,
        [ELSEWHERE],
    ),
    (
        "a claim bound to a volume that there is not",
        {"claims": [make_claim("c", volume="v")], "volumes": []},
        FINAL,
        ["pvc(s) bound to non-existent pv(s)"],
    ),
    ("no volume for a claim", {"claims": [make_claim("c")], "volumes": []}, FINAL, [NOWHERE]),
    (
        "one volume for two claims",
        {"claims": [make_claim("c"), make_claim("d")], "volumes": [make_volume("v")]},
        FINAL,
        [NOWHERE],
    ),
    (
        "a volume out of reach, and none to bind",
        {"claims": [make_claim("c", volume="v"), make_claim("d")], "volumes": [make_volume("v", zone="b")]},
        FINAL,
        [ELSEWHERE, NOWHERE],
    ),
    (
        "a volume kept for the claim in another zone, whatever else there is",
        {
            "claims": [make_claim("c")],
            "volumes": [make_volume("v", zone="b", claim_ref=kept_for("c")), make_volume("w")],
        },
        FINAL,
        [NOWHERE],
    ),
    (
        "the volume is to be made elsewhere",
        {"claims": [make_claim("c", annotations={SELECTED_NODE: "n2"})], "volumes": [make_volume("v")]},
        FINAL,
        [NOWHERE],
    ),
    (
        "a volume cannot be made in this zone",
        {"claims": [make_claim("c")], "volumes": [], "storage_classes": [make_class(provisioner=DRIVER, zones=["b"])]},
        FINAL,
        [NOWHERE],
    ),
    (
        "a claim that should have been bound",
        {"claims": [make_claim("c")], "volumes": [], "storage_classes": [make_class(binds="Immediate")]},
        FINAL,
        ["pod has unbound immediate PersistentVolumeClaims"],
    ),
    (
        "a volume of another zone, by its label",
        {"claims": [make_claim("c", volume="v")], "volumes": [make_volume("v", labels={BETA_ZONE: "b"})]},
        FINAL,
        ["node(s) had no available volume zone"],
    ),
    (
        "seventeen GCE disks",
        {"claims": [], "volumes": [], "mounts": [gce(f"d{index}") for index in range(17)]},
        MENDABLE,
        [TOO_MANY],
    ),
    (
        "a node of a kind that takes fewer EBS disks",
        {
            "claims": [],
            "volumes": [],
            "node": make_node("n1", labels={"beta.kubernetes.io/instance-type": "m5.large"}),
            "mounts": [
                Volume(name=f"d{index}", aws_elastic_block_store=AWSElasticBlockStore(f"vol-{index}"))
                for index in range(26)
            ],
        },
        MENDABLE,
        [TOO_MANY],
    ),
    (
        "a driver's limit, with the volumes of other pods",
        {
            "claims": [make_claim("c", volume="v"), make_claim("other", volume="w")],
            "volumes": [make_volume("v"), make_volume("w")],
            "csi_nodes": [make_csi_node("n1", {DRIVER: 1})],
            "pods": [make_pod("q", node="n1", volumes=uses("other"))],
        },
        MENDABLE,
        [TOO_MANY],
    ),
]


@pytest.mark.parametrize("case", [row[1] for row in FITTING], ids=[row[0] for row in FITTING])
def test_node_that_fits(case: dict[str, Any]) -> None:
    assert decide(**case).lands_on == ["n1"]


@pytest.mark.parametrize(("case", "code", "reasons"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refusal(case: dict[str, Any], code: Code, reasons: list[str]) -> None:
    status = decide(**case).filter["n1"]
    assert (status.code, status.reasons) == (code, reasons)


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        pytest.param([], 'persistentvolumeclaim "c" not found', id="a claim that there is not"),
        pytest.param(
            [make_claim("c", deletion_timestamp=NOW)], 'persistentvolumeclaim "c" is being deleted', id="one that goes"
        ),
        pytest.param(
            [make_claim("c")],
            'running "VolumeBinding" filter plugin for pod "p": VolumeBindingMode not set for StorageClass "slow"',
            id="a class that does not say when it binds",
        ),
    ],
)
def test_error_ends_the_attempt(claims: list[PersistentVolumeClaim], message: str) -> None:
    storage_class = msgspec.structs.replace(make_class(), volume_binding_mode=None)
    verdict = decide(claims, [], mounts=uses("c"), storage_classes=[storage_class])
    assert verdict.message == message
    assert verdict.eligibility is None


def test_long_driver_names_are_hashed() -> None:
    short = "attachable-volumes-csi-" + "d" * 39
    assert csi_limit_key("d" * 39) == short
    key = csi_limit_key("d" * 40)
    assert key.startswith("attachable-volumes-csi-" + "d" * 23)
    assert len(key) == 62


@pytest.mark.parametrize(
    ("volumes", "is_reported"),
    [
        pytest.param(
            [make_volume("v"), make_volume("w", modes=["ReadWriteOnce", "ReadWriteMany"])], True, id="decides"
        ),
        pytest.param([make_volume(name, modes=["ReadWriteOnce", "ReadWriteMany"]) for name in "vw"], False, id="alike"),
        pytest.param([make_volume("v"), make_volume("w", size="2Gi", modes=["ReadWriteMany"])], False, id="by size"),
    ],
)
def test_it_is_said_where_the_random_order_of_equal_volumes_decides(
    volumes: list[PersistentVolume], is_reported: bool
) -> None:
    claims = [make_claim("c"), make_claim("d", modes=["ReadWriteMany"])]
    for ordered in (volumes, volumes[::-1]):
        reported = [each for each in decide(claims, ordered).assumptions if each.field == "spec.volumes"]
        assert bool(reported) == is_reported
    if is_reported:
        assert reported == [
            Assumption(
                "Pod shop/p",
                "spec.volumes",
                "on node n1, the order of tied volumes decides whether claims shop/c, shop/d can be bound; 1.18"
                " tries them in random order (here: input order)",
                AssumptionKind.UNCERTAIN,
            )
        ]
