"""Which volumes one node at a time can attach, and which pods use them.

Follows ``pkg/controller/volume/attachdetach/reconciler`` of v1.36.3 (``attachDesiredVolumes``) and
``IsMultiAttachAllowed`` in ``pkg/volume/util``: the attach/detach controller does not attach a volume to a second node
unless its access modes have ReadWriteMany or ReadOnlyMany. A pod on that node does not start until the volume is
detached from the first one, which takes until no pod uses it there. Volumes that are not attached at all (NFS, local
disks, CSI drivers with ``attachRequired: false``) have no such limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim
from kpreempt.schedulers.kube.framework.csi_translation import DRIVERS, PORTWORX, in_tree_plugin
from kpreempt.schedulers.kube.framework.volumes import class_of_claim

_FOR_MANY_NODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_VSPHERE = "kubernetes.io/vsphere-volume"
# The in-tree plugins that attach volumes. Portworx volumes are mounted without.
_ATTACHING_PLUGINS = frozenset({_VSPHERE, *DRIVERS} - {PORTWORX})


class Holders(NamedTuple):
    """The pods that use a volume on the node that has it attached. ``volume`` is as users know it."""

    volume: str
    node: str
    pods: list[str]


class Attachments:
    """The volumes that one node at a time can attach, with the pods that use them in the order in which they came."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        """Take the pods in that have a node. A volume that pods of several nodes use already is no such volume."""
        drivers = _Drivers(cluster)
        claims = (each for each in cluster.persistent_volume_claims if drivers.is_for_one_node(each))
        self._claims = frozenset(claim.key for claim in claims)
        # By volume: the node of each pod, by the pod's key. The first one's node has the volume attached.
        self._users: dict[str, dict[str, str]] = {}
        serving: dict[str, set[str]] = {}
        for pod in cluster.pods if self._claims else ():
            if pod.spec.node_name and not pod.is_terminal:
                self.use(pod)
                if is_serving(pod):
                    for volume in self._volumes_of(pod):
                        serving.setdefault(volume, set()).add(pod.spec.node_name)
        self._claims -= {volume for volume, nodes in serving.items() if len(nodes) > 1}

    def use(self, pod: Pod) -> None:
        """A pod has a node, and its volumes are to be attached there."""
        for volume in self._volumes_of(pod):
            self._users.setdefault(volume, {})[pod.key] = pod.spec.node_name

    def release(self, pod: Pod) -> bool:
        """A pod's containers have ended. Returns whether it used a volume that another node may attach now."""
        used = [self._users.get(volume, {}).pop(pod.key, None) for volume in self._volumes_of(pod)]
        return any(used)

    def held_elsewhere(self, pod: Pod) -> Holders | None:
        """The pods for which one of the pod's volumes is attached to another node, if there are any."""
        for volume in self._volumes_of(pod):
            users = self._users.get(volume, {})
            node = next(iter(users.values()), pod.spec.node_name)
            if node != pod.spec.node_name:
                return Holders(volume, node, [key for key, where in users.items() if where == node])
        return None

    def _volumes_of(self, pod: Pod) -> Iterator[str]:
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                claim = f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
                if claim in self._claims:
                    yield claim
            elif volume.azure_disk is not None:
                yield volume.azure_disk.disk_uri
            elif volume.cinder is not None:
                yield volume.cinder.volume_id


class _Drivers:
    """What attaches the volumes of claims."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._volumes = {each.metadata.name: each for each in cluster.persistent_volumes}
        self._classes = {each.metadata.name: each for each in cluster.storage_classes}
        self._unattached = {each.metadata.name for each in cluster.csi_drivers if each.spec.attach_required is False}

    def is_for_one_node(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim's volume is attached, and to one node at a time."""
        volume = self._volumes.get(claim.spec.volume_name)
        modes = volume.spec.access_modes if volume is not None else claim.spec.access_modes
        # Without modes upstream leaves it to the driver.
        return bool(modes) and not _FOR_MANY_NODES.intersection(modes) and self._attaches(self._driver(claim, volume))

    def _driver(self, claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> str:
        """The CSI driver, or the in-tree plugin; empty where nothing attaches the volume."""
        if volume is not None:
            if volume.spec.csi is not None:
                return volume.spec.csi.driver
            if volume.spec.vsphere_volume is not None:
                return _VSPHERE
            plugin = in_tree_plugin(volume.spec)
            # One that the API server has not seen is yet to be made by its class.
            if plugin is not None or volume.metadata.uid:
                return plugin or ""
        storage_class = self._classes.get(class_of_claim(claim))
        return storage_class.provisioner if storage_class is not None else ""

    def _attaches(self, driver: str) -> bool:
        """A CSI driver does unless its CSIDriver says otherwise; the names of other provisioners have a slash."""
        if "/" in driver:
            return driver in _ATTACHING_PLUGINS and DRIVERS.get(driver) not in self._unattached
        return bool(driver) and driver not in self._unattached
