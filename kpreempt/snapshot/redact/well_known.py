"""Names that are the same in every cluster, and so reveal nothing about this one; redaction keeps them."""

from __future__ import annotations

import re

from kpreempt.model.kueue import ADMITTED_LABELS, JOB_UID_LABEL
from kpreempt.model.node import MACHINE_LABELS, NODE_POOL
from kpreempt.model.volcano import GPU


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KUEUE_LABELS = frozenset((*ADMITTED_LABELS, JOB_UID_LABEL))
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLES = frozenset(("control-plane", "master", "worker", "infra", "etcd"))

METADATA_NAME = "metadata.name"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
HOSTNAME = "kubernetes.io/hostname"
# The labels to which the scheduler translates the zone labels of in-tree volumes (framework/csi_translation.py).
CSI_ZONES = ("topology.ebs.csi.aws.com/zone", "topology.cinder.csi.openstack.org/zone", "topology.gke.io/zone")
# A volume in several zones has them all in the value of such a label.
ZONES = frozenset(
    (
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        *CSI_ZONES,
    )
)


def _of(domain: str, names: str) -> tuple[str, ...]:
    return tuple(f"{domain}/{name}" for name in names.split())


# Labels and taints from "Well-Known Labels, Annotations and Taints". A Kubernetes domain is not enough to keep a key:
# anyone can create keys in it, and many reveal what is installed.
_LABELS = frozenset(
    (
        METADATA_NAME,
        *CSI_ZONES,
        *ZONES,
        NAMESPACE_LABEL,
        HOSTNAME,
        NODE_POOL,
        *MACHINE_LABELS,
        *_of("kubernetes.io", "arch os cluster-service service-name"),
        *_of("beta.kubernetes.io", "arch os instance-type"),
        *_of("node.kubernetes.io", "instance-type windows-build exclude-from-external-load-balancers"),
        *_of("node.kubernetes.io", "not-ready unreachable unschedulable memory-pressure disk-pressure"),
        *_of("node.kubernetes.io", "pid-pressure network-unavailable out-of-service"),
        *_of("node.alpha.kubernetes.io", "notReady unreachable"),
        *_of("node.cloudprovider.kubernetes.io", "uninitialized shutdown"),
        *_of("app.kubernetes.io", "name instance version component part-of managed-by created-by"),
        *_of("apps.kubernetes.io", "pod-index"),
        *_of("statefulset.kubernetes.io", "pod-name"),
        *_of("batch.kubernetes.io", "controller-uid job-name job-completion-index"),
        *_of("service.kubernetes.io", "headless"),
        *_of("endpointslice.kubernetes.io", "managed-by"),
        *_of("pod-security.kubernetes.io", "enforce audit warn enforce-version audit-version warn-version"),
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "pod-template-generation",
        "pod-template-hash",
    )
)

_VOLCANO = "volcano.sh/"
# Volcano labels with true or false as values.
FLAGS = frozenset((f"{_VOLCANO}preemptable", f"{_VOLCANO}oversubscription"))
_VOLCANO_LABELS = frozenset(
    f"{_VOLCANO}{each}"
    for each in (
        "cooldown-time",
        "job-forwarding",
        "job-name",
        "job-namespace",
        "job-type",
        "queue-name",
        "revocable-zone",
        "task-spec",
    )
)

NAMESPACES = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
PRIORITY_CLASSES = frozenset(("system-cluster-critical", "system-node-critical"))
SCHEDULERS = frozenset(("default-scheduler", "volcano"))
# The drivers that replaced in-tree volumes (framework/csi_translation.py).
DRIVERS = frozenset(
    ("ebs.csi.aws.com", "disk.csi.azure.com", "cinder.csi.openstack.org", "pd.csi.storage.gke.io", "pxd.portworx.com")
)
# Drivers and provisioners that are publicly known.
PROVISIONERS = frozenset(
    (
        *DRIVERS,
        *_of("kubernetes.io", "aws-ebs gce-pd azure-disk azure-file cinder vsphere-volume portworx-volume rbd"),
        *_of("kubernetes.io", "no-provisioner glusterfs scaleio quobyte flocker storageos"),
    )
)
FINALIZERS = frozenset(
    (
        *("foregroundDeletion", "orphan", "kubernetes"),
        *_of("kubernetes.io", "pv-protection pvc-protection"),
        *_of("batch.kubernetes.io", "job-tracking"),
        *_of("resource.kubernetes.io", "delete-protection"),
        *_of("service.kubernetes.io", "load-balancer-cleanup"),
    )
)
# Features that nodes declare (plugins/node_declared_features.py).
NODE_FEATURES = frozenset(
    (
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
        "UserNamespacesHostNetworkSupport",
    )
)
ADDRESSES = frozenset(("0.0.0.0", "127.0.0.1", "::", "::1"))  # noqa: S104 (addresses in pod specs)

