"""Pods, with the fields that a scheduler reads.

Records never refer back to their container, so the cyclic garbage collector can ignore them (``gc=False``), which saves
time and memory with 150,000 pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from kpreempt.model.affinity import Affinity
from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS, Few, Handful, Many
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import LAST_APPLIED, Keyed, ObjectMeta, Time
from kpreempt.model.quantity import Quantity
from kpreempt.model.taints import Toleration

DEFAULT_SCHEDULER_NAME = "default-scheduler"
# The condition of a pod whose resize in place the kubelet has not granted.
RESIZE_PENDING = "PodResizePending"
DEFAULT_RESTART_POLICY = "Always"
# The default grace period of a pod.
DEFAULT_GRACE_SECONDS = 30
DEFAULT_PROTOCOL = "TCP"
DEFAULT_RBD_POOL = "rbd"
DEFAULT_AZURE_DISK_KIND = "Shared"
TERMINAL_PHASES = ("Succeeded", "Failed")

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
ResourceList = dict[str, Quantity]


class ResourceClaimUse(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A container's use of one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Requests and limits of a container or of a whole pod."""

    requests: ResourceList = NO_ENTRIES
    limits: ResourceList = NO_ENTRIES
    claims: Few[ResourceClaimUse] = NO_ITEMS


class ContainerPort(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A port of a container; only those with a host port matter to scheduling."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = DEFAULT_PROTOCOL


class ContainerRestartRule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """What happens when a container exits; the scheduler reads the action."""

    action: str = ""


class Container(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A container or init container. ``restart_policy`` Always makes an init container a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: Many[ContainerPort] = NO_ITEMS
    restart_policy: str = ""
    restart_policy_rules: Few[ContainerRestartRule] = NO_ITEMS


class PersistentVolumeClaimVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A volume that comes from a claim in the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class GCEPersistentDisk(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An in-line or persistent GCE disk."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An in-line or persistent EBS volume."""

    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class ISCSIVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An iSCSI target, known by its qualified name."""

    iqn: str = ""
    read_only: bool = False


class RBDVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A Ceph block device. The API's fields for monitors and image are ``monitors`` and ``image``."""

    monitors: Few[str] = NO_ITEMS
    image: str = ""
    pool: str = DEFAULT_RBD_POOL
    read_only: bool = False


class AzureDisk(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An Azure data disk. ``kind`` is Shared unless it is given, as in the API; only Managed ones are CSI volumes."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(name="diskURI", default="")
    kind: str = DEFAULT_AZURE_DISK_KIND


class CinderVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An OpenStack volume."""

    volume_id: str = msgspec.field(name="volumeID", default="")


class VsphereVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A vSphere disk."""

    volume_path: str = ""


class PortworxVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    volume_id: str = msgspec.field(name="volumeID", default="")


class VolumeResources(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The amount of storage that a claim requests."""

    requests: ResourceList = NO_ENTRIES


class ClaimTemplateSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The content of an ephemeral volume's claim."""

    storage_class_name: str | None = None
    access_modes: Few[str] = NO_ITEMS
    volume_mode: str | None = None
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_attributes_class_name: str | None = None


class ClaimTemplate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The claim that is created for an ephemeral volume."""

    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class EphemeralVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A volume whose claim lives and dies with the pod."""

    volume_claim_template: ClaimTemplate | None = None


class CSIVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An in-line CSI volume."""

    driver: str = ""


class ImageVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A volume that is an OCI image."""

    reference: str = ""


class EmptyDirVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Temporary space on the node that is deleted with the pod; with ``medium`` Memory, it is not on a disk."""

    medium: str = ""


class HostPathVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A directory on the node. Tools that move pods care whether there is one, but not which."""


class Volume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A volume of a pod; sources that matter neither to scheduling nor to moving pods are left out."""

    name: str = ""
    empty_dir: EmptyDirVolume | None = None
    host_path: HostPathVolume | None = None
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    csi: CSIVolume | None = None
    image: ImageVolume | None = None


class PodSchedulingGate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A gate that keeps a pod from being scheduled until it is removed."""

    name: str = ""


class TopologySpreadConstraint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """How evenly matching pods must be spread over the values of a node label."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: Few[str] = NO_ITEMS


class PodResourceClaim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A resource claim that a pod refers to."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The pod group that a pod belongs to (alpha)."""

    pod_group_name: str | None = None


class PodWorkloadReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The workload and the group that a pod belongs to (alpha in 1.35, removed since)."""

    name: str = ""
    pod_group: str = ""


class PodSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The content of a pod. ``priority`` is ``None`` if admission has not set it; it then counts as 0."""

    containers: Few[Container] = NO_ITEMS
    init_containers: Few[Container] = NO_ITEMS
    node_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    node_selector: dict[str, str] = NO_ENTRIES
    affinity: Affinity | None = None
    tolerations: Few[Toleration] = NO_ITEMS
    topology_spread_constraints: Handful[TopologySpreadConstraint] = NO_ITEMS
    scheduling_gates: Few[PodSchedulingGate] = NO_ITEMS
    overhead: ResourceList = NO_ENTRIES
    resources: ResourceRequirements | None = None
    volumes: Few[Volume] = NO_ITEMS
    resource_claims: Few[PodResourceClaim] = NO_ITEMS
    runtime_class_name: str = ""
    termination_grace_period_seconds: int | None = DEFAULT_GRACE_SECONDS
    active_deadline_seconds: int | None = None
    restart_policy: str = DEFAULT_RESTART_POLICY
    host_network: bool = False
    host_users: bool | None = None
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: PodWorkloadReference | None = None

    @property
    def grace_seconds(self) -> int:
        """The pod's grace period in seconds."""
        seconds = self.termination_grace_period_seconds
        return DEFAULT_GRACE_SECONDS if seconds is None else seconds

    def selects(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the node selector and required node affinity match; invalid terms match nothing."""
        if any(labels.get(key) != value for key, value in self.node_selector.items()):
            return False
        required = self.affinity.node_affinity.required if self.affinity and self.affinity.node_affinity else None
        return required is None or required.matches(node_name, labels)


class PodCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A condition of a pod's status. Old schedulers wrote the time of every attempt to ``last_probe_time``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None
    last_probe_time: Time | None = None


class ContainerStateWaiting(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Why a container is not running yet, in the kubelet's words."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A running container."""

    started_at: Time | None = None


class ContainerStateTerminated(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """How a container ended."""

    reason: str = ""
    exit_code: Int32 = 0
    signal: Int32 = 0
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None


class ContainerState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The state of a container; at most one field is set."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


NO_STATE = ContainerState()


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The state of a container, its number of restarts, and the resources that the kubelet allocated to it.

    For pods that have started, whose phase is not Pending, only states of containers that failed are kept.
    """

    name: str = ""
    restart_count: Int32 = 0
    state: ContainerState = NO_STATE
    last_state: ContainerState = NO_STATE
    allocated_resources: ResourceList = NO_ENTRIES
    resources: ResourceRequirements | None = None


class ResourceClaimStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The claim that was generated for one of the pod's claim references."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The status of a pod. ``start_time`` is missing until a kubelet accepts the pod.

    ``reason`` and ``message`` are those of a kubelet that rejected or ended the pod. ``resize`` is the state of an
    in-place resize until 1.32; newer versions use conditions.
    """

    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: Time | None = None
    nominated_node_name: str = ""
    conditions: list[PodCondition] = NO_ITEMS
    container_statuses: Few[ContainerStatus] = NO_ITEMS
    init_container_statuses: Few[ContainerStatus] = NO_ITEMS
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = NO_ENTRIES
    resource_claim_statuses: Few[ResourceClaimStatus] = NO_ITEMS
    resize: str = ""


class PodAnnotations(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The annotations of a pod that are read: 1.8's nomination, Volcano's, the deletion cost, and autoscalers'.

    Controllers delete pods with a lower ``deletion_cost`` first. The mirror of a static pod has ``config_mirror``.
    Autoscalers respect ``safe_to_evict``, ``safe_local_volumes`` (per volume) and ``do_not_disrupt``. ``None``
    distinguishes a missing annotation from an empty one if that matters.
    """

    nominated_node_name: str = msgspec.field(name="NominatedNodeName", default="")
    group_name: str = msgspec.field(name="scheduling.k8s.io/group-name", default="")
    queue_name: str = msgspec.field(name="scheduling.volcano.sh/queue-name", default="")
    task_spec: str = msgspec.field(name="volcano.sh/task-spec", default="")
    task_priority: str | None = msgspec.field(name="volcano.sh/task-priority", default=None)
    preemptable: str | None = msgspec.field(name="volcano.sh/preemptable", default=None)
    revocable_zone: str | None = msgspec.field(name="volcano.sh/revocable-zone", default=None)
    template_uid: str = msgspec.field(name="volcano.sh/template-uid", default="")
    numa_policy: str = msgspec.field(name="volcano.sh/numa-topology-policy", default="")
    deletion_cost: str = msgspec.field(name="controller.kubernetes.io/pod-deletion-cost", default="")
    config_mirror: str | None = msgspec.field(name="kubernetes.io/config.mirror", default=None)
    safe_to_evict: str = msgspec.field(name="cluster-autoscaler.kubernetes.io/safe-to-evict", default="")
    safe_local_volumes: str = msgspec.field(
        name="cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", default=""
    )
    do_not_disrupt: str = msgspec.field(name="karpenter.sh/do-not-disrupt", default="")

    def changed(self, **values: Any) -> PodAnnotations:
        """Return a copy with some fields changed."""
        return msgspec.structs.replace(self, **values)


_FIELDS_OF_ANNOTATIONS = {each.encode_name: each.name for each in msgspec.structs.fields(PodAnnotations)}


class AllAnnotations(PodAnnotations, frozen=True, omit_defaults=True, gc=False):
    """All annotations of a pod, kept if a plugin requests them (``ExtraFields.pod_annotations``), with the fields read.

    ``annotations_of`` returns the map and ``with_annotations`` builds the record, so the two stay consistent. This is
    not the wire format.
    """

    everything: dict[str, str] = NO_ENTRIES

    def changed(self, **values: Any) -> PodAnnotations:
        """Return a copy with some fields changed, and the map updated."""
        changed_annotations = {key: values[field] for key, field in _FIELDS_OF_ANNOTATIONS.items() if field in values}
        others = {key: value for key, value in self.everything.items() if key not in changed_annotations}
        return all_annotations({**others, **{key: value for key, value in changed_annotations.items() if value}})


def has_namespace_selector(pod: Pod) -> bool:
    """Return whether affinity terms of the pod select namespaces by their labels."""
    affinity = pod.spec.affinity
    return affinity is not None and any(term.namespace_selector is not None for term in affinity.pod_terms)


def all_annotations(annotations: Mapping[str, str]) -> AllAnnotations:
    """Build the record from a map, without kubectl's last applied manifest and any secrets in it."""
    everything = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    fields = {field: everything[key] for key, field in _FIELDS_OF_ANNOTATIONS.items() if key in everything}
    return AllAnnotations(everything=everything, **fields)


class PodMeta(ObjectMeta, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Metadata of a pod, with only those annotations that are read, because there are many."""

    annotations: PodAnnotations | None = None


class Pod(Keyed, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A pod of the cluster, or the requested one."""

    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def identity(self) -> str:
        """The pod's UID, or its key if it has none."""
        return self.metadata.uid or self.key

    @property
    def start(self) -> datetime | None:
        """The time at which a kubelet accepted the pod, with its UTC offset; ``None`` if none has."""
        start = self.status.start_time
        return start if start is None or start.tzinfo else start.replace(tzinfo=UTC)

    @property
    def priority(self) -> int:
        """The priority that the scheduler compares; a missing one is 0."""
        return self.spec.priority or 0

    @property
    def is_mirror(self) -> bool:
        """Whether it mirrors a static pod, which only its kubelet can stop."""
        return self.metadata.annotations is not None and self.metadata.annotations.config_mirror is not None

    @property
    def has_empty_dir(self) -> bool:
        """Whether it stores data in an emptyDir, on disk or in memory."""
        return any(volume.empty_dir is not None for volume in self.spec.volumes)

    @property
    def is_terminal(self) -> bool:
        """Whether the pod has finished; the scheduler never sees such pods."""
        return self.status.phase in TERMINAL_PHASES

    @property
    def is_active(self) -> bool:
        """Whether the pod is neither finished nor being deleted."""
        return not self.is_terminal and self.metadata.deletion_timestamp is None


def annotations_of(pod: Pod) -> Mapping[str, str]:
    """Return all annotations of a pod except ``LAST_APPLIED``; empty unless a plugin requested them."""
    annotations = pod.metadata.annotations
    return annotations.everything if isinstance(annotations, AllAnnotations) else NO_ENTRIES


def with_annotations(pod: Pod, annotations: Mapping[str, str]) -> Pod:
    """Return the pod with these as all of its annotations, except ``LAST_APPLIED``."""
    made = all_annotations(annotations)
    metadata = msgspec.structs.replace(pod.metadata, annotations=made if made.everything else None)
    return msgspec.structs.replace(pod, metadata=metadata)


def without_annotations(pod: Pod) -> Pod:
    """Return the pod with only those annotations that are always read."""
    annotations = pod.metadata.annotations
    if not isinstance(annotations, AllAnnotations):
        return pod
    read = PodAnnotations(**{field: getattr(annotations, field) for field in _FIELDS_OF_ANNOTATIONS.values()})
    metadata = msgspec.structs.replace(pod.metadata, annotations=None if read == PodAnnotations() else read)
    return msgspec.structs.replace(pod, metadata=metadata)
