"""VolumeBinding: bound claims, claims to bind for the chosen node, and storage that can be made there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import ObjectMeta, OwnerReference
from kpreempt.model.pod import EphemeralVolume, GCEPersistentDisk, Volume
from kpreempt.model.quantity import quantity
from kpreempt.model.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import Outcome, Verdict
from kpreempt.verdict.details import VolumeConflict
from tests.factories import NOW, decide, make_node, make_pod, reasons
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

REASON_NODE_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
REASON_NO_SPACE = "node(s) did not have enough free storage"
REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

DELETED = datetime(2026, 11, 1, tzinfo=UTC)


def cluster(claims: Sequence[PersistentVolumeClaim], *volumes: PersistentVolume, **more: Any) -> ClusterSnapshot:
    """Node ``a`` in zone east, node ``b`` in zone west, and class ``slow`` of existing volumes."""
    more.setdefault("storage_classes", [make_class()])
    return ClusterSnapshot(
        nodes=[make_node("a", labels={ZONE: "east"}), make_node("b", labels={ZONE: "west"})],
        persistent_volume_claims=list(claims),
        persistent_volumes=list(volumes),
        **more,
    )


def verdict_on(snapshot: ClusterSnapshot, *claims: str) -> Verdict:
    return decide(snapshot, make_pod("new", volumes=uses(*claims)))


def test_a_bound_volume_refuses_nodes_that_do_not_reach_it() -> None:
    verdict = verdict_on(cluster([make_claim("data", volume="pv")], make_volume("pv", zone="east")), "data")
    assert reasons(verdict) == {"b": REASON_NODE_AFFINITY}
    assert verdict.filter["b"].detail == VolumeConflict(
        claim="shop/data", volume="pv", problem=f"accessible only from {ZONE} in (east)"
    )


@pytest.mark.parametrize("is_migrated", [True, False], ids=["migrated on the node", "not migrated on the node"])
def test_an_in_tree_volume_is_looked_for_under_its_drivers_zone_where_it_is_migrated(is_migrated: bool) -> None:
    annotation = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"} if is_migrated else {}
    snapshot = cluster(
        [make_claim("data", volume="pv")],
        make_volume("pv", gce_persistent_disk=GCEPersistentDisk("d"), zone="east"),
        csi_nodes=[make_csi_node("a", annotations=annotation)],
    )
    assert ("a" in reasons(verdict_on(snapshot, "data"))) == is_migrated


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        pytest.param(
            make_claim("data", storage_class="now"),
            "not bound yet, although its storage class now binds immediately",
            id="a class that binds at once",
        ),
        pytest.param(make_claim("data", storage_class=None), "not bound and has no storage class", id="no class"),
        pytest.param(
            make_claim("data", storage_class="gone"),
            "not bound and its storage class gone does not exist",
            id="a class that does not exist",
        ),
        pytest.param(
            msgspec.structs.replace(
                make_claim("data"), spec=msgspec.structs.replace(make_claim("data").spec, volume_name="pv")
            ),
            "names volume pv but is not bound to it yet",
            id="a volume that it names itself",
        ),
    ],
)
def test_claims_that_should_be_bound_and_are_not(claim: PersistentVolumeClaim, problem: str) -> None:
    snapshot = cluster([claim], storage_classes=[make_class(), make_class("now", binds="Immediate")])
    verdict = verdict_on(snapshot, "data")
    assert verdict.pre_filter is not None
    assert verdict.pre_filter.reasons == [REASON_IMMEDIATE]
    assert verdict.pre_filter.detail == VolumeConflict(claim="shop/data", problem=problem)
    assert verdict.message == f"0/2 nodes are available: {REASON_IMMEDIATE}. not found"


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        pytest.param(
            make_claim("data", volume="pv", phase="Lost"),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
            id="lost",
        ),
        pytest.param(
            make_claim("data", volume="pv", deletion_timestamp=DELETED),
            'persistentvolumeclaim "data" is being deleted',
            id="being deleted",
        ),
    ],
)
def test_claims_that_no_pod_can_use(claim: PersistentVolumeClaim, reason: str) -> None:
    verdict = verdict_on(cluster([claim], make_volume("pv")), "data")
    assert verdict.pre_filter is not None
    assert verdict.pre_filter.reasons == [reason]


def kept_for(claim: str, uid: str = "") -> ObjectReference:
    return ObjectReference(namespace="shop", name=claim, uid=uid)


WANTED = make_claim("data", size="2Gi")


def with_spec(claim: PersistentVolumeClaim, **changes: Any) -> PersistentVolumeClaim:
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, **changes))


@pytest.mark.parametrize(
    ("claim", "volume", "suits"),
    [
        pytest.param(WANTED, make_volume("pv", size="2Gi"), True, id="of the size that is asked for"),
        pytest.param(WANTED, make_volume("pv", size="2000M"), False, id="too small"),
        pytest.param(WANTED, make_volume("pv", size="9Gi", phase="Released"), False, id="not available"),
        pytest.param(WANTED, make_volume("pv", size="9Gi", storage_class_name="fast"), False, id="of another class"),
        pytest.param(
            WANTED, make_volume("pv", size="9Gi", modes=["ReadOnlyMany"]), False, id="without the access mode"
        ),
        pytest.param(WANTED, make_volume("pv", size="9Gi", volume_mode="Block"), False, id="a block device"),
        pytest.param(
            WANTED,
            make_volume("pv", size="9Gi", volume_attributes_class_name="gold"),
            False,
            id="of an attributes class",
        ),
        pytest.param(
            with_spec(WANTED, selector=LabelSelector({"tier": "x"})),
            make_volume("pv", size="9Gi", labels={"tier": "y"}),
            False,
            id="not selected by the claim",
        ),
        pytest.param(
            WANTED, make_volume("pv", size="9Gi", claim_ref=kept_for("other")), False, id="kept for another claim"
        ),
        pytest.param(
            WANTED,
            make_volume("pv", size="9Gi", claim_ref=kept_for("data"), phase="Pending", modes=[]),
            True,
            id="kept for the claim, whatever its phase and modes",
        ),
        pytest.param(
            WANTED,
            make_volume("pv", size="9Gi", claim_ref=kept_for("data", "uid-older")),
            False,
            id="kept for an earlier claim of the same name",
        ),
        pytest.param(
            WANTED, make_volume("pv", size="1Gi", claim_ref=kept_for("data")), False, id="kept, but too small"
        ),
    ],
)
def test_whether_an_existing_volume_suits_a_claim(
    claim: PersistentVolumeClaim, volume: PersistentVolume, suits: bool
) -> None:
    found = reasons(verdict_on(cluster([claim], volume), "data"))
    assert found == ({} if suits else {"a": REASON_NO_VOLUME, "b": REASON_NO_VOLUME})


def test_a_volume_out_of_reach_helps_only_the_nodes_that_reach_it() -> None:
    verdict = verdict_on(cluster([WANTED], make_volume("pv", size="9Gi", zone="east")), "data")
    assert reasons(verdict) == {"b": REASON_NO_VOLUME}
    assert verdict.filter["b"].detail == VolumeConflict(
        claim="shop/data",
        problem="1 volume matches (2Gi of storage class slow), but none accessible from the node is free",
    )


def test_small_claims_take_small_volumes_so_that_large_ones_are_left() -> None:
    claims = [make_claim("large", size="5Gi"), make_claim("small", size="1Gi")]
    snapshot = cluster(claims, make_volume("pv-large", size="9Gi"), make_volume("pv-small", size="2Gi"))
    assert reasons(verdict_on(snapshot, "large", "small")) == {}


def test_one_volume_is_not_enough_for_two_claims() -> None:
    snapshot = cluster([make_claim("one"), make_claim("two")], make_volume("pv"))
    assert reasons(verdict_on(snapshot, "one", "two")) == {"a": REASON_NO_VOLUME, "b": REASON_NO_VOLUME}


def test_a_volume_kept_for_the_claim_is_its_only_choice() -> None:
    kept = make_volume("pv-kept", zone="west", claim_ref=kept_for("data"))
    found = reasons(verdict_on(cluster([make_claim("data")], make_volume("pv-free"), kept), "data"))
    assert found == {"a": REASON_NO_VOLUME}


def test_a_class_with_a_provisioner_makes_volumes_where_its_topologies_allow() -> None:
    snapshot = cluster(
        [make_claim("data", storage_class="fast")],
        storage_classes=[make_class("fast", provisioner=DRIVER, zones=["east"])],
    )
    verdict = verdict_on(snapshot, "data")
    assert reasons(verdict) == {"b": REASON_NO_VOLUME}
    assert verdict.filter["b"].detail == VolumeConflict(
        claim="shop/data", problem=f"storage class fast provisions volumes only for {ZONE} in (east)"
    )


def test_a_claim_whose_volume_is_being_made_ties_the_pod_to_that_node() -> None:
    snapshot = cluster(
        [make_claim("data", storage_class="fast", annotations={SELECTED_NODE: "a"})],
        storage_classes=[make_class("fast", provisioner=DRIVER)],
    )
    verdict = verdict_on(snapshot, "data")
    assert reasons(verdict) == {"b": REASON_NO_VOLUME}
    assert verdict.filter["b"].detail == VolumeConflict(
        claim="shop/data", problem="its volume is being provisioned for node a"
    )


def pool(zone: str, capacity: str, largest: str | None = None) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        ObjectMeta(name=f"pool-{zone}"),
        storage_class_name="fast",
        node_topology=LabelSelector({ZONE: zone}),
        capacity=quantity(capacity),
        maximum_volume_size=quantity(largest) if largest else None,
    )


def tracked(*pools: CSIStorageCapacity, is_tracked: bool = True) -> ClusterSnapshot:
    """A claim for 5Gi of a class whose driver publishes capacity."""
    return cluster(
        [make_claim("data", size="5Gi", storage_class="fast")],
        storage_classes=[make_class("fast", provisioner=DRIVER)],
        csi_drivers=[CSIDriver(ObjectMeta(name=DRIVER), CSIDriverSpec(storage_capacity=is_tracked))],
        csi_storage_capacities=list(pools),
    )


@pytest.mark.parametrize(
    ("snapshot", "refused"),
    [
        pytest.param(tracked(pool("east", "5Gi"), pool("west", "4Gi")), ["b"], id="a pool that is too small"),
        pytest.param(tracked(pool("east", "9Gi")), ["b"], id="no pool within reach"),
        pytest.param(
            tracked(pool("east", "9Gi", "1Gi"), pool("west", "1Gi", "9Gi")), ["a"], id="the largest volume counts"
        ),
        pytest.param(tracked(is_tracked=False), [], id="a driver that does not publish capacity always has room"),
    ],
)
def test_storage_capacity(snapshot: ClusterSnapshot, refused: list[str]) -> None:
    assert reasons(verdict_on(snapshot, "data")) == dict.fromkeys(refused, REASON_NO_SPACE)


def test_too_little_storage_says_how_much_is_free() -> None:
    verdict = verdict_on(tracked(pool("east", "9Gi"), pool("west", "4Gi")), "data")
    assert verdict.filter["b"].detail == VolumeConflict(
        claim="shop/data", problem="requests 5Gi of storage class fast; at most 4Gi is free on the node"
    )


OWN = OwnerReference(kind="Pod", name="new", uid="uid-shop-new", controller=True)
OTHER = OwnerReference(kind="Pod", name="new", uid="uid-earlier", controller=True)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        pytest.param(
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-tmp"',
            id="not made yet",
        ),
        pytest.param(
            [make_claim("new-tmp", volume="pv", owner_references=[OTHER])],
            "PVC shop/new-tmp was not created for pod shop/new (pod is not owner)",
            id="an earlier pod's",
        ),
        pytest.param([make_claim("new-tmp", volume="pv", owner_references=[OWN])], None, id="the pod's own"),
    ],
)
def test_the_claim_of_an_ephemeral_volume(claims: list[PersistentVolumeClaim], reason: str | None) -> None:
    volumes = [Volume(name="tmp", ephemeral=EphemeralVolume())]
    verdict = decide(cluster(claims, make_volume("pv")), make_pod("new", volumes=volumes))
    assert (verdict.pre_filter.message if verdict.pre_filter else None) == reason
    assert (verdict.outcome == Outcome.LANDS) == (reason is None)


def scores_with_gate(snapshot: ClusterSnapshot) -> dict[str, int | None]:
    scheduler = KubeScheduler(behavior=behavior(gates={"StorageCapacityScoring": True}))
    verdict = scheduler.decide(scheduler.prepare(snapshot, now=NOW), make_pod("new", volumes=uses("data")))
    return {node: scores.get("VolumeBinding") for node, scores in (verdict.plugin_scores or {}).items()}


def test_volumes_are_scored_only_with_the_gate_on() -> None:
    verdict = verdict_on(tracked(pool("east", "10Gi"), pool("west", "20Gi")), "data")
    assert all("VolumeBinding" not in scores for scores in (verdict.plugin_scores or {}).values())


def test_the_emptier_pool_scores_higher() -> None:
    assert scores_with_gate(tracked(pool("east", "10Gi"), pool("west", "20Gi"))) == {"a": 50, "b": 75}


def test_the_volume_that_fits_closest_scores_lowest_by_default() -> None:
    snapshot = cluster(
        [WANTED], make_volume("east", size="2Gi", zone="east"), make_volume("west", size="8Gi", zone="west")
    )
    assert scores_with_gate(snapshot) == {"a": 0, "b": 75}


def test_a_claim_that_cannot_be_matched_ends_in_an_error() -> None:
    claim = with_spec(WANTED, volume_attributes_class_name="gold")
    scheduler = KubeScheduler(behavior=behavior(gates={"VolumeAttributesClass": False}))
    snapshot = cluster([claim], make_volume("pv", size="9Gi"))
    verdict = scheduler.decide(scheduler.prepare(snapshot, now=NOW), make_pod("new", volumes=uses("data")))
    assert verdict.message == (
        'running "VolumeBinding" filter plugin: unsupported volumeAttributesClassName is set on claim shop/data '
        "when the feature-gate VolumeAttributesClass is disabled"
    )
