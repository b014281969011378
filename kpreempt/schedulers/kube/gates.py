"""The feature gates of kube-scheduler since 1.29: the history of each, what each is to us, and what it needs.

As registered by ``pkg/features``, ``k8s.io/apiserver``, ``k8s.io/client-go`` and ``k8s.io/component-base`` of v1.36.3,
with what 1.25 has of those that are modelled. Most belong to other components, but the scheduler accepts them too.

A row is a history and the gates that have it: the versions in which a gate came to a stage (``alpha``, which is off, or
``beta``, ``GA``, ``deprecated``, which are on or off), was ``locked``, or was ``gone``. ``versions.py`` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

# They change a verdict, or what the queue and controllers make of one.
MODELLED = """
    1.24 alpha, 1.35 beta off: MaxUnavailableStatefulSet
    1.25 alpha, 1.26 beta on, 1.33 locked on: NodeInclusionPolicyInPodTopologySpread
    1.25 alpha, 1.27 beta on: MatchLabelKeysInPodTopologySpread
    1.25 beta off, 1.27 beta on, 1.30 locked on, 1.32 gone: MinDomainsInPodTopologySpread
    1.25 beta off, 1.31 beta on, 1.33 locked on, 1.36 gone: CSIMigrationPortworx
    1.21 alpha, 1.33 gone: VolumeCapacityPriority
    1.25 alpha, 1.26 beta on, 1.31 locked on, 1.34 gone: PodDisruptionConditions
    1.26 alpha, 1.32 beta off, 1.34 GA on, 1.35 locked on: DynamicResourceAllocation
    1.27 alpha, 1.33 beta on, 1.35 locked on: InPlacePodVerticalScaling
    1.28 alpha, 1.29 beta on, 1.33 locked on: SidecarContainers
    1.29 alpha, 1.31 beta off, 1.34 GA on, 1.36 locked on: VolumeAttributesClass
    1.32 alpha, 1.34 beta on: PodLevelResources
    1.32 alpha, 1.33 beta on: SchedulerAsyncPreemption
    1.33 alpha, 1.37 beta on: StorageCapacityScoring
    1.33 beta on: SchedulerPopFromBackoffQ
    1.34 alpha, 1.36 beta on: DRAExtendedResource
    1.35 alpha: TaintTolerationComparisonOperators
    1.35 alpha, 1.37 beta on: VolumeLimitScaling
    1.35 alpha, 1.36 beta on: InPlacePodLevelResourcesVerticalScaling NodeDeclaredFeatures
"""

# Decisions or what comes of them may depend on these, and they are not modelled.
NOT_MODELLED = """
    1.0 beta on: StatefulSetSemanticRevisionComparison
    1.22 beta on: PodDeletionCost
    1.32 alpha, 1.33 beta on: DRAResourceClaimDeviceStatus
    1.33 alpha, 1.34 beta on, 1.36 GA on: DRAPrioritizedList
    1.33 alpha, 1.35 beta on: PodTopologyLabelsAdmission
    1.33 alpha, 1.36 beta on: DRADeviceTaints DRAPartitionableDevices
    1.34 alpha, 1.35 beta on: ContainerRestartRules NominatedNodeNameForExpectation
    1.34 alpha, 1.36 beta on: DRAConsumableCapacity DRADeviceBindingConditions
    1.34 beta off: SchedulerAsyncAPICalls
    1.34 beta on: DRASchedulerFilterTimeout MatchLabelKeysInPodTopologySpreadSelectorMerge
    1.35 alpha: GangScheduling GenericWorkload UserNamespacesHostNetworkSupport
    1.35 alpha, 1.36 beta off: DRADeviceTaintRules
    1.35 alpha, 1.36 beta on: MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
      RestartAllContainersOnContainerExits
    1.36 alpha: DRAListTypeAttributes DRANodeAllocatableResources DRAWorkloadResourceClaims
      TopologyAwareWorkloadScheduling WorkloadAwarePreemption WorkloadWithJob
