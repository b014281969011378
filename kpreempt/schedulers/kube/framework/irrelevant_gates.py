"""The feature gates of 1.36.3 that change no answer here however they are set, by the reason why.

A gate may stand here only where nothing that is modelled reads what it switches. Found by where each is read: no gate
of these is read in ``pkg/scheduler``, in admission that is modelled, or for what controllers that are modelled do with
pods (``k8s.io/kubernetes`` v1.36.3).
"""

from __future__ import annotations

from collections.abc import Mapping


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


REASONS: Mapping[str, frozenset[str]] = {
    "kubelets and runtimes run what is bound to their node; nothing that they do is modelled": _names(
        """
        CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions CRIListStreaming CSIVolumeHealth
        ChangeContainerStatusOnKubeletRestart ContainerCheckpoint ContainerStopSignals CustomCPUCFSQuotaPeriod
        DisableCPUQuotaWithExclusiveCPUs EnvFiles EventedPLEG ExtendWebSocketsToKubelet GracefulNodeShutdown
        GracefulNodeShutdownBasedOnPodPriority HostnameOverride ImageVolumeWithDigest
        InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KubeletCrashLoopBackOffMax
        KubeletEnsureSecretPulledImages KubeletInUserNamespace KubeletPodResourcesListUseActivePods
        KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders
        LocalStorageCapacityIsolationFSQuotaMonitoring MemoryQoS PLEGOnDemandRelist PodAndContainerStatsFromCRI
        PodLevelResourceManagers PodLogsQuerySplitStreams PodReadyToStartContainersCondition PodsAPI
        PreventStaticPodAPIReferences QOSReserved ReduceDefaultCrashLoopBackOffDecay ReloadKubeletClientCAFile
        ReloadKubeletServerCertificateFile ResourceHealthStatus ResourceHealthStatusMessage
        RotateKubeletServerCertificate RuntimeClassInImageCriApi SELinuxMount TopologyManagerPolicyAlphaOptions
        TopologyManagerPolicyBetaOptions WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork
        """
    ),
    "how the API server stores, serves and counts objects is not part of them": _names(
        """
        APIResponseCompression APIServerIdentity APIServingWithRoutine AllowUnsafeMalformedObjectDeletion
        CBORServingAndStorage CRDObservedGenerationTracking ConcurrentWatchObjectDecode CoordinatedLeaderElection
        DeclarativeValidationBeta DeclarativeValidationTakeover DetectCacheInconsistency ListFromCacheSnapshot
        OpenAPIEnums ShardedListAndWatch SizeBasedListCostEstimate StorageNamespaceIndex StorageVersionAPI
        StorageVersionHash StorageVersionMigrator UnauthenticatedHTTP2DOSMitigation
        UnknownVersionInteroperabilityProxy WatchCacheInitializationPostStartHook WatchList
        """
    ),
    "who may do what, and how secrets and certificates are kept, decides about no pod here": _names(
        """
        AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests AllowParsingUserUIDFromCertAuth
        AuthorizePodWebsocketUpgradeCreatePermission ClientsAllowCARotation ClusterTrustBundle
        ClusterTrustBundleProjection ConstrainedImpersonation DRAResourceClaimGranularStatusAuthorization KMSv1
        PodCertificateRequest RemoteRequestHeaderUID ServiceAccountNodeAudienceRestriction
        StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
        TokenRequestServiceAccountUIDValidation
        """
    ),
    "clients, logs and metrics tell the same in another way": _names(
        """
        AtomicFIFO ClientsAllowCBOR ClientsAllowTLSCacheGC ClientsPreferCBOR ComponentFlagz ComponentStatusz
        ContextualLogging InOrderInformersBatchProcess InformerResourceVersion LoggingAlphaOptions LoggingBetaOptions
        NativeHistograms UnlockWhileProcessingFIFO WatchListClient
        """
    ),
    "services and routes carry traffic, which is not modelled": _names(
        """
        AllowServiceExternalIPs CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
        PortForwardWebsockets RelaxedServiceNameValidation ServiceCIDRStatusFieldWiping StrictIPCIDRValidation
        TranslateStreamCloseWebsocketRequests
        """
    ),
    "no autoscaler acts here": _names("HPAConfigurableTolerance HPAScaleToZero"),
    "policies and webhooks of a cluster are unknown here, with it and without": _names(
        "ManifestBasedAdmissionControlConfig MutatingAdmissionPolicy"
    ),
    "it is about what fields say that no scheduler reads, or may be changed to later": _names(
        """
        ClearingNominatedNodeNameAfterBinding CrossNamespaceVolumeDataSource DRAResourcePoolStatus
        DeploymentReplicaSetTerminatingReplicas InPlacePodVerticalScalingInitContainers MutablePVNodeAffinity
        PersistentVolumeClaimUnusedSinceTime
        """
    ),
    "controllers wait for their caches with it; here they see everything at once": _names(
        """
        StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
        StaleControllerConsistencyStatefulSet
        """
    ),
    "every pod is decided on its own, as it is without it": _names("OpportunisticBatching"),
}

IRRELEVANT = frozenset[str]().union(*REASONS.values())
