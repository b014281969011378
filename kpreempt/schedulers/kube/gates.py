"""Feature gates of kube-scheduler since 1.29: their history, how kpreempt treats them, and their dependencies.

A row is a history and the gates that share it: the versions in which a gate entered a stage (``alpha``, which is off,
or ``beta``, ``GA`` or ``deprecated``, which are on or off), was ``locked``, or was ``gone``. ``versions.py`` parses it.
"""

from __future__ import annotations

from collections.abc import Mapping

# These change a verdict, or what the queue, the API server or controllers do with it.
MODELED = """
    1.21 alpha, 1.33 gone: VolumeCapacityPriority
    1.24 alpha, 1.35 beta off, 1.37 beta on: MaxUnavailableStatefulSet
    1.25 alpha, 1.26 beta on, 1.31 locked on, 1.34 gone: PodDisruptionConditions
    1.25 alpha, 1.26 beta on, 1.33 locked on: NodeInclusionPolicyInPodTopologySpread
    1.25 alpha, 1.27 beta on: MatchLabelKeysInPodTopologySpread
    1.25 beta off, 1.27 beta on, 1.30 locked on, 1.32 gone: MinDomainsInPodTopologySpread
    1.25 beta off, 1.31 beta on, 1.33 locked on, 1.36 gone: CSIMigrationPortworx
    1.26 alpha, 1.32 beta off, 1.34 GA on, 1.35 locked on: DynamicResourceAllocation
    1.27 alpha, 1.33 beta on, 1.35 locked on: InPlacePodVerticalScaling
    1.28 alpha, 1.29 beta on, 1.33 locked on, 1.37 gone: SidecarContainers
    1.28 beta off, 1.32 beta on, 1.34 locked on, 1.37 gone: SchedulerQueueingHints
    1.29 alpha, 1.31 beta off, 1.34 GA on, 1.36 locked on: VolumeAttributesClass
    1.29 alpha, 1.31 beta on, 1.33 locked on: MatchLabelKeysInPodAffinity
    1.30 alpha, 1.31 beta on, 1.33 locked on, 1.37 gone: JobSuccessPolicy
    1.30 alpha, 1.32 beta on, 1.35 locked on: JobManagedBy
    1.32 alpha, 1.33 beta on: SchedulerAsyncPreemption
    1.32 alpha, 1.33 beta on, 1.37 locked on: DRAResourceClaimDeviceStatus
    1.32 alpha, 1.34 beta on: PodLevelResources
    1.32 alpha, 1.34 beta on, 1.36 locked on: DRAAdminAccess
    1.33 alpha, 1.34 beta on, 1.36 GA on, 1.37 locked on: DRAPrioritizedList
    1.33 alpha, 1.36 beta on: DRAPartitionableDevices
    1.33 alpha, 1.36 beta on, 1.37 GA on: DRADeviceTaints
    1.33 alpha, 1.37 beta on: StorageCapacityScoring
    1.33 alpha, 1.35 beta on: PodTopologyLabelsAdmission
    1.33 beta on: SchedulerPopFromBackoffQ
    1.34 alpha, 1.36 beta on: DRAConsumableCapacity DRADeviceBindingConditions
    1.34 alpha, 1.36 beta on, 1.37 locked on: DRAExtendedResource
    1.34 beta on: MatchLabelKeysInPodTopologySpreadSelectorMerge
    1.35 alpha: TaintTolerationComparisonOperators
    1.35 alpha, 1.36 beta off, 1.37 GA on: DRADeviceTaintRules
    1.35 alpha, 1.36 beta on: InPlacePodLevelResourcesVerticalScaling
    1.35 alpha, 1.36 beta on, 1.37 locked on: NodeDeclaredFeatures
    1.35 alpha, 1.37 beta on: VolumeLimitScaling
    1.37 beta on: DRAFractionalCapacityRange PodLevelResourcesFixDefaulting
"""

