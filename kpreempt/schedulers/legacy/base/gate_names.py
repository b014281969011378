"""The names of the feature gates that each release registers (``kube_features.go``, including the API server's).

A row has the releases, and their gates.
"""

from __future__ import annotations

_RELEASES = ("1.8", "1.13", "1.18")
_GATES = """
    1.8: Accelerators AllowExtTrafficLocalEndpoints KubeletConfigFile ReadOnlyAPIDataVolumes
        ServiceProxyAllowExternalIPs
    1.8 1.13: APIListChunking APIResponseCompression AdvancedAuditing CustomResourceValidation DebugContainers
        EnableEquivalenceClassCache ExperimentalCriticalPodAnnotation HugePages Initializers MountPropagation
        PersistentLocalVolumes PodPriority StreamingProxyRedirects TaintNodesByCondition
    1.8 1.13 1.18: AllAlpha AppArmor CPUManager DevicePlugins DynamicKubeletConfig ExpandPersistentVolumes
        ExperimentalHostUserNamespaceDefaulting LocalStorageCapacityIsolation RotateKubeletClientCertificate
        RotateKubeletServerCertificate ServiceNodeExclusion SupportIPVSProxyMode TaintBasedEvictions
        VolumeSubpath
    1.13: CSIPersistentVolume CustomPodDNS CustomResourceSubresources CustomResourceWebhookConversion DryRun
        DynamicAuditing GCERegionalPersistentDisk KubeletPluginsWatcher MountContainers PodReadinessGates
        ResourceQuotaScopeSelectors ScheduleDaemonSetPods ValidateProxyRedirects VolumeScheduling
    1.13 1.18: AttachVolumeLimit BalanceAttachedNodeVolumes BlockVolume BoundServiceAccountTokenVolume
        CRIContainerLogRotation CSIBlockVolume CSIDriverRegistry CSINodeInfo CustomCPUCFSQuotaPeriod
        ExpandInUsePersistentVolumes HyperVContainer KubeletPodResources NodeLease PodShareProcessNamespace
        ProcMountType QOSReserved ResourceLimitsPriorityFunction RunAsGroup RuntimeClass SCTPSupport
        StorageObjectInUseProtection SupportPodPidsLimit Sysctls TTLAfterFinished TokenRequest
        TokenRequestProjection VolumeSnapshotDataSource VolumeSubpathEnvExpansion
    1.18: AllBeta AllowInsecureBackendProxy AnyVolumeDataSource CSIInlineVolume CSIMigration CSIMigrationAWS
        CSIMigrationAWSComplete CSIMigrationAzureDisk CSIMigrationAzureDiskComplete CSIMigrationAzureFile
        CSIMigrationAzureFileComplete CSIMigrationGCE CSIMigrationGCEComplete CSIMigrationOpenStack
        CSIMigrationOpenStackComplete ConfigurableFSGroupPolicy DefaultIngressClass EndpointSlice
        EndpointSliceProxying EphemeralContainers EvenPodsSpread ExpandCSIVolumes ExternalPolicyForExternalIP
        HPAScaleToZero HugePageStorageMediumSize IPv6DualStack ImmutableEphemeralVolumes LegacyNodeRoleBehavior
        LocalStorageCapacityIsolationFSQuotaMonitoring NodeDisruptionExclusion NonPreemptingPriority
        PodDisruptionBudget PodOverhead ServiceAccountIssuerDiscovery ServiceAppProtocol
        ServiceLoadBalancerFinalizer ServiceTopology StartupProbe SupportNodePidsLimit TopologyManager
        VolumePVCDataSource WindowsGMSA WindowsRunAsUserName
"""


def _gates_of(release: str) -> frozenset[str]:
    head, *parts = _GATES.split(":")
    names: list[str] = []
    for part in parts:
        in_row, _, following = part.rpartition("\n")
        if release in head.split():
            names += in_row.split()
        head = following
    return frozenset(names)


GATES_BY_ALGORITHM = {f"kube-{release}": _gates_of(release) for release in _RELEASES}
# A gate of one release may be set for another, when a comparison uses one set of gates for several releases.
ALL_GATES = frozenset[str]().union(*GATES_BY_ALGORITHM.values())