HUGE_PAGES = "hugepages-"
ATTACHABLE_VOLUMES = "attachable-volumes-"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_QUOTAS = ("count/pods", *(f"limits.{each}" for each in _COMPUTE))
_RESOURCES = frozenset((*_COMPUTE, "pods", "storage", *_QUOTAS, GPU))
_ATTACHABLE = frozenset(f"{ATTACHABLE_VOLUMES}{each}" for each in ("aws-ebs", "gce-pd", "azure-disk", "cinder"))
_HUGE_PAGES = re.compile(r"hugepages-[0-9]+[A-Za-z]{0,2}")

# Values of fields that only take a few words.
WORDS = _words(
    """
    Recreate RollingUpdate
    True False Unknown Always OnFailure Never Restart RestartAllContainers TCP UDP SCTP Pending Running Succeeded
    In NotIn Exists DoesNotExist Gt Lt Gte Lte
    Failed Available Bound Released Lost Ready PodScheduled DisruptionTarget PodResizePending PodResizeInProgress
    Initialized ContainersReady PodReadyToStartContainers MemoryPressure DiskPressure PIDPressure NetworkUnavailable
    PreemptionByScheduler DeletionByTaintManager EvictionByEvictionAPI DeletionByPodGC TerminationByKubelet
    Unschedulable SchedulingGated SchedulerError Infeasible Deferred Error PodCompleted PodFailed ContainersNotReady
    KubeletReady KubeletNotReady KubeletHasSufficientMemory KubeletHasNoDiskPressure KubeletHasSufficientPID
    KubeletHasInsufficientMemory KubeletHasDiskPressure KubeletHasInsufficientPID NodeStatusUnknown RouteCreated
    ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod Filesystem Block Shared Dedicated Managed shared
    dedicated managed Container Pod PersistentVolumeClaim Preempted FailedScheduling Inqueue Completed Scheduled
    NotEnoughResources NotEnoughTasks NotEnoughPodsOfTask Open Closing Closed none best-effort restricted
    single-numa-node Terminating NotTerminating BestEffort NotBestEffort PriorityClass CrossNamespacePodAffinity
    Exists DoesNotExist In NotIn Equal NoSchedule NoExecute None ExactCount All pods
    Any LowerPriority LowerOrNewerEqualPriority BestEffortFIFO StrictFIFO Borrow Preempt TryNextFlavor MayStopSearch
    BorrowingOverPreemption PreemptionOverBorrowing Hold HoldAndDrain QuotaReserved Admitted Evicted Requeued
    Finished Active Inactive InClusterQueue InCohortReclamation InCohortFairSharing InCohortReclaimWhileBorrowing
    PodsReady PodsReadyTimeout AdmissionCheck ClusterQueueStopped LocalQueueStopped OnHold WaitingForReplacementPods
    Retry Rejected NoReservation JobFinished Deactivated
    Normal Warning Failed FailedMount FailedMapVolume FailedAttachVolume FailedCreatePodSandBox NetworkNotReady
    FailedPrepareDynamicResources InspectFailed ErrImageNeverPull ErrImagePull ImagePullBackOff ImageInspectError
    InvalidImageName RegistryUnavailable SignatureValidationFailed ContainerCreating PodInitializing CrashLoopBackOff
    CreateContainerConfigError CreateContainerError RunContainerError PreCreateHookError PreStartHookError
    NotTriggerScaleUp TriggeredScaleUp Nominated ScaleDown ScaleDownEmpty DisruptionTerminating ScaleUpFailed
    ScaleUpTimedOut FailedToScaleUpGroup MaxNodesTotalReached ClusterUnhealthy NoCompatibleInstanceTypes
    InsufficientCapacityError NodeClassNotReady Launched Registered NodeClassReady ValidationSucceeded LaunchFailed
    NodeNotFound NodeNotRegistered AwaitingReconciliation NodePoolNotReady Healthy Unhealthy InProgress NoActivity
    Backoff NotNeeded Needed
    PostStartHookError OOMKilled ContainerCannotRun StartError ContainerStatusUnknown DeadlineExceeded
    FailedCreate FailedDelete ReplicaSetCreateError ReplicaFailure Progressing Suspended FailureTarget Complete
    SuccessCriteriaMet ProgressDeadlineExceeded NewReplicaSetAvailable NewReplicaSetCreated FoundNewReplicaSet
    ReplicaSetUpdated DeploymentPaused DeploymentResumed MinimumReplicasAvailable MinimumReplicasUnavailable
    JobSuspended JobResumed BackoffLimitExceeded DeadlineExceeded PodFailurePolicy CompletionsReached FailedIndexes
    MaxFailedIndexesExceeded OrderedReady Parallel kubernetes.io/job-controller
    AppArmor EmptyPodSharedPoolError InitContainerRestartPolicyForbidden InvalidNodeInfo NodeAffinity NodeName NodePorts
    NodeShutdown PodFeatureUnsupported PodLevelResourcesNotSupported PodOSNotSupported
    PodOSSelectorNodeLabelDoesNotMatch SMTAlignmentError SupplementalGroupsPolicyNotSupported SysctlForbidden
    TaintToleration TopologyAffinityError UnexpectedAdmissionError UnexpectedPredicateFailureType UnknownReason
    VolumeAttachmentLimitExceeded OutOfcpu OutOfmemory OutOfephemeral-storage OutOfpods Terminated Shutdown NodeLost
    DeletionByDeviceTaintManager PreemptionByKubeScheduler DeviceTaintManagerEviction Disrupted DisruptionTerminating
    EvictedByVPA NodeControllerEviction NodeNotReady NodeNotSchedulable Preempting RemovingNode ScaleDown SystemOOM
    TaintManagerEviction Killing SuccessfulDelete Descheduled
    kubelet taint-eviction-controller device-taint-eviction node-controller replicaset-controller
    replication-controller statefulset-controller daemonset-controller job-controller karpenter cluster-autoscaler
    sigs.k8s.io/descheduler sigs.k8s.io.descheduler vpa-updater
    """
)
KINDS = _words(
    """
    Node Pod PodDisruptionBudget PriorityClass Namespace PersistentVolumeClaim PersistentVolume StorageClass CSINode
    CSIDriver CSIStorageCapacity VolumeAttachment RuntimeClass LimitRange Service ReplicationController ReplicaSet
    StatefulSet Deployment DaemonSet Job CronJob ResourceClaim ResourceClaimTemplate ResourceSlice DeviceClass
    Secret ConfigMap ServiceAccount Event Endpoints EndpointSlice Lease Ingress IngressClass NetworkPolicy Role
    RoleBinding ClusterRole ClusterRoleBinding ControllerRevision HorizontalPodAutoscaler ResourceQuota
    CustomResourceDefinition APIService ComponentStatus PodTemplate FlowSchema PriorityLevelConfiguration
    MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy
    ValidatingAdmissionPolicyBinding CertificateSigningRequest VolumeAttributesClass ServiceCIDR IPAddress
    PodGroup Queue NodePool NodeClaim
    """
)
_GROUPS = _words(
    """
    apps batch policy extensions autoscaling batch.volcano.sh scheduling.volcano.sh networking.k8s.io storage.k8s.io
    rbac.authorization.k8s.io scheduling.k8s.io resource.k8s.io node.k8s.io admissionregistration.k8s.io
    apiextensions.k8s.io apiregistration.k8s.io authentication.k8s.io authorization.k8s.io certificates.k8s.io
    coordination.k8s.io discovery.k8s.io events.k8s.io flowcontrol.apiserver.k8s.io internal.apiserver.k8s.io
    metrics.k8s.io
    """
)
_API_VERSION = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?")


def is_label(key: str) -> bool:
    """Return whether a label or taint key is well known; for node roles, only those that installers set."""
    if key.startswith(_ROLE_PREFIX):
        return key.removeprefix(_ROLE_PREFIX) in _ROLES
    return key in _LABELS or key in FLAGS or key in _VOLCANO_LABELS or key in _KUEUE_LABELS


def is_resource(name: str) -> bool:
    """Return whether schedulers know a resource by name: Kubernetes' own, and Volcano's GPUs."""
    return name in _RESOURCES or name in _ATTACHABLE or _HUGE_PAGES.fullmatch(name) is not None


def is_api_version(text: str) -> bool:
    """Return whether an API version belongs to a group of Kubernetes."""
    group, slash, version = text.rpartition("/")
    return _API_VERSION.fullmatch(version) is not None and (not slash or group in _GROUPS)