# These may affect decisions or their consequences, and are not modeled.
UNMODELED = """
    1.22 beta on: PodDeletionCost
    1.34 alpha, 1.35 beta on: ContainerRestartRules NominatedNodeNameForExpectation
    1.34 beta on: DRASchedulerFilterTimeout StatefulSetSemanticRevisionComparison
    1.34 beta on, 1.34.2 beta off, 1.35 beta on, 1.35.1 beta off: SchedulerAsyncAPICalls
    1.35 alpha: UserNamespacesHostNetworkSupport
    1.35 alpha, 1.36 beta on: MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
      RestartAllContainersOnContainerExits
    1.35 alpha, 1.37 beta off: GenericWorkload
    1.35 alpha, 1.37 gone: GangScheduling
    1.36 alpha: DRAListTypeAttributes DRANodeAllocatableResources TopologyAwareWorkloadScheduling WorkloadWithJob
    1.36 alpha, 1.37 beta off: DRAWorkloadResourceClaims
    1.36 alpha, 1.37 gone: WorkloadAwarePreemption
    1.37 alpha: CompositePodGroup DRADerivedAttributes DRADeviceCompatibilityGroups EvictionRequestAPI
      InPlacePodVerticalScalingSchedulerPreemption NodeLifecycleConditions PodGroupPreemptionPolicy
      SchedulerPreQueueingHints StatefulSetRecreateStrategy
    1.37 beta on: NodeControllerLeaseCircuitBreaker
"""