"""

# They change no answer here however they are set, by the reason why. A gate may stand here only where nothing that is
# modelled reads what it switches. Found by where each is read: none of these is read in ``pkg/scheduler``, in admission
# that is modelled, or for what controllers that are modelled do with pods (``k8s.io/kubernetes`` v1.36.3).
IRRELEVANT: Mapping[str, str] = {
    "kubelets and runtimes run what is bound to their node; nothing that they do is modelled": """
        1.11 alpha: QOSReserved
        1.12 alpha, 1.36 GA on: CustomCPUCFSQuotaPeriod
        1.12 beta on: RotateKubeletServerCertificate
        1.15 alpha, 1.31 beta off: LocalStorageCapacityIsolationFSQuotaMonitoring
        1.21 alpha: CSIVolumeHealth
        1.21 beta on: GracefulNodeShutdown
        1.22 alpha: KubeletInUserNamespace MemoryQoS
        1.23 alpha: CPUManagerPolicyAlphaOptions PodAndContainerStatsFromCRI
        1.23 beta on: CPUManagerPolicyBetaOptions
        1.24 beta on: GracefulNodeShutdownBasedOnPodPriority
        1.25 alpha, 1.30 beta on: ContainerCheckpoint
        1.26 alpha: EventedPLEG TopologyManagerPolicyAlphaOptions
        1.26 alpha, 1.33 deprecated off: WindowsHostNetwork
        1.28 beta on: TopologyManagerPolicyBetaOptions
        1.29 alpha: RuntimeClassInImageCriApi
        1.29 alpha, 1.31 beta on: KubeletSeparateDiskGC
        1.29 beta on: PodReadyToStartContainersCondition
        1.30 alpha, 1.33 beta off: SELinuxMount
        1.31 alpha, 1.36 beta on: ResourceHealthStatus
        1.31 beta on: ReloadKubeletServerCertificateFile
        1.32 alpha: InPlacePodVerticalScalingExclusiveCPUs PodLogsQuerySplitStreams WindowsCPUAndMemoryAffinity
        1.32 alpha, 1.34 beta on: WindowsGracefulNodeShutdown
        1.32 alpha, 1.35 beta on: KubeletCrashLoopBackOffMax
        1.32 deprecated off: KubeletRegistrationGetOnExistsOnly
        1.33 alpha: ContainerStopSignals ReduceDefaultCrashLoopBackOffDecay
        1.33 alpha, 1.34 beta on: KubeletServiceAccountTokenForCredentialProviders
        1.33 alpha, 1.35 beta on: KubeletEnsureSecretPulledImages
        1.33 beta on, 1.36 deprecated on: DisableCPUQuotaWithExclusiveCPUs
        1.34 alpha: InPlacePodVerticalScalingExclusiveMemory
        1.34 alpha, 1.35 beta on: EnvFiles HostnameOverride
        1.34 beta on: PreventStaticPodAPIReferences
        1.34 deprecated on: KubeletPodResourcesListUseActivePods
        1.35 alpha: ImageVolumeWithDigest
        1.35 deprecated off: ChangeContainerStatusOnKubeletRestart
        1.36 alpha: CRIListStreaming PodLevelResourceManagers PodsAPI
        1.36 beta on: ExtendWebSocketsToKubelet PLEGOnDemandRelist ReloadKubeletClientCAFile
      ResourceHealthStatusMessage
    """,
    "how the API server stores, serves and counts objects is not part of them": """
        1.15 beta on: StorageVersionHash
        1.16 beta on: APIResponseCompression
        1.20 alpha: StorageVersionAPI
        1.24 beta on: OpenAPIEnums
        1.26 beta on: APIServerIdentity
        1.27 alpha, 1.32 beta on, 1.33 beta off, 1.34 beta on: WatchList
        1.28 alpha, 1.36 beta on: UnknownVersionInteroperabilityProxy
        1.29 beta on: UnauthenticatedHTTP2DOSMitigation
        1.30 alpha: APIServingWithRoutine
        1.30 alpha, 1.35 beta off: StorageVersionMigrator
        1.30 beta on, 1.33 deprecated on: StorageNamespaceIndex
        1.31 alpha, 1.33 beta off: CoordinatedLeaderElection
        1.31 beta off: ConcurrentWatchObjectDecode
        1.31 beta off, 1.36 beta on: WatchCacheInitializationPostStartHook
        1.32 alpha: AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
        1.33 alpha, 1.34 beta on: ListFromCacheSnapshot
        1.33 beta off, 1.36 deprecated off: DeclarativeValidationTakeover
        1.34 beta on: DetectCacheInconsistency SizeBasedListCostEstimate
        1.35 beta off, 1.36 beta on: CRDObservedGenerationTracking
        1.36 alpha: ShardedListAndWatch
        1.36 beta on: DeclarativeValidationBeta
    """,
    "who may do what, and how secrets and certificates are kept, decides about no pod here": """
        1.27 alpha, 1.33 beta off: ClusterTrustBundle
        1.29 alpha, 1.33 beta off: ClusterTrustBundleProjection
        1.29 deprecated off: KMSv1
        1.31 deprecated off: AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
        1.32 alpha, 1.33 beta on: RemoteRequestHeaderUID
        1.32 beta off, 1.33 beta on: ServiceAccountNodeAudienceRestriction
        1.33 beta on: AllowParsingUserUIDFromCertAuth
        1.34 alpha, 1.35 beta off: PodCertificateRequest
        1.34 beta on: StructuredAuthenticationConfigurationEgressSelector TokenRequestServiceAccountUIDValidation
        1.35 alpha, 1.36 beta on: ConstrainedImpersonation
        1.35 beta on: AuthorizePodWebsocketUpgradeCreatePermission StructuredAuthenticationConfigurationJWKSMetrics
        1.36 beta on: ClientsAllowCARotation DRAResourceClaimGranularStatusAuthorization
    """,
    "clients, logs and metrics tell the same in another way": """
        1.24 alpha: LoggingAlphaOptions
        1.24 alpha, 1.30 beta on: ContextualLogging
        1.24 beta on: LoggingBetaOptions
        1.30 alpha, 1.35 GA on: InformerResourceVersion
        1.30 beta off, 1.35 beta on: WatchListClient
        1.32 alpha: ClientsAllowCBOR ClientsPreferCBOR
        1.32 alpha, 1.36 beta on: ComponentFlagz ComponentStatusz
        1.35 beta on: InOrderInformersBatchProcess
        1.36 alpha: NativeHistograms
        1.36 beta on: AtomicFIFO ClientsAllowTLSCacheGC UnlockWhileProcessingFIFO
    """,
    "services and routes carry traffic, which is not modelled": """
        1.0 GA on: AllowServiceExternalIPs
        1.27 alpha: CloudControllerManagerWebhook
        1.29 alpha, 1.30 beta on: TranslateStreamCloseWebsocketRequests
        1.30 alpha, 1.31 beta on: PortForwardWebsockets
        1.33 alpha, 1.36 beta on: StrictIPCIDRValidation
        1.34 alpha, 1.36 beta on: RelaxedServiceNameValidation
        1.35 alpha: CloudControllerManagerWatchBasedRoutesReconciliation
        1.36 deprecated on: ServiceCIDRStatusFieldWiping
    """,
    "no autoscaler acts here": """
        1.16 alpha: HPAScaleToZero
        1.33 alpha, 1.35 beta on: HPAConfigurableTolerance
    """,
    "policies and webhooks of a cluster are unknown here, with it and without": """
        1.32 alpha, 1.34 beta off, 1.36 GA on: MutatingAdmissionPolicy
        1.36 alpha: ManifestBasedAdmissionControlConfig
    """,
    "it is about what fields say that no scheduler reads, or may be changed to later": """
        1.26 alpha: CrossNamespaceVolumeDataSource
        1.33 alpha, 1.35 beta on: DeploymentReplicaSetTerminatingReplicas
        1.34 alpha, 1.35 beta on: ClearingNominatedNodeNameAfterBinding
        1.35 alpha: MutablePVNodeAffinity
        1.36 alpha: DRAResourcePoolStatus PersistentVolumeClaimUnusedSinceTime
        1.36 beta on: InPlacePodVerticalScalingInitContainers
    """,
    "controllers wait for their caches with it; here they see everything at once": """
        1.36 beta on: StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
      StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    """,
    "every pod is decided on its own, as it is without it": """
        1.35 beta on: OpportunisticBatching
    """,
}

# Nobody can set them in the newest version, and nobody has asked yet what they do in older ones.
LOCKED = """
    1.12 alpha, 1.31 beta off, 1.33 beta on, 1.36 locked on: ProcMountType
    1.14 alpha, 1.33 beta on, 1.34 locked on: WinDSR
    1.20 GA on, 1.35 locked on: ExecProbeTimeout
    1.20 beta on, 1.34 locked on: WinOverlay
    1.22 beta on, 1.31 locked on: LogarithmicScaleDown
    1.23 alpha, 1.32 beta on, 1.34 locked on: RecoverVolumeExpansionFailure
    1.23 beta on, 1.33 locked on: CPUManagerPolicyOptions
    1.24 beta on, 1.33 locked on: AnyVolumeDataSource
    1.25 alpha, 1.30 beta off, 1.33 beta on, 1.36 locked on: UserNamespacesSupport
    1.27 alpha, 1.30 beta off, 1.36 locked on: NodeLogQuery
    1.27 alpha, 1.31 beta off, 1.33 GA on, 1.34 locked on: MultiCIDRServiceAllocator
    1.27 alpha, 1.34 beta on, 1.36 locked on: KubeletPodResourcesDynamicResources KubeletPodResourcesGet
    1.27 beta on, 1.30 locked on: PodSchedulingReadiness
    1.27 beta on, 1.34 locked on: APIServerTracing KubeletTracing
    1.28 alpha, 1.30 beta on, 1.33 locked on: CRDValidationRatcheting
    1.28 alpha, 1.31 beta on, 1.34 locked on: ConsistentListFromCache KubeletCgroupDriverFromCRI
    1.28 beta off, 1.30 beta on, 1.34 locked on: NodeSwap
    1.28 beta off, 1.32 beta on, 1.34 locked on: SchedulerQueueingHints
    1.28 beta on, 1.32 locked on: TopologyManagerPolicyOptions
    1.28 beta on, 1.33 deprecated off, 1.36 locked off: SeparateCacheWatchRPC
    1.28 beta on, 1.36 locked on: SELinuxMountReadWriteOncePod
    1.29 alpha, 1.30 beta on, 1.32 locked on: ServiceAccountTokenJTI ServiceAccountTokenNodeBindingValidation
      ServiceAccountTokenPodNodeInfo
    1.29 alpha, 1.30 beta on, 1.34 locked on: PodLifecycleSleepAction StructuredAuthenticationConfiguration
    1.29 alpha, 1.30 beta on, 1.35 locked on: ImageMaximumGCAge
    1.29 alpha, 1.31 beta on, 1.33 locked on: MatchLabelKeysInPodAffinity NFTablesProxyMode
      ServiceAccountTokenNodeBinding
    1.29 alpha, 1.31 deprecated off, 1.33 deprecated on, 1.36 locked on: DisableNodeKubeProxyVersion
    1.29 beta on, 1.33 locked on: JobBackoffLimitPerIndex
    1.29 beta on, 1.34 locked on: JobPodReplacementPolicy SeparateTaintEvictionController
    1.30 alpha, 1.31 beta on, 1.32 locked on: CustomResourceFieldSelectors RetryGenerateName
    1.30 alpha, 1.31 beta on, 1.33 locked on: JobSuccessPolicy RecursiveReadOnlyMounts
    1.30 alpha, 1.32 beta on, 1.34 locked on: RelaxedEnvironmentVariableValidation
    1.30 alpha, 1.32 beta on, 1.35 locked on: JobManagedBy
    1.30 beta off, 1.33 beta on, 1.34 locked on: OrderedNamespaceDeletion
    1.31 alpha, 1.32 beta on, 1.34 locked on: AnonymousAuthConfigurableEndpoints AuthorizeNodeWithSelectors
      AuthorizeWithSelectors
    1.31 alpha, 1.33 beta off, 1.34 GA on, 1.35 locked on: DisableAllocatorDualWrite
    1.31 alpha, 1.33 beta off, 1.35 beta on, 1.36 locked on: ImageVolume
    1.31 alpha, 1.33 beta on, 1.35 locked on: SupplementalGroupsPolicy
    1.31 beta on, 1.34 locked on: ResilientWatchCacheInitialization
    1.32 alpha, 1.33 beta on, 1.34 locked on: PodLifecycleSleepActionAllowZero RelaxedDNSSearchValidation
    1.32 alpha, 1.33 beta on, 1.36 locked on: KubeletFineGrainedAuthz SELinuxChangePolicy
    1.32 alpha, 1.34 beta on, 1.36 locked on: DRAAdminAccess ExternalServiceAccountTokenSigner
    1.32 beta on, 1.33 locked on: BtreeWatchCache
    1.32 beta on, 1.35 locked on: SystemdWatchdog
    1.32 deprecated off, 1.35 locked off: AllowOverwriteTerminationGracePeriodSeconds
    1.33 alpha, 1.34 beta off, 1.35 beta on, 1.36 locked on: MutableCSINodeAllocatableCount
    1.33 alpha, 1.34 beta on, 1.35 locked on: PodObservedGenerationTracking PreferSameTrafficDistribution
    1.33 alpha, 1.34 beta on, 1.36 locked on: KubeletPSI
    1.33 beta on, 1.34 locked on: StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    1.33 beta on, 1.36 locked on: DeclarativeValidation InOrderInformers
    1.33 deprecated off, 1.36 locked off: GitRepoVolumeDriver
    1.33 deprecated on, 1.35 locked on: AggregatedDiscoveryRemoveBetaType
    1.35 beta on, 1.36 locked on: CSIServiceAccountTokenSecrets
