"""Volcano's pod groups and queues, with the fields that its scheduler reads.

They match ``volcano.sh/apis`` ``pkg/apis/scheduling/v1beta1/types.go``, in the version that Volcano 1.8.0 uses.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS
from kpreempt.model.meta import AnnotatedMeta, Keyed, Time
from kpreempt.model.pod import Int32, ResourceList

SCHEDULING_GROUP = "scheduling.volcano.sh"
SCHEDULING_VERSION = f"{SCHEDULING_GROUP}/v1beta1"
BATCH_GROUP = "batch.volcano.sh"
BATCH_VERSION = f"{BATCH_GROUP}/v1alpha1"
DEFAULT_QUEUE = "default"
VOLCANO_SCHEDULER_NAME = "volcano"
# The resource that the nodeorder plugin balances with CPU and memory (pkg/scheduler/plugins/nodeorder/nodeorder.go).
GPU = "nvidia.com/gpu"

# Keys of annotations, and of labels if noted.
GROUP_NAME = "scheduling.k8s.io/group-name"
# On pods without a group, and on namespaces: the queue of the group that is created for them.
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
TASK_SPEC = "volcano.sh/task-spec"
TEMPLATE_UID = "volcano.sh/template-uid"
# On pods and pod groups; also a label.
PREEMPTABLE = "volcano.sh/preemptable"
# On pods and pod groups; a label on nodes.
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
# On jobs and pods; also a label on pods.
COOLDOWN_TIME = "volcano.sh/cooldown-time"
NUMA_POLICY = "volcano.sh/numa-topology-policy"
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
SLA_WAITING_TIME = "volcano.sh/sla-waiting-time"
OLD_SLA_WAITING_TIME = "sla-waiting-time"
HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"
# A label of nodes; the others are annotations of nodes.
OVERSUBSCRIPTION_CPU = "volcano.sh/oversubscription-cpu"
OVERSUBSCRIPTION_MEMORY = "volcano.sh/oversubscription-memory"
OFFLINE_JOB_EVICTING = "volcano.sh/offline-job-evicting"


class PodGroupSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pods that must run together.

    ``min_resources`` None skips the check for capacity before enqueuing; ``{}`` requests nothing.

    An empty ``queue`` is the queue ``default``.
    """

    min_member: Int32 = 0
    min_task_member: dict[str, Int32] = NO_ENTRIES
    queue: str = ""
    priority_class_name: str = ""
    min_resources: ResourceList | None = None


class PodGroupCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The scheduler's last statement about a group; ``transition_id`` is the session that made it."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(name="transitionID", default="")
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state of a group. An empty phase means that no scheduler has seen it yet."""

    phase: str = ""
    conditions: list[PodGroupCondition] = NO_ITEMS
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0


class PodGroup(Keyed, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A gang: pods that are placed together or not at all."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class QueueGuarantee(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The resources reserved for a queue, used or not."""

    resource: ResourceList = NO_ENTRIES


class QueueSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A queue's share of the cluster. ``reclaimable`` None means yes; resources not in ``capability`` are unlimited."""

    weight: Int32 = 0
    capability: ResourceList = NO_ENTRIES
    reclaimable: bool | None = None
    guarantee: QueueGuarantee = QueueGuarantee()
    type: str = ""


class QueueReservation(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The nodes that are locked for a queue, and their idle resources."""

    nodes: list[str] = NO_ITEMS
    resource: ResourceList = NO_ENTRIES


class QueueStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The last status of a queue, from the controller and the scheduler."""

    state: str = ""
    reservation: QueueReservation = QueueReservation()
    allocated: ResourceList = NO_ENTRIES


class Queue(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A queue, in which pod groups of every namespace wait."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