# These change no answer however they are set, grouped by reason. A gate may be listed here only if nothing that is
# modeled reads what it switches: none of these is read in ``pkg/scheduler``, in modeled admission, or by modeled
# controllers when they handle pods (``k8s.io/kubernetes`` v1.36.3).
IRRELEVANT: Mapping[str, str] = {
    "it affects only how kubelets and runtimes run pods that are already bound, which is not modeled": """
        1.11 alpha: QOSReserved
        1.12 alpha, 1.36 GA on: CustomCPUCFSQuotaPeriod
        1.12 beta on: RotateKubeletServerCertificate
        1.15 alpha, 1.31 beta off: LocalStorageCapacityIsolationFSQuotaMonitoring
        1.21 alpha: CSIVolumeHealth
        1.21 beta on: GracefulNodeShutdown
        1.22 alpha, 1.37 beta on: KubeletInUserNamespace MemoryQoS
        1.23 alpha: CPUManagerPolicyAlphaOptions
        1.23 alpha, 1.37 beta off: PodAndContainerStatsFromCRI
        1.23 beta on: CPUManagerPolicyBetaOptions
        1.24 beta on: GracefulNodeShutdownBasedOnPodPriority
        1.25 alpha, 1.30 beta on: ContainerCheckpoint
        1.26 alpha: EventedPLEG TopologyManagerPolicyAlphaOptions
        1.26 alpha, 1.33 deprecated off: WindowsHostNetwork
        1.28 beta on: TopologyManagerPolicyBetaOptions
        1.29 alpha: RuntimeClassInImageCriApi
        1.29 alpha, 1.31 beta on: KubeletSeparateDiskGC
        1.29 beta on, 1.37 locked on: PodReadyToStartContainersCondition
        1.30 alpha, 1.33 beta off, 1.37 GA on: SELinuxMount
        1.31 alpha, 1.36 beta on: ResourceHealthStatus
        1.31 beta on: ReloadKubeletServerCertificateFile
        1.32 alpha: InPlacePodVerticalScalingExclusiveCPUs PodLogsQuerySplitStreams WindowsCPUAndMemoryAffinity
        1.32 alpha, 1.34 beta on: WindowsGracefulNodeShutdown
        1.32 alpha, 1.35 beta on: KubeletCrashLoopBackOffMax
        1.32 deprecated off: KubeletRegistrationGetOnExistsOnly
        1.33 alpha: ContainerStopSignals ReduceDefaultCrashLoopBackOffDecay
        1.33 alpha, 1.34 beta on: KubeletServiceAccountTokenForCredentialProviders
        1.33 alpha, 1.35 beta on: KubeletEnsureSecretPulledImages
        1.33 beta on, 1.36 deprecated on, 1.37 locked on: DisableCPUQuotaWithExclusiveCPUs
        1.34 alpha: InPlacePodVerticalScalingExclusiveMemory
        1.34 alpha, 1.35 beta on: EnvFiles
        1.34 alpha, 1.35 beta on, 1.37 locked on: HostnameOverride
        1.34 beta on, 1.37 gone: PreventStaticPodAPIReferences
        1.34 deprecated on: KubeletPodResourcesListUseActivePods
        1.35 deprecated off: ChangeContainerStatusOnKubeletRestart
        1.36 alpha: CRIListStreaming ImageVolumeWithDigest
        1.36 alpha, 1.37 beta off: PodLevelResourceManagers
        1.36 alpha, 1.37 beta on: PodsAPI
        1.36 beta on: ExtendWebSocketsToKubelet ReloadKubeletClientCAFile ResourceHealthStatusMessage
        1.36 beta on, 1.37 locked on: PLEGOnDemandRelist
        1.37 alpha: AtomicWriteVolumeUserFields DRAOptionalNodeOperations DefaultPodSysctls EmptyDirVolumeMode
      GRPCContainerProbeTLS H2CContainerProbe InPlacePodVerticalScalingMemoryBackedVolumes
      KubeletAllocatedPodsEndpoint VolumeBindMountOptions
        1.37 beta on: HugepageAwareEviction PodLevelResourcesFixKubeletQOSClass
    """,
    "it affects only how the API server stores, serves and counts objects": """
        1.15 beta on: StorageVersionHash
        1.16 beta on: APIResponseCompression
        1.20 alpha: StorageVersionAPI
        1.24 beta on: OpenAPIEnums
        1.26 beta on: APIServerIdentity
        1.27 alpha, 1.32 beta on, 1.33 beta off, 1.34 beta on: WatchList
        1.28 alpha, 1.36 beta on: UnknownVersionInteroperabilityProxy
        1.29 beta on: UnauthenticatedHTTP2DOSMitigation
        1.30 alpha: APIServingWithRoutine
        1.30 alpha, 1.35 beta off, 1.37 GA on: StorageVersionMigrator
        1.30 beta on, 1.33 deprecated on: StorageNamespaceIndex
        1.31 alpha, 1.33 beta off: CoordinatedLeaderElection
        1.31 beta off, 1.36 beta on, 1.37 locked on: WatchCacheInitializationPostStartHook
        1.31 beta off, 1.37 beta on: ConcurrentWatchObjectDecode
        1.32 alpha: CBORServingAndStorage
        1.32 alpha, 1.37 beta on: AllowUnsafeMalformedObjectDeletion
        1.33 alpha, 1.34 beta on: ListFromCacheSnapshot
        1.33 beta off, 1.36 deprecated off, 1.37 locked off: DeclarativeValidationTakeover
        1.34 beta on: DetectCacheInconsistency SizeBasedListCostEstimate
        1.35 beta off, 1.36 beta on: CRDObservedGenerationTracking
        1.36 alpha: ShardedListAndWatch
        1.36 beta on: DeclarativeValidationBeta
        1.37 alpha: ConsistentListFromCacheSkipTimeoutFallback
        1.37 beta on: EtcdRangeStream WatchListCompression
    """,
    "it affects only authorization, secrets or certificates": """
        1.27 alpha, 1.33 beta off, 1.37 GA on: ClusterTrustBundle
        1.29 alpha, 1.33 beta off, 1.37 GA on: ClusterTrustBundleProjection
        1.29 deprecated off: KMSv1
        1.31 deprecated off: AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
        1.32 alpha, 1.33 beta on: RemoteRequestHeaderUID
        1.32 beta off, 1.33 beta on: ServiceAccountNodeAudienceRestriction
        1.33 beta on: AllowParsingUserUIDFromCertAuth
        1.34 alpha, 1.35 beta off, 1.37 GA on: PodCertificateRequest
        1.34 beta on: StructuredAuthenticationConfigurationEgressSelector TokenRequestServiceAccountUIDValidation
        1.35 alpha, 1.36 beta on: ConstrainedImpersonation
        1.35 beta on: AuthorizePodWebsocketUpgradeCreatePermission StructuredAuthenticationConfigurationJWKSMetrics
        1.36 beta on: ClientsAllowCARotation DRAResourceClaimGranularStatusAuthorization
        1.37 alpha: APIServerWebhookAuthenticationToken
    """,
    "it affects only clients, logs or metrics": """
        1.24 alpha: LoggingAlphaOptions
        1.24 alpha, 1.30 beta on: ContextualLogging
        1.24 beta on: LoggingBetaOptions
        1.30 alpha, 1.35 GA on: InformerResourceVersion
        1.30 beta off, 1.35 beta on: WatchListClient
        1.32 alpha: ClientsAllowCBOR ClientsPreferCBOR
        1.32 alpha, 1.36 beta on: ComponentFlagz ComponentStatusz
        1.35 beta on: InOrderInformersBatchProcess
        1.36 alpha, 1.37 beta on: NativeHistograms
        1.36 beta on: AtomicFIFO ClientsAllowTLSCacheGC UnlockWhileProcessingFIFO
    """,
    "it affects only network traffic, which is not modeled": """
        1.27 alpha: CloudControllerManagerWebhook
        1.29 alpha, 1.30 beta on: TranslateStreamCloseWebsocketRequests
        1.30 alpha, 1.31 beta on: PortForwardWebsockets
        1.33 alpha, 1.36 beta on: StrictIPCIDRValidation
        1.34 alpha, 1.36 beta on, 1.37 locked on: RelaxedServiceNameValidation
        1.35 alpha: CloudControllerManagerWatchBasedRoutesReconciliation
        1.36 GA on: AllowServiceExternalIPs
        1.36 deprecated on: ServiceCIDRStatusFieldWiping
        1.37 alpha: KubeProxyNFTablesLocalhostNodePorts
        1.37 beta on: NFTablesNetlink
        1.37 deprecated on: KubeProxyIPVS
    """,
    "it affects only autoscalers, which are not modeled": """
        1.16 alpha, 1.37 beta on: HPAScaleToZero
        1.33 alpha, 1.35 beta on, 1.37 locked on: HPAConfigurableTolerance
        1.37 beta on: HPAGeneration HPAOptimizedSelectorStore StaleControllerConsistencyHPA
    """,
    "it affects only the cluster's policies and webhooks, which are unknown": """
        1.30 alpha, 1.34 beta off, 1.36 GA on: MutatingAdmissionPolicy
        1.36 alpha, 1.37 beta on: ManifestBasedAdmissionControlConfig
        1.37 beta on: ExcludeAdmissionWebhookVirtualResources WebhookRoundTripLoadBalancing
    """,
    "it affects only fields that no scheduler reads, or later changes to fields": """
        1.26 alpha: CrossNamespaceVolumeDataSource
        1.33 alpha, 1.35 beta on: DeploymentReplicaSetTerminatingReplicas
        1.34 alpha, 1.35 beta on: ClearingNominatedNodeNameAfterBinding
        1.35 alpha: MutablePVNodeAffinity
        1.36 alpha: DRAResourcePoolStatus
        1.36 alpha, 1.37 beta on: PersistentVolumeClaimUnusedSinceTime
        1.36 beta on, 1.37 locked on: InPlacePodVerticalScalingInitContainers
        1.37 alpha: DRAPartitionableDevicesType
    """,
    "with it, controllers wait for their caches; simulated controllers see every change immediately": """
        1.36 beta on: StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
      StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    """,
    "kpreempt decides about each pod on its own, as the scheduler does without it": """
        1.35 beta on: OpportunisticBatching
        1.37 alpha: InterPodAffinityHostnameFastPath
    """,
}

