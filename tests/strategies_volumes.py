"""Random storage: classes, volumes, claims, CSI drivers and their limits, attachments, and pods that use them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies import NAMESPACE, ZONE, ZONES, Object, maybe, without_none

DRIVER = "csi.example.com"
EBS_DRIVER = "ebs.csi.aws.com"
CLASSES = ("wait", "wait", "local", "zonal", "zonal", "now", "missing")
REGION = "topology.kubernetes.io/region"
MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod")
_STORAGE = {"apiVersion": "storage.k8s.io/v1"}


def _storage_class(name: str, **fields: object) -> Object:
    return {**_STORAGE, "kind": "StorageClass", "metadata": {"name": name}, "provisioner": DRIVER, **fields}


STORAGE_CLASSES: list[Object] = [
    _storage_class("wait", volumeBindingMode="WaitForFirstConsumer"),
    _storage_class("local", provisioner="kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer"),
    _storage_class(
        "zonal",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["z0", "z1"]}]}],
    ),
    _storage_class("now", volumeBindingMode="Immediate"),
]


@st.composite
def csi_nodes(draw: st.DrawFn, node: str) -> Object:
    """The CSI drivers of a node."""
    drivers = []
    for name in (DRIVER, EBS_DRIVER):
        if draw(st.booleans()):
            limit = draw(maybe(st.integers(0, 3), one_in=2))
            drivers.append(
                without_none(
                    {
                        "name": name,
                        "nodeID": node,
                        "topologyKeys": [ZONE],
                        "allocatable": None if limit is None else {"count": limit},
                    }
                )
            )
    metadata: Object = {"name": node}
    if draw(st.integers(0, 3)) == 3:
        metadata["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    return {**_STORAGE, "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


@st.composite
def persistent_volumes(draw: st.DrawFn, index: int) -> Object:
    """A volume, free or reserved for the claim of the same number."""
    spec: Object = {
        "capacity": {"storage": draw(st.sampled_from(["1Gi", "5Gi", "10Gi"]))},
        "accessModes": [draw(st.sampled_from(MODES[:3]))],
        "storageClassName": draw(st.sampled_from(["wait", "local", "now", ""])),
    }
    if draw(st.booleans()):
        spec["csi"] = {"driver": draw(st.sampled_from([DRIVER, EBS_DRIVER])), "volumeHandle": f"h{index}"}
    else:
        spec["awsElasticBlockStore"] = {"volumeID": f"vol-{index}"}
    if draw(st.booleans()):
        expression = {"key": ZONE, "operator": "In", "values": [draw(st.sampled_from(ZONES))]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    volume_labels = {}
    if draw(st.integers(0, 3)) == 3:
        volume_labels[ZONE] = draw(st.sampled_from(["z0", "z1", "z0__z1"]))
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv{index}", "labels": volume_labels},
        "spec": spec,
        "status": {"phase": "Available"},
    }


@st.composite
def claims(draw: st.DrawFn, index: int, volume: Object | None) -> Object:
    """A claim, bound to ``volume`` if given (which is updated), or waiting."""
    metadata: Object = {"name": f"pvc{index}", "namespace": NAMESPACE, "uid": f"uid-pvc{index}"}
    spec: Object = {
        "accessModes": [draw(st.sampled_from(MODES))],
        "resources": {"requests": {"storage": draw(st.sampled_from(["1Gi", "5Gi"]))}},
        "storageClassName": draw(st.sampled_from(CLASSES)),
    }
    status: Object = {"phase": "Pending"}
    if volume is not None:
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec["volumeName"] = volume["metadata"]["name"]
        spec["storageClassName"] = volume["spec"]["storageClassName"]
        status = {"phase": "Bound"}
        volume["status"] = {"phase": "Bound"}
        volume["spec"]["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "namespace": NAMESPACE,
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
    elif draw(st.integers(0, 5)) == 5:
        spec["selector"] = {"matchLabels": {ZONE: "z0"}}
    if draw(st.integers(0, 15)) == 15:
        spec["volumeName"] = "pv-gone"
    if draw(st.integers(0, 15)) == 15:
        metadata["deletionTimestamp"] = "2026-11-20T00:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


@st.composite
def capacities(draw: st.DrawFn, index: int) -> Object:
    """The remaining capacity in a zone that a driver reports."""
    capacity = {
        **_STORAGE,
        "kind": "CSIStorageCapacity",
        "metadata": {"name": f"capacity-{index}", "namespace": "kube-system"},
        "storageClassName": draw(st.sampled_from(["wait", "zonal"])),
        "nodeTopology": {"matchLabels": {ZONE: draw(st.sampled_from(ZONES))}},
        "capacity": draw(st.sampled_from(["2Gi", "100Gi"])),
        "maximumVolumeSize": draw(maybe(st.sampled_from(["2Gi", "100Gi"]))),
    }
    return without_none(capacity)


@st.composite
def storage_objects(draw: st.DrawFn, num_nodes: int) -> list[Object]:
    """All storage objects of a cluster; claims are named ``pvc0`` to ``pvc4``, some of which may be missing.

    The claim of an ephemeral volume of the incoming pod may be missing, too, or belong to another pod.
    """
    objects = [each for each in STORAGE_CLASSES if draw(st.integers(0, 7))]
    objects += [draw(csi_nodes(f"n{index}")) for index in range(num_nodes) if draw(st.integers(0, 3))]
    if draw(st.booleans()):
        spec = without_none({"storageCapacity": True, "attachRequired": draw(maybe(st.booleans()))})
        objects.append({**_STORAGE, "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec})
        objects += [draw(capacities(index)) for index in range(draw(st.integers(0, 3)))]
    for index in range(5):
        kind = draw(st.sampled_from(["bound", "bound", "waiting", "waiting", "waiting with a volume", "missing"]))
        volume = draw(persistent_volumes(index)) if kind in ("bound", "waiting with a volume") else None
        if volume:
            objects.append(volume)
        if kind != "missing":
            objects.append(draw(claims(index, volume if kind == "bound" else None)))
    if draw(st.booleans()):
        claim = draw(claims(5, None))
        claim["metadata"]["name"] = "incoming-disk"
        if draw(st.integers(0, 3)):
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "incoming", "uid": "uid-incoming", "controller": True}
            claim["metadata"]["ownerReferences"] = [owner]
        objects.append(claim)
    for index in range(draw(st.sampled_from([0, 0, 1, 2]))):
        objects.append(
            {
                **_STORAGE,
                "kind": "VolumeAttachment",
                "metadata": {"name": f"attachment-{index}"},
                "spec": {
                    "attacher": draw(st.sampled_from([DRIVER, EBS_DRIVER])),
                    "nodeName": f"n{draw(st.integers(0, num_nodes - 1))}",
                    "source": {"persistentVolumeName": f"pv{draw(st.integers(0, 4))}"},
                },
            }
        )
    return objects


in_line_volumes = st.sampled_from(
    [
        {"gcePersistentDisk": {"pdName": "disk"}},
        {"gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
        {"awsElasticBlockStore": {"volumeID": "vol-x"}},
        {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-11.com.example:disk", "lun": 0}},
        {"rbd": {"monitors": ["a", "b"], "image": "image"}},
        {"rbd": {"monitors": ["b"], "image": "image", "readOnly": True}},
        {"emptyDir": {}},
        {"csi": {"driver": DRIVER}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "wait"}}}},
    ]
)


@st.composite
def pod_volumes(draw: st.DrawFn) -> list[Object]:
    """Volumes of a pod: usually claims, and disks."""
    volumes: list[Object] = []
    for index in draw(st.lists(st.integers(0, 4), max_size=2, unique=True)):
        claim = {"claimName": f"pvc{index}"}
        volumes.append({"name": f"claim{index}", "persistentVolumeClaim": claim})
    if not volumes or draw(st.integers(0, 3)) == 3:
        volumes.append({"name": "disk", **draw(in_line_volumes)})
    return volumes
