"""In-tree volumes as CSI volumes: handles, and the nodes that reach them."""

from __future__ import annotations

import pytest

from kpreempt.model.affinity import NodeSelector
from kpreempt.model.pod import AWSElasticBlockStore, AzureDisk, GCEPersistentDisk
from kpreempt.model.storage import PersistentVolume, VolumeNodeAffinity
from kpreempt.schedulers.kube.framework.csi_translation import (
    TranslationError,
    in_tree_plugin,
    translate_volume,
    translated_nodes,
)
from tests.volume_factories import ZONE, in_zone, make_volume

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
GKE_ZONE = "topology.gke.io/zone"
DISK = GCEPersistentDisk("d")


@pytest.mark.parametrize(
    ("volume", "handle"),
    [
        pytest.param(
            make_volume("v", gce_persistent_disk=DISK),
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="a GCE disk without a zone",
        ),
        pytest.param(
            make_volume("v", gce_persistent_disk=DISK, labels={ZONE: "us-east-a"}),
            "projects/UNSPECIFIED/zones/us-east-a/disks/d",
            id="a GCE disk in one zone",
        ),
        pytest.param(
            make_volume("v", gce_persistent_disk=DISK, labels={ZONE: "us-east-a__us-east-b"}),
            "projects/UNSPECIFIED/regions/us-east/disks/d",
            id="a GCE disk in two zones of one region",
        ),
        pytest.param(
            make_volume("v", aws_elastic_block_store=AWSElasticBlockStore("aws://us-east-a/vol-1")),
            "vol-1",
            id="an EBS volume with its zone",
        ),
        pytest.param(
            make_volume("v", azure_disk=AzureDisk("d", "/subscriptions/s/d", "Managed")),
            "/subscriptions/s/d",
            id="a managed Azure disk",
        ),
    ],
)
def test_the_handle_of_an_in_tree_volume(volume: PersistentVolume, handle: str) -> None:
    translated = translate_volume(volume)
    assert translated is not None
    assert translated.volume_handle == handle


@pytest.mark.parametrize(
    ("volume", "problem"),
    [
        pytest.param(
            make_volume("v", gce_persistent_disk=DISK, labels={ZONE: "us-east-a__eu-west-b"}),
            "failed to get region from zones: multiple or no regions gotten from zones, "
            "got: map[eu-west:{} us-east:{}]",
            id="a GCE disk in two regions",
        ),
        pytest.param(
            make_volume("v", aws_elastic_block_store=AWSElasticBlockStore("aws:///us-east-a/vol-1")),
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws:///us-east-a/vol-1)",
            id="an EBS volume with its zone in the wrong place",
        ),
        pytest.param(
            make_volume("v", azure_disk=AzureDisk("d", "u")),
            "kind(Shared) is not supported in csi migration",
            id="an Azure disk that is not managed, as is the default",
        ),
    ],
)
def test_an_in_tree_volume_that_cannot_be_translated(volume: PersistentVolume, problem: str) -> None:
    with pytest.raises(TranslationError) as raised:
        translate_volume(volume)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("volume", "nodes"),
    [
        pytest.param(make_volume("v", gce_persistent_disk=DISK), None, id="all nodes where nothing is said"),
        pytest.param(
            make_volume("v", gce_persistent_disk=DISK, zone="east"),
            in_zone("east", GKE_ZONE),
            id="by its node affinity",
        ),
        pytest.param(
            make_volume("v", gce_persistent_disk=DISK, labels={ZONE: "east"}),
            in_zone("east", GKE_ZONE),
            id="by its zone label",
        ),
        pytest.param(
            make_volume(
                "v",
                gce_persistent_disk=DISK,
                labels={ZONE: "west"},
                node_affinity=VolumeNodeAffinity(in_zone("east", BETA_ZONE)),
            ),
            in_zone("east", GKE_ZONE),
            id="by its node affinity before its label",
        ),
        pytest.param(
            make_volume("v", azure_disk=AzureDisk("d", "u", "Managed"), zone="east"),
            in_zone("east"),
            id="an Azure disk's are left as they are",
        ),
    ],
)
def test_the_nodes_that_reach_a_translated_volume(volume: PersistentVolume, nodes: NodeSelector | None) -> None:
    assert translated_nodes(volume) == nodes


def test_a_csi_volume_belongs_to_no_in_tree_plugin() -> None:
    assert in_tree_plugin(make_volume("v").spec) is None