# These cannot be set in 1.36, and their effect in older versions has not been investigated: if set there, they are
# reported.
LOCKED = """
    1.12 alpha, 1.31 beta off, 1.33 beta on, 1.36 locked on: ProcMountType
    1.14 alpha, 1.33 beta on, 1.34 locked on: WinDSR
    1.20 GA on, 1.35 locked on: ExecProbeTimeout
    1.20 beta on, 1.34 locked on: WinOverlay
    1.22 beta on, 1.31 locked on, 1.37 gone: LogarithmicScaleDown
    1.23 alpha, 1.32 beta on, 1.34 locked on: RecoverVolumeExpansionFailure
    1.23 beta on, 1.33 locked on: CPUManagerPolicyOptions
    1.24 beta on, 1.33 locked on, 1.37 gone: AnyVolumeDataSource
    1.25 alpha, 1.30 beta off, 1.33 beta on, 1.36 locked on: UserNamespacesSupport
    1.27 alpha, 1.30 beta off, 1.36 locked on: NodeLogQuery
    1.27 alpha, 1.31 beta off, 1.33 GA on, 1.34 locked on: MultiCIDRServiceAllocator
    1.27 alpha, 1.34 beta on, 1.36 locked on: KubeletPodResourcesDynamicResources KubeletPodResourcesGet
    1.27 beta on, 1.30 locked on: PodSchedulingReadiness
    1.27 beta on, 1.34 locked on: KubeletTracing
    1.27 beta on, 1.34 locked on, 1.37 gone: APIServerTracing
    1.28 alpha, 1.30 beta on, 1.33 locked on: CRDValidationRatcheting
    1.28 alpha, 1.31 beta on, 1.34 locked on: KubeletCgroupDriverFromCRI
    1.28 alpha, 1.31 beta on, 1.34 locked on, 1.37 gone: ConsistentListFromCache
    1.28 beta off, 1.30 beta on, 1.34 locked on: NodeSwap
    1.28 beta on, 1.32 GA on, 1.36 locked on: TopologyManagerPolicyOptions
    1.28 beta on, 1.33 deprecated off, 1.36 locked off: SeparateCacheWatchRPC
    1.28 beta on, 1.36 locked on: SELinuxMountReadWriteOncePod
    1.29 GA on, 1.30 locked on, 1.31 gone: ConsistentHTTPGetHandlers
    1.29 alpha, 1.30 beta on, 1.31 locked on, 1.33 gone: KubeProxyDrainingTerminatingNodes
    1.29 alpha, 1.30 beta on, 1.32 locked on: ServiceAccountTokenJTI ServiceAccountTokenNodeBindingValidation
      ServiceAccountTokenPodNodeInfo
    1.29 alpha, 1.30 beta on, 1.32 locked on, 1.35 gone: LoadBalancerIPMode
    1.29 alpha, 1.30 beta on, 1.32 locked on, 1.36 gone: StructuredAuthorizationConfiguration
    1.29 alpha, 1.30 beta on, 1.34 locked on, 1.37 gone: PodLifecycleSleepAction StructuredAuthenticationConfiguration
    1.29 alpha, 1.30 beta on, 1.35 locked on: ImageMaximumGCAge
    1.29 alpha, 1.30 gone: SecurityContextDeny
    1.29 alpha, 1.31 beta on, 1.33 locked on: NFTablesProxyMode ServiceAccountTokenNodeBinding
    1.29 alpha, 1.31 beta on, 1.33 locked on, 1.36 gone: HonorPVReclaimPolicy
    1.29 alpha, 1.31 deprecated off, 1.33 deprecated on, 1.36 locked on: DisableNodeKubeProxyVersion
    1.29 alpha, 1.31 gone: InTreePluginAWSUnregister InTreePluginAzureDiskUnregister InTreePluginAzureFileUnregister
      InTreePluginGCEUnregister InTreePluginOpenStackUnregister InTreePluginvSphereUnregister
    1.29 alpha, 1.35 gone: UserNamespacesPodSecurityStandards
    1.29 alpha, 1.36 gone: InTreePluginPortworxUnregister
    1.29 beta off, 1.30 locked on, 1.32 gone: ValidatingAdmissionPolicy ZeroLimitedNominalConcurrencyShares
    1.29 beta off, 1.33 locked off, 1.36 gone: WatchFromStorageWithoutResourceVersion
    1.29 beta on, 1.30 locked on, 1.32 gone: CloudDualStackNodeIPs HPAContainerMetrics
      LegacyServiceAccountTokenCleanUp NewVolumeManagerReconstruction PodHostIPs StableLoadBalancerNodeSet
    1.29 beta on, 1.30 locked on, 1.33 gone: AdmissionWebhookMatchConditions AggregatedDiscoveryEndpoint
    1.29 beta on, 1.31 locked on, 1.33 gone: AppArmor DisableCloudProviders DisableKubeletCloudCredentialProviders
      JobPodFailurePolicy PDBUnhealthyPodEvictionPolicy PersistentVolumeLastPhaseTransitionTime
    1.29 beta on, 1.31 locked on, 1.34 gone: DevicePluginCDIDevices ElasticIndexedJob StatefulSetStartOrdinal
    1.29 beta on, 1.32 locked on, 1.35 gone: ComponentSLIs CronJobsScheduledAnnotation PodIndexLabel
      SizeMemoryBackedVolumes StatefulSetAutoDeletePVC
    1.29 beta on, 1.32 locked on, 1.36 gone: MemoryManager
    1.29 beta on, 1.33 locked on, 1.36 gone: TopologyAwareHints
    1.29 beta on, 1.33 locked on, 1.37 gone: JobBackoffLimitPerIndex
    1.29 beta on, 1.34 locked on: SeparateTaintEvictionController
    1.29 beta on, 1.34 locked on, 1.37 gone: JobPodReplacementPolicy
    1.29 deprecated off, 1.31 gone: CSIMigrationRBD DefaultHostNetworkHostPortsInPodTemplates
      InTreePluginRBDUnregister
    1.29 deprecated off, 1.32 locked off, 1.35 gone: AllowServiceLBStatusOnNonLB
    1.29 deprecated on, 1.31 gone: SkipReadOnlyValidationGCE
    1.29 locked off, 1.30 gone: ExperimentalHostUserNamespaceDefaulting
    1.29 locked on, 1.30 gone: APISelfSubjectReview CSIMigrationAzureFile ExpandedDNSConfig IPTablesOwnershipCleanup
      KubeletPodResources KubeletPodResourcesGetAllocatable LegacyServiceAccountTokenTracking MinimizeIPTablesRestore
      ProxyTerminatingEndpoints RemoveSelfLink
    1.29 locked on, 1.31 gone: APIPriorityAndFairness CSINodeExpandSecret CustomResourceValidationExpressions
      JobReadyPods ReadWriteOncePod ServiceNodePortStaticSubrange
    1.29 locked on, 1.32 gone: KMSv2 KMSv2KDF NodeOutOfServiceVolumeDetach ServerSideApply ServerSideFieldValidation
    1.29 locked on, 1.33 gone: APIListChunking CPUManager EfficientWatchResumption RemainingItemCount WatchBookmark
    1.30 alpha, 1.31 beta on, 1.32 locked on: CustomResourceFieldSelectors
    1.30 alpha, 1.31 beta on, 1.32 locked on, 1.37 gone: RetryGenerateName
    1.30 alpha, 1.31 beta on, 1.33 locked on: RecursiveReadOnlyMounts
    1.30 alpha, 1.31 beta on, 1.33 locked on, 1.36 gone: ServiceTrafficDistribution
    1.30 alpha, 1.32 beta on, 1.34 locked on: RelaxedEnvironmentVariableValidation
    1.30 beta off, 1.32 locked on, 1.35 gone: StrictCostEnforcementForVAP StrictCostEnforcementForWebhooks
    1.30 beta off, 1.33 beta on, 1.34 locked on, 1.37 gone: OrderedNamespaceDeletion
    1.30 beta on, 1.31 locked on, 1.33 gone: AppArmorFields
    1.31 alpha, 1.32 beta on, 1.34 locked on, 1.37 gone: AnonymousAuthConfigurableEndpoints AuthorizeNodeWithSelectors
      AuthorizeWithSelectors
    1.31 alpha, 1.32 gone: DRAControlPlaneController
    1.31 alpha, 1.33 beta off, 1.34 GA on, 1.35 locked on: DisableAllocatorDualWrite
    1.31 alpha, 1.33 beta off, 1.35 beta on, 1.36 locked on: ImageVolume
    1.31 alpha, 1.33 beta on, 1.35 locked on: SupplementalGroupsPolicy
    1.31 beta on, 1.34 locked on, 1.37 gone: ResilientWatchCacheInitialization
    1.32 alpha, 1.33 beta on, 1.34 locked on, 1.37 gone: PodLifecycleSleepActionAllowZero RelaxedDNSSearchValidation
    1.32 alpha, 1.33 beta on, 1.36 locked on: KubeletFineGrainedAuthz SELinuxChangePolicy
    1.32 alpha, 1.33 deprecated off, 1.36 gone: InPlacePodVerticalScalingAllocatedStatus
    1.32 alpha, 1.34 beta on, 1.36 locked on: ExternalServiceAccountTokenSigner
    1.32 beta on, 1.33 locked on, 1.37 gone: BtreeWatchCache
    1.32 beta on, 1.35 locked on: SystemdWatchdog
    1.32 deprecated off, 1.35 locked off: AllowOverwriteTerminationGracePeriodSeconds
    1.33 alpha, 1.34 beta off, 1.35 beta on, 1.36 locked on: MutableCSINodeAllocatableCount
    1.33 alpha, 1.34 beta on, 1.35 locked on: PodObservedGenerationTracking PreferSameTrafficDistribution
    1.33 alpha, 1.34 beta on, 1.36 locked on: KubeletPSI
    1.33 beta on, 1.34 locked on, 1.37 gone: StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    1.33 beta on, 1.36 locked on: DeclarativeValidation InOrderInformers
    1.33 deprecated off, 1.34 gone: LegacySidecarContainers
    1.33 deprecated off, 1.36 locked off: GitRepoVolumeDriver
    1.33 deprecated on, 1.35 locked on: AggregatedDiscoveryRemoveBetaType
    1.34 locked on, 1.35 gone: ProbeHostPodSecurityStandards
    1.35 beta on, 1.36 locked on: CSIServiceAccountTokenSecrets
"""