"""

# A gate that is on needs others to be on: what is needed, and by which gates (1.36).
DEPENDENCIES = """
    APIServerIdentity: StorageVersionAPI UnknownVersionInteroperabilityProxy
    AtomicFIFO: StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
      StaleControllerConsistencyStatefulSet
    AuthorizeNodeWithSelectors: PodCertificateRequest
    AuthorizeWithSelectors: AuthorizeNodeWithSelectors
    ClusterTrustBundle: ClusterTrustBundleProjection
    ContainerRestartRules NodeDeclaredFeatures: RestartAllContainersOnContainerExits
    DRADeviceTaints: DRADeviceTaintRules
    DRAResourceClaimDeviceStatus DynamicResourceAllocation: DRADeviceBindingConditions
      DRAResourceClaimGranularStatusAuthorization
    DeclarativeValidation: DeclarativeValidationBeta DeclarativeValidationTakeover
    DynamicResourceAllocation: DRAAdminAccess DRAConsumableCapacity DRADeviceTaints DRAExtendedResource
      DRAListTypeAttributes DRANodeAllocatableResources DRAPartitionableDevices DRAPrioritizedList
      DRAResourcePoolStatus DRASchedulerFilterTimeout ResourceHealthStatus
    DynamicResourceAllocation GenericWorkload: DRAWorkloadResourceClaims
    GangScheduling: WorkloadAwarePreemption
    GenericWorkload: GangScheduling TopologyAwareWorkloadScheduling WorkloadWithJob
    GracefulNodeShutdown: GracefulNodeShutdownBasedOnPodPriority WindowsGracefulNodeShutdown
    ImageVolume: ImageVolumeWithDigest
    InPlacePodVerticalScaling: InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
    InPlacePodVerticalScaling NodeDeclaredFeatures: InPlacePodVerticalScalingInitContainers
    InPlacePodVerticalScaling NodeDeclaredFeatures PodLevelResources: InPlacePodLevelResourcesVerticalScaling
    MatchLabelKeysInPodTopologySpread: MatchLabelKeysInPodTopologySpreadSelectorMerge
    MultiCIDRServiceAllocator: DisableAllocatorDualWrite
    NodeDeclaredFeatures: ExtendWebSocketsToKubelet
    NodeDeclaredFeatures UserNamespacesSupport: UserNamespacesHostNetworkSupport
    PodLevelResources: PodLevelResourceManagers
    PodLifecycleSleepAction: PodLifecycleSleepActionAllowZero
    ResourceHealthStatus: ResourceHealthStatusMessage
    ServiceAccountTokenNodeBindingValidation: ServiceAccountTokenNodeBinding
    StructuredAuthenticationConfiguration: StructuredAuthenticationConfigurationEgressSelector
      StructuredAuthenticationConfigurationJWKSMetrics
    UserNamespacesSupport: ProcMountType
"""