# Gates and the gates they depend on, since 1.35. A row may start with the first version in which it holds and, after
# the hyphen, the first version in which it no longer does.
DEPENDENCIES = """
    APIServerIdentity: StorageVersionAPI UnknownVersionInteroperabilityProxy
    1.36- AtomicFIFO: StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
      StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    1.37- AtomicFIFO: NodeControllerLeaseCircuitBreaker StaleControllerConsistencyHPA
    -1.37 AuthorizeNodeWithSelectors: PodCertificateRequest
    -1.37 AuthorizeWithSelectors: AuthorizeNodeWithSelectors
    ClusterTrustBundle: ClusterTrustBundleProjection
    ContainerRestartRules NodeDeclaredFeatures: RestartAllContainersOnContainerExits
    1.37- DRAConsumableCapacity: DRAFractionalCapacityRange
    DRADeviceTaints: DRADeviceTaintRules
    1.37- DRAPartitionableDevices DRAResourcePoolStatus DynamicResourceAllocation: DRAPartitionableDevicesType
    1.37- DRAPartitionableDevices DynamicResourceAllocation: DRADeviceCompatibilityGroups
    DRAResourceClaimDeviceStatus DynamicResourceAllocation: DRADeviceBindingConditions
    1.36- DRAResourceClaimDeviceStatus DynamicResourceAllocation: DRAResourceClaimGranularStatusAuthorization
    DeclarativeValidation: DeclarativeValidationTakeover
    1.36- DeclarativeValidation: DeclarativeValidationBeta
    DynamicResourceAllocation: DRAAdminAccess DRAConsumableCapacity DRADeviceTaints DRAExtendedResource
      DRAPartitionableDevices DRAPrioritizedList DRASchedulerFilterTimeout ResourceHealthStatus
    1.36- DynamicResourceAllocation: DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
    1.37- DynamicResourceAllocation: DRADerivedAttributes
    1.36- DynamicResourceAllocation GenericWorkload: DRAWorkloadResourceClaims
    1.37- DynamicResourceAllocation NodeDeclaredFeatures: DRAOptionalNodeOperations
    1.36-1.37 GangScheduling: WorkloadAwarePreemption
    -1.37 GenericWorkload: GangScheduling
    1.36- GenericWorkload: TopologyAwareWorkloadScheduling WorkloadWithJob
    1.37- GenericWorkload: PodGroupPreemptionPolicy
    1.37- GenericWorkload TopologyAwareWorkloadScheduling: CompositePodGroup
    GracefulNodeShutdown: GracefulNodeShutdownBasedOnPodPriority WindowsGracefulNodeShutdown
    1.36- ImageVolume: ImageVolumeWithDigest
    InPlacePodVerticalScaling: InPlacePodVerticalScalingExclusiveCPUs
    -1.36 InPlacePodVerticalScaling: InPlacePodVerticalScalingAllocatedStatus
    1.36- InPlacePodVerticalScaling: InPlacePodVerticalScalingExclusiveMemory
    1.37- InPlacePodVerticalScaling: InPlacePodVerticalScalingSchedulerPreemption KubeletAllocatedPodsEndpoint
    -1.36 InPlacePodVerticalScaling MemoryManager: InPlacePodVerticalScalingExclusiveMemory
    1.36- InPlacePodVerticalScaling NodeDeclaredFeatures: InPlacePodVerticalScalingInitContainers
    1.37- InPlacePodVerticalScaling NodeDeclaredFeatures: InPlacePodVerticalScalingMemoryBackedVolumes
    InPlacePodVerticalScaling NodeDeclaredFeatures PodLevelResources: InPlacePodLevelResourcesVerticalScaling
    MatchLabelKeysInPodTopologySpread: MatchLabelKeysInPodTopologySpreadSelectorMerge
    -1.36 MemoryManager: WindowsCPUAndMemoryAffinity
    MultiCIDRServiceAllocator: DisableAllocatorDualWrite
    1.36- NodeDeclaredFeatures: ExtendWebSocketsToKubelet
    1.37- NodeDeclaredFeatures: H2CContainerProbe
    1.36- NodeDeclaredFeatures UserNamespacesSupport: UserNamespacesHostNetworkSupport
    1.37- PLEGOnDemandRelist: EventedPLEG
    1.36- PodLevelResources: PodLevelResourceManagers
    1.37- PodLevelResources: PodLevelResourcesFixDefaulting PodLevelResourcesFixKubeletQOSClass
    -1.37 PodLifecycleSleepAction: PodLifecycleSleepActionAllowZero
    1.36- ResourceHealthStatus: ResourceHealthStatusMessage
    ServiceAccountTokenNodeBindingValidation: ServiceAccountTokenNodeBinding
    -1.37 StructuredAuthenticationConfiguration: StructuredAuthenticationConfigurationEgressSelector
      StructuredAuthenticationConfigurationJWKSMetrics
    UserNamespacesSupport: ProcMountType
    -1.36 UserNamespacesSupport: UserNamespacesHostNetworkSupport
"""
